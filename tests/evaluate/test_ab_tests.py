"""An A/B test: models compared by the users that each one serves, and these users against their plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from rankeval_spark.errors import ConfigError
from tests.evaluate.test_shared_users import evaluated, log_of
from tests.support import arms
from tests.support.arrow_frames import table, where
from tests.support.sections import measured

PLAN = {"A": 0.9, "B": 0.1}
MICRO = "P(agg='micro',denom='len')"
HELD_OUT = table("user_id item_id", *((arms.user(one), "t") for one in range(0, arms.N_USERS, 2)))


def ab_test(shared: tuple[int, ...] = (), **asked: Any) -> Any:  # noqa: ANN401 - an evaluation
    """Evaluate the arms, where every second user clicks, on all users with a list."""
    log = log_of(arms.lists(shared)).drop_columns(["list_id"])
    options = {"measures": [f"{MICRO}@1", "RR@2", "Success@1"], "population": "run", "zero_relevant": "zero", **asked}
    return measured(log, HELD_OUT, comparisons={"baseline": "A", "split": PLAN}, **options)


def test_each_model_is_compared_by_its_own_users_as_scipy_does() -> None:
    result = ab_test()
    users = where(result.user_metrics, k=1)
    own = [np.array([row["success"] for row in where(users, model_id=model).to_pylist()]) for model in "BA"]
    rows = {row["measure"]: row for row in result.comparisons.to_pylist()}
    expected = stats.ttest_ind(*own, equal_var=False)
    for name, method in (("Success", "welch"), (MICRO, "delta")):  # lists of one item: the ratio is a mean of shares
        row = rows[name]
        assert (row["test"], row["method"], row["n_users"], row["n_baseline_users"]) == ("unpaired", method, 100, 900)
        assert [row["baseline_value"], row["value"]] == pytest.approx([150 / 900, 17 / 100], rel=0, abs=1e-12)
        assert [row["delta"], row["p_value"]] == pytest.approx(
            [17 / 100 - 150 / 900, expected.pvalue], rel=0, abs=1e-12
        )
        assert row["freedom"] == pytest.approx(expected.df, rel=1e-12)
        assert (row["n_wins"], row["verdict"], row["is_small"]) == (None, "undecided", False)
    assert {row["family_size"] for row in rows.values()} <= {1, 2, 3}


def test_judged_users_whom_a_model_does_not_serve_do_not_count() -> None:
    """With the population ``truth`` they count 0 in the means, which say how many users each model serves."""
    result = evaluated(comparisons={"baseline": "A", "split": PLAN}, baseline=None, measures=["Success@1"])
    assert "comparisons.split with population 'truth'" in " ".join(result.notes)
    assert ab_test().notes == ()
    with pytest.warns(UserWarning, match="sample_ratio: 81 users too many"):
        (row,) = where(result.comparisons, slice="all").to_pylist()
    assert [row["baseline_value"], row["value"]] == pytest.approx([300 / 900, 34 / 100], rel=0, abs=1e-12)
    (of_de,) = where(result.comparisons, slice_value="DE").to_pylist()
    assert (of_de["n_users"], of_de["reason"], of_de["verdict"]) == (0, "no_users", None)


def test_users_of_both_models_are_counted_and_said() -> None:
    result = ab_test((3, 6), measures=["Success@1"])
    with pytest.warns(UserWarning, match="'B' with 'A' is unpaired: 2 users have lists of both, though each"):
        (row,) = result.comparisons.to_pylist()
    assert (row["n_users"], row["n_baseline_users"], row["n_with_both"]) == (102, 900, 2)
    a, b = (
        {row["user_id"]: row["success"] for row in where(result.user_metrics, model_id=model).to_pylist()}
        for model in "AB"
    )
    both = [(a[name] - np.mean([*a.values()])) * (b[name] - np.mean([*b.values()])) for name in set(a) & set(b)]
    square = sum(np.var([*each.values()], ddof=1) / len(each) for each in (a, b)) - 2 * (2 * sum(both)) / (102 * 900)
    half = (row["ci_high"] - row["ci_low"]) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, row["freedom"]) * np.sqrt(square), rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("split", "count", "verdict", "words"),
    [
        ({"A": 0.9, "B": 0.1}, 0, "ok", []),
        ({"A": 0.89, "B": 0.11}, 10, "ok", ["A 900 (0.89), B 100 (0.11), p = 0.31"]),
        ({"A": 0.5, "B": 0.5}, 400, "warn", ["A 900 (0.5), B 100 (0.5), p = 3.3e-141"]),
        ({"A": 0.8, "B": 0.1, "C": 0.1}, 100, "warn", ["A 900 (0.8), B 100 (0.1), C 0 (0.1), p = 3.7e-25"]),
    ],
)
def test_users_of_each_model_are_checked_against_the_plan(
    split: dict[str, float], count: int, verdict: str, words: list[str]
) -> None:
    result = measured(
        log_of(arms.lists()), HELD_OUT, measures=["Success@1"], comparisons={"baseline": "A", "split": split}
    )
    if verdict == "warn":
        with pytest.warns(UserWarning, match=f"sample_ratio: {count} users too many .*find out why"):
            result.comparisons  # noqa: B018 - computed for its warning
    (row,) = where(result.checks, check="sample_ratio").to_pylist()
    assert (row["count"], row["share"], row["verdict"], row["sample_keys"]) == (count, count / 1_000, verdict, words)


def test_a_slice_that_is_split_otherwise_is_named() -> None:
    """Half of a country goes to the other model, and as many of another come back."""
    users = {f"u{one}": "A" if (one % 2 == 0) != (one % 8 == 1) else "B" for one in range(2_000)}
    log = table("model_id user_id item_id score", *((model, name, "t", 1.0) for name, model in users.items()))
    segments = table("user_id country", *((name, "AT" if int(name[1:]) % 8 < 2 else "DE") for name in users))
    asked: dict[str, Any] = {"comparisons": {"baseline": "A", "split": {"A": 0.625, "B": 0.375}}, "slices": ["country"]}
    asked |= {"population": "run", "zero_relevant": "zero"}
    result = measured(log, HELD_OUT, segments=segments, measures=["Success@1"], **asked)
    (row,) = where(result.checks, check="sample_ratio").to_pylist()
    assert (row["count"], row["verdict"]) == (round(500 * 0.375), "warn")
    assert row["sample_keys"][0].startswith("country = AT: A 500 (0.625), B 0 (0.375), p = ")


def test_pairs_of_other_models_stay_paired_and_all_arms_have_each_other() -> None:
    lists = arms.lists()
    log = log_of({**lists, "C": {**lists["A"], **lists["B"]}}).drop_columns(["list_id"])
    asked: dict[str, Any] = {"pairs": "all", "split": PLAN, "tests": ["t", "sign"]}
    rows = measured(log, HELD_OUT, measures=["Success@1"], comparisons=asked).comparisons.to_pylist()
    found = {(row["baseline_model_id"], row["model_id"], row["test"]) for row in rows}
    assert found == {("A", "B", "unpaired"), *((model, "C", test) for model in "AB" for test in ("t", "sign"))}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"split": {"A": 0.5, "B": 0.4}}, r"split: found shares that add up to 0.9; expected shares that add up to 1"),
        (
            {"split": {"a": 0.5, "B": 0.5}},
            r"baseline: found 'A'; expected one of the models of split: a, B; did you .*'a'",
        ),
        ({"split": {"A": 1.0}}, r"split.A: found 1.0; expected less than 1"),
        ({"split": {}}, r"split: found 0 named; expected at least 2$"),
        ({"split": {"A": 0.5}}, r"split: found 1 named; expected at least 2$"),
        ({"split": {"A": 1.5, "B": -0.5}}, r"split.A: found 1.5"),
        (
            {"split": PLAN, "tests": ["t", "tukey"], "pairs": "all"},
            r"tests: found tukey with split; expected tests of two",
        ),
        ({"split": PLAN, "covariate": "2026-01-31"}, r"covariate: found '2026-01-31'; expected no earlier night in a"),
        ({"split": PLAN, "covariate": "2026-1-31"}, r"covariate: found '2026-1-31'; expected a date such as 2026-01-3"),
        ({"split": PLAN, "tests": ["t", "unpaired"]}, r"tests\[1\]: found 'unpaired'"),
    ],
)
def test_a_split_that_is_none_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        measured(log_of(arms.lists()), HELD_OUT, measures=["RR@2"], comparisons={"baseline": "A", **asked})


def test_models_of_a_split_are_among_the_models() -> None:
    with pytest.raises(
        ConfigError, match=r"split.Bb: found 'Bb'; expected one of the models: A, B; did you mean 'B'\?"
    ):
        measured(
            log_of(arms.lists()),
            HELD_OUT,
            measures=["RR@2"],
            models=["A", "B"],
            comparisons={"baseline": "A", "split": {"A": 0.5, "Bb": 0.5}},
        )

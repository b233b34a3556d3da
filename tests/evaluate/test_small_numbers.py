"""Values of any size: what is rounding depends on the values, not on the number 1."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

import pytest

from rankeval_spark import evaluate
from rankeval_spark.config.inference import TestName
from rankeval_spark.errors import RefusedCallError
from tests.support.arrow_frames import dicts, table
from tests.support.sections import measured

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES: Final = (1e-30, 1e-13, 1.0, 1e13)
TESTS: Final[tuple[str, ...]] = get_args(TestName)
NUMBERS: Final = ("verdict", "method", "reason", "n_wins", "n_ties", "n_losses")


def compared(size: float, values: Sequence[tuple[float, float]], *, tests: Sequence[str] = TESTS) -> dict[str, Any]:
    """Compare two models by the worth of their first item, of users who have it under both; by test."""
    models = {"base": 0, "new": 1}
    log = [(model, f"u{user:02}", model, 1.0) for model in models for user in range(len(values))]
    worth = [
        (f"u{user:02}", model, 1.0, own[place] * size)
        for user, own in enumerate(values)
        for model, place in models.items()
    ]
    found = measured(
        table("model_id user_id item_id score", *log),
        table("user_id item_id gain value", *worth),
        measures=["CG(gains='value')@1"],
        pairs="all",
        tests=tests,
        replicates=500,
    )
    return {row["test"]: row for row in dicts(found.comparisons)}


@pytest.mark.parametrize("size", [size for size in SIZES if size != 1])
def test_every_comparison_is_the_same_in_any_unit(size: float) -> None:
    """Of 40 users 30 gain a little, 5 lose and 5 are the same."""
    values = [
        (1.0 + user / 7, 1.0 + user / 7 + (0.1 if user < 30 else -0.1 if user < 35 else 0.0)) for user in range(40)
    ]
    wanted = compared(1.0, values)
    assert wanted["t"]["verdict"] == "better"
    for test, row in compared(size, values).items():
        assert [row[name] for name in NUMBERS] == [wanted[test][name] for name in NUMBERS], test
        assert row["p_value"] == pytest.approx(wanted[test]["p_value"], rel=1e-9), test
        assert row["delta"] / size == pytest.approx(wanted[test]["delta"], rel=1e-9), test


@pytest.mark.parametrize("size", SIZES)
def test_differences_that_are_all_the_same_have_no_spread_in_any_unit(size: float) -> None:
    """A tenth more for every user, but for the rounding of their sums."""
    found = compared(size, [(user / 3, user / 3 + 0.1) for user in range(40)], tests=("t",))["t"]
    assert (found["method"], found["effect_size"], found["p_value"]) == ("equal", None, 2.0**-39)


@pytest.mark.parametrize("size", SIZES)
def test_models_that_differ_by_rounding_only_are_equal_in_any_unit(size: float) -> None:
    found = compared(size, [(0.3 + user, 0.1 + 0.2 + user) for user in range(40)])
    assert {test: (row["delta"], row["p_value"]) for test, row in found.items()} == dict.fromkeys(TESTS, (0.0, 1.0))


GREAT: Final = ((1e12, 1e12), (1e16, 1e16), (3e200, 3e200), (1e12, 2e12))


@pytest.mark.parametrize("great", GREAT)
def test_next_to_one_great_user_the_others_still_differ(great: tuple[float, float]) -> None:
    """Of 30 users 29 have 1 under one model and 2 under the other."""
    n_wins = 29 + (great[1] > great[0])
    found = compared(1.0, [great, *[(1.0, 2.0)] * 29])
    for test, row in found.items():
        assert row["delta"] == pytest.approx((great[1] - great[0] + 29) / 30, rel=1e-12), test
        assert row["reason"] is None, test
    assert [found["t"][name] for name in ("method", "n_wins", "n_ties", "n_losses")] == ["t", n_wins, 30 - n_wins, 0]
    assert found["sign"]["p_value"] == found["wilcoxon"]["p_value"] == 2.0 ** (1 - n_wins)
    assert found["randomization"]["p_value"] == found["randomized_tukey"]["p_value"] == 1 / 501
    if n_wins == 29:  # one 0 and 29 ones have the variance 1 / 30
        assert found["t"]["effect_size"] == pytest.approx(29 / 30 * 30**0.5, abs=1e-12)
        assert found["t"]["verdict"] == "better"
        assert found["tukey"]["p_value"] < 1e-9


@pytest.mark.parametrize("size", [1e-310, 1e-170, 1e-162, 1e155, 1e200, 1e305])
def test_what_needs_squares_has_no_p_where_they_are_no_doubles(size: float) -> None:
    values = [(1.0 + user % 7, 1.0 + user % 5) for user in range(40)]
    wanted = compared(1.0, values)
    for test, row in compared(size, values).items():
        assert row["delta"] / size == pytest.approx(wanted[test]["delta"], rel=1e-9), test
        assert row["relative_delta"] == pytest.approx(wanted[test]["relative_delta"], rel=1e-9), test
        assert (row["n_wins"], row["n_ties"]) == (wanted[test]["n_wins"], wanted[test]["n_ties"]), test
        if test in {"t", "bootstrap", "tukey"}:
            assert (row["p_value"], row["effect_size"], row["verdict"]) == (None, None, None), test
            assert row["reason"] == "out_of_range", test
        else:
            assert (row["p_value"], row["reason"]) == (wanted[test]["p_value"], None), test


def of_gains(gains: Sequence[float], measure: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - arguments of evaluate
    """Evaluate one model that recommends an item to each user, who has so much of it."""
    users = [f"u{user:02}" for user in range(len(gains))]
    found = measured(
        table("model_id user_id item_id score", *[("m", user, "i", 1.0) for user in users]),
        table("user_id item_id gain value", *[(user, "i", 1.0, gain) for user, gain in zip(users, gains, strict=True)]),
        measures=[measure],
        **options,
    )
    return dicts(found.metrics)[0]


@pytest.mark.parametrize(("gains", "mean"), [([1e308] * 3, 1e308), ([1.5e308, 0.5e308, 1.0e308], 1e308)])
def test_the_mean_of_values_near_the_greatest_double_is_exact(gains: list[float], mean: float) -> None:
    found = of_gains(gains, "CG(gains='value')@1")
    assert found["value"] == pytest.approx(mean, rel=1e-15)
    assert (found["std_error"], found["ci_low"]) == (None if len({*gains}) > 1 else 0.0, None)


@pytest.mark.parametrize("size", [1e-170, 1e160])
def test_means_whose_squares_are_no_doubles_have_no_interval(size: float) -> None:
    found = of_gains([size, 2 * size, 6 * size], "CG(gains='value')@1")
    assert found["value"] == pytest.approx(3 * size, rel=1e-15)
    assert (found["std_dev"], found["std_error"], found["ci_low"], found["ci_high"]) == (None, None, None, None)
    assert of_gains([size] * 3, "CG(gains='value')@1")["std_error"] == 0.0


def test_a_sum_of_gains_beyond_a_double_has_no_mean() -> None:
    """User u00 has gains of 1e308 at both ranks; the mean was 0."""
    users = [f"u{user:02}" for user in range(30)]
    log = [(model, user, item, 1.0 - rank) for model in "ab" for user in users for rank, item in enumerate("ij")]
    held_out = [(user, item, 1e308 if user == "u00" else 1.0) for user in users for item in "ij"]
    found = measured(
        table("model_id user_id item_id score", *log),
        table("user_id item_id gain", *held_out),
        measures=["CG@1", "CG@2"],
        pairs="all",
        tests=TESTS,
        replicates=100,
    )
    means = {row["k"]: row["value"] for row in dicts(found.metrics)}
    assert means == {1: pytest.approx(1e308 / 30, rel=1e-15), 2: None}
    for row in dicts(found.comparisons):
        expected = (0.0, None) if row["k"] == 1 else (None, "out_of_range")
        assert (row["delta"], row["reason"]) == expected, row["test"]


@pytest.mark.parametrize(
    ("measure", "of_half"),
    [
        ("nCG@2", 1 / 2),
        ("nCG(agg='micro')@2", 1 / 2),
        ("nDCG(dcg='jk2')@2", 1 / 2),
        ("nDCG@2", 1 / (1 + 1 / math.log2(3))),
        ("nDCG(ideal='len')@2", 1 / (1 + 1 / math.log2(3))),
        ("nDCG(unjudged='mean')@2", 1),
        ("ARHR(denom='ideal',gains='grade')@2", 1 / (1 + 1 / 2)),
        ("R(gains='value')@2", 1 / 2),
    ],
)
def test_a_share_of_gains_whose_sum_is_beyond_a_double_is_exact(measure: str, of_half: float) -> None:
    """Both items of u and v have a gain of 1.7e308, those of w one of 2; u gets both, v and w get one."""
    log = [
        ("u", "i", 2.0),
        ("u", "j", 1.0),
        *((user, item, score) for user in "vw" for item, score in (("i", 2.0), ("z", 1.0))),
    ]
    held_out = [
        (user, item, gain, gain) for user, gain in (("u", 1.7e308), ("v", 1.7e308), ("w", 2.0)) for item in "ij"
    ]
    found = evaluate(
        table("user_id item_id score", *log), table("user_id item_id gain value", *held_out), measures=[measure]
    )
    ((column, asked),) = found.request.measure_set.by_column.items()
    values = {row["user_id"]: row[column] for row in dicts(found.user_metrics)}
    assert values == pytest.approx({"u": 1, "v": of_half, "w": of_half}, rel=0, abs=1e-12)
    (mean,) = dicts(found.metrics)
    expected = None if asked.is_micro else pytest.approx((1 + of_half + of_half) / 3, rel=0, abs=1e-12)
    assert (mean["n_users"], mean["n_undefined"], mean["value"]) == (3, 0, expected)


@pytest.mark.parametrize("measure", ["CG@2", "DCG(dcg='jk2')@2", "DCG(dcg='jk2',unjudged='mean')@2"])
def test_a_sum_of_gains_beyond_a_double_is_infinite_for_its_user_and_has_no_mean(measure: str) -> None:
    log = [(user, item, 1.0 - rank) for user in "uv" for rank, item in enumerate("ij")]
    held_out = [(user, item, gain) for user, gain in (("u", 1e308), ("v", 1.0)) for item in "ij"]
    found = evaluate(table("user_id item_id score", *log), table("user_id item_id gain", *held_out), measures=[measure])
    (column,) = found.request.measure_set.columns
    assert {row["user_id"]: row[column] for row in dicts(found.user_metrics)} == {"u": math.inf, "v": 2.0}
    assert [(row["value"], row["n_users"], row["n_undefined"]) for row in dicts(found.metrics)] == [(None, 2, 0)]


def test_duplicates_whose_sum_is_infinite_are_refused() -> None:
    log = table("model_id user_id item_id score", ("m", "u", "i", 1.0))
    held_out = table("user_id item_id gain", ("u", "i", 1e308), ("u", "i", 1e308))
    found = measured(log, held_out, measures=["CG@1"], held_out_duplicates="sum")
    with pytest.raises(RefusedCallError, match="the gains of a user and an item add up to infinity"):
        _ = found.metrics


OF_THE_UNIT: Final = (
    *("value", "baseline_value", "delta", "ci_low", "ci_high", "std_dev", "std_error", "gap", "detectable"),
)


@pytest.mark.parametrize(
    ("gains", "power"),
    [*[("value", power) for power in (-200, -83, -1, 1, 200)], *[("grade", p) for p in (1, 40, 200)]],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_power_of_two_scales_what_has_a_unit_and_leaves_the_rest(gains: str, power: int, seed: int) -> None:
    """Three models, two slices and all tests. Grades are at least 1 where they are not 0: relevant in any unit."""
    wanted, found = (_evaluated(gains, 2.0**of_unit, seed) for of_unit in (0, power))
    for name, own in wanted.items():
        assert len(found[name]) == len(own) > 0
        for one, other in zip(own, found[name], strict=True):
            has_unit = not any(name in one["measure"] for name in ("nDCG", "GroupRatio"))
            for column, value in one.items():
                is_scaled = has_unit and column in OF_THE_UNIT and value is not None
                expected = value * 2.0**power if is_scaled else value
                if isinstance(expected, float):
                    expected = pytest.approx(expected, rel=1e-12, abs=0)
                assert other[column] == expected, (name, column, one, other)


@cache
def _evaluated(gains: str, unit: float, seed: int) -> dict[str, list[dict[str, Any]]]:
    draw = random.Random(seed)
    users, items = [f"u{user:02}" for user in range(60)], [f"i{item}" for item in range(12)]
    log = [(model, user, item, draw.random()) for model in "abc" for user in users for item in draw.sample(items, 6)]
    sizes = [(user, item, draw.choice([0.0, 1.0, 1 + draw.lognormvariate(0, 2)])) for user in users for item in items]
    is_grade = gains == "grade"
    found = measured(
        table("model_id user_id item_id score", *log),
        table(
            "user_id item_id gain value",
            *[(user, item, unit * size if is_grade else 1.0, unit * size) for user, item, size in sizes],
        ),
        measures=[f"{name}(gains='{gains}')@3" for name in ("CG", "DCG", "nDCG")],
        segments=table("user_id half", *[(user, str(place % 2)) for place, user in enumerate(users)]),
        slices=["half"],
        min_slice_size=10,
        pairs="all",
        tests=TESTS,
        replicates=200,
    )
    tables = {
        "metrics": found.metrics,
        "groups": found.group_metrics,
        "comparisons": found.comparisons,
        "gaps": found.gap_tests(replicates=200),
    }
    return {name: sorted(dicts(rows), key=_place) for name, rows in tables.items()}


def _place(row: dict[str, Any]) -> list[str]:
    return [str(row.get(name)) for name in ("baseline_model_id", "model_id", "slice", "slice_value", "measure", "test")]

"""Rules against rows of metrics and comparisons: what passes, what fails, and what is not judged."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from rankeval_spark.apps import gates
from rankeval_spark.config import Comparisons, EvaluationConfig, Gate, validate_model
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.errors import ConfigError
from rankeval_spark.statistics.power import detectable

if TYPE_CHECKING:
    from collections.abc import Iterable

VALUE = {"value": 0.3, "ci_low": 0.28, "ci_high": 0.32, "n_users": 500, "std_error": 0.01, "ci_level": 0.95}


def metric(model: str, slice_: str = "all", values: tuple[str | None, ...] = (), **changes: object) -> dict[str, Any]:
    name = "*".join("(unknown)" if value is None else value for value in values)
    where = {"model_id": model, "slice": slice_, "slice_value": name, "slice_values": list(values)}
    return {**where, "measure": "nDCG", "k": 10, **VALUE, **changes}


def comparison(
    model: str,
    delta: float,
    p: float | None,
    *,
    slice_: str = "all",
    values: tuple[str | None, ...] = (),
    **changes: object,
) -> dict[str, Any]:
    row = metric(model, slice_, values)
    half = 0.01
    ends = {"delta": delta, "ci_low": delta - half, "ci_high": delta + half}
    relative = {f"relative_{name}": 2 * end for name, end in ends.items()}
    return {
        **row,
        "test": "t",
        "baseline_model_id": "popular",
        "baseline_value": 0.25,
        "p_value": p,
        **ends,
        **relative,
        **changes,
    }


def change(model: str, delta: float, *, n_before: int = 500, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - of a row
    row = comparison(model, delta, None, **changes)
    p = 0.001 if delta < 0 else 0.999
    spread = {"std_error": 0.005, "freedom": 499.0, "p_less": p, "p_greater": 1 - p}
    return {**row, "n_earlier_users": n_before, **spread}


def judged(
    *rules: dict[str, Any],
    metrics: Iterable[dict[str, Any]] = (),
    comparisons: Iterable[dict[str, Any]] = (),
    previous: gates.Previous | None = None,
    verdicts: Iterable[dict[str, Any]] = (),
    min_slice_size: int = 30,
) -> list[dict[str, Any]]:
    config = EvaluationConfig.model_construct(
        gates=tuple(Gate(**rule) for rule in rules),
        comparisons=Comparisons(baseline="popular"),
        slicing=Slicing(min_slice_size=min_slice_size),
    )
    of_night = {"metrics": list(metrics), "comparisons": list(comparisons)}
    return gates.judge_rows(config, **of_night, previous=previous, verdicts=list(verdicts))


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["model_id"], row["slice_value"], row["verdict"]) for row in rows]


def test_bounds_are_held_against_the_mean_of_every_model() -> None:
    rows = judged(
        {"measure": "nDCG@10", "at_least": 0.25},
        metrics=[metric("als"), metric("popular", value=0.2), metric("x", k=5)],
    )
    assert verdicts(rows) == [("als", "", "passed"), ("popular", "", "failed")]
    assert [(row["observed"], row["bound"]) for row in rows] == [(0.3, 0.25), (0.2, 0.25)]
    assert rows[0]["explanation"].startswith("als: nDCG@10 is 0.300 ")
    assert [row["model_id"] for row in gates.failed(rows)] == ["popular"]


def test_bounds_with_certainty_are_held_against_the_interval_of_that_level() -> None:
    """Undecided is not met, in every value of a slice; an interval of another level says nothing."""
    where: dict[str, Any] = {"slice_": "country", "values": ("DE",)}
    metrics = [metric("als"), metric("knn", ci_low=0.26), metric("old", ci_level=0.9), metric("als", **where)]
    bounds = {"measure": "nDCG@10", "at_least": 0.29, "certainty": 0.95}
    rows = judged(bounds, {**bounds, "slice": "country", "at_least": 0.28, "models": ["als"]}, metrics=metrics)
    assert verdicts(rows) == [
        ("als", "", "undecided"),
        ("knn", "", "undecided"),
        ("old", "", "undecided"),
        ("als", "DE", "passed"),
    ]
    assert [row["model_id"] for row in gates.failed(rows)] == ["als", "knn", "old"]
    assert "no interval of the level 0.95" in rows[2]["explanation"]
    assert rows[0]["rule"] == "nDCG@10: at_least 0.29, certainty 0.95"


def test_bounds_hold_a_slicing_together() -> None:
    gap: dict[str, Any] = {
        "measure": "GroupGap(nDCG)",
        "value": 0.12,
        "ci_low": 0.05,
        "ci_high": 0.19,
        "is_small": False,
    }
    worst: dict[str, Any] = {
        "measure": "WorstGroup(nDCG)",
        "value": 0.2,
        "ci_low": 0.15,
        "ci_high": 0.25,
        "is_small": False,
    }
    apart: dict[str, Any] = {
        "measure": "UserMAD(nDCG)",
        "value": 0.08,
        "ci_low": None,
        "ci_high": None,
        "is_small": False,
    }
    metrics = [
        metric("als", "country", ("DE",)),
        metric("als", "country", **gap),
        metric("als", "country", ("FR",), **worst),
        metric("als", "country", **apart),
        metric("pop", "country", **(gap | dict.fromkeys(("value", "ci_low", "ci_high")) | {"is_small": True})),
    ]
    by_country = {"slice": "country"}
    rows = judged(
        {"measure": "GroupGap(nDCG)@10", "at_most": 0.1, **by_country},
        {"measure": "worstgroup( nDCG@10 )", "at_least": 0.2, **by_country},
        {"measure": "UserMAD(nDCG)@10", "at_most": 0.1, **by_country},
        {"measure": "nDCG@10", "at_least": 0.1, **by_country},
        metrics=metrics,
    )
    assert verdicts(rows) == [
        ("als", "", "failed"),
        ("pop", "", "too_few_users"),
        ("als", "FR", "passed"),
        ("als", "", "passed"),
        ("als", "DE", "passed"),
    ]
    assert [row["explanation"] for row in rows[:4]] == [
        "als: GroupGap(nDCG)@10 by country is 0.120 (0.050 to 0.190, 500 users); at most 0.1 is required: failed.",
        "pop: GroupGap(nDCG)@10 by country has fewer than two groups of 30 users with a value: not judged.",
        "als: WorstGroup(nDCG)@10, country = FR is 0.200 (0.150 to 0.250, 500 users); at least 0.2 is "
        "required: passed.",
        "als: UserMAD(nDCG)@10 by country is 0.08000 (500 users); at most 0.1 is required: passed.",
    ]
    assert (rows[0]["measure"], rows[0]["k"], rows[0]["rule"]) == (
        *("GroupGap(nDCG)", 10),
        "GroupGap(nDCG)@10 by country: at_most 0.1",
    )


def test_a_gain_needs_its_whole_interval_and_only_models_against_the_baseline_count() -> None:
    rule = {"measure": "nDCG@10", "least_gain": 0}
    rows = judged(
        rule,
        comparisons=[
            comparison("als", 0.02, 0.001),
            comparison("knn", 0.005, 0.2),
            comparison("als", 0.5, 0.001, baseline_model_id="knn"),
        ],
    )
    assert verdicts(rows) == [("als", "", "passed"), ("knn", "", "failed")]
    assert rows[0]["observed"] == pytest.approx(0.01)


def test_margins_and_regressions_are_judged_in_every_value_of_a_slice() -> None:
    slices = [
        comparison("als", delta, p, slice_="country", values=(name,))
        for name, delta, p in (("DE", -0.015, 0.004), ("FR", 0.01, 0.05), (None, -0.002, 0.7))
    ]
    by_country = {"measure": "nDCG@10", "slice": "country"}
    assert verdicts(judged({**by_country, "margin": 0.02}, comparisons=slices)) == [
        ("als", "DE", "failed"),
        ("als", "FR", "passed"),
        ("als", "(unknown)", "passed"),
    ]
    # One-sided: 0.002 of three tests is 0.006 after Holm.
    rows = judged({**by_country, "alpha": 0.05}, comparisons=slices)
    assert verdicts(rows) == [("als", "DE", "failed"), ("als", "FR", "passed"), ("als", "(unknown)", "passed")]
    assert rows[0]["observed"] == pytest.approx(0.006)
    relative = judged({**by_country, "margin": 0.051, "relative": True}, comparisons=slices)
    assert [row["verdict"] for row in relative] == ["passed"] * 3


def test_a_model_without_rows_is_named_once_with_those_that_there_are() -> None:
    rule = {"measure": "nDCG@10", "at_least": 0.01, "models": ("asl",)}
    (row,) = judged(rule, metrics=[metric("als"), metric("popular")])

    known = "the models of this night: als, popular; did you mean 'als'?"
    assert row["explanation"] == f"nDCG@10 of asl: at_least 0.01 matches nothing that was computed ({known}): failed."


def test_what_cannot_be_judged_has_a_verdict_of_its_own() -> None:
    metrics = [metric("als"), metric("popular")]
    gain = {"measure": "nDCG@10", "least_gain": 0}
    assert verdicts(judged(gain, metrics=[metric("als")])) == [("", "", "no_baseline")]
    apart = comparison("als", 0.1, None, n_users=0, reason="no_common_users")
    assert verdicts(judged(gain, metrics=[metric("als")], comparisons=[apart])) == [("", "", "no_baseline")]
    assert verdicts(judged({**gain, "models": ("new",)}, metrics=metrics)) == [("new", "", "no_match")]
    assert verdicts(judged({**gain, "slice": "country"}, metrics=metrics)) == [("", "", "missing_slice")]
    assert verdicts(judged({"measure": "RR@3", "at_most": 1}, metrics=metrics)) == [("", "", "no_match")]
    few = judged(gain, metrics=metrics, comparisons=[comparison("als", 0.02, None, n_users=12)])
    assert verdicts(few) == [("als", "", "too_few_users")]
    assert not gates.failed(few)


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [({"least_gain": 0}, "failed"), ({"least_gain": -0.01}, "passed"), ({"alpha": 0.05}, "passed")],
)
@pytest.mark.parametrize("against", ["baseline", "previous"])
def test_an_equal_model_fails_where_a_gain_is_asked_for(rule: dict[str, Any], verdict: str, against: str) -> None:
    """In every value of a slice, as a copy of the baseline or of the night before does."""
    where: dict[str, Any] = {"slice_": "country", "values": ("DE",)}
    same: dict[str, Any] = {"ci_low": 0.0, "ci_high": 0.0, "relative_ci_low": 0.0, "relative_ci_high": 0.0}
    compared = comparison("copy", 0.0, 1.0, method="equal", **where, **same)
    p = {"std_error": 0.0, "p_less": 1.0, "p_greater": 1.0}
    rows = judged(
        {"measure": "nDCG@10", "slice": "country", "against": against, **rule},
        metrics=[metric("copy", "country", ("DE",))],
        comparisons=[compared],
        previous=gates.Previous(date(2026, 1, 31), [{**change("copy", 0.0, **where, **same), **p}]),
    )
    assert verdicts(rows) == [("copy", "DE", verdict)]


@pytest.mark.parametrize("rule", [{"least_gain": 0}, {"least_gain": -0.1}, {"margin": 0.1}, {"alpha": 0.05}])
def test_where_every_pair_is_withheld_no_rule_of_a_gain_is_met(rule: dict[str, Any]) -> None:
    counts: dict[str, Any] = {
        "n_with_both": 3,
        "n_with_baseline": 900,
        "n_with_model": 93,
        "reason": "few_common_lists",
    }
    none = dict.fromkeys(("delta", "ci_low", "ci_high", "relative_delta", "relative_ci_low", "relative_ci_high"))
    pairs: list[dict[str, Any]] = [{**comparison(model, 0.0, None, **counts), **none} for model in ("als", "knn")]
    rows = judged({"measure": "nDCG@10", **rule}, metrics=[metric("popular")], comparisons=pairs)
    assert verdicts(rows) == [("als", "", "failed"), ("knn", "", "failed")]
    assert "withheld: 3 of the 93 users" in rows[0]["explanation"]


FEW: dict[str, Any] = {"method": "exact", "n_users": 40}


@pytest.mark.parametrize(
    ("rule", "delta", "p", "verdict"),
    [
        ({"alpha": 0.05}, -0.05, None, "too_few_users"),  # worse for 5 of 5: no test
        ({"alpha": 0.05}, -0.05, 0.07, "failed"),  # one-sided .035
        ({"alpha": 0.05}, -0.05, 0.2, "passed"),
        ({"alpha": 0.05}, 0.0, None, "passed"),
        ({"least_gain": 0}, 0.02, None, "too_few_users"),
        ({"least_gain": 0}, 0.02, 0.0625, "too_few_users"),  # the interval leaves 0 out, the exact test does not
        ({"least_gain": 0}, 0.02, 0.03, "passed"),
        ({"least_gain": 0}, 0.005, 0.03, "too_few_users"),  # the other way round
        ({"least_gain": 0}, 0.005, 0.2, "failed"),
        ({"least_gain": 0.001}, 0.005, 0.03, "failed"),  # a gain may be less than that
        ({"least_gain": -0.1}, 0.02, None, "passed"),  # a loss that is allowed needs no gain
        ({"margin": 0.1}, -0.02, None, "passed"),
        ({"margin": 0.004}, 0.005, 0.03, "too_few_users"),
        ({"margin": 0.004}, 0.005, 0.2, "failed"),
        ({"margin": 0.004}, -0.02, None, "failed"),
    ],
)
def test_what_an_exact_test_of_few_differences_does_not_bear_out_is_not_judged(
    rule: dict[str, float], delta: float, p: float | None, verdict: str
) -> None:
    (row,) = judged({"measure": "nDCG@10", **rule}, comparisons=[comparison("als", delta, p, **FEW)])
    assert row["verdict"] == verdict


@pytest.mark.parametrize("rule", [{"margin": 0.1}, {"least_gain": 0}, {"least_gain": -0.1}, {"alpha": 0.05}])
@pytest.mark.parametrize("delta", [0.0, 0.02, -0.02])
def test_users_of_two_models_with_few_values_decide_no_rule(rule: dict[str, float], delta: float) -> None:
    arms: dict[str, Any] = {"test": "unpaired", "n_baseline_users": 500, "n_with_both": 0, "freedom": 998.0}
    arms |= {"reason": "few_differences"}
    (row,) = judged({"measure": "nDCG@10", **rule}, comparisons=[comparison("als", delta, None, **arms)])
    assert row["verdict"] == "too_few_users"
    assert row["explanation"].endswith("but too few users have a value other than 0 for a test: not judged.")


@pytest.mark.parametrize(
    ("delta", "changes"),
    [
        (-0.005, {"method": "exact"}),
        (0.0, {"method": "equal", "ci_low": 0.0, "ci_high": 0.0, "std_error": 0.0}),
    ],
)
def test_power_is_claimed_of_t_alone(delta: float, changes: dict[str, Any]) -> None:
    rule = {"measure": "nDCG@10", "alpha": 0.05}
    (row,) = judged(rule, comparisons=[comparison("als", delta, 0.5, **changes)])
    assert row["verdict"] == "passed"
    assert "no proof of a loss (p = " in row["explanation"]
    assert "would detect" not in row["explanation"]
    cut: dict[str, Any] = {
        "method": "t",
        "ci_low": -0.01,
        "std_error": 0.02,
    }  # the measure allows no lower end, so half of it is less
    (row,) = judged(rule, comparisons=[comparison("als", -0.005, 0.5, **cut)])
    least = float(detectable(0.02, 499, tail=0.05))
    assert f"the test would detect a loss of {least:.5f} or more in 80 % of samples" in row["explanation"]


def test_a_rule_that_too_few_differences_cannot_decide_says_so() -> None:
    few = comparison("als", -0.05, None, method="exact", n_users=5)
    (row,) = judged({"measure": "nDCG@10", "alpha": 0.05}, comparisons=[few], min_slice_size=5)
    assert row["explanation"] == (
        "als: nDCG@10 differs from popular by −0.050 (−0.060 to −0.040, 5 users), but too few users differ for a test: "
        "not judged."
    )
    (row,) = judged({"measure": "nDCG@10", "least_gain": 0}, comparisons=[comparison("als", 0.02, 0.0625, **FEW)])
    assert row["explanation"].endswith(
        "but too few users differ for the interval: the exact test gives p = .062: not judged."
    )


@pytest.mark.parametrize(
    "rule",
    [{"at_least": 0.1}, {"least_gain": 0}, {"margin": 0.1}, {"alpha": 0.05}, {"margin": 0.1, "against": "previous"}],
)
@pytest.mark.parametrize("lacking", ["als", "popular"])
def test_a_rule_is_not_judged_where_a_value_has_too_little_support(rule: dict[str, Any], lacking: str) -> None:
    metrics = [
        metric(name, n_effective=2.1 if name == lacking else 500.0, has_support=name != lacking)
        for name in ("als", "popular")
    ]
    of_night = {"p_less": None, "p_greater": None, "reason": "too_little_support" if lacking == "als" else None}
    before = gates.Previous(date(2026, 1, 31), [{**change("als", 0.02), **of_night}])
    compared = [comparison("als", 0.02, None, reason="too_little_support", verdict="undecided")]
    rows = judged(
        {"measure": "nDCG@10", **rule, "models": ("als",)}, metrics=metrics, comparisons=compared, previous=before
    )
    is_of_both = "at_least" not in rule and "against" not in rule
    if lacking == "als" or is_of_both:
        assert verdicts(rows) == [("als", "", "too_little_support")]
        assert rows[0]["explanation"] == (
            "als: nDCG@10 is undecided: too little support, an effective sample of 2 of 500 users of "
            f"{lacking}, where a verdict needs 30: not judged."
        )
        assert not gates.failed(rows)
    else:
        assert verdicts(rows) == [("als", "", "passed")]


def test_a_change_from_a_night_with_too_little_support_is_not_judged() -> None:
    before = gates.Previous(date(2026, 1, 31), [{**change("als", 0.02), "reason": "too_little_support"}])
    rule = {"measure": "nDCG@10", "margin": 0.1, "against": "previous"}
    (row,) = judged(rule, metrics=[metric("als", n_effective=500.0, has_support=True)], previous=before)
    assert row["verdict"] == "too_little_support"
    assert "an effective sample of the night of 2026-01-31 below 30 users" in row["explanation"]


def test_how_many_users_a_verdict_needs_is_min_slice_size_alone() -> None:
    gain, metrics = {"measure": "nDCG@10", "least_gain": 0}, [metric("als"), metric("popular")]
    for n_users, least, verdict in ((12, 12, "passed"), (12, 13, "too_few_users"), (2, 1, "passed")):
        own = [comparison("als", 0.02, 0.001, n_users=n_users)]
        rows = judged(gain, metrics=metrics, comparisons=own, min_slice_size=least)
        assert verdicts(rows) == [("als", "", verdict)]
    one = judged(gain, metrics=metrics, comparisons=[comparison("als", 0.02, None, n_users=1)], min_slice_size=1)
    assert verdicts(one) == [("als", "", "too_few_users")]
    assert "has 1 users, fewer than the 2 that a verdict needs" in one[0]["explanation"]
    before = gates.Previous(date(2026, 1, 1), [change("als", -0.02, n_before=12)])
    rule = {"measure": "nDCG@10", "alpha": 0.05, "against": "previous"}
    assert verdicts(judged(rule, metrics=[metric("als")], previous=before, min_slice_size=12)) == [
        ("als", "", "failed")
    ]


def test_a_rule_against_the_previous_night_judges_every_model_on_what_changed_since() -> None:
    rule = {"measure": "nDCG@10", "margin": 0.02, "against": "previous"}
    tonight = [metric("als"), metric("popular"), metric("new")]
    rows = [change("als", -0.005), change("popular", -0.015), change("new", 0.0, n_before=0), change("gone", -0.3)]
    found = judged(rule, metrics=tonight, previous=gates.Previous(date(2026, 1, 31), rows))
    assert verdicts(found) == [("als", "", "passed"), ("popular", "", "failed"), ("new", "", "no_baseline")]
    assert [row["explanation"] for row in found] == [
        "als: nDCG@10 is 0.005 worse than the night of 2026-01-31 (−0.015 to +0.005, 500 users, not all the same); "
        "a loss below 0.02 is allowed: passed.",
        "popular: nDCG@10 is 0.015 worse than the night of 2026-01-31 (−0.025 to −0.005, 500 users, not all the same); "
        "a loss below 0.02 is allowed: failed.",
        "new: nDCG@10 has no value of the same definition on the night of 2026-01-31 to be compared with yet: "
        "not judged.",
    ]
    assert found[0]["rule"] == "nDCG@10: margin 0.02 against the previous night"
    gain = {"measure": "nDCG@10", "least_gain": -0.04, "relative": True, "against": "previous", "models": ("als",)}
    assert verdicts(judged(gain, metrics=tonight, previous=gates.Previous(date(2026, 1, 31), rows))) == [
        ("als", "", "passed")
    ]


def test_the_first_night_is_not_judged_against_the_previous_one_and_says_so() -> None:
    rules = [{"measure": "nDCG@10", **kind, "against": "previous"} for kind in ({"margin": 0.1}, {"alpha": 0.05})]
    rows = judged(*rules, metrics=[metric("als")])
    assert verdicts(rows) == [("als", "", "no_baseline")] * 2
    assert rows[0]["explanation"] == (
        "als: nDCG@10 has no earlier published night to be compared with yet: not judged."
    )
    assert not gates.failed(rows)
    assert verdicts(judged({**rules[0], "models": ("ghost",)}, metrics=[metric("als")])) == [("ghost", "", "no_match")]


@pytest.mark.parametrize(
    ("rule", "times", "verdict"),
    [  # the interval of .05 / 30 is this much wider than the one of .05, both by t with 499 degrees of freedom
        ({"margin": 0.02}, None, "passed"),
        ({"margin": 0.02}, 1.001, "passed"),
        ({"margin": 0.02}, 0.999, "failed"),
        ({"least_gain": 0.0}, 1.001, "passed"),
        ({"least_gain": 0.0}, 0.999, "failed"),
        ({"least_gain": -0.04, "relative": True}, 1.001, "passed"),
        ({"least_gain": -0.04, "relative": True}, 0.999, "failed"),
    ],
)
def test_a_sequential_interval_has_its_share_of_the_error(rule: dict[str, Any], times: float, verdict: str) -> None:
    half = 0.01 * stats.t.ppf(1 - 0.025 / 30, 499) / stats.t.ppf(0.975, 499)
    delta = times * half - (0 if rule.get("least_gain") == 0 else 0.02) if times else 0.0
    (row,) = judged(
        {"measure": "nDCG@10", "sequential": True, **rule},
        metrics=[metric("als"), metric("popular")],
        comparisons=[comparison("als", delta, 1e-9)],
    )
    assert row["verdict"] == verdict
    scale = 2 if rule.get("relative") else 1
    assert row["observed"] == pytest.approx(scale * (delta - half), rel=0, abs=1e-12)


@pytest.mark.parametrize(("p", "verdict"), [(0.0999 / 30, "failed"), (0.1001 / 30, "passed")])
@pytest.mark.parametrize("against", ["baseline", "previous"])
def test_a_sequential_test_has_its_share_of_alpha(p: float, verdict: str, against: str) -> None:
    rule = {"measure": "nDCG@10", "alpha": 0.05, "sequential": True, "against": against, "models": ("als",)}
    now = change("als", -0.02) | {"p_less": p / 2, "p_greater": 1 - p / 2}
    (row,) = judged(
        rule,
        metrics=[metric("als"), metric("popular")],
        comparisons=[comparison("als", -0.02, p)],
        previous=gates.Previous(date(2026, 1, 31), [now]),
    )
    assert (row["verdict"], row["bound"]) == (verdict, 0.05 / 30)


def test_a_sequential_verdict_says_which_night_it_is_and_what_those_before_said() -> None:
    rule = {"measure": "nDCG@10", "margin": 0.02, "sequential": True, "horizon": 5}
    tonight: dict[str, Any] = {
        "metrics": [metric("als"), metric("popular")],
        "comparisons": [comparison("als", 0.01, 0.01)],
    }
    (first,) = judged(rule, **tonight)
    assert first["explanation"] == (
        "als: nDCG@10 is 0.010 better than popular (−0.003 to +0.023, 500 users); a loss below 0.02 is allowed; "
        "night 1 of 5, each with an error of 0.05 / 5; no night before it with this rule, model and definition: passed."
    )
    said = ["failed", "failed", "passed", "no_baseline", "passed", "failed", "passed"]
    before = [{**first, "evaluation_date": date(2026, 1, day), "verdict": each} for day, each in enumerate(said, 1)]
    others = [{**row, **other} for row in before for other in ({"model_id": "bpr"}, {"rule": "another"})]
    (row,) = judged(rule, **tonight, verdicts=[*before, *others])
    assert "; night 5 of 5, each with an error of 0.05 / 5; 1 of the 4 before it failed: passed." in row["explanation"]


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("rule", [{"margin": 0.5}, {"least_gain": 0}, {"alpha": 0.05}])
def test_of_thirty_nights_few_err_whatever_users_come_back(rule: dict[str, Any], correlation: float) -> None:
    """Of 100 runs; without `sequential` 79, or 53 of a gain, err with a correlation of 0, and 15 or 8 with .9."""
    random, n_runs, asked = np.random.default_rng(7), 100, {"measure": "nDCG@10", "sequential": True, **rule}
    common, own = random.standard_normal(n_runs), random.standard_normal((30, n_runs))
    half, truth, bad = stats.t.ppf(0.975, 499), -rule.get("margin", 0.0), "failed" if "alpha" in rule else "passed"
    erred = set()
    for t in np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own:
        p, ends = 2 * stats.t.sf(abs(t), 499), truth + 0.1 * (t + half * np.array([[-1], [1]]))
        rows = [
            comparison(f"{run}", truth + 0.1 * t[run], p[run], ci_low=ends[0, run], ci_high=ends[1, run])
            for run in range(n_runs)
        ]
        of_one = [[row] for row in rows] if "alpha" in rule else [rows]  # Holm corrects for the rows of a rule
        found = [row for some in of_one for row in judged(asked, metrics=[metric("popular")], comparisons=some)]
        erred |= {row["model_id"] for row in found if row["verdict"] == bad}
    assert len(erred) <= 0.05 * n_runs


def test_a_value_of_a_slice_that_many_users_had_and_none_has_now_fails() -> None:
    rule = {"measure": "nDCG@10", "alpha": 0.05, "slice": "country", "against": "previous"}
    where: dict[str, Any] = {"slice_": "country", "values": ("DE",)}
    rows = [
        change("als", -0.02, **where),
        change("als", 0.1, slice_="country", values=("FR",)),
        change("als", 0.1, n_before=12, slice_="country", values=("LI",)),
    ]
    found = judged(rule, metrics=[metric("als", "country", ("DE",))], previous=gates.Previous(date(2026, 1, 1), rows))
    assert verdicts(found) == [("als", "DE", "failed"), ("als", "FR", "missing_slice")]
    assert found[1]["explanation"] == "als, country = FR has no users in these results: failed."
    few = [{**change("als", 0.02, n_before=12, **where)}]
    rows = judged(rule, metrics=[metric("als", "country", ("DE",))], previous=gates.Previous(date(2026, 1, 1), few))
    assert verdicts(rows) == [("als", "DE", "too_few_users")]


def test_a_night_before_whose_users_were_deleted_is_nothing_to_go_by() -> None:
    rule = {"measure": "nDCG@10", "margin": 0.1, "against": "previous"}
    gone = gates.Previous(date(2026, 1, 31), (), has_users=False)
    (row,) = judged(rule, metrics=[metric("als")], previous=gone)
    assert row["verdict"] == "no_baseline"
    assert "no users of the night of 2026-01-31 (deleted by rankeval maintain)" in row["explanation"]


def test_a_rule_reads_its_measure_as_the_preset_does() -> None:
    gate = Gate(measure="AP@10", at_least=0.1)
    assert str(gate.parse_measure(None)) == "AP@10"
    assert str(gate.parse_measure("kaggle")) == "AP(denom='min')@10"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"measure": "nDCG@10"}, "no bound"),
        ({"measure": "nDCG@10", "margin": 0.1, "alpha": 0.05}, "margin and alpha"),
        ({"measure": "nDCG@10", "at_least": 0.5, "at_most": 0.1}, "above at_most"),
        ({"measure": "nDCG@10", "alpha": 0.05, "relative": True}, "relative"),
        (
            {"measure": "nDCG@10", "margin": -1},
            "found -1; expected a loss above 0 that is allowed; set margin: 1",
        ),
        ({"measure": "nDCG@10", "margin": 0}, "margin: found 0; .* set least_gain: 0 to ask for a gain"),
        ({"measure": "nDCG@10", "at_least": 0.1, "against": "previous"}, "previous with at_least"),
        ({"measure": "nDCG@10", "at_least": 0.1, "models": []}, "models: found an empty list"),
        ({"measure": "nDCG@10", "at_least": 0.1, "models": ["als", "als"]}, "models"),
        ({"measure": "nDCG@10", "margin": 0.1, "certainty": 0.95}, "the interval is judged already"),
        ({"measure": "nDCG@10", "at_least": 0.1, "certainty": 95}, "certainty"),
        ({"measure": "UserMAD(nDCG)@10", "slice": "country", "at_most": 0.1, "certainty": 0.95}, "has no interval"),
        ({"measure": "nDCG@10", "at_least": 0.1, "sequential": True}, "sequential with at_least"),
        ({"measure": "nDCG@10", "alpha": 0.1, "horizon": 7}, "horizon 7 alone; .* set sequential: true"),
        ({"measure": "nDCG@10", "alpha": 0.1, "horizon": 30}, "horizon 30 alone; .* without which it has no effect"),
        ({"measure": "nDCG@10", "alpha": 0.1, "sequential": False, "horizon": 7}, "horizon 7 alone"),
        ({"measure": "nDCG@10", "alpha": 0.1, "sequential": True, "horizon": 1}, "horizon"),
        ({"measure": "GroupGap(nDCG)@10", "slice": "country", "margin": 0.1}, r"margin with GroupGap\(nDCG\)@10"),
    ],
)
def test_a_rule_is_of_one_kind(rule: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        validate_model(Gate, rule)


def test_a_recorded_rule_has_every_key_and_is_valid() -> None:
    rule = Gate(measure="nDCG@10", alpha=0.1)
    assert validate_model(Gate, rule.model_dump()) == rule


def test_a_rule_may_be_about_one_slice() -> None:
    """Of two crossed segments, of which one is unknown too; a value that nobody has fails."""
    crossing = "country*device"
    metrics = [
        metric("als"),
        metric("als", "country", ("DE",)),
        metric("als", "country", ("FR",), value=0.1),
        metric("als", crossing, ("DE", None), value=0.1),
        metric("als", crossing, ("DE", "phone")),
    ]
    rows = judged(
        {"measure": "nDCG@10", "at_least": 0.2, "slice": "country", "slice_values": ["DE"]},
        {"measure": "nDCG@10", "at_least": 0.2, "slice": crossing, "slice_values": ["DE", None]},
        {"measure": "nDCG@10", "at_least": 0.2, "slice": "country", "slice_values": ["AT"]},
        metrics=metrics,
    )
    assert verdicts(rows) == [
        ("als", "DE", "passed"),
        ("als", "DE*(unknown)", "failed"),
        ("", "AT", "missing_slice"),
    ]
    assert rows[1]["rule"] == "nDCG@10, country × device = DE × (unknown): at_least 0.2"
    assert rows[2]["explanation"] == "every model, country = AT has no users in these results: failed."
    assert rows[2]["slice_values"] == ["AT"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"slice_values": ["DE"]}, "the segment that has these values"),
        ({"slice": "country", "slice_values": ["DE", "phone"]}, "one value per segment, 1 in all"),
        ({"slice": "country", "slice_values": []}, "slice_values"),
        ({"slice": "country", "slice_values": ["DE"], "measure": "GroupGap(nDCG)@10"}, "no slice_values"),
    ],
)
def test_values_that_are_no_slice_are_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_model(Gate, {"measure": "nDCG@10", "at_least": 0.2, **rule})


@pytest.mark.parametrize("bound", [{"margin": 0.02}, {"alpha": 0.05}, {"least_gain": -0.02}])
def test_a_slice_without_users_in_common_is_missing(bound: dict[str, float]) -> None:
    """FR: only the baseline has users; AT: only the model; IT: both, but none in common; CH: few; XX: nobody."""
    by_country = {"FR": (0, 60), "AT": (60, 0), "IT": (60, 50), "CH": (5, 9), "DE": (60, 60), "XX": (0, 0)}
    metrics = [metric("als"), metric("popular")]
    for value, (own, others) in by_country.items():
        metrics += [metric("als", "country", (value,), n_users=own)] if own else []
        metrics += [metric("popular", "country", (value,), n_users=others)] if others else []
    compared = [
        comparison("als", 0.0, 0.5, slice_="country", values=("DE",), n_users=60),
        comparison("als", 0.0, None, slice_="country", values=("IT",), n_users=0),
    ]
    rows = judged({"measure": "nDCG@10", "slice": "country", **bound}, metrics=metrics, comparisons=compared)
    assert {row["slice_value"]: row["verdict"] for row in rows} == {
        "AT": "missing_slice",
        "CH": "too_few_users",
        "DE": "passed",
        "FR": "missing_slice",
        "IT": "missing_slice",
    }
    said = {row["slice_value"]: row["explanation"] for row in rows}
    assert said["FR"] == "als: nDCG@10, country = FR has no users with a value under popular too: failed."
    assert said["CH"] == "als: nDCG@10, country = CH has 9 users, fewer than the 30 that a verdict needs: not judged."
    assert {row["model_id"] for row in rows} == {"als"}


def test_without_any_users_in_common_everyone_is_missing() -> None:
    rows = judged(
        {"measure": "nDCG@10", "margin": 0.02},
        metrics=[metric("als"), metric("popular")],
        comparisons=[comparison("als", 0.0, None, n_users=0)],
    )
    assert verdicts(rows) == [("als", "", "missing_slice")]
    assert rows[0]["n_users"] == 0


def test_bounds_are_not_held_against_a_few_users_and_a_slice_without_any_fails() -> None:
    rows = judged(
        {"measure": "nDCG@10", "at_least": 0.4, "slice": "country"},
        metrics=[
            metric("als", "country", ("AT",), n_users=29),
            metric("als", "country", ("DE",), n_users=30),
            metric("als", "country", ("FR",), n_users=0, value=None, ci_low=None, ci_high=None),
        ],
    )
    assert verdicts(rows) == [("als", "AT", "too_few_users"), ("als", "DE", "failed"), ("als", "FR", "missing_slice")]


def test_a_value_of_a_slice_that_only_another_model_has_fails_bounds() -> None:
    """As where each model is measured by the users whom it gave lists: nobody of DE got one of knn."""
    rows = judged(
        {"measure": "nDCG@10", "at_least": 0.2, "slice": "country"},
        {"measure": "nDCG@10", "at_least": 0.2, "slice": "country", "slice_values": ["DE"], "models": ["knn"]},
        metrics=[
            *(metric(model) for model in ("als", "knn")),
            *(metric("als", "country", (value,)) for value in ("AT", "DE")),
            metric("als", "country", ("IT",), n_users=12),
            metric("knn", "country", ("AT",)),
        ],
    )
    assert verdicts(rows) == [
        ("als", "AT", "passed"),
        ("als", "DE", "passed"),
        ("als", "IT", "too_few_users"),
        ("knn", "AT", "passed"),
        ("knn", "DE", "missing_slice"),
        ("knn", "IT", "too_few_users"),
        ("knn", "DE", "missing_slice"),
    ]
    assert rows[4]["explanation"] == "knn: nDCG@10, country = DE has no users in these results: failed."


def test_an_unknown_baseline_is_reported_with_the_models_that_exist() -> None:
    rows = judged({"measure": "nDCG@10", "margin": 0.02}, metrics=[metric("als"), metric("populer")], comparisons=[])
    assert verdicts(rows) == [("", "", "no_baseline")]
    assert rows[0]["explanation"] == (
        "every model: nDCG@10 has no baseline popular to be compared with yet "
        "(the models of this night: als, populer; did you mean 'populer'?): not judged."
    )


@pytest.mark.parametrize(
    ("rule", "title"),
    [
        ({"least_gain": 0.02}, "Every candidate gains at least 0.02 in nDCG@10"),
        ({"least_gain": 0, "models": ("als", "knn")}, "als and knn are better in nDCG@10"),
        ({"least_gain": -0.01}, "No candidate loses more than 0.01 in nDCG@10"),
        ({"alpha": 0.05, "slice": "age_group"}, "No age group gets worse in nDCG@10"),
        ({"alpha": 0.05, "slice": "age", "slice_values": (">= 59",)}, "age ≥ 59 does not get worse in nDCG@10"),
        (
            {"margin": 0.03, "against": "previous"},
            "No model loses 0.03 or more in nDCG@10 since the previous night",
        ),
        (
            {"margin": 0.01, "relative": True, "slice": "a*b", "models": ("als",)},
            "als: No a × b loses 1 % or more in nDCG@10",
        ),
        ({"at_least": 0.1, "at_most": 0.2}, "Every model has nDCG@10 of at least 0.1 and at most 0.2"),
        (
            {"at_least": 0.1, "certainty": 0.95, "models": ("als",)},
            "als has nDCG@10 of at least 0.1, with 95 % certainty",
        ),
        (
            {"measure": "GroupGap(nDCG)@10", "slice": "country", "at_most": 0.05},
            "Every model has GroupGap(nDCG)@10 by country of at most 0.05",
        ),
    ],
)
def test_a_rule_has_a_title_in_words(rule: dict[str, Any], title: str) -> None:
    assert Gate(**{"measure": "nDCG@10", **rule}).title == title

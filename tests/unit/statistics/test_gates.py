"""Verdicts of the rules, and that each says why."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import pytest
from scipy import stats

from rankeval_spark.statistics import gates
from rankeval_spark.statistics.gates import Estimate, Evidence, Outcome

BETTER = Evidence(
    "nDCG@10, country = DE",
    1200,
    Estimate(0.32, 0.31, 0.33),
    "popular",
    difference=Estimate(0.02, 0.01, 0.03),
    change=Estimate(0.0667, 0.03, 0.1),
    std_error=0.005,
    freedom=1199.0,
    p_less=0.9999,
    p_greater=0.0001,
)
WORSE = dataclasses.replace(
    BETTER,
    difference=Estimate(-0.02, -0.03, -0.01),
    change=Estimate(-0.0667, -0.1, -0.03),
    p_less=0.0001,
    p_greater=0.9999,
)
UNCLEAR = dataclasses.replace(
    BETTER,
    difference=Estimate(-0.002, -0.012, 0.008),
    change=Estimate(-0.006, -0.04, 0.03),
    p_less=0.34,
    p_greater=0.66,
)
SMALL = dataclasses.replace(BETTER, n_users=29)
ALONE = dataclasses.replace(BETTER, versus="")
UNDEFINED = Evidence("PopLift@10", 100, Estimate(math.nan, math.nan, math.nan), "popular")


@pytest.mark.parametrize(
    ("low", "high", "outcome", "bound"),
    [
        (0.3, math.inf, "passed", 0.3),
        (0.32, math.inf, "passed", 0.32),
        (0.33, math.inf, "failed", 0.33),
        (-math.inf, 0.3, "failed", 0.3),
        (0.1, 0.3, "failed", 0.3),
        (0.1, 0.4, "passed", 0.1),
    ],
)
def test_value_must_lie_within_its_bounds(low: float, high: float, outcome: Outcome, bound: float) -> None:
    verdict = gates.value_bounds(BETTER, low=low, high=high)
    assert (verdict.outcome, verdict.observed, verdict.bound) == (outcome, 0.32, bound)


@pytest.mark.parametrize(
    ("low", "high", "outcome", "observed", "bound"),
    [
        (0.3, math.inf, "passed", 0.31, 0.3),
        (0.31, math.inf, "passed", 0.31, 0.31),
        (0.315, math.inf, "undecided", 0.31, 0.315),
        (0.325, math.inf, "undecided", 0.31, 0.325),
        (0.34, math.inf, "failed", 0.33, 0.34),
        (-math.inf, 0.33, "passed", 0.33, 0.33),
        (-math.inf, 0.325, "undecided", 0.33, 0.325),
        (-math.inf, 0.3, "failed", 0.31, 0.3),
        (0.3, 0.4, "passed", 0.31, 0.3),
        (0.315, 0.325, "undecided", 0.31, 0.315),
    ],
)
def test_with_certainty_the_whole_interval_clears_the_bounds(
    low: float, high: float, outcome: Outcome, observed: float, bound: float
) -> None:
    verdict = gates.certain_bounds(BETTER, 0.95, low=low, high=high)
    assert (verdict.outcome, verdict.observed, verdict.bound) == (outcome, observed, bound)
    assert verdict.sentence.endswith(f": {outcome}.")


@pytest.mark.parametrize(
    ("low", "high", "what"),
    [  # 1,200 users and half an interval of 0.01: twice as near takes four times as many
        (0.315, math.inf, "About 4,800 users with this value would make it pass; with 1,200 users it passes at 0.325"),
        (0.325, math.inf, "About 4,800 users with this value would make it fail; with 1,200 users it passes at 0.335"),
        (-math.inf, 0.3225, "About 20,000 users with this value would make it pass; with 1,200 users it passes at"),
        (0.315, 0.325, "About 4,800 users with this value would make it pass: undecided."),
        (0.32, math.inf, "The value is at the bound, so that more users need not decide; with 1,200 users it passes"),
    ],
)
def test_undecided_says_what_it_would_take(low: float, high: float, what: str) -> None:
    assert what in gates.certain_bounds(BETTER, 0.95, low=low, high=high).sentence


@pytest.mark.parametrize(
    ("possible", "low", "high"), [((0.0, 0.33), 0.325, math.inf), ((0.305, math.inf), -math.inf, 0.312)]
)
def test_a_value_that_no_measure_has_is_not_asked_for(possible: tuple[float, float], low: float, high: float) -> None:
    """With half an interval of 0.01, values have to be 0.335 or more, or 0.302 or less."""
    evidence = dataclasses.replace(BETTER, possible=possible)
    sentence = gates.certain_bounds(evidence, 0.95, low=low, high=high).sentence
    assert sentence.endswith("; with 1,200 users no value passes: undecided.")


def test_without_an_interval_nothing_is_certain() -> None:
    point = dataclasses.replace(BETTER, value=Estimate(0.32))
    verdict = gates.certain_bounds(point, 0.95, low=0.1)
    assert verdict.sentence == (
        "nDCG@10, country = DE is 0.3200 (1,200 users); at least 0.1 is required with certainty 0.95, but it has no "
        "interval of the level 0.95: undecided."
    )
    assert gates.certain_bounds(UNDEFINED, 0.95, low=0).outcome == "failed"
    assert gates.certain_bounds(SMALL, 0.95, low=0).outcome == "too_few_users"


def test_undefined_value_fails_its_bounds() -> None:
    verdict = gates.value_bounds(UNDEFINED, low=0)
    assert verdict.sentence == "PopLift@10 is undefined; at least 0 is required: failed."


@pytest.mark.parametrize(
    ("evidence", "margin", "outcome"),
    [(BETTER, 0.0, "passed"), (UNCLEAR, 0.0121, "passed"), (UNCLEAR, 0.012, "failed"), (WORSE, 0.02, "failed")],
)
def test_non_inferiority_is_decided_on_the_lower_end(evidence: Evidence, margin: float, outcome: Outcome) -> None:
    verdict = gates.non_inferiority(evidence, margin=margin)
    assert (verdict.outcome, verdict.observed, verdict.bound) == (outcome, evidence.difference.low, -margin)


@pytest.mark.parametrize(("margin", "outcome"), [(0.041, "passed"), (0.039, "failed")])
def test_relative_margin_is_held_against_the_relative_change(margin: float, outcome: Outcome) -> None:
    assert gates.non_inferiority(UNCLEAR, margin=margin, is_relative=True).outcome == outcome


@pytest.mark.parametrize(
    ("evidence", "least", "outcome"),
    [(BETTER, 0.01, "passed"), (BETTER, 0.011, "failed"), (UNCLEAR, 0.0, "failed"), (UNCLEAR, -0.012, "passed")],
)
def test_least_change_takes_the_whole_interval(evidence: Evidence, least: float, outcome: Outcome) -> None:
    assert gates.least_change(evidence, least=least).outcome == outcome


@pytest.mark.parametrize("better", ["higher", "lower"])
@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize(
    ("least", "outcome"), [(0.0, "failed"), (-0.0, "failed"), (0.001, "failed"), (-0.001, "passed")]
)
def test_a_copy_of_the_baseline_is_no_gain(
    better: Literal["higher", "lower"], is_relative: bool, least: float, outcome: Outcome
) -> None:
    nothing = Estimate(0.0, 0.0, 0.0)
    copy = dataclasses.replace(
        BETTER, better=better, difference=nothing, change=nothing, std_error=0.0, p_less=1.0, p_greater=1.0
    )
    assert gates.least_change(copy, least=least, is_relative=is_relative).outcome == outcome
    assert gates.non_inferiority(copy, margin=1e-9, is_relative=is_relative).outcome == "passed"
    assert gates.no_significant_regression([copy], alpha=0.05)[0].outcome == "passed"


@pytest.mark.parametrize(("low", "outcome"), [(0.0, "failed"), (1e-16, "failed"), (-1e-6, "failed"), (1e-6, "passed")])
def test_a_least_gain_of_0_wants_an_interval_above_0_by_more_than_rounding(low: float, outcome: Outcome) -> None:
    """0.32 in another order of summands may be 0.32000000000000006."""
    gain = dataclasses.replace(BETTER, difference=Estimate(low + 0.01, low, low + 0.02))
    verdict = gates.least_change(gain, least=0)
    assert (verdict.outcome, verdict.observed, verdict.bound) == (outcome, low, 0)


def test_a_relative_least_gain_of_0_is_judged_where_the_baseline_is_0_too() -> None:
    from_0 = dataclasses.replace(BETTER, change=Estimate(math.nan, math.nan, math.nan))
    verdict = gates.least_change(from_0, least=0, is_relative=True)
    assert verdict.sentence == (
        "nDCG@10, country = DE is 0.020 better than popular (+0.010 to +0.030, 1,200 users); an interval above 0 is "
        "required: passed."
    )
    assert gates.least_change(from_0, least=0.01, is_relative=True).outcome == "failed"


def test_an_end_that_misses_its_bound_does_not_look_as_if_it_met_it() -> None:
    """0.0099 with three decimals is 0.010, which a gain of at least 0.01 would accept."""
    near = dataclasses.replace(BETTER, difference=Estimate(0.0199, 0.0099, 0.0299))
    assert gates.least_change(near, least=0.01).sentence == (
        "nDCG@10, country = DE is 0.0199 better than popular (+0.0099 to +0.0299, 1,200 users); a gain of at least "
        "0.01 is required: failed."
    )
    value = dataclasses.replace(BETTER, value=Estimate(0.29996, 0.29, 0.31))
    assert "is 0.29996 (0.29000 to 0.31000, 1,200" in gates.value_bounds(value, low=0.3).sentence


def test_of_an_error_measure_less_is_a_gain() -> None:
    """RMSE that falls by 0.02 is a gain, and one that rises a loss."""
    fallen, risen = (dataclasses.replace(each, better="lower") for each in (WORSE, BETTER))
    assert gates.least_change(fallen, least=0.01).outcome == "passed"
    assert gates.non_inferiority(risen, margin=0.02).outcome == "failed"
    outcomes = [verdict.outcome for verdict in gates.no_significant_regression([fallen, risen], alpha=0.05)]
    assert outcomes == ["passed", "failed"]


def test_regression_is_found_with_holm_over_the_rule() -> None:
    """.02 is significant alone and not among three; .01 is."""
    rows = [dataclasses.replace(UNCLEAR, p_less=p) for p in (0.02, 0.01, 0.5)]
    found = gates.no_significant_regression(rows, alpha=0.05)
    assert [verdict.outcome for verdict in found] == ["failed", "failed", "passed"]
    assert [verdict.observed for verdict in found] == pytest.approx([0.04, 0.03, 0.5])
    rows[0] = dataclasses.replace(UNCLEAR, p_less=0.03)
    assert [one.outcome for one in gates.no_significant_regression(rows, alpha=0.05)] == ["passed", "failed", "passed"]


def test_rows_that_are_not_tested_do_not_count_in_the_family() -> None:
    rows = [dataclasses.replace(UNCLEAR, p_less=0.04), SMALL, ALONE]
    found = gates.no_significant_regression(rows, alpha=0.05)
    assert [verdict.outcome for verdict in found] == ["failed", "too_few_users", "no_baseline"]


def test_detectable_loss_would_be_found_four_times_in_five() -> None:
    """Power of the one-sided test at that loss, from the distribution of t shifted by it."""
    text = gates.no_significant_regression([UNCLEAR, UNCLEAR], alpha=0.05)[0].sentence
    loss = float(text.partition("would detect a loss of ")[2].split()[0])
    critical = stats.t.ppf(1 - 0.05 / 2, 1199)
    assert stats.nct.sf(critical, 1199, loss / 0.005) == pytest.approx(0.8, abs=0.002)


@pytest.mark.parametrize(("value", "outcome"), [(0.1 - 1e-13, "passed"), (0.1 - 1e-9, "failed"), (0.1, "passed")])
def test_a_mean_at_its_bound_passes_whatever_the_rounding_of_its_sum(value: float, outcome: str) -> None:
    """3,000 users with 0.1 each have the mean 0.09999999999999991."""
    evidence = gates.Evidence("P@10", 3000, gates.Estimate(value, value, value))
    assert gates.value_bounds(evidence, low=0.1).outcome == outcome
    negative = gates.Evidence("P@10", 3000, gates.Estimate(-value, -value, -value))
    assert gates.value_bounds(negative, high=-0.1).outcome == outcome


def test_passing_for_want_of_differences_is_said() -> None:
    row = dataclasses.replace(UNCLEAR, p_less=math.nan)
    verdict = gates.no_significant_regression([row], alpha=0.05)[0]
    assert verdict.outcome == "passed"
    assert "too few users differ for a test" in verdict.sentence
    assert "would detect" not in verdict.sentence  # no loss is found where no test is made


@pytest.mark.parametrize(("evidence", "outcome"), [(SMALL, "too_few_users"), (ALONE, "no_baseline")])
def test_what_cannot_be_compared_has_its_own_verdict(evidence: Evidence, outcome: Outcome) -> None:
    assert gates.non_inferiority(evidence, margin=0.5).outcome == outcome
    assert gates.least_change(evidence, least=-0.5).outcome == outcome


def test_undefined_difference_fails() -> None:
    assert gates.non_inferiority(UNDEFINED, margin=1).outcome == "failed"
    assert gates.least_change(UNDEFINED, least=-1, is_relative=True).outcome == "failed"
    assert gates.no_significant_regression([UNDEFINED], alpha=0.05)[0].outcome == "failed"


def test_every_verdict_is_one_sentence_that_ends_with_what_was_decided() -> None:
    verdicts = [
        gates.value_bounds(BETTER, low=0.1, high=0.5),
        gates.least_change(BETTER, least=0.05, is_relative=True),
        gates.non_inferiority(dataclasses.replace(UNCLEAR, is_paired=False), margin=0.02),
        *gates.no_significant_regression([BETTER, WORSE, SMALL, UNCLEAR], alpha=0.05),
        gates.no_match("nDCG@99"),
        gates.missing_slice("country = XX"),
        gates.no_baseline("nDCG@10", "previous night"),
    ]
    assert [verdict.sentence for verdict in verdicts] == [
        "nDCG@10, country = DE is 0.320 (0.310 to 0.330, 1,200 users); at least 0.1 and at most 0.5 is "
        "required: passed.",
        "nDCG@10, country = DE is 6.67 % better than popular (+3.00 % to +10.00 %, 1,200 users); a gain of at least 5 "
        "% is required: failed.",
        "nDCG@10, country = DE is 0.002 worse than popular (−0.012 to +0.008, 1,200 users, not all the same); a loss "
        "below 0.02 is allowed: passed.",
        "nDCG@10, country = DE is 0.020 better than popular (+0.010 to +0.030, 1,200 users); no proof of a loss (p = "
        "1.00); the test would detect a loss of 0.0149 or more in 80 % of samples: passed.",
        "nDCG@10, country = DE is 0.020 worse than popular (−0.030 to −0.010, 1,200 users), too much for chance (p "
        "< .001): failed.",
        "nDCG@10, country = DE has 29 users, fewer than the 30 that a verdict needs: not judged.",
        "nDCG@10, country = DE is 0.002 worse than popular (−0.012 to +0.008, 1,200 users); no proof of a loss (p = "
        ".68); the test would detect a loss of 0.0149 or more in 80 % of samples: passed.",
        "nDCG@99 matches nothing that was computed: failed.",
        "country = XX has no users in these results: failed.",
        "nDCG@10 has no previous night to be compared with yet: not judged.",
    ]


@pytest.mark.parametrize("size", [1e-13, 1.0, 1e9])
def test_a_bound_on_a_mean_allows_for_its_rounding_in_any_unit(size: float) -> None:
    """Half of the bound fails, whatever the unit; the bound itself passes where the sum of 0.1 and 0.2 is rounded."""
    least = 0.1 * size + 0.2 * size
    for value, passes in ((0.3 * size, True), (0.15 * size, False)):
        evidence = gates.Evidence("CG@1", 100, gates.Estimate(value, value, value))
        assert (gates.value_bounds(evidence, low=least).outcome == "passed") == passes
        lower = gates.Evidence("CG@1", 100, gates.Estimate(-value, -value, -value))
        assert (gates.value_bounds(lower, high=-least).outcome == "passed") == passes

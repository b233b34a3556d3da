"""Gates: may the new model ship? The arithmetic of the rules, and a sentence for each verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from rankeval_spark import wording
from rankeval_spark.columns import MIN_USERS, ROUNDING
from rankeval_spark.statistics import distributions
from rankeval_spark.statistics.multiple_testing import adjust
from rankeval_spark.statistics.power import POWER, detectable

Outcome: TypeAlias = Literal[
    "passed", "failed", "undecided", "no_baseline", "too_few_users", "too_little_support", "no_match", "missing_slice"
]

MIN_COMPARED: Final = 2  # users below which a difference has no interval


class GateVerdict(NamedTuple):
    """Verdict of a rule on one row."""

    outcome: Outcome  # only `passed` passes; the caller decides about the others that are not judged
    observed: float  # what was compared: the value, or an end of its interval; NaN without a comparison
    bound: float
    sentence: str


class Estimate(NamedTuple):
    """A number and its interval; NaN where undefined."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


_UNDEFINED: Final = Estimate()


@dataclass(frozen=True)
class Evidence:
    """Numbers about one measure in one slice that rules judge."""

    what: str  # measure, cutoff and slice in words, such as `nDCG@10, country = DE`
    n_users: int  # users with a value; with a comparison, users with a value under both models
    value: Estimate  # the new model's mean
    versus: str = ""  # the baseline in words, such as `popular` or `the night of 2026-01-31`; empty without one
    difference: Estimate = _UNDEFINED  # new model minus baseline
    change: Estimate = _UNDEFINED  # the difference as a share of the baseline
    std_error: float = math.nan  # of the difference
    freedom: float = math.nan  # degrees of freedom of the difference
    p_less: float = math.nan  # one-sided p of the difference
    p_greater: float = math.nan
    better: Literal["higher", "lower"] = "higher"
    is_paired: bool = True  # both models have the same users
    n_others: int | None = None  # the baseline's users with a value, where the two serve different users
    n_both: int = 0  # users of both among these
    is_of_t: bool = True  # p is that of t, whose power is known; that of an exact test is not
    lacking: str = "baseline"  # what is missing where `versus` is empty, such as `baseline`
    has_too_few_groups: bool = False  # the value compares groups, and fewer than two are large enough
    unsupported: str = ""  # what of it too few users decide by large weights, in words; empty where it has support
    withheld: str = ""  # why there is a baseline and no difference, in words; empty where there is one
    possible: tuple[float, float] = (-math.inf, math.inf)  # least and greatest value that the measure can have

    def gain(self, *, is_relative: bool) -> Estimate:
        """Return the difference or relative change; where lower is better, with its sign changed."""
        found = self.change if is_relative else self.difference
        return found if self.better == "higher" else Estimate(-found.value, -found.high, -found.low)

    def at_level(self, level: float, *, known: float) -> Evidence:
        """Return the evidence with both intervals of a gain at a level, by t, where they are of the level ``known``.

        >>> evidence = Evidence("RR", 900, Estimate(0.4), "pop", Estimate(0.03, 0.01, 0.05), freedom=899.0)
        >>> [round(end, 4) for end in evidence.at_level(1 - 0.05 / 30, known=0.95).difference]
        [0.03, -0.0021, 0.0621]
        """
        half, known_half = distributions.t_quantile([(1 + level) / 2, (1 + known) / 2], self.freedom)
        times = float(half / known_half)
        difference, change = (
            Estimate(each.value, *(each.value + times * (end - each.value) for end in each[1:]))
            for each in (self.difference, self.change)
        )
        return replace(self, difference=difference, change=change)


def value_bounds(
    evidence: Evidence, *, low: float = -math.inf, high: float = math.inf, least_users: int = MIN_USERS
) -> GateVerdict:
    """Require that the mean itself, not its interval, lies in [low, high], but for the rounding of its sum.

    >>> evidence = Evidence("nDCG@10", 2000, Estimate(0.31, 0.30, 0.32))
    >>> value_bounds(evidence, low=0.25).sentence
    'nDCG@10 is 0.310 (0.300 to 0.320, 2,000 users); at least 0.25 is required: passed.'
    """
    if 0 < evidence.n_users < least_users:
        return too_few_users(evidence.what, evidence.n_users, least_users)
    if evidence.unsupported:
        return too_little_support(evidence.what, evidence.unsupported)
    value = evidence.value
    is_known = not math.isnan(value.value)
    slack = ROUNDING * max(abs(each) for each in (*value, low, high) if math.isfinite(each)) if is_known else 0.0
    is_above = is_known and value.value > high + slack
    passes = is_known and value.value >= low - slack and not is_above
    ends = [f"{words} {end:.4g}" for words, end in (("at least", low), ("at most", high)) if math.isfinite(end)]
    bound = high if is_above or not math.isfinite(low) else low
    places = _decimals(value, low, high)
    interval = "" if math.isnan(value.low) else f"{wording.interval(value.low, value.high, places)}, "
    known = f"is {wording.number(value.value, places)} ({interval}{evidence.n_users:,} users)"
    known = known if is_known else "is undefined"
    return _verdict(evidence, passes, value.value, bound, f"{known}; {' and '.join(ends)} is required")


def certain_bounds(
    evidence: Evidence,
    certainty: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    least_users: int = MIN_USERS,
) -> GateVerdict:
    """Require that the whole interval of the mean, which is of the level ``certainty``, lies in [low, high].

    It fails where the whole interval lies on the wrong side of a bound. Where it holds a bound, the rule is undecided.
    The sentence says what it would take: the users with whom an interval of the same value, which shrinks with their
    root, clears the bound; and the value that does with as many users.

    >>> evidence = Evidence("nDCG@10", 2000, Estimate(0.31, 0.29, 0.33))
    >>> certain_bounds(evidence, 0.95, low=0.3).sentence
    'nDCG@10 is 0.310 (0.290 to 0.330, 2,000 users); at least 0.3 is required with certainty 0.95. About 8,000 users
    with this value would make it pass; with 2,000 users it passes at 0.320 or more: undecided.'
    """
    point = value_bounds(evidence, low=low, high=high, least_users=least_users)
    value = evidence.value
    if point.outcome not in {"passed", "failed"} or math.isnan(value.value):
        return point
    text = point.sentence.removeprefix(f"{evidence.what} ").rpartition(": ")[0] + f" with certainty {certainty:g}"
    if math.isnan(value.low) or math.isnan(value.high):
        text += f", but it has no interval of the level {certainty:g}"
        return GateVerdict("undecided", value.value, point.bound, f"{evidence.what} {text}: undecided.")
    slack = ROUNDING * max(abs(each) for each in (*value, low, high) if math.isfinite(each))
    if value.high < low - slack or value.low > high + slack:
        is_below = value.high < low - slack
        return _verdict(evidence, False, value.high if is_below else value.low, low if is_below else high, text)
    is_short, is_over = value.low < low - slack, value.high > high + slack
    if not is_short and not is_over:
        is_low = math.isfinite(low)
        return _verdict(evidence, True, value.low if is_low else value.high, low if is_low else high, text)
    end, bound, needed = (value.low, low, "or more") if is_short else (value.high, high, "or less")
    text += f". {_what_it_takes(evidence, low, high)}"
    if not (is_short and is_over):
        least = bound + value.value - end
        at = f"it passes at {wording.number(least, _decimals(value, low, high))} {needed}"
        own = at if evidence.possible[0] <= least <= evidence.possible[1] else "no value passes"
        text += f"; with {evidence.n_users:,} users {own}" if value.high - value.low < high - low else ""
    return GateVerdict("undecided", end, bound, f"{evidence.what} {text}: undecided.")


def _what_it_takes(evidence: Evidence, low: float, high: float) -> str:
    """Write with how many users an interval of this value would lie on one side of each bound that it holds."""
    value = evidence.value
    held = [bound for bound in (low, high) if value.low < bound < value.high]
    ratios = []
    for bound in held:
        half = value.value - value.low if value.value > bound else value.high - value.value
        ratios.append(half / abs(value.value - bound) if value.value != bound else math.inf)
    n_users = evidence.n_users * max(ratios, default=math.inf) ** 2
    if not math.isfinite(n_users):
        return "The value is at the bound, so that more users need not decide"
    is_met = low <= value.value <= high
    digits = max(0, math.floor(math.log10(n_users)) - 1)
    return (
        f"About {math.ceil(round(n_users / 10**digits, 6)) * 10**digits:,} users with this value would make it "
        f"{'pass' if is_met else 'fail'}"
    )


def least_change(
    evidence: Evidence, *, least: float, is_relative: bool = False, least_users: int = MIN_USERS
) -> GateVerdict:
    """Require a gain: the whole interval of the gain must be at ``least`` or above, and above a ``least`` of 0.

    0 means better, so a copy of the baseline fails. A share of 0 is 0, so such a rule judges the difference itself.

    >>> evidence = Evidence("RR@10", 900, Estimate(0.4, 0.38, 0.42), "popular", Estimate(0.03, 0.01, 0.05))
    >>> least_change(evidence, least=0.02).sentence
    'RR@10 is 0.030 better than popular (+0.010 to +0.050, 900 users); a gain of at least 0.02 is required: failed.'
    """
    is_relative = is_relative and least != 0
    gain = evidence.gain(is_relative=is_relative)
    amount = _bound(abs(least), is_relative)
    if least == 0:
        passes, required = gain.low > ROUNDING * abs(evidence.value.value), "an interval above 0"
    else:
        passes, required = gain.low >= least, f"a {'gain of at least' if least > 0 else 'loss of at most'} {amount}"
    text = f"{_change_in_words(evidence, gain, is_relative, least)}; {required} is required"
    return _early_verdict(evidence, least_users) or _verdict(evidence, passes, gain.low, least, text)


def non_inferiority(
    evidence: Evidence, *, margin: float, is_relative: bool = False, least_users: int = MIN_USERS
) -> GateVerdict:
    """Allow a small loss: the interval of the gain must lie above ``-margin``.

    There is no adjustment for the number of slices, because every slice must pass.

    >>> evidence = Evidence("RR@10", 900, Estimate(0.4, 0.38, 0.42), "popular", Estimate(-0.005, -0.015, 0.005))
    >>> non_inferiority(evidence, margin=0.02).sentence
    'RR@10 is 0.005 worse than popular (−0.015 to +0.005, 900 users); a loss below 0.02 is allowed: passed.'
    """
    gain = evidence.gain(is_relative=is_relative)
    change = _change_in_words(evidence, gain, is_relative, -margin)
    text = f"{change}; a loss below {_bound(margin, is_relative)} is allowed"
    return _early_verdict(evidence, least_users) or _verdict(evidence, gain.low > -margin, gain.low, -margin, text)


def no_significant_regression(
    rows: Sequence[Evidence], *, alpha: float, least_users: int = MIN_USERS
) -> list[GateVerdict]:
    """Fail rows that are significantly worse: one-sided tests, Holm's correction over the rows of the rule.

    Few users pass easily, so the sentence names the loss that the t test would detect in 80 % of samples at the
    strictest step of Holm, at the level ``alpha / f`` with f the rows that were tested. It names none where the test is
    exact, or where there is no spread.

    >>> known = Estimate(0.4, 0.38, 0.42), "popular", Estimate(-0.005, -0.015, 0.005)
    >>> evidence = Evidence("RR@10", 900, *known, std_error=0.005, freedom=899.0, p_less=0.16, p_greater=0.84)
    >>> print(no_significant_regression([evidence], alpha=0.05)[0].sentence)
    RR@10 is 0.005 worse than popular (−0.015 to +0.005, 900 users); no proof of a loss (p = .16); the test would detect
    a loss of 0.0124 or more in 80 % of samples: passed.
    """
    early = [_early_verdict(row, least_users) for row in rows]
    p_worse = [row.p_less if row.better == "higher" else row.p_greater for row in rows]
    p = np.array([math.nan if verdict else p_of_row for p_of_row, verdict in zip(p_worse, early, strict=True)])
    adjusted = adjust(p, np.zeros(len(p), dtype=np.int64), correction="holm", alpha=alpha)
    return [
        verdict or _regression_verdict(row, float(p_of_row), max(int(size), 1), alpha)
        for row, verdict, p_of_row, size in zip(rows, early, adjusted.p, adjusted.family_size, strict=True)
    ]


def _regression_verdict(row: Evidence, p: float, family_size: int, alpha: float) -> GateVerdict:
    """Judge by the adjusted p of a loss; without one, add the loss that the test would probably find."""
    known = _change_in_words(row, row.gain(is_relative=False), is_relative=False)
    if math.isnan(row.difference.value):
        return _verdict(row, False, math.nan, alpha, known)
    if p <= alpha:
        return _verdict(row, False, p, alpha, f"{known}, too much for chance ({wording.p_in_words(p)})")
    if math.isnan(p):
        return _verdict(row, True, p, alpha, f"{known}; too few users differ for a test, so it finds no loss")
    text = f"{known}; no proof of a loss ({wording.p_in_words(p)})"
    if row.is_of_t and row.std_error > 0:
        loss = float(detectable(row.std_error, row.freedom, tail=alpha / family_size))
        least = wording.number(loss, _decimals(row.difference) + 1)
        text += f"; the test would detect a loss of {least} or more in {100 * POWER:.0f} % of samples"
    return _verdict(row, True, p, alpha, text)


def _early_verdict(evidence: Evidence, least_users: int) -> GateVerdict | None:
    """Return the verdict of a comparison that cannot be made; None where it can."""
    least = max(least_users, MIN_COMPARED)
    if evidence.withheld:
        sentence = f"{evidence.what} against {evidence.versus} is {evidence.withheld}: failed."
        return _undecided_verdict("failed", sentence)
    if not evidence.versus:
        return no_baseline(evidence.what, evidence.lacking)
    fewest = evidence.n_users if evidence.n_others is None else min(evidence.n_users, evidence.n_others)
    if fewest < least:
        return too_few_users(evidence.what, fewest, least)
    return too_little_support(evidence.what, evidence.unsupported) if evidence.unsupported else None


def no_match(rule: str, hint: str = "") -> GateVerdict:
    """Return the verdict of a rule that no computed measure, cutoff and model matches."""
    sentence = f"{rule} matches nothing that was computed{f' ({hint})' if hint else ''}: failed."
    return _undecided_verdict("no_match", sentence)


def too_few_users(what: str, n_users: int, least_users: int) -> GateVerdict:
    """Return the verdict of a row with too few users."""
    text = f"{what} has {n_users:,} users, fewer than the {least_users} that a verdict needs: not judged."
    return _undecided_verdict("too_few_users", text)


def too_little_support(what: str, unsupported: str) -> GateVerdict:
    """Return the verdict of a value, or a difference, that few users decide by large weights.

    >>> too_little_support("als: IPS", "an effective sample of 2 of 10,000 users, where a verdict needs 30").sentence
    'als: IPS is undecided: too little support, an effective sample of 2 of 10,000 users, where a verdict needs 30: not
    judged.'
    """
    sentence = f"{what} is undecided: too little support, {unsupported}: not judged."
    return _undecided_verdict("too_little_support", sentence)


def too_few_groups(what: str, least_users: int) -> GateVerdict:
    """Return the verdict of a comparison of groups with fewer than two groups."""
    text = f"{what} has fewer than two groups of {least_users:,} users with a value: not judged."
    return _undecided_verdict("too_few_users", text)


def missing_slice(what: str) -> GateVerdict:
    """Return the verdict of a slice that a rule names and that has no user with a value."""
    return _undecided_verdict("missing_slice", f"{what} has no users in these results: failed.")


def no_common_users(what: str, versus: str) -> GateVerdict:
    """Return the verdict of a slice in which no user has a value under both models."""
    return _undecided_verdict("missing_slice", f"{what} has no users with a value under {versus} too: failed.")


def no_baseline(what: str, versus: str, hint: str = "") -> GateVerdict:
    """Return the verdict of a row without a baseline, as on the first night.

    >>> no_baseline("als: nDCG@10", "baseline popular", "the models are als and pop").sentence
    'als: nDCG@10 has no baseline popular to be compared with yet (the models are als and pop): not judged.'
    """
    text = f"{what} has no {versus} to be compared with yet{f' ({hint})' if hint else ''}: not judged."
    return _undecided_verdict("no_baseline", text)


def _undecided_verdict(outcome: Outcome, sentence: str) -> GateVerdict:
    """Return a verdict without a comparison: observed and bound are NaN."""
    return GateVerdict(outcome, math.nan, math.nan, sentence)


def _verdict(evidence: Evidence, passes: bool, observed: float, bound: float, text: str) -> GateVerdict:
    """Return the verdict of a comparison; its sentence is what was judged, the text and the outcome."""
    outcome: Outcome = "passed" if passes else "failed"
    return GateVerdict(outcome, float(observed), bound, f"{evidence.what} {text}: {outcome}.")


def _change_in_words(evidence: Evidence, gain: Estimate, is_relative: bool, bound: float = math.nan) -> str:
    """Write a gain or loss with its interval, such as "is 0.030 better than popular (+0.010 to +0.050, 900 users)"."""
    if math.isnan(gain.value) or math.isnan(gain.low):
        return f"has no {'relative change from' if is_relative else 'difference to'} {evidence.versus}"
    scale, unit = (100.0, " %") if is_relative else (1.0, "")
    value, low, high = (scale * each for each in gain)
    places = _decimals(Estimate(value, low, high), scale * bound)
    text = f"is as {evidence.versus}"
    if gain.value:
        direction = "better" if gain.value > 0 else "worse"
        text = f"is {wording.number(abs(value), places)}{unit} {direction} than {evidence.versus}"
    ends = " to ".join(f"{wording.signed(end, places)}{unit}" for end in (low, high))
    whose = "" if evidence.is_paired else ", not all the same"
    if evidence.n_others is not None:
        whose = f" against {evidence.n_others:,} others{f', {evidence.n_both:,} of both' if evidence.n_both else ''}"
    return f"{text} ({ends}, {evidence.n_users:,} users{whose})"


def _decimals(estimate: Estimate, *bounds: float) -> int:
    """Return the decimals of a number by its interval, and enough to tell its ends from the bounds they are held to."""
    half = (estimate.high - estimate.low) / 2
    places = wording.decimals([half if half > 0 else None], [each for each in estimate[:1] if math.isfinite(each)])
    for bound in filter(math.isfinite, bounds):
        for end in filter(math.isfinite, estimate):
            places = wording.decimals_apart(places, end, bound)
    return places


def _bound(number: float, is_relative: bool) -> str:
    """Write a bound as the rule has it, or a share as a percentage."""
    return f"{100 * number:.4g} %" if is_relative else f"{number:.4g}"

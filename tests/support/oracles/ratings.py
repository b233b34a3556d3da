"""Naive references of the measures of predicted ratings and of scored items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from tests.support.oracles import number
from tests.support.oracles.plain import NAIVE, Number, PlainList, mean, naive


@naive("MSE")
def _(one: PlainList, _: int, *, missing: str) -> Number | None:
    assert missing == "drop" or len(one.predictions) >= len(one.judged)
    return mean([Fraction(score - gain) ** 2 for score, gain in one.predictions])


@naive("RMSE")
def _(one: PlainList, _: int, *, missing: str) -> Number | None:
    squared = NAIVE["MSE"](one, 0, missing=missing)
    return None if squared is None else number.sqrt(squared)


@naive("MAE")
def _(one: PlainList, _: int, *, missing: str) -> Number | None:
    assert missing == "drop" or len(one.predictions) >= len(one.judged)
    return mean([abs(Fraction(score - gain)) for score, gain in one.predictions])


@naive("PredictedShare")
def _(one: PlainList, _: int) -> Number | None:
    return Fraction(len(one.predictions), len(one.judged)) if one.judged else None


@naive("LogLoss")
def _(one: PlainList, _: int, *, rel: float) -> Number | None:
    edge: Number = Fraction(1, 10**15)
    of_truth = [score if gain >= rel else 1 - score for score, gain in one.predictions]
    return mean([-number.log(sorted((edge, p, 1 - edge))[1]) for p in of_truth])


def ordered(one: PlainList, by: str) -> list[tuple[float, float]]:
    """Score and gain of each judged item of the list; for its rank, its place from the bottom."""
    places = map(float, range(len(one.gains), 0, -1))
    of_ranks = [(place, gain) for place, gain, known in zip(places, one.gains, one.is_judged, strict=True) if known]
    return one.predictions if by == "score" else of_ranks


def judged_pairs(one: PlainList, by: str) -> list[tuple[int, int]]:
    """Sign of the difference in score, or rank, and in gain of every pair of judged items of the list."""
    return [
        (_sign(score - other_score), _sign(gain - other_gain))
        for (score, gain), (other_score, other_gain) in itertools.combinations(ordered(one, by), 2)
    ]


def _sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)


@naive("FCP")
def _(one: PlainList, _: int, *, by: str, ties: str) -> Number | None:
    pairs = [score * gain for score, gain in judged_pairs(one, by) if gain and (score or ties != "ignore")]
    worth = {1: Fraction(1), 0: Fraction(ties == "half") / 2, -1: Fraction(0)}
    return mean([worth[sign] for sign in pairs])


@naive("KendallTau")
def _(one: PlainList, _: int, *, by: str) -> Number | None:
    pairs = judged_pairs(one, by)
    untied = [sum(score != 0 for score, _ in pairs), sum(gain != 0 for _, gain in pairs)]
    return sum(score * gain for score, gain in pairs) / number.sqrt(math.prod(untied)) if all(untied) else None


@naive("Spearman")
def _(one: PlainList, _: int, *, by: str) -> Number | None:
    sides = [middle_ranks(side) for side in zip(*ordered(one, by), strict=True)] or [[], []]
    centred = [[rank - Fraction(len(side) + 1, 2) for rank in side] for side in sides]
    squares = [sum(deviation**2 for deviation in side) for side in centred]
    product = sum(left * right for left, right in zip(*centred, strict=True))
    return product / number.sqrt(math.prod(squares)) if all(squares) else None


def middle_ranks(values: Sequence[float]) -> list[Fraction]:
    """Rank of each value from 1, the smallest; equal ones share the mean of their ranks."""
    return [
        Fraction(2 * sum(other < value for other in values) + sum(other == value for other in values) + 1, 2)
        for value in values
    ]


@naive("AUC")
@naive("GAUC")
def _(one: PlainList, _: int, *, by: str, rel: float, ties: str) -> Number | None:
    good = [score for score, gain in ordered(one, by) if gain >= rel]
    bad = [score for score, gain in ordered(one, by) if gain < rel]
    tied = Fraction(ties == "half") / 2
    return mean([Fraction(high > low) + tied * (high == low) for high in good for low in bad])

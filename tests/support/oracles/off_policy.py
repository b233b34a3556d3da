"""Naive references of the off-policy measures: one impression after another."""

from __future__ import annotations

from fractions import Fraction

from tests.support.oracles.plain import Number, PlainList, naive


def impressions(one: PlainList, limit: float = float("inf")) -> list[tuple[Number, float]]:
    """Weight and reward of each impression; those of items that are not listed have weight 0."""
    listed = [
        (
            min(Fraction(score) / Fraction(propensity), Fraction(limit) if limit < float("inf") else Fraction(10**9)),
            gain,
        )
        for score, propensity, gain, is_judged in zip(
            one.scores, one.propensities, one.gains, one.is_judged, strict=True
        )
        if is_judged
    ]
    return [*listed, *[(Fraction(0), 0.0)] * (len(one.judged) - len(listed))]


def mean_reward(one: PlainList, limit: float = float("inf")) -> Number | None:
    found = impressions(one, limit)
    return sum(weight * Fraction(gain) for weight, gain in found) / Fraction(len(found)) if found else None


@naive("IPS")
def _(one: PlainList, _: int) -> Number | None:
    return mean_reward(one)


@naive("ClippedIPS")
def _(one: PlainList, _: int, *, limit: float) -> Number | None:
    return mean_reward(one, limit)


@naive("DR")
def _(one: PlainList, _: int) -> Number | None:
    expected = sum(Fraction(score) * Fraction(q) for score, q in zip(one.scores, one.predicted, strict=True))
    found = Fraction(0)
    for place, is_judged in enumerate(one.is_judged):
        if is_judged:
            weight = Fraction(one.scores[place]) / Fraction(one.propensities[place])
            found += weight * (Fraction(one.gains[place]) - Fraction(one.predicted[place]))
    return expected + found / len(one.judged) if one.judged else None


@naive("SNIPS")
def _(one: PlainList, _: int) -> Number | None:
    found = impressions(one)
    total = sum(weight for weight, _ in found)
    return sum(weight * Fraction(gain) for weight, gain in found) / total if total else None


@naive("ImportanceWeight")
def _(one: PlainList, _: int, *, power: str) -> Number | None:
    found = impressions(one)
    return sum((weight ** int(power) for weight, _ in found), Fraction(0)) / len(found) if found else None

"""Naive references of the agreement of two models' lists: item sets cut at each depth."""

from __future__ import annotations

from fractions import Fraction

from tests.support.oracles.plain import Number, PlainList, naive


@naive("Overlap")
def _(one: PlainList, k: int, *, model: str, denom: str = "k") -> Number | None:
    own, other = both(one, k, model)
    possible = {"k": k, "len": len(own), "min": min(len(own), len(other))}[denom]
    return Fraction(len({*own} & {*other}), possible) if own and other else None


@naive("Jaccard")
def _(one: PlainList, k: int, *, model: str) -> Number | None:
    own, other = both(one, k, model)
    return Fraction(len({*own} & {*other}), len({*own, *other})) if own and other else None


@naive("RBO")
def _(one: PlainList, k: int, *, model: str, p: float) -> Number | None:
    short, long = sorted(both(one, k, model), key=len)
    return rank_biased_overlap(short, long, p) if short else None


def both(one: PlainList, k: int, model: str) -> tuple[list[str], list[str]]:
    """Name the items of the list and of that of the other model, cut at k; the same ones alike."""
    ranks = dict(one.background.others).get(model, ())
    own = [f"item {rank}" for rank in range(1, len(one.gains) + 1)]
    other = [f"other {place}" if rank is None else f"item {rank}" for place, rank in enumerate(ranks)]
    return own[: k or None], other[: k or None]


def common(one: list[str], other: list[str], depth: int) -> int:
    """Count the items that stand in both at ranks 1..depth."""
    return len({*one[:depth]} & {*other[:depth]})


def rank_biased_overlap(short: list[str], long: list[str], p: float) -> Number:
    """Equation 32 of Webber et al., depth by depth; neither list is empty."""
    s, n = len(short), len(long)
    seen = sum(Fraction(common(short, long, d), d) * p**d for d in range(1, n + 1))
    unseen = sum(Fraction(common(short, long, s) * (d - s), s * d) * p**d for d in range(s + 1, n + 1))
    beyond = Fraction(common(short, long, n) - common(short, long, s), n) + Fraction(common(short, long, s), s)
    return (1 - p) / p * (seen + unseen) + beyond * p**n

"""Naive references of what measures that are ratios are divided by, for the averages that sum it over users.

The numerator is the value times it: where both are right, so is the ratio of their sums.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.support.oracles.beyond import best_order, diverse_ceiling, diverse_gain, relevant_categories
from tests.support.oracles.off_policy import impressions
from tests.support.oracles.plain import Number, PlainList, References, least
from tests.support.oracles.ratings import judged_pairs
from tests.support.oracles.relevance import (
    best_worth,
    cascade,
    discounted,
    graded_divisor,
    hit_divisor,
    itself,
    worth_of,
)

if TYPE_CHECKING:
    from rankeval_spark.measures.options import GainMap

Denominator = Callable[..., Number]

DENOMINATORS: References[Denominator] = References(
    "no denominator of {name}; add {name!r} to a @denominator of tests/support/oracles/denominators.py"
)
"""Reference of each measure that has one: ``reference(list, k, **options)``."""


def denominator(*names: str) -> Callable[[Denominator], Denominator]:
    """Name the measures that a reference stands for."""

    def register(reference: Denominator) -> Denominator:
        DENOMINATORS.update(dict.fromkeys(names, reference))
        return reference

    return register


@denominator("SetR", "Bpref", "infAP", "PAUC", "RecallCeiling")
def _(one: PlainList, _: int, *, rel: float) -> Number:
    return one.n_relevant(rel)


@denominator("IPS", "ClippedIPS", "DR", "ImportanceWeight")
def _(one: PlainList, _: int, **_options: object) -> Number:
    return len(one.judged)


@denominator("SNIPS")
def _(one: PlainList, _: int) -> Number:
    return sum((weight for weight, _ in impressions(one)), Fraction(0))


@denominator("PAP", "Rprec")
def _(one: PlainList, k: int, *, rel: float) -> Number:
    return least(k, one.n_relevant(rel))


@denominator("Rprec_mult")
def _(one: PlainList, _: int, *, rel: float, x: float) -> Number:
    return int(x * one.n_relevant(rel) + 0.9)


@denominator("SetP")
def _(one: PlainList, _: int, *, rel: float, relative: bool = False) -> Number:
    return min(len(one.gains), one.n_relevant(rel)) if relative else len(one.gains)


@denominator("F")
def _(one: PlainList, k: int, *, beta: float, rel: float) -> Number:
    return Fraction(beta) ** 2 * one.n_relevant(rel) + k


@denominator("SetF")
def _(one: PlainList, _: int, *, beta: float, rel: float) -> Number:
    return Fraction(beta) ** 2 * one.n_relevant(rel) + len(one.gains)


@denominator("P")
def _(one: PlainList, k: int, *, denom: str, rel: float) -> Number:
    return {"k": k, "len": len(one.top(k)), "min": least(k, one.n_relevant(rel))}[denom]


@denominator("Judged")
def _(one: PlainList, k: int, *, denom: str) -> Number:
    return k if denom == "k" else len(one.top(k))


@denominator("R")
def _(one: PlainList, k: int, *, denom: str, gains: str, rel: float) -> Number:
    if gains == "value":
        return sum(max(v, 0) for g, v in zip(one.judged_gains, one.judged_values, strict=True) if g >= rel)
    return one.n_relevant(rel) if denom == "R" else least(k, one.n_relevant(rel))


@denominator("AP")
def _(one: PlainList, k: int, *, denom: str, gains: str | GainMap, rel: float) -> Number:
    return graded_divisor(one, k, denom, gains, rel)


@denominator("MAR")
def _(one: PlainList, k: int, *, kind: str, rel: float) -> Number:
    return least(k, one.n_relevant(rel)) if kind == "hits_min" else one.n_relevant(rel)


@denominator("ARHR")
def _(one: PlainList, k: int, *, denom: str, gains: str, rel: float) -> Number:
    if denom != "ideal":
        return hit_divisor(one, k, denom, rel)
    return discounted(one.judged[: k or None], worth_of("inverse", gains, rel), "inverse")


@denominator("RR")
def _(one: PlainList, _: int, *, gains: str | GainMap, rel: float) -> Number:
    return best_worth(one, gains, rel)


@denominator("HitRank")
def _(one: PlainList, k: int, *, missed: str, rel: float, stat: str) -> Number:
    return 1 if stat != "mean" else hit_divisor(one, k, "hits" if missed == "drop" else "R", rel)


@denominator("nERR")
def _(one: PlainList, k: int, *, max_rel: float) -> Number:
    return cascade(one.judged[: k or None], max_rel)


@denominator("nCG", "nDCG")
def _(
    one: PlainList,
    k: int,
    *,
    gains: str | GainMap,
    ideal: str,
    rel: float,
    unjudged: object,
    dcg: str = "none",
    p: float | None = None,
) -> Number:
    assert unjudged == "zero"
    worth = worth_of(dcg, "grade" if gains == "value" else gains, rel)
    judged, shown = (one.judged_values, one.values) if gains == "value" else (one.judged_gains, one.gains)
    best, depth = sorted(map(worth, judged), reverse=True), k or len(judged)
    match ideal:
        case "k_ones":
            best = [worth(rel)] * k
        case "retrieved":
            best = sorted(map(worth, shown[: k or None]), reverse=True)
        case "len":
            depth = len(one.top(k))
    return discounted(best[:depth], itself, dcg, p)


@denominator("AUC")
def _(one: PlainList, _: int, *, rel: float, **__: object) -> Number:
    n_relevant = sum(gain >= rel for _, gain in one.predictions)
    return n_relevant * (len(one.predictions) - n_relevant)


@denominator("GAUC", "RMSE", "MSE", "MAE", "LogLoss")
def _(one: PlainList, _: int, **__: object) -> Number:
    return len(one.predictions)


@denominator("PredictedShare")
def _(one: PlainList, _: int) -> Number:
    return len(one.judged)


@denominator("FCP")
def _(one: PlainList, _: int, *, by: str, ties: str) -> Number:
    return sum(1 for score, gain in judged_pairs(one, by) if gain and (score or ties != "ignore"))


@denominator("PopLift")
def _(one: PlainList, _: int) -> Number:
    return one.background.profile_interactions


@denominator("alpha_nDCG")
def _(one: PlainList, k: int, *, alpha: float, rel: float) -> Number:
    return diverse_gain(best_order(one, alpha, rel), k, alpha)


@denominator("ERR_IA")
def _(one: PlainList, k: int, *, alpha: float, rel: float) -> Number:
    return diverse_ceiling(one, k, alpha, rel)


@denominator("P_IA")
def _(one: PlainList, k: int, *, intents: str, rel: float) -> Number:
    return k * (1 if intents == "train" else len(set().union(*relevant_categories(one, rel))))

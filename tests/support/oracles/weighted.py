"""Naive references of measures whose judgements have weights: one judgement at a time, each as often as it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.support.oracles import number
from tests.support.oracles.denominators import DENOMINATORS
from tests.support.oracles.plain import NAIVE, Number, PlainList, share
from tests.support.oracles.relevance import discounted, itself, worth_of

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure, Ranking

_SUMS = {"NumHits", "CG", "DCG", "IDCG", "RBP"}


def alone(ranking: Ranking) -> Iterator[tuple[Fraction, PlainList]]:
    """Give the weight of each judgement, and the list if there were no other."""
    places, n_missed = range(len(ranking.gains)), len(ranking.missed)
    for judged in places:
        if ranking.gains[judged] is not None:
            gains = [gain if place == judged else None for place, gain in enumerate(ranking.gains)]
            weight = ranking.weights[judged] if ranking.weights else 1
            yield Fraction(weight), PlainList.of(ranking._replace(gains=gains, missed=(), missed_values=()))
    weights, values = ranking.missed_weights or [1] * n_missed, ranking.missed_values or ranking.missed
    for gain, value, weight in zip(ranking.missed, values, weights, strict=True):
        one = ranking._replace(gains=[None] * len(places), missed=[gain], missed_values=[value])
        yield Fraction(weight), PlainList.of(one)


def value_of(measure: Measure, ranking: Ranking) -> Number | None:
    """Add up what each judgement adds alone, times its weight, and divide."""
    if measure.name in {"AP", "RR"}:  # what an item adds depends on the others
        return _value_of_precisions(measure, ranking)
    found = [(weight, _numerator(measure, one)) for weight, one in alone(ranking)]
    if all(weight == 0 or numerator is None for weight, numerator in found):
        return None
    if measure.name == "IDCG":
        return divisor_of(measure, ranking)
    total = number.total(weight * numerator for weight, numerator in found if numerator is not None)
    return share(total, divisor_of(measure, ranking))


def _value_of_precisions(measure: Measure, ranking: Ranking) -> Number | None:
    options: Mapping[str, Any] = measure.kernel_options
    one, k, rel = PlainList.of(ranking), measure.k, options["rel"]
    if measure.name == "RR":
        return NAIVE["RR"](one, k, gains="binary", rel=rel)
    places = enumerate(zip(one.top(k), ranking.weights or [1] * len(one.gains), strict=False), 1)
    terms = [Fraction(weight * one.hits(rank, rel)) / rank for rank, (gain, weight) in places if gain >= rel]
    return share(sum(terms, Fraction(0)), divisor_of(measure, ranking)) if one.n_relevant(rel) else None


def divisor_of(measure: Measure, ranking: Ranking) -> Number:
    """Give what the sum is divided by: the weights of the relevant items, or the same sum in the best order."""
    options: Mapping[str, Any] = measure.kernel_options
    if measure.name in _SUMS - {"IDCG"} or options.get("denom") == "none":
        return 1
    found = list(alone(ranking))
    if measure.name == "RR":
        of_relevant = [weight for weight, one in found if weight and one.n_relevant(options["rel"])]
        return share(sum(of_relevant), len(of_relevant))
    if "ideal" not in (*options, options.get("denom")):
        return sum((weight * Fraction(_denominator(measure, one)) for weight, one in found), Fraction(0))
    dcg, gains = options.get("dcg", "none" if measure.name == "nCG" else "inverse"), options["gains"]
    worth = worth_of(dcg, "grade" if gains == "value" else gains, options["rel"])
    of_judged = [one.judged_values[0] if gains == "value" else one.judged[0] for _, one in found]
    best = sorted((weight * worth(of) for (weight, _), of in zip(found, of_judged, strict=True)), reverse=True)
    places = PlainList.of(ranking).top(measure.k) if options.get("ideal") == "len" else best[: measure.k or None]
    return discounted(best[: len(places)], itself, dcg, options.get("p"))


def _numerator(measure: Measure, one: PlainList) -> Number | None:
    value = NAIVE[measure.name](one, measure.k, **measure.kernel_options)
    is_sum = measure.name in _SUMS or measure.kernel_options.get("denom") == "none"
    return value if value is None or is_sum else value * _denominator(measure, one)


def _denominator(measure: Measure, one: PlainList) -> Number:
    return DENOMINATORS[measure.name](one, measure.k, **measure.kernel_options)

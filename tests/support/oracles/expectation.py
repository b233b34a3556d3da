"""What the naive references expect of a measure with all its options."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.support.oracles import weighted
from tests.support.oracles.denominators import DENOMINATORS
from tests.support.oracles.plain import NAIVE, Number, PlainList, forget, judged_only, within

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure, Ranking


def expected(measure: Measure, ranking: Ranking) -> float:
    """Value of one list by the naive reference; NaN where undefined."""
    value = value_of(measure, ranking)
    return math.nan if value is None else float(value)


def value_of(measure: Measure, ranking: Ranking) -> Number | None:
    """Value of one list by the naive reference, as it computes it; None where undefined."""
    ranking = seen_by(measure, ranking)
    if measure.group is not None:
        judged = [gain for gain in (*ranking.missed, *ranking.gains) if gain is not None]
        if not judged or (max(judged) < 0 and measure.entry.family != "prediction"):
            return None
    if measure.is_weighted:
        value = weighted.value_of(measure, ranking)
    else:
        value = NAIVE[measure.name](PlainList.of(ranking), measure.k, **measure.kernel_options)
    return value**2 if value is not None and measure.link == "square" else value


def expected_denominator(measure: Measure, ranking: Ranking) -> float:
    """Give what the value of one list is divided by."""
    return float(denominator_of(measure, ranking))


def denominator_of(measure: Measure, ranking: Ranking) -> Number:
    """Give what the value of one list is divided by, as the reference computes it."""
    ranking = seen_by(measure, ranking)
    if measure.is_weighted:
        return weighted.divisor_of(measure, ranking)
    return DENOMINATORS[measure.name](PlainList.of(ranking), measure.k, **measure.kernel_options)


def seen_by(measure: Measure, ranking: Ranking) -> Ranking:
    """Leave out what options that every measure has leave out."""
    if measure.is_weighted and (ranking.weights or ranking.missed_weights):
        ranking = forget(ranking, ranking.weights, ranking.missed_weights)
    if measure.is_judged_only:
        ranking = judged_only(ranking)
    return ranking if measure.group is None else within(ranking, measure.group)

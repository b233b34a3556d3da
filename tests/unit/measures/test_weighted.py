"""Measures whose judgements have weights: what weights change, and what they do not."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, registry
from rankeval_spark.measures.options import WEIGHTED
from tests.support import oracles
from tests.support.rankings import batches

OFFERED: Final = {"R", "SetR", "NumHits", "CG", "nCG", "DCG", "nDCG", "ARHR", "MAR"}
VARIANTS: Final = [
    measure for measure in filter(oracles.takes_every_list, oracles.all_variants(ks=(1, 3, 0))) if measure.is_weighted
]


def plain(measure: Measure) -> Measure:
    """Take the weights out of a measure."""
    return Measure.of(measure.name, k=measure.k, **{**measure.options, WEIGHTED: None})


def is_sum(measure: Measure) -> bool:
    """Whether the value is a sum of weights, not a ratio of two of them."""
    return measure.name in {"NumHits", "CG", "DCG"} or measure.options.get("denom") == "none"


def with_weight(ranking: Ranking, weight: float) -> Ranking:
    """Give all judgements of a list one weight."""
    return ranking._replace(weights=[weight] * len(ranking.gains), missed_weights=[weight] * len(ranking.missed))


def test_measures_that_add_up_relevant_items_have_the_option() -> None:
    assert {entry.name for entry in registry.entries() if entry.option(WEIGHTED)} == OFFERED
    assert {measure.name for measure in VARIANTS} == OFFERED


@settings(max_examples=30)
@given(batch=batches())
def test_weights_of_1_change_no_bit(batch: list[Ranking]) -> None:
    lists = Lists.of([with_weight(one, 1.0) for one in batch])
    weighted = MeasureSet.of(VARIANTS)
    unweighted = MeasureSet.of(list(map(plain, VARIANTS)))
    found, expected = weighted.score(lists), unweighted.score(lists)
    for name, without in zip(weighted.stored, unweighted.stored, strict=True):
        np.testing.assert_array_equal(found[name], expected[without], err_msg=name)


@settings(max_examples=30)
@given(batch=batches(), weight=st.sampled_from((0.1, 3.0, 1e6)))
def test_equal_weights_multiply_sums_and_leave_ratios(batch: list[Ranking], weight: float) -> None:
    lists = Lists.of([with_weight(one, weight) for one in batch])
    for measure in VARIANTS:
        found = MeasureSet.of([measure]).score(lists)[measure.column]
        unweighted = MeasureSet.of([plain(measure)]).score(lists)[plain(measure).column]
        expected = unweighted * weight if is_sum(measure) else unweighted
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(measure))


@settings(max_examples=30)
@given(batch=batches())
def test_judgement_of_weight_0_is_as_if_it_were_not_there(batch: list[Ranking]) -> None:
    without = [oracles.forget(one, one.weights, one.missed_weights) for one in batch]
    asked = MeasureSet.of(VARIANTS)
    found, expected = asked.score(Lists.of(batch)), asked.score(Lists.of(without))
    for name in asked.stored:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12, err_msg=name)


def test_values_do_not_see_the_weights_unless_they_are_asked_for() -> None:
    lists = Lists.of([Ranking([1, None, 1], missed=[1], weights=[5, 1, 1], missed_weights=[4])])
    found = MeasureSet.parse(["R@1", "R(weighted=True)@1"]).score(lists)
    assert (found["r"].tolist(), found["r_weighted_true"].tolist()) == ([[1 / 3]], [[5 / 10]])


def test_batch_without_weights_says_so() -> None:
    one, first, gain = np.array([1]), np.array([0]), np.array([1.0])
    lists = Lists(one, first, one, gain, first, gain)
    with pytest.raises(ValueError, match="the batch has no weights"):
        MeasureSet.parse(["R(weighted=True)@1"]).score(lists)

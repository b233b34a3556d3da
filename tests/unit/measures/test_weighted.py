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
from tests.support.scored import assert_all_equal, by_measure

OFFERED: Final = {"AP", "RR", "RBP", "R", "SetR", "NumHits", "CG", "nCG", "DCG", "IDCG", "nDCG", "ARHR", "MAR"}
VARIANTS: Final = [
    measure for measure in filter(oracles.takes_every_list, oracles.all_variants(ks=(1, 3, 0))) if measure.is_weighted
]


def plain(measure: Measure) -> Measure:
    """Take the weights out of a measure."""
    return Measure.of(measure.name, k=measure.k, **{**measure.options, WEIGHTED: None})


ASKED: Final = MeasureSet.of(VARIANTS)
UNWEIGHTED: Final = MeasureSet.of(list(map(plain, VARIANTS)))


def is_sum(measure: Measure) -> bool:
    """Whether the value is a sum of weights, not a ratio of two of them."""
    return measure.name in {"NumHits", "CG", "DCG", "IDCG", "RBP"} or measure.options.get("denom") == "none"


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
    found, expected = ASKED.score(lists), UNWEIGHTED.score(lists)
    names = dict(zip(ASKED.stored, UNWEIGHTED.stored, strict=True))
    assert_all_equal(found, {name: expected[without] for name, without in names.items()}, atol=0)


@settings(max_examples=30)
@given(batch=batches(), weight=st.sampled_from((0.1, 3.0, 1e6)))
def test_equal_weights_multiply_sums_and_leave_ratios(batch: list[Ranking], weight: float) -> None:
    lists = Lists.of([with_weight(one, weight) for one in batch])
    unweighted = zip(VARIANTS, by_measure(UNWEIGHTED, lists).values(), strict=True)
    expected = {measure: each * weight if is_sum(measure) else each for measure, each in unweighted}
    assert_all_equal(by_measure(ASKED, lists), expected, rtol=1e-12)


@settings(max_examples=30)
@given(batch=batches())
def test_judgement_of_weight_0_is_as_if_it_were_not_there(batch: list[Ranking]) -> None:
    without = [oracles.forget(one, one.weights, one.missed_weights) for one in batch]
    assert_all_equal(ASKED.score(Lists.of(batch)), ASKED.score(Lists.of(without)), rtol=1e-12)


def test_values_do_not_see_the_weights_unless_they_are_asked_for() -> None:
    lists = Lists.of([Ranking([1, None, 1], missed=[1], weights=[5, 1, 1], missed_weights=[4])])
    found = MeasureSet.parse(["R@1", "R(weighted=True)@1"]).score(lists)
    assert (found["r"].tolist(), found["r_weighted_true"].tolist()) == ([[1 / 3]], [[5 / 10]])


def test_batch_without_weights_says_so() -> None:
    one, first, gain = np.array([1]), np.array([0]), np.array([1.0])
    lists = Lists(one, first, one, gain, first, gain)
    with pytest.raises(ValueError, match="the batch has no weights"):
        MeasureSet.parse(["R(weighted=True)@1"]).score(lists)

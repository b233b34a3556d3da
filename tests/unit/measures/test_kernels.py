"""Kernels agree with the naive references, on any ragged batch and at any cutoffs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.errors import JudgementError
from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, registry, required_facts
from rankeval_spark.measures.arrays import product_before
from rankeval_spark.measures.options import resolve_for_options
from tests.support import oracles
from tests.support.rankings import batches, binary_rankings
from tests.support.scored import assert_all_equal, by_measure

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

KS = (1, 2, 3, 5, 20)
EVERYTHING = MeasureSet.of(list(filter(oracles.takes_every_list, oracles.all_variants(ks=(1, 3, 0)))))
AT_ONE_CUTOFF = [MeasureSet.of([each for each in EVERYTHING.measures if each.k == k]) for k in EVERYTHING.ks]
WITH_REFERENCE = [entry for entry in registry.entries("list") if entry.name in oracles.NAIVE]
"""Measures of single lists; test_registry names one without a reference, instead of an example of Hypothesis."""


@pytest.mark.parametrize("entry", WITH_REFERENCE, ids=lambda entry: entry.name)
@settings(max_examples=20)
@given(batch=batches(), ks=st.sets(st.sampled_from((*KS, 0)), min_size=1))
def test_kernel_agrees_with_its_naive_reference(entry: Definition, batch: list[Ranking], ks: set[int]) -> None:
    measures = list(filter(oracles.takes_every_list, oracles.variants(entry, sorted(ks))))
    if not measures:
        return  # only the whole list was drawn, for a measure that needs a cutoff
    expected = {measure: [oracles.expected(measure, one) for one in batch] for measure in measures}
    assert_all_equal(by_measure(MeasureSet.of(measures), Lists.of(batch)), expected, rtol=1e-12)


@pytest.mark.parametrize("batch", [[], [Ranking([])], [Ranking([], missed=[1])], [Ranking([None, None])]])
def test_every_variant_takes_no_lists_empty_lists_and_lists_without_judgements(batch: list[Ranking]) -> None:
    for values in EVERYTHING.score(Lists.of(batch)).values():
        assert values.shape == (len(batch), 3)
        assert values.dtype == np.float64


def test_user_without_a_list_has_the_worst_value_where_a_relevant_item_was_missed() -> None:
    missed = Ranking([], missed=[3], missed_groups=["tail"])
    of_each = by_measure(EVERYTHING, Lists.of([missed]))
    found = {measure: values for measure, values in of_each.items() if measure.name not in {"HitRank", "IDCG"}}
    assert_all_equal(found, {measure: measure.without_relevant for measure in found}, atol=0)
    assert_all_equal(found, {measure: without_hit(measure) for measure in found}, atol=0)


def without_hit(measure: Measure) -> float:
    """Value of a list without a hit: 0 for most measures, and none for those of predictions or of the items."""
    if measure.name in ("IPS", "ClippedIPS", "DR", "ImportanceWeight"):
        return 0.0
    if (
        set(measure.needs) - {required_facts.POPULARITY_GROUP, required_facts.VALUES, required_facts.WEIGHTS}
        or measure.name == "SufficientReco"
        or measure.options.get("by") == "rank"
    ):
        return math.nan
    floor = measure.options.get("floor")
    return math.log(floor) if isinstance(floor, float) else float(measure.name == "RBPResidual")


def test_values_that_were_not_asked_for_are_nan() -> None:
    scores = MeasureSet.parse(["P@1", "RR"]).score(Lists.of([Ranking([1])]))
    np.testing.assert_array_equal(scores["p"], [[1, np.nan]])
    np.testing.assert_array_equal(scores["rr"], [[np.nan, 1]])


@settings(max_examples=10)
@given(batch=batches(), data=st.data())
def test_permuting_or_splitting_a_batch_changes_no_bit(batch: list[Ranking], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(batch))))
    cut = data.draw(st.integers(0, len(batch)))
    whole = EVERYTHING.score(Lists.of(batch))
    permuted = EVERYTHING.score(Lists.of([batch[position] for position in order]))
    parts = [EVERYTHING.score(Lists.of(part)) for part in (batch[:cut], batch[cut:])]
    assert_all_equal(permuted, {column: values[order] for column, values in whole.items()}, atol=0)
    assert_all_equal({column: np.concatenate([part[column] for part in parts]) for column in whole}, whole, atol=0)


@settings(max_examples=10)
@given(batch=batches())
def test_asking_for_more_cutoffs_changes_no_value(batch: list[Ranking]) -> None:
    together = by_measure(EVERYTHING, Lists.of(batch))
    for alone in AT_ONE_CUTOFF:
        found = by_measure(alone, Lists.of(batch))
        assert_all_equal(found, {measure: together[measure] for measure in found})


@settings(max_examples=30)
@given(batch=batches())
def test_values_lie_within_the_declared_range(batch: list[Ranking]) -> None:
    for measure, values in by_measure(EVERYTHING, Lists.of(batch)).items():
        low, high = measure.entry.bounds
        high = min(high, resolve_for_options(measure.entry.at_most, measure.options))
        assert np.all(((values >= low) & (values <= high + 1e-12)) | np.isnan(values)), str(measure)


@pytest.mark.parametrize("name", ["CG({})", "nCG({})", "DCG(dcg='jk2',{})", "nDCG({},ideal='retrieved')"])
@pytest.mark.parametrize("batch", [[Ranking([1, 2, None, -1, 0])], [Ranking([1], missed=[2])]])
def test_grade_that_a_map_does_not_hold_is_an_error(name: str, batch: list[Ranking]) -> None:
    asked = MeasureSet.parse([name.format("gains={1:1,3:2}")])
    with pytest.raises(JudgementError, match=r"gains={1:1,3:2}: found a judgement with grade 2; expected only 1, 3"):
        asked.score(Lists.of(batch))


@pytest.mark.parametrize("name", ["RBP(max_rel=2,p=0.8)", "ERR(max_rel=2)", "nERR(max_rel=2)"])
@pytest.mark.parametrize("batch", [[Ranking([1]), Ranking([3])], [Ranking([1], missed=[3])]])
def test_gain_above_max_rel_is_an_error_even_of_an_item_that_no_list_holds(name: str, batch: list[Ranking]) -> None:
    with pytest.raises(JudgementError, match="found a judgement with grade 3; expected none above max_rel=2; set max"):
        MeasureSet.parse([name]).score(Lists.of(batch))


@pytest.mark.parametrize(
    "name", ["DCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')", "DCG(dcg='exp-log2',unjudged='mean')"]
)
@pytest.mark.parametrize("batch", [[Ranking([1]), Ranking([1001])], [Ranking([1], missed=[2000])]])
def test_gain_whose_power_overflows_is_an_error_even_of_an_item_that_no_list_holds(
    name: str, batch: list[Ranking]
) -> None:
    with pytest.raises(
        JudgementError, match=r"dcg='exp-log2': found a gain of [0-9.]+; expected none above 1000: 2\*\*gain"
    ):
        MeasureSet.parse([name]).score(Lists.of(batch))


def test_the_greatest_gain_that_is_raised_can_be_summed_over_the_longest_list() -> None:
    (found,) = MeasureSet.parse(["nDCG(dcg='exp-log2')@10000"]).score(Lists.of([Ranking([1000] * 10_000)])).values()
    assert found.tolist() == [[1.0]]
    (mapped,) = MeasureSet.parse(["DCG(dcg='exp-log2',gains={2000:3})@1"]).score(Lists.of([Ranking([2000])])).values()
    assert mapped.tolist() == [[7.0]]


@given(batch=st.lists(binary_rankings(), max_size=6))
def test_rbp_of_ones_and_zeros_is_that_of_relevant_items(batch: list[Ranking]) -> None:
    scores = MeasureSet.parse(["RBP@3", "RBP", "RBP(rel=1)@3", "RBP(rel=1)"]).score(Lists.of(batch))
    np.testing.assert_array_equal(scores["rbp_p_0_8"], scores["rbp_rel_1_p_0_8"])


@given(sizes=st.lists(st.integers(0, 9), max_size=6), data=st.data())
def test_product_of_earlier_is_that_of_a_loop(sizes: list[int], data: st.DataObject) -> None:
    lists = [data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)) for size in sizes]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    found = product_before(np.array([factor for one in lists for factor in one], dtype=np.float64), owner)
    expected = [math.prod(one[:place]) for one in lists for place in range(len(one))]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)  # below, floats have fewer digits


def test_measure_of_items_that_the_batch_does_not_hold_says_so() -> None:
    unknown = replace(Lists.of([Ranking([1])]), items=None)
    with pytest.raises(ValueError, match="holds no facts of items"):
        MeasureSet.parse(["MIUF@1"]).score(unknown)


def test_cutoffs_must_ascend_with_the_whole_list_last() -> None:
    with pytest.raises(ValueError, match="ascend"):
        Lists.of([]).cut([0, 5])
    with pytest.raises(ValueError, match="ascend"):
        Lists.of([]).cut([5, 5])


def test_facts_are_computed_once_for_a_batch() -> None:
    batch = Lists.of([Ranking([1])])
    assert batch.relevance(1) is batch.relevance(1.0)
    cut = batch.cut([1, 2])
    assert cut.hits(1) is cut.hits(1.0)

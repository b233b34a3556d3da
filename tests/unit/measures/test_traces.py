"""Explanations of values: the parts of every measure add up to its value, or its steps end there."""

from __future__ import annotations

import math
from functools import partial
from math import log2
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.measures import Background, Item, Lists, Measure, MeasureSet, Ranking, registry
from rankeval_spark.measures.ties import spread_ties
from rankeval_spark.measures.traces import Trace, trace_value, with_places
from rankeval_spark.measures.worked_examples import examples_of
from tests.support import oracles
from tests.support.rankings import OTHER_MODEL, rankings

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

VARIANTS: Final = [measure for measure in oracles.all_variants(ks=(1, 3, 0)) if oracles.takes_every_list(measure)]
NO_SUMS: Final = {
    *("Calibration", "FCP", "FirstHit", "GMAP", "ILD", "IPrec", "IPrecArea", "IPrecAvg", "Jaccard"),
    *("KendallTau", "LogAP", "RecallCeiling", "SufficientReco", "UnrepeatedReco", "UserCoverage", "UserValue"),
}
"""Measures without a term a rank: of pairs, curves, medians, logarithms and counts of something else."""

OF_SOME: Final = {"CatalogAUC", "ERR", "Freshness", "HitRank", "IDCG", "ILS", "RBO", "MCC", "RBPResidual"}
"""Measures that are sums with some options, or of lists whose value no bound holds."""


def check(measure: Measure, trace: Trace, lists: Lists) -> bool | None:
    """Check that the parts lead to the value of ``score``; return whether they add up, None without a value."""
    expected = float(MeasureSet.of([measure]).score(lists)[measure.column][0, 0])
    if math.isnan(expected):
        assert math.isnan(trace.value)
        assert not trace.by_rank
        return None
    assert trace.value == pytest.approx(expected, rel=1e-12, abs=1e-12), measure
    by_rank = trace.by_rank
    if "contribution" not in by_rank:
        steps = by_rank["after"]
        assert not len(steps) or steps[-1] == trace.value, measure
        return False
    size = max(1.0, float(np.abs(by_rank["contribution"]).sum()))
    total = float(by_rank["contribution"].sum()) + trace.numbers.get("constant", 0.0)
    assert abs(total - trace.numbers.get("ratio", trace.value)) <= 1e-12 * size, measure
    if "term" in by_rank:  # the same by the numbers of the sentence below the table
        numbers = trace.numbers
        made = numbers["sum of terms"] * numbers.get("times", 1.0) / numbers.get("divided by", 1.0)
        assert abs(made + numbers.get("constant", 0.0) - total) <= 1e-12 * size, measure
        assert by_rank["term"].sum() == pytest.approx(numbers["sum of terms"], rel=1e-12, abs=1e-12)
    return True


@pytest.mark.parametrize("entry", registry.entries("list"), ids=lambda entry: entry.name)
def test_parts_of_worked_examples_add_up_or_their_steps_end_in_the_value(entry: Definition) -> None:
    kinds = set[bool | None]()
    for example in examples_of(entry):
        measure = Measure.parse(example.measure)
        for ranking, value in zip(example.rankings, example.expected, strict=True):
            lists = Lists.of([ranking])
            if measure.options.get("missing") == "error":  # the example is that of a refusal
                continue
            trace = trace_value(measure, lists)
            assert trace.value == pytest.approx(float(value), rel=0, abs=1e-12, nan_ok=True)
            kinds.add(check(measure, trace, lists))
    is_sum = entry.name not in NO_SUMS
    assert kinds - {None} in ([{True}, {False}, {True, False}] if entry.name in OF_SOME else [{is_sum}])


LIST: Final = Ranking(
    [2, None, 0, 1, None, 3],
    [1, 0],
    [0.75, 0.5, 0.5, 0.25, 0.25, 0.125],
    [
        Item(8, 5, False, 1, 1, True, 0, ("a",), (1.0, 0.0)),
        *[Item(3, 3, categories=("b", "c"), vector=(0.5, 1.0), age=9)] * 5,
    ],
    Background(30, 9, 2, 9, 6, (("a", 1, 1), ("b", 2, 1)), (0.5, 0.25), ((1, 2, 0.5),), 8, ((1, ("b",)),), 50),
    groups=["head", "", "tail", "tail rock", "", "head"],
    missed_groups=["tail", "head"],
    weights=[1, 1, 2.5, 0.25, 1, 0],
    missed_weights=[1, 4],
)
"""A list in which nearly every measure has a value."""


def test_every_option_of_every_measure_is_explained() -> None:
    others = LIST.background._replace(others=((OTHER_MODEL, (2, None, 1)),))
    lists = Lists.of([LIST._replace(background=others)])
    found = [check(measure, trace_value(measure, lists), lists) for measure in VARIANTS]
    assert found.count(None) < len(found) / 10


@settings(max_examples=80)
@given(measure=st.sampled_from(VARIANTS), ranking=rankings())
def test_parts_of_drawn_lists_add_up_or_their_steps_end_in_the_value(measure: Measure, ranking: Ranking) -> None:
    lists = Lists.of([ranking])
    check(measure, trace_value(measure, lists), lists)


OVER_TIES: Final = [measure for measure in VARIANTS if measure.has_mean_over_ties]


@settings(max_examples=80)
@given(measure=st.sampled_from(OVER_TIES), ranking=rankings(min_size=2), data=st.data())
def test_terms_over_tied_ranks_are_those_of_their_items(
    measure: Measure, ranking: Ranking, data: st.DataObject
) -> None:
    ranks = sorted(data.draw(st.sets(st.integers(2, len(ranking.gains)), min_size=1)))
    lists = Lists.of([ranking])
    tied = np.zeros(len(ranks), np.int64), np.array(ranks)
    trace = trace_value(measure, spread_ties(with_places(lists), *tied))
    check(measure, trace, spread_ties(lists, *tied))


def test_the_trace_of_a_textbook_example_has_its_discounts_and_ideal_list() -> None:
    trace = trace_value(Measure.parse("nDCG(dcg='exp-log2')@5"), Lists.of([Ranking([3, 1, 0, 2, 0])]))
    by_rank, ideal, assert_close = trace.by_rank, trace.ideal, partial(np.testing.assert_allclose, rtol=0, atol=1e-12)
    assert_close(by_rank["worth"], [7, 1, 0, 3, 0])
    assert_close(by_rank["term"], [7, 1 / log2(3), 0, 3 / log2(5), 0])
    best = 7 + 3 / log2(3) + 1 / 2
    assert_close(by_rank["contribution"], by_rank["term"] / best)
    assert_close(ideal["term"], [7, 3 / log2(3), 1 / 2, 0, 0])
    assert ideal["gain"].tolist() == [3, 2, 1, 0, 0]
    assert ideal["place"].tolist() == [0, 1, 2, 3, 4]


def test_precisions_at_the_hits_are_the_terms_of_average_precision() -> None:
    trace = trace_value(Measure.parse("AP@6"), Lists.of([Ranking([1, None, None, 1, 1, None])]))
    np.testing.assert_allclose(trace.by_rank["term"], [1, 0, 0, 2 / 4, 3 / 5, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.by_rank["contribution"], [1 / 3, 0, 0, 1 / 6, 1 / 5, 0], rtol=0, atol=1e-12)


def test_a_part_that_no_rank_adds_is_the_constant() -> None:
    trace = trace_value(Measure.parse("unj@4"), Lists.of([Ranking([None, 1, 0, None])]))
    assert trace.numbers["constant"] == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(trace.by_rank["contribution"], [0, -1 / 4, -1 / 4, 0], rtol=0, atol=1e-12)


def test_a_measure_of_pairs_has_the_value_of_the_list_down_to_each_rank() -> None:
    trace = trace_value(Measure.parse("FCP"), Lists.of([Ranking([2, 3, None, 1])]))
    np.testing.assert_allclose(trace.by_rank["after"], [np.nan, 0, 0, 2 / 3], rtol=0, atol=1e-12)


def test_judged_items_close_up_and_keep_their_places() -> None:
    trace = trace_value(Measure.parse("RR(judged_only=True)"), Lists.of([Ranking([None, 0, 1])]))
    np.testing.assert_allclose(trace.by_rank["contribution"], [0, 0, 1 / 2], rtol=0, atol=1e-12)


def test_a_tied_item_has_the_mean_of_the_discounts_of_its_ranks() -> None:
    """Ranks 2 and 3 tie."""
    lists = spread_ties(with_places(Lists.of([Ranking([None, 2, 1])])), np.array([0]), np.array([3]))
    discount = (1 / log2(3) + 1 / log2(4)) / 2
    terms = trace_value(Measure.parse("DCG@3"), lists).by_rank["term"]
    np.testing.assert_allclose(terms, [0, 2 * discount, discount], rtol=0, atol=1e-12)

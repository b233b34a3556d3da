"""Means and bounds over all orders of tied items, against every one of these orders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, registry
from rankeval_spark.measures.options import GROUP
from rankeval_spark.measures.ties import spread_ties
from tests.support import oracles
from tests.support.rankings import GRADES, MEMBERSHIPS, VALUES, Apart, rankings
from tests.support.scored import assert_all_equal, by_measure

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

KS: Final = (1, 2, 3, 5, 0)
TAKING: Final = [entry for entry in registry.entries() if entry.has_mean_over_ties]

Place = tuple[float | None, Apart]

Tied = tuple[Ranking, list[int]]
"""A list, and the sizes of its blocks of equal scores from the top down."""


@st.composite
def tied_lists(draw: st.DrawFn, *, max_size: int = 4) -> Tied:
    """Draw a list of up to three blocks of one to four items."""
    sizes = draw(st.lists(st.integers(1, max_size), max_size=3))
    apart = st.tuples(st.sampled_from(VALUES), st.sampled_from(MEMBERSHIPS))
    place = st.tuples(st.none() | st.sampled_from(GRADES), apart)
    places = draw(st.lists(place, min_size=sum(sizes), max_size=sum(sizes)))
    missed = draw(st.lists(st.tuples(st.sampled_from(GRADES), apart), max_size=4))
    return ranking_of(places, missed), sizes


def ranking_of(places: Sequence[Place], missed: Sequence[Place]) -> Ranking:
    """Build a list of items with their gains, values and groups."""
    return Ranking(
        [gain for gain, _ in places],
        [gain for gain, _ in missed if gain is not None],
        values=[value for _, (value, _) in places],
        missed_values=[value for _, (value, _) in missed],
        groups=[groups for _, (_, groups) in places],
        missed_groups=[groups for _, (_, groups) in missed],
    )


def batch_of(lists: list[Tied]) -> Lists:
    """Build the batch as the worker does, from the ranks that tie with the rank before."""
    ties = [(index, rank) for index, (_, sizes) in enumerate(lists) for rank in tied_ranks(sizes)]
    owner, rank = np.array([one for one, _ in ties], dtype=np.int64), np.array([one for _, one in ties], dtype=np.int64)
    return spread_ties(Lists.of([ranking for ranking, _ in lists]), owner, rank)


def tied_ranks(sizes: list[int]) -> list[int]:
    """Ranks whose score is that of the rank before."""
    ends = list(itertools.accumulate(sizes))
    return [rank for end, size in zip(ends, sizes, strict=True) for rank in range(end - size + 2, end + 1)]


def orders(ranking: Ranking, sizes: list[int]) -> Iterator[Ranking]:
    """Every order of the items within their blocks."""
    starts = [0, *itertools.accumulate(sizes)]
    places = [
        (gain, (value, groups))
        for gain, value, groups in zip(ranking.gains, ranking.values, ranking.groups, strict=True)
    ]
    missed = list(zip(ranking.missed, zip(ranking.missed_values, ranking.missed_groups, strict=True), strict=True))
    blocks = [places[start : start + size] for start, size in zip(starts, sizes, strict=False)]
    for chosen in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield ranking_of([place for block in chosen for place in block], missed)


EVERYTHING: Final = MeasureSet.of(
    [
        measure
        for entry in TAKING
        for measure in filter(oracles.takes_every_list, oracles.variants(entry, KS))
        if measure.has_mean_over_ties
    ]
)
"""Every valid combination of a measure's options that has a mean over all orders."""


@settings(max_examples=60, deadline=None)
@given(one=tied_lists())
def test_value_is_the_mean_over_every_order_of_the_ties(one: Tied) -> None:
    every_order = by_measure(EVERYTHING, Lists.of(list(orders(*one))))
    means = {measure: [each.mean()] for measure, each in every_order.items()}
    assert_all_equal(by_measure(EVERYTHING, batch_of([one])), means)


@settings(max_examples=10, deadline=None)
@given(lists=st.lists(tied_lists(), max_size=5))
def test_lists_of_a_batch_do_not_touch_one_another(lists: list[Tied]) -> None:
    together = by_measure(EVERYTHING, batch_of(lists))
    alone = [by_measure(EVERYTHING, batch_of([one])) for one in lists]
    assert_all_equal(together, {measure: [each[measure][0] for each in alone] for measure in together}, atol=0)


@settings(max_examples=10, deadline=None)
@given(rankings=st.lists(tied_lists(), max_size=5))
def test_lists_without_ties_keep_their_values_to_the_bit(rankings: list[Tied]) -> None:
    """In a batch with one that has some, too."""
    without = [(ranking, [1] * len(ranking.gains)) for ranking, _ in rankings]
    expected = by_measure(EVERYTHING, Lists.of([ranking for ranking, _ in without]))
    found = by_measure(EVERYTHING, batch_of([*without, (Ranking([1, None]), [2])]))
    assert_all_equal({measure: each[:-1] for measure, each in found.items()}, expected, atol=0)


def test_worked_example() -> None:
    """Ranks 2 to 4 tie, two of the three are relevant; the orders are 110, 101 and 011, equally likely."""
    one = (Ranking([None, 1, None, 1]), [1, 3])
    found = by_measure(MeasureSet.parse(["P@2", "Success@2", "RR", "AP"]), batch_of([one]))
    assert [each[0] for each in found.values()] == pytest.approx(
        [
            (1 + 1 + 0) / 3 / 2,
            (1 + 1 + 0) / 3,
            (1 / 2 + 1 / 2 + 1 / 3) / 3,
            ((1 / 2 + 2 / 3) / 2 + (1 / 2 + 2 / 4) / 2 + (1 / 3 + 2 / 4) / 2) / 3,
        ],
        rel=0,
        abs=1e-12,
    )


def test_measures_that_are_no_sums_do_not_take_them() -> None:
    texts = ["AP(denom='hits')@5", "nDCG(ideal='retrieved')@5", "ERR@5", "LogAP", "Bpref", "IPrec@0.1", "FirstHit@1"]
    measures = [Measure.parse(text) for text in texts]
    assert [str(one) for one in measures if one.has_mean_over_ties] == []


# ---- ties in the order of their gains -------------------------------------------------------------------------------

BOUNDED: Final = [
    measure
    for entry in registry.entries("list")
    for measure in filter(oracles.takes_every_list, oracles.variants(entry, KS))
    if measure.is_bounded_by_gains
]
READING: Final = MeasureSet.of([measure for measure in BOUNDED if GROUP in measure.options])
"""Those that read judgements, in every variant that the order of the gains is said to bound."""
_COUNTING = ("CatalogAUC", "ClassAccuracy", "MCC", "IPS", "ClippedIPS", "SNIPS", "DR", "ImportanceWeight")
OTHERS: Final = MeasureSet.of([one for one in BOUNDED if GROUP not in one.options and one.name not in _COUNTING])


def by_gain(one: Tied, *, falling: bool) -> Ranking:
    """Put each block in the order of its gains; those without a judgement have 0."""
    ranking, sizes = one
    start, order = 0, list[int]()
    for size in sizes:
        order += sorted(
            range(start, start + size), key=lambda place: (ranking.gains[place] or 0.0) * (-1 if falling else 1)
        )
        start += size
    facts: dict[str, Any] = {
        name: [each[place] for place in order] for name in ("values", "groups") if (each := getattr(ranking, name))
    }
    return ranking._replace(gains=[ranking.gains[place] for place in order], **facts)


def bounds(measures: MeasureSet, one: Tied) -> dict[Measure, FloatVector]:
    """Value of each measure with the ties in the falling and in the rising order of their gains."""
    return by_measure(measures, Lists.of([by_gain(one, falling=True), by_gain(one, falling=False)]))


@settings(max_examples=20, deadline=None)
@given(one=tied_lists(max_size=3))
def test_orders_of_the_gains_are_the_best_and_the_worst_of_all(one: Tied) -> None:
    ranking, sizes = one
    scores = [1 / number for number, size in enumerate(sizes, 1) for _ in range(size)]
    every_order = by_measure(READING, Lists.of([each._replace(scores=scores) for each in orders(*one)]))
    extremes = {measure: [each.max(), each.min()] for measure, each in every_order.items()}
    best_first = {m: each if m.entry.better == "higher" else each[::-1] for m, each in extremes.items()}
    assert_all_equal(bounds(READING, (ranking._replace(scores=scores), sizes)), best_first)


_DEAR_AND_CHEAP = Ranking([2, 1], values=[1, 99])
_TAIL_AND_HEAD = Ranking([1, 3], groups=["tail", "head"])
_UNKNOWN = Ranking([0.5, None], missed=[3.5])
_JUDGED = Ranking([1, None])
_SECOND_HIT = Ranking([1, None, None, 1])
_BETTER_BELOW = Ranking([1, None, 3])
_DCG = 1 + 3 / np.log2(3)
_IDEAL_DCG = 3 + 1 / np.log2(3)


@pytest.mark.parametrize(
    ("text", "one", "expected"),
    [
        ("CG(gains='value')@1", (_DEAR_AND_CHEAP, [2]), (1, 99)),
        ("nDCG(gains='value')@1", (_DEAR_AND_CHEAP, [2]), (1 / 99, 1)),
        ("R(gains='value')@1", (_DEAR_AND_CHEAP, [2]), (1 / 100, 99 / 100)),
        ("R(group='tail')@1", (_TAIL_AND_HEAD, [2]), (0, 1)),
        ("nDCG(group='tail')@1", (_TAIL_AND_HEAD, [2]), (0, 1)),
        ("DCG(unjudged='mean')@1", (_UNKNOWN, [2]), (1 / 2, 2)),
        ("DCG(unjudged='median')@1", (_UNKNOWN, [2]), (1 / 2, 2)),
        ("AP(denom='hits')@3", (_SECOND_HIT, [1, 1, 2]), ((1 + 2 / 3) / 2, 1)),
        ("nDCG(ideal='retrieved')@2", (_BETTER_BELOW, [1, 2]), (_DCG / _IDEAL_DCG, 1)),
        ("FirstHit@2", (_JUDGED, [2]), (0, 1)),
        ("unj@1", (_JUDGED, [2]), (0, 1)),
        ("Judged@1", (Ranking([None, 0]), [2]), (0, 0)),
        ("RBPResidual(p=0.5)@1", (_JUDGED, [2]), (1 / 2, 1)),
    ],
)
def test_orders_of_the_gains_can_be_the_wrong_way_round(text: str, one: Tied, expected: tuple[float, float]) -> None:
    """What the falling order of the gains gives is less than what the rising one, or another, does."""
    measure = Measure.parse(text)
    assert bounds(MeasureSet.of([measure]), one)[measure] == pytest.approx(expected, rel=0, abs=1e-12)
    assert not measure.is_bounded_by_gains


@pytest.mark.parametrize("text", ["EPC@1", "EFD@1", "Serendipity(kind='pop')@1", "ILD(rel=2)", "infAP", "ERR_IA@1"])
def test_what_reads_more_than_gains_is_not_bounded_by_them(text: str) -> None:
    measure = Measure.parse(text)
    assert not measure.is_bounded_by_gains


@settings(max_examples=25, deadline=None)
@given(one=rankings())
def test_other_measures_that_may_be_computed_with_them_read_no_gains(one: Ranking) -> None:
    """But for two that count hits in a catalogue, which every better order raises, and those that no order changes."""
    found = by_measure(OTHERS, Lists.of([one, one._replace(gains=[None] * len(one.gains))]))
    assert_all_equal({m: each[0] for m, each in found.items()}, {m: each[1] for m, each in found.items()}, atol=0)

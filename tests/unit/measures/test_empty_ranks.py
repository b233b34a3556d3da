"""Lists that keep the ranks of the log: items counted, places counted and the cutoff are three different numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from rankeval_spark.measures import Background, Item, Lists, Ranking
from tests.support.rankings import rankings
from tests.support.scored import assert_all_equal, assert_equal, by_measure, parsed, values

TRAINED: Final = Background(interactions=7, users=4, catalogue=4, profile_interactions=3)
A: Final = Item(interactions=3, users=1, is_seen=True)
SECOND: Final = Ranking([None, 1], items=(Item(), A), background=TRAINED, empty=[1])
"""One item, at rank 2: the user has it in the training data, 1 of 4 users has it."""

REPEATED: Final = Ranking([None, None, 1, 1], items=(Item(copies=2), Item(), Item(), Item()), empty=[2])
"""a, a, c, d: the second copy leaves its place."""

OF_ITEMS: Final = (
    *("ARP", "ARP(norm='C')", "ARP(unseen='drop')", "MIUF", "MIUF(unseen='drop')", "SelfInfo", "APLT", "ACLT"),
    *("PopLift", "MeanPopRank", "NotInTrain", "UnrepeatedReco", "UnrepeatedReco(kind='full')"),
    *("Freshness(unknown='drop')", "Freshness(stat='median')", "SRecall", "SRecall(of='all')", "Calibration"),
    *(f"{name}(sim='{sim}')" for name in ("ILD", "ILS") for sim in ("vector", "jaccard", "cooccurrence", "hamming")),
    *("ILD(rel=1)", "Unexpectedness(unknown='drop')", "Unexpectedness(sim='cooccurrence')", "Serendipity"),
    *("P(denom='len')", "Judged", "UserCoverage(min_items=2)", "RecallCeiling", "R", "NumHits", "Success"),
)
"""Measures that see which items a list has at ranks 1..k, and nothing of their ranks."""


@pytest.mark.parametrize(
    ("name", "value"),
    {
        "UnrepeatedReco@2": 1,
        "UnrepeatedReco(kind='full')@4": 1,
        "SufficientReco@2": 0,
        "SufficientReco(kind='share')@2": 1 / 2,
        "SufficientReco@1": 0,
        "UserCoverage@1": 0,
        "UserCoverage@2": 1,
        "ARP@2": 3,
        "ARP@1": np.nan,
        "NotInTrain@2": 0,
        "MIUF@2": 2,
        "SelfInfo@2": np.log2(7 / 3),
        "EPC@2": 3 / 4,
        "EPC(relevance='off')@2": 3 / 4,
        "APLT@2": 1,
        "PopLift(agg='macro')@2": 0,
        "Judged@2": 1,
        "Judged@1": 0,
        "Judged(denom='k')@2": 1 / 2,
        "unj@1": 0,
        "P@2": 1 / 2,
        "P(denom='len')@2": 1,
        "P(denom='len')@1": 0,
        "SetP": 1,
        "SetF": 1,
        "AP(denom='len')": 1 / 2,
        "RecallCeiling@1": 0,
        "nDCG@2": 1 / np.log2(3),
        "nDCG(ideal='len')@2": 1 / np.log2(3),
        "DCG(unjudged='mean')@2": 1 / np.log2(3),
        "RR@2": 1 / 2,
    }.items(),
)
def test_item_at_rank_2_alone(name: str, value: float) -> None:
    assert_equal(values(name, SECOND), [value])


@pytest.mark.parametrize(
    ("name", "value"), {"UnrepeatedReco@4": 3 / 4, "SufficientReco(kind='share')@4": 3 / 4, "unj@4": 1 / 4}.items()
)
def test_repeated_item_leaves_its_place_empty(name: str, value: float) -> None:
    assert_equal(values(name, REPEATED), [value])


def test_items_without_a_judgement_are_worth_something_and_empty_ranks_nothing() -> None:
    one = Ranking([None, None, 4], missed=[2], empty=[1])
    assert values("CG(unjudged='mean')@3", one).tolist() == [3 + 4]


def test_lists_of_two_models_share_the_items_that_they_have() -> None:
    """Item a at rank 2 beside a, b: of two items one is common, although the list has two places."""
    one = Ranking([None, None], background=Background(others=(("popular", (2, None)),)), empty=[1])
    for name in ("Jaccard(model='popular')@2", "Overlap(model='popular')@2"):
        assert values(name, one).tolist() == [1 / 2]


def test_diversity_discounts_by_the_ranks_between_two_items() -> None:
    apart = [Item(vector=one) for one in ((1, 0), (0, 1), (1, 1))]
    one = Ranking([None] * 4, items=[apart[0], Item(), apart[1], apart[2]], empty=[2])
    near, far = 1 - np.sqrt(1 / 2), 1.0  # the first and the last, the second and the last; the first and the second
    discounts = 1 / np.log2([2, 3, 4, 5])
    of_items = [
        (discounts[1] * far + discounts[2] * near) / (discounts[1] + discounts[2]),
        (far + near) / 2,
        (near + near) / 2,
    ]
    expected = np.average(of_items, weights=discounts[[0, 2, 3]])
    assert_equal(values("ILD(discount='log2')", one), [expected])


@given(ranking=rankings(min_size=2), data=st.data())
def test_measures_of_items_are_those_of_the_list_closed_up(ranking: Ranking, data: st.DataObject) -> None:
    """Cut at k, a list with empty ranks has the items of the list without them, cut at how many these are."""
    n = len(ranking.gains)
    empty = data.draw(st.sets(st.integers(1, n - 1), max_size=n - 1))
    kept = [place for place in range(n) if place + 1 not in empty]
    k = data.draw(st.integers(1, n))
    n_items = sum(place < k for place in kept)
    assume(n_items)
    of = {place + 1: number for number, place in enumerate(kept, 1)}
    background = ranking.background._replace(
        others=(),
        pairs=[(i, j, 1 / 2) for i in of for j in of if i < j and (i + j) % 3 == 0],
    )
    closed = ranking._replace(
        gains=[ranking.gains[place] for place in kept],
        scores=[ranking.score_at[place] for place in kept],
        items=[ranking.items[place] for place in kept],
        values=[ranking.values[place] for place in kept],
        groups=[ranking.groups[place] for place in kept],
        background=background._replace(pairs=[(of[i], of[j], similar) for i, j, similar in background.pairs]),
    )
    gains = [gain if place in kept else None for place, gain in enumerate(ranking.gains)]
    gapped = ranking._replace(gains=gains, empty=sorted(empty), background=background)

    left = by_measure(parsed(*(f"{name}@{k}" for name in OF_ITEMS)), Lists.of([gapped]))
    right = by_measure(parsed(*(f"{name}@{n_items}" for name in OF_ITEMS)), Lists.of([closed]))

    found, expected = ({measure.label: each for measure, each in side.items()} for side in (left, right))
    assert_all_equal(found, expected)


@given(ranking=rankings(min_size=1))
def test_runs_of_empty_ranks_are_counted_whole(ranking: Ranking) -> None:
    """A run of many ranks costs as much as one of few."""
    lists = Lists.of([ranking._replace(gains=[None, *ranking.gains], items=[Item(), *ranking.items], empty=[1])])
    assert lists.empty is not None
    far = 10**9
    moved = replace(
        lists,
        n_recommended=lists.n_recommended + far,
        hit_rank=lists.hit_rank + far,
        empty=lists.empty._replace(last=lists.empty.last + far),
    )
    n = len(ranking.gains)
    assert moved.cut([1, far + 1, far + 2, 0]).n_items.tolist() == [[0, 0, 1, n]]
    assert moved.n_items.tolist() == [n]

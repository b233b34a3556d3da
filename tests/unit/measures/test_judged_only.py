"""Measures of the judged items alone: the option has the values that the policy gives to lists without the others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from hypothesis import given, settings

from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, registry, required_facts
from rankeval_spark.measures.options import GROUP, JUDGED_ONLY
from rankeval_spark.measures.ties import spread_ties
from tests.support import oracles
from tests.support.rankings import batches
from tests.support.scored import assert_all_equal

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

RESTRICTED: Final = [entry for entry in registry.entries() if entry.option(JUDGED_ONLY)]
LEFT_OUT: Final = {
    *("Judged", "unj", "RBPResidual"),
    *("Bpref", "infAP", "SetR"),
    *("RMSE", "MSE", "MAE", "PredictedShare", "LogLoss", "FCP", "KendallTau", "Spearman", "AUC", "GAUC"),
}
"""Measures of how much is judged; those that unjudged items make no difference to, or whose business they are; and
those that read no ranks."""


def judged_alone(measure: Measure) -> Measure:
    """Restrict a measure to the judged items."""
    return Measure.of(measure.name, k=measure.k, **{**measure.options, JUDGED_ONLY: True})


@cache
def pair_of(whole: tuple[Measure, ...]) -> tuple[MeasureSet, MeasureSet]:
    """Put measures together, and the same restricted to the judged items."""
    return MeasureSet.of(whole), MeasureSet.of(list(map(judged_alone, whole)))


def assert_option_is_policy(whole: tuple[Measure, ...], lists: Lists, closed_up: Lists) -> None:
    """Compare the values and denominators of each measure to the bit."""
    asked, alone = pair_of(whole)
    by_policy = asked.score(closed_up, judged_only=True)
    names = dict(zip(alone.stored, asked.stored, strict=True))
    assert_all_equal(alone.score(lists), {name: by_policy[of_policy] for name, of_policy in names.items()}, atol=0)


def test_measures_that_unjudged_items_take_places_in_have_the_option() -> None:
    grouped = {entry.name for entry in registry.entries() if entry.option(GROUP)}
    assert grouped - {entry.name for entry in RESTRICTED} == LEFT_OUT
    assert {entry.name for entry in RESTRICTED} <= grouped


@cache
def whole_variants(entry: Definition) -> tuple[Measure, ...]:
    """Every variant that is not restricted to the judged items, and can be; those of a group too."""
    variants = filter(oracles.takes_every_list, oracles.variants(entry, (1, 3, 0)))
    return tuple(one for one in variants if not one.is_judged_only and one.options.get("unjudged", "zero") == "zero")


EVERY_VARIANT: Final = tuple(one for entry in RESTRICTED for one in whole_variants(entry))


@settings(max_examples=40)
@given(batch=batches())
def test_option_gives_the_values_of_the_policy_to_the_bit(batch: list[Ranking]) -> None:
    closed_up = Lists.of([oracles.judged_only(one) for one in batch])
    assert_option_is_policy(EVERY_VARIANT, Lists.of(batch), closed_up)


TIED: Final = [
    (Ranking([None, 1, None, 0, 2, -1, 3], missed=[1], groups=["tail"] * 7), [3, 4, 6, 7]),
    (Ranking([1, None, 0], groups=["", "tail", "tail"]), [2, 3]),
    (Ranking([None, None]), [2]),
    (Ranking([], missed=[1]), []),
]
"""Lists with the ranks that tie with the rank before: 2 to 4 and 5 to 7 of the first, all three of the second."""
TIED_ALONE: Final = [[2, 4], [2], [], []]
"""The same without the items that leave the lists: of the first, 1 0 and 2 3 tie."""


def spread(rankings: list[Ranking], tied: list[list[int]]) -> Lists:
    """Build the batch of means over all orders of the ties."""
    owner = [place for place, ranks in enumerate(tied) for _ in ranks]
    ranks = [rank for of_list in tied for rank in of_list]
    return spread_ties(Lists.of(rankings), np.array(owner, dtype=np.int32), np.array(ranks, dtype=np.int32))


def test_means_over_all_orders_of_ties_are_those_of_the_judged_items_alone() -> None:
    lists = spread([ranking for ranking, _ in TIED], [ranks for _, ranks in TIED])
    closed_up = spread([oracles.judged_only(ranking) for ranking, _ in TIED], TIED_ALONE)
    taking = tuple(one for one in EVERY_VARIANT if one.has_mean_over_ties and required_facts.VALUES not in one.needs)
    assert len({one.name for one in taking}) > 15
    assert_option_is_policy(taking, lists, closed_up)


def test_values_scores_and_groups_of_the_remaining_items_stay_theirs() -> None:
    whole = Lists.of(
        [
            Ranking(
                [None, 2, -1, 1],
                [3],
                [9, 8, 7, 6],
                values=[0, 20, 30, 40],
                missed_values=[50],
                groups=["head", "tail", "tail", "head"],
                missed_groups=["tail"],
            )
        ]
    )
    alone = whole.judged_only()
    assert alone is whole.judged_only()
    assert alone.scores.tolist() == [8, 6]
    assert [each.tolist() for each in alone.values] == [[20, 40], [50, 20, 40, 0]]  # a gain below 0 is no judgement
    tail = alone.keep_group("tail")
    assert (tail.hit_rank.tolist(), tail.n_recommended.tolist()) == ([1], [2])
    assert tail.judged_gain.tolist() == [3, 2, -1]


def test_batch_without_what_no_measure_reads_is_taken() -> None:
    bare = replace(Lists.of([Ranking([None, 1])]), groups=None, hit_value=None, judged_value=None, hit_score=None)
    assert MeasureSet.parse(["RR(judged_only=True)"]).score(bare)["rr_judged_only_true"].tolist() == [[1.0]]


def test_measure_of_a_group_is_next_to_the_same_of_all_items() -> None:
    asked = MeasureSet.parse(["P@1", "P(judged_only=True)@1"])
    assert asked.columns == ("p", "p_judged_only_true")
    assert {name: each[0, 0] for name, each in asked.score(Lists.of([Ranking([None, 1])])).items()} == {
        "p": 0,
        "p_judged_only_true": 1,
    }

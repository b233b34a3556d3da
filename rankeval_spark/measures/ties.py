"""Ties of scores: the lists in which they can change a measure, and the mean of a measure over all their orders.

The mean has a closed form: McSherry & Najork (2008), Computing information retrieval performance measures efficiently
in the presence of tied scores. Within a block of s equal scores every item is at each of the s ranks with probability
1 / s. So a hit of the block becomes s hits, one a rank, each with that weight: sums over hits, which most measures are,
are then means over all orders. What a sum says of the hits *above* a hit becomes its mean, given the rank of that hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankeval_spark.measures.arrays import (
    BoolMatrix,
    FloatVector,
    IntVector,
    positions,
    product_of_earlier,
    running_count_by_list,
    sum_by_list,
)
from rankeval_spark.measures.lists import Lists, Relevance, remembered


def has_mixed_ties(lists: Lists, tied_list: IntVector, tied_rank: IntVector, ks: Sequence[int]) -> BoolMatrix:
    """Return which lists hold, in a block of equal scores that starts at a rank <= k, items of different gains.

    ``tied_list`` and ``tied_rank`` are those of every item whose score equals that of the item before, sorted; an item
    without a judgement has gain 0. The share of such lists is published as ``tie_share``.

    A block counts although it ends after k: which of its items are above the cut is then chosen by the rule for ties.
    Judged, unj, Bpref, infAP, RBPResidual and a map of gains that holds grade 0 distinguish a judged item of gain 0
    from one without a judgement: a tie of only such items changes them and is not counted.

    Ranks 2 and 3 tie, and only rank 3 is a hit: the tie matters from k = 2 on.

    >>> has_mixed_ties(Lists.of([Ranking([None, None, 1])]), np.array([0]), np.array([3]), [1, 2, 0])
    array([[False,  True,  True]])
    """
    bounds = lists.cut(ks).k[0]
    starts = np.full((lists.n_lists, 1), np.inf)
    if len(tied_rank):
        owner, start, is_mixed = _blocks(lists, tied_list.astype(np.int64), tied_rank.astype(np.int64))
        np.minimum.at(starts[:, 0], owner[is_mixed], start[is_mixed])
    return starts <= np.where(np.isinf(bounds), np.finfo(np.float64).max, bounds)


def _blocks(lists: Lists, tied_list: IntVector, tied_rank: IntVector) -> tuple[IntVector, FloatVector, BoolMatrix]:
    """Find the blocks of equal scores: owner, first rank, and whether their items differ in gain."""
    place = places(lists, tied_list, tied_rank)
    begin, size = runs_of_ties(place)
    first_tied = np.searchsorted(place, begin + 1)
    n_judged, low, high = _judged_gains(lists, begin, size)
    has_unjudged = n_judged < size
    lowest = np.where(has_unjudged, np.minimum(low, 0.0), low)
    highest = np.where(has_unjudged, np.maximum(high, 0.0), high)
    return tied_list[first_tied], (tied_rank[first_tied] - 1).astype(np.float64), (n_judged > 0) & (lowest != highest)


def runs_of_ties(tied_place: IntVector) -> tuple[IntVector, IntVector]:
    """Find the blocks of equal scores, at least one: the place where each begins, and its size."""
    first_tied = np.flatnonzero(np.concatenate([[True], np.diff(tied_place) != 1]))
    n_tied = np.diff(np.append(first_tied, len(tied_place)))
    return tied_place[first_tied] - 1, n_tied + 1  # the item before the first tied one belongs to the block


def places(lists: Lists, owner: IntVector, rank: IntVector) -> IntVector:
    """Return places for the ranks of all lists, one list after another with a gap, so that runs are neighbours."""
    stride = np.int64(lists.n_recommended.max(initial=0)) + 2
    return owner * stride + rank


def _judged_gains(lists: Lists, begin: IntVector, size: IntVector) -> tuple[IntVector, FloatVector, FloatVector]:
    """Count the judged items of each block and find their lowest and highest gain (0 and 0 without any)."""
    hit_place = places(lists, lists.hit_list.astype(np.int64), lists.hit_rank.astype(np.int64))
    block = np.searchsorted(begin, hit_place, side="right") - 1
    is_inside = (block >= 0) & (hit_place < begin[block] + size[block])
    block, gain = block[is_inside], lists.hit_gain[is_inside]
    low, high = np.full(len(begin), np.inf), np.full(len(begin), -np.inf)
    np.minimum.at(low, block, gain)
    np.maximum.at(high, block, gain)
    n_judged = np.bincount(block, minlength=len(begin))
    return n_judged, np.where(n_judged > 0, low, 0.0), np.where(n_judged > 0, high, 0.0)


@dataclass(frozen=True, eq=False)
class _TiedBlocks:
    """Blocks of equal scores that hold a hit; an item whose score no other item has is a block of its own."""

    # Shape (n_blocks,): list and number of items of each block, in the order of the lists and ranks
    owner: IntVector
    size: IntVector
    # Shape (n_hits,): block of each judged item that was recommended, before it was spread over the ranks
    of_hit: IntVector
    gain: FloatVector  # shape (n_hits,): gain of that item


@dataclass(frozen=True, eq=False, kw_only=True)
class SpreadLists(Lists):
    """Lists whose tied hits are spread over the ranks of their blocks; made by :func:`over_all_orders`."""

    blocks: _TiedBlocks  # the blocks of equal scores
    # Shape (n_hits,): block of each spread hit, and how many ranks of the block are above it
    hit_block: IntVector
    hit_step: IntVector
    # What the lists were made of
    unspread: Lists
    tied: tuple[IntVector, IntVector]

    def weighed(self, weights: FloatVector) -> FloatVector:
        """Return what each spread hit adds: that of its item, times the probability of its rank."""
        return super().weighed(weights) / self.blocks.size[self.hit_block]

    @remembered
    def within(self, group: str) -> Lists:
        """View the lists before they were spread, and spread them again."""
        return over_all_orders(self.unspread.within(group), *self.tied)

    @remembered
    def weighted(self) -> Lists:
        """View the lists before they were spread, and spread them again."""
        return over_all_orders(self.unspread.weighted(), *self.tied)

    @remembered
    def judged_only(self) -> Lists:
        """View the lists before they were spread; neighbours among the judged items of one block tie."""
        lists = self.unspread
        tied_list, tied_rank = self.tied
        begin, _ = _block_of_hits(lists, tied_list.astype(np.int64), tied_rank.astype(np.int64))
        begin = begin[lists.is_judged_hit > 0]
        closed_up = lists.judged_only()
        is_tied = np.diff(begin, prepend=-1) == 0  # whatever left between them
        return over_all_orders(closed_up, closed_up.hit_list[is_tied], closed_up.hit_rank[is_tied])

    @remembered
    def relevance(self, rel: float) -> Relevance:
        """Mean relevance over all orders of the ties."""
        blocks, block, step = self.blocks, self.hit_block, self.hit_step
        n_blocks = len(blocks.size)
        n_in_block = sum_by_list(blocks.of_hit, (blocks.gain >= rel).astype(np.float64), n_lists=n_blocks)
        n_before = running_count_by_list(n_in_block, blocks.owner, n_lists=self.n_lists) - n_in_block
        is_relevant = (self.hit_gain >= rel).astype(np.float64)
        n_others = np.maximum(blocks.size - 1, 1)[block]
        n_relevant_others = n_in_block[block] - is_relevant
        n_above = n_before[block] + is_relevant + step * n_relevant_others / n_others
        is_first = is_relevant * (n_before[block] == 0) * self._none_above(n_in_block)
        return Relevance(is_relevant, n_above, is_first, self.count_judged(self.judged_gain >= rel))

    def _none_above(self, n_relevant: FloatVector) -> FloatVector:
        """Probability that no other relevant item of its block is above a relevant one, given the latter's rank."""
        size = self.blocks.size
        block = np.repeat(np.arange(len(size)), size)
        n_left = size[block] - positions(block, n_lists=len(size))  # others that the next rank can take
        n_irrelevant_left = np.maximum(n_left + 1 - n_relevant[block], 0)
        chance = product_of_earlier(n_irrelevant_left / np.maximum(n_left, 1), block)
        first = np.cumsum(size) - size
        at_rank: FloatVector = chance[first[self.hit_block] + self.hit_step]
        return at_rank


def over_all_orders(lists: Lists, tied_list: IntVector, tied_rank: IntVector) -> Lists:
    """Spread the hits of tied blocks over their ranks, so that kernels compute means over all orders of the ties.

    Only for measures whose definition says ``ties.has_mean``. The lists may come in any order of the ties;
    ``tied_list`` and ``tied_rank`` are those of every item whose score equals that of the item before, sorted.

    Ranks 1 to 3 tie, one of the three items is relevant: it is first in a third of the orders.

    >>> batch = over_all_orders(Lists.of([Ranking([None, None, 1])]), np.array([0, 0]), np.array([2, 3]))
    >>> batch.cut([1, 2, 0]).hits(rel=1)
    array([[0.33333333, 0.66666667, 1.        ]])
    """
    if not len(tied_list):
        return lists
    begin, size = _block_of_hits(lists, tied_list.astype(np.int64), tied_rank.astype(np.int64))
    is_first = np.diff(begin, prepend=-1) != 0
    blocks = _TiedBlocks(lists.hit_list[is_first], size[is_first], np.cumsum(is_first) - 1, lists.hit_gain)
    hit = np.repeat(np.arange(len(size)), size)
    step = positions(hit, n_lists=len(size)) - 1
    in_order = np.lexsort((step, begin[hit]))  # by rank; stable, so that the hits of a rank keep their order
    hit, step = hit[in_order], step[in_order]
    first_rank = lists.hit_rank - (_hit_places(lists) - begin)
    spread = lists.some(hit, slice(None))
    spread["hit_rank"] = first_rank[hit] + step
    return SpreadLists(
        lists.n_recommended,
        **spread,
        blocks=blocks,
        hit_block=blocks.of_hit[hit],
        hit_step=step,
        unspread=lists,
        tied=(tied_list, tied_rank),
        empty=lists.empty,
    )


def _hit_places(lists: Lists) -> IntVector:
    return places(lists, lists.hit_list.astype(np.int64), lists.hit_rank.astype(np.int64))


def _block_of_hits(lists: Lists, tied_list: IntVector, tied_rank: IntVector) -> tuple[IntVector, IntVector]:
    """Find, for each hit, the place at which its block begins and the size of it."""
    begin, size = runs_of_ties(places(lists, tied_list, tied_rank))
    place = _hit_places(lists)
    nearest = np.maximum(np.searchsorted(begin, place, side="right") - 1, 0)
    is_inside = (begin[nearest] <= place) & (place < begin[nearest] + size[nearest])
    return np.where(is_inside, begin[nearest], place), np.where(is_inside, size[nearest], 1)

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
    positions_in_list,
    product_before,
    running_count_by_list,
    sum_by_list,
)
from rankeval_spark.measures.lists import Lists, Relevance, memoised


def has_mixed_ties(lists: Lists, tied_list: IntVector, tied_rank: IntVector, ks: Sequence[int]) -> BoolMatrix:
    """Return which lists hold, in a block of equal scores that starts at a rank <= k, items of different gains.

    ``tied_list`` and ``tied_rank`` are those of every item whose score equals that of the item before, sorted. A block
    counts although it ends after k: the rule for ties then chooses which of its items are above the cut. An item
    without a judgement has gain 0, so a tie of it and a judged item of gain 0 is not counted, though it changes Judged,
    unj, Bpref, infAP, RBPResidual and a map of gains that holds grade 0. The share is published as ``tie_share``. Ranks
    2 and 3 tie here, and only rank 3 is a hit: the tie matters from k = 2.

    >>> has_mixed_ties(Lists.of([Ranking([None, None, 1])]), np.array([0]), np.array([3]), [1, 2, 0])
    array([[False,  True,  True]])
    """
    starts = np.full((lists.n_lists, 1), np.inf)
    if len(tied_rank):
        place = to_places(lists, tied_list, tied_rank)
        begin, size = find_tied_runs(place)
        hit_place = to_places(lists, lists.hit_list, lists.hit_rank)
        block = np.searchsorted(begin, hit_place, side="right") - 1
        is_inside = (block >= 0) & (hit_place < begin[block] + size[block])
        block, gain = block[is_inside], lists.hit_gain[is_inside]
        n_judged = np.bincount(block, minlength=len(begin))
        # The gain of an item without a judgement is one of the block's
        low, high = (np.where(n_judged < size, 0.0, end) for end in (np.inf, -np.inf))
        np.minimum.at(low, block, gain)
        np.maximum.at(high, block, gain)
        is_mixed = (n_judged > 0) & (low != high)
        first_tied = np.searchsorted(place, begin + 1)
        np.minimum.at(starts[:, 0], tied_list[first_tied][is_mixed], (tied_rank[first_tied] - 1.0)[is_mixed])
    bounds = lists.cut(ks).k
    return starts <= np.where(np.isinf(bounds), np.finfo(np.float64).max, bounds)


def find_tied_runs(tied_place: IntVector) -> tuple[IntVector, IntVector]:
    """Find the blocks of equal scores: the place where each begins, and its size.

    ``tied_place``: those of items that tie with the item before, at least one; 2, 3 and 7 are blocks 1 to 3 and 6 to 7.

    >>> find_tied_runs(np.array([2, 3, 7]))
    (array([1, 6]), array([3, 2]))
    """
    first_tied = np.flatnonzero(np.concatenate([[True], np.diff(tied_place) != 1]))
    n_tied = np.diff(np.append(first_tied, len(tied_place)))
    return tied_place[first_tied] - 1, n_tied + 1  # the item before the first tied one belongs to the block


def to_places(lists: Lists, owner: IntVector, rank: IntVector) -> IntVector:
    """Convert (list, rank) to one number, list after list with a gap, so that neighbours are of one list."""
    stride = np.int64(lists.n_recommended.max(initial=0)) + 2
    return owner.astype(np.int64) * stride + rank


@dataclass(frozen=True, eq=False, kw_only=True)
class SpreadLists(Lists):
    """Lists whose tied hits are spread over the ranks of their blocks; made by :func:`spread_ties`.

    A block holds a hit and the items of the same score; one whose score no other item has is a block of its own.
    """

    unspread: Lists  # what they were made of
    tied: tuple[IntVector, IntVector]
    # Shape (n_blocks,): list and number of items of each block, in the order of the lists and ranks
    block_list: IntVector
    block_size: IntVector
    block_of: IntVector  # block of each hit before it was spread
    # Shape (n_hits,): block of each spread hit, and how many ranks of the block are above it
    hit_block: IntVector
    hit_step: IntVector

    def apply_weights(self, weights: FloatVector) -> FloatVector:
        """Return what each spread hit adds: that of its item, times the probability of its rank."""
        return super().apply_weights(weights) / self.block_size[self.hit_block]

    @memoised
    def keep_group(self, group: str) -> Lists:
        """View the lists before they were spread, and spread them again."""
        return spread_ties(self.unspread.keep_group(group), *self.tied)

    @memoised
    def weighted(self) -> Lists:
        """View the lists before they were spread, and spread them again."""
        return spread_ties(self.unspread.weighted(), *self.tied)

    @memoised
    def judged_only(self) -> Lists:
        """View the lists before they were spread; neighbours among the judged items of one block tie."""
        lists = self.unspread
        begin, _ = _block_of_hits(lists, *self.tied)
        begin = begin[lists.is_judged_hit > 0]
        closed_up = lists.judged_only()
        is_tied = np.diff(begin, prepend=-1) == 0  # whatever left between them
        return spread_ties(closed_up, closed_up.hit_list[is_tied], closed_up.hit_rank[is_tied])

    @memoised
    def relevance(self, rel: float) -> Relevance:
        """Mean relevance over all orders of the ties."""
        size, block = self.block_size, self.hit_block
        was_relevant = (self.unspread.hit_gain >= rel).astype(np.float64)
        n_in_block = sum_by_list(self.block_of, was_relevant, n_lists=len(size))
        n_before = running_count_by_list(n_in_block, self.block_list, n_lists=self.n_lists) - n_in_block
        is_relevant = (self.hit_gain >= rel).astype(np.float64)
        n_relevant_others = n_in_block[block] - is_relevant
        n_above = n_before[block] + is_relevant + self.hit_step * n_relevant_others / np.maximum(size - 1, 1)[block]

        # Probability that no other relevant item of its block is above a relevant one, given the latter's rank
        each = np.repeat(np.arange(len(size)), size)  # (n_ranks of all blocks,)
        n_left = size[each] - positions_in_list(each, n_lists=len(size))  # others that the next rank can take
        n_irrelevant_left = np.maximum(n_left + 1 - n_in_block[each], 0)
        none_above = product_before(n_irrelevant_left / np.maximum(n_left, 1), each)
        first = np.cumsum(size) - size
        is_first = is_relevant * (n_before[block] == 0) * none_above[first[block] + self.hit_step]
        return Relevance(is_relevant, n_above, is_first, self.sum_judged(self.judged_gain >= rel))


def spread_ties(lists: Lists, tied_list: IntVector, tied_rank: IntVector) -> Lists:
    """Spread the hits of tied blocks over their ranks, so that kernels compute means over all orders of the ties.

    Only for measures whose definition says ``has_mean_over_ties``. The lists may come in any order of the ties;
    ``tied_list`` and ``tied_rank`` are those of every item whose score equals that of the item before, sorted.

    Ranks 1 to 3 tie, one of the three items is relevant: it is first in a third of the orders.

    >>> batch = spread_ties(Lists.of([Ranking([None, None, 1])]), np.array([0, 0]), np.array([2, 3]))
    >>> batch.cut([1, 2, 0]).hits(rel=1)
    array([[0.33333333, 0.66666667, 1.        ]])
    """
    if not len(tied_list):
        return lists
    begin, size = _block_of_hits(lists, tied_list, tied_rank)
    is_first = np.diff(begin, prepend=-1) != 0
    block_of = np.cumsum(is_first) - 1
    hit = np.repeat(np.arange(len(size)), size)
    step = positions_in_list(hit, n_lists=len(size)) - 1
    in_order = np.lexsort((step, begin[hit]))  # by rank; stable, so that the hits of a rank keep their order
    hit, step = hit[in_order], step[in_order]
    first_rank = lists.hit_rank - (to_places(lists, lists.hit_list, lists.hit_rank) - begin)
    return SpreadLists(
        lists.n_recommended,
        **{**lists.subset_fields(hit, slice(None)), "hit_rank": first_rank[hit] + step},
        names=lists.names,
        empty=lists.empty,
        unspread=lists,
        tied=(tied_list, tied_rank),
        block_list=lists.hit_list[is_first],
        block_size=size[is_first],
        block_of=block_of,
        hit_block=block_of[hit],
        hit_step=step,
    )


def _block_of_hits(lists: Lists, tied_list: IntVector, tied_rank: IntVector) -> tuple[IntVector, IntVector]:
    """Find, for each hit, the place at which its block begins and the size of it."""
    begin, size = find_tied_runs(to_places(lists, tied_list, tied_rank))
    place = to_places(lists, lists.hit_list, lists.hit_rank)
    nearest = np.maximum(np.searchsorted(begin, place, side="right") - 1, 0)
    is_inside = (begin[nearest] <= place) & (place < begin[nearest] + size[nearest])
    return np.where(is_inside, begin[nearest], place), np.where(is_inside, size[nearest], 1)

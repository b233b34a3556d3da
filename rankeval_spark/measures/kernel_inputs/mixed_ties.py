"""Which lists have ties that can change a measure: the share of them is published with every mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import BoolMatrix, FloatVector, IntVector
    from rankeval_spark.measures.kernel_inputs.lists import Lists


def has_mixed_ties(lists: Lists, tied_list: IntVector, tied_rank: IntVector, ks: Sequence[int]) -> BoolMatrix:
    """Return which lists hold, in a block of equal scores that starts at a rank <= k, items of different gains.

    ``tied_list`` and ``tied_rank`` are those of every item whose score equals that of the item before, sorted; an item
    without a judgement has gain 0. The share of such lists is published as ``tie_share``.

    Notes
    -----
    A block counts although it ends after k: which of its items are above the cut is then chosen by the rule for ties.
    Judged, unj, Bpref, infAP, RBPResidual and a map of gains that holds grade 0 distinguish a judged item of gain 0
    from one without a judgement: a tie of only such items changes them and is not counted.

    Examples
    --------
    Ranks 2 and 3 tie, and only rank 3 is a hit: the tie matters from k = 2 on.

    >>> from rankeval_spark.measures import Lists, Ranking
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
    """Find the blocks of equal scores, of which there is at least one: the place each begins at, and its size."""
    first_tied = np.flatnonzero(np.concatenate([[True], np.diff(tied_place) != 1]))
    n_tied = np.diff(np.append(first_tied, len(tied_place)))
    return tied_place[first_tied] - 1, n_tied + 1  # the item before the first tied one belongs to the block


def places(lists: Lists, owner: IntVector, rank: IntVector) -> IntVector:
    """Lay the ranks of all lists out one after the other, with a gap between lists, so that runs are neighbours."""
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

"""Counts and sums by integer key, and over the pairs of lists that hold an item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.engine.batch.codes import starts_of_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import FloatVector, IntVector

_ROOM: Final = 4
"""Cells of a dense count for each key: with more than these, sorting the keys takes less time and memory."""

_SMALL: Final = 1 << 20  # cells that are always counted densely: 8 MB


def counted(key: IntVector, *, n_keys: int) -> tuple[IntVector, IntVector]:
    """Return the keys, from 0 to ``n_keys - 1``, that occur, ascending, and how often each does.

    >>> counted(np.array([3, 1, 3]), n_keys=5)
    (array([1, 3]), array([1, 2]))
    """
    if _is_dense(key, n_keys):
        cells = np.bincount(key, minlength=n_keys)
        found = np.flatnonzero(cells)
        return found, cells[found]
    ordered = np.sort(key)
    starts = np.flatnonzero(starts_of_runs(ordered))
    return ordered[starts], np.diff(starts, append=len(ordered))


def summed(key: IntVector, weights: Sequence[FloatVector], *, n_keys: int) -> tuple[IntVector, list[FloatVector]]:
    """Return the keys, from 0 to ``n_keys - 1``, that occur, ascending, and the sums of their weights, maybe 0.

    >>> summed(np.array([3, 1, 3]), [np.array([1.0, 2.0, -1.0])], n_keys=5)
    (array([1, 3]), [array([2., 0.])])
    """
    if _is_dense(key, n_keys):
        found = np.flatnonzero(np.bincount(key, minlength=n_keys))
        cells = (np.bincount(key, weights=one, minlength=n_keys) for one in weights)
        return found, [one[found].astype(np.float64, copy=False) for one in cells]
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(starts_of_runs(ordered))
    return ordered[starts], [np.add.reduceat(one[order], starts) for one in weights]


def _is_dense(key: IntVector, n_keys: int) -> bool:
    return n_keys <= max(_ROOM * len(key), _SMALL)


def run_lengths(starts: IntVector, *, n_rows: int) -> IntVector:
    """Return the length of each run of rows from the rows at which they start.

    >>> run_lengths(np.array([0, 2]), n_rows=5)
    array([2, 3])
    """
    return np.diff(starts, append=n_rows)


def compact(numbers: IntVector) -> tuple[IntVector, IntVector]:
    """Return the place of each whole number among the distinct ones, and these, ascending.

    Numbers are 0 or more; memory grows with the largest.

    >>> compact(np.array([7, 2, 7]))
    (array([1, 0, 1]), array([2, 7]))
    """
    occurs = np.zeros(numbers.max(initial=-1) + 1, dtype=np.bool_)
    occurs[numbers] = True
    return (np.cumsum(occurs) - 1)[numbers], np.flatnonzero(occurs)


class PairSums(NamedTuple):
    """Sums over the ordered pairs of lists that hold the same item."""

    shared: FloatVector  # (n,), of 1 / the length of the shorter list
    cosine: FloatVector  # (n,), of 1 / the root of the product of both lengths


def pair_sums(
    holder: IntVector,  # (n,), whose lists they are, ascending
    length: IntVector,  # (n,), length of the lists, ascending within the holder
    times: IntVector,  # (n,), lists of that length; may be 0
) -> PairSums:
    """Sum over the pairs of lists that hold an item, one sum for each holder.

    A list has the shorter length of every pair with a later one, and the root of a product is that of each factor.
    Nothing is subtracted: an item in one list adds exactly 0.

    Two lists of length 1 and one of length 4: 2 / 1 + 4 / 1, and 2 / 1 + 4 / 2.

    >>> pair_sums(np.array([0, 0]), np.array([1, 4]), np.array([2, 1]))
    PairSums(shared=array([6.]), cosine=array([4.]))
    """
    starts = np.flatnonzero(starts_of_runs(holder))
    n_lengths = run_lengths(starts, n_rows=len(holder))
    place = np.arange(len(holder)) - np.repeat(starts, n_lengths)
    upto = np.cumsum(times)
    later = np.repeat(upto[starts + n_lengths - 1], n_lengths) - upto
    of_one_length = times * (times - 1) / length
    roots = times / np.sqrt(length)
    shared = of_one_length + 2 * later * times / length
    cosine = of_one_length + 2 * roots * _sums_before(roots, place)
    return PairSums(np.add.reduceat(shared, starts), np.add.reduceat(cosine, starts))


def _sums_before(values: FloatVector, place: IntVector) -> FloatVector:
    """Add up the values before each one of its run, by doubling: a difference of sums over all runs would be inexact.

    ``place`` is that of each value in its run, from 0.
    """
    sums = _moved(values, place, by=1)
    step = 1
    while step < place.max(initial=0):
        sums = sums + _moved(sums, place, by=step)
        step *= 2
    return sums


def _moved(values: FloatVector, place: IntVector, *, by: int) -> FloatVector:
    """Move values down by some places, 0 where they would come from another run."""
    moved = np.zeros(len(values))
    moved[by:] = values[: len(values) - by]
    moved[place < by] = 0
    return moved

"""Sums over the pairs of lists that hold an item, of how long these lists are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.engine.batch.codes import starts_of_runs
from rankeval_spark.result_rows.counting import run_lengths

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector, IntVector


class PairSums(NamedTuple):
    """Sums over the ordered pairs of lists that hold the same item.

    Attributes
    ----------
    shared : float64, shape (n,)
        Of 1 / the length of the shorter list.
    cosine : float64, shape (n,)
        Of 1 / the root of the product of both lengths.
    """

    shared: FloatVector
    cosine: FloatVector


def pair_sums(holder: IntVector, length: IntVector, times: IntVector) -> PairSums:
    """Sum over the pairs of lists that hold an item, one sum for each holder.

    A list has the shorter length of every pair with a later one, and the root of a product is that of each factor.
    Nothing is subtracted: an item in one list adds exactly 0.

    Parameters
    ----------
    holder : int64, shape (n,)
        Whose lists they are, ascending.
    length : int64, shape (n,)
        Length of the lists, ascending within the holder.
    times : int64, shape (n,)
        Lists of that length; may be 0.

    Examples
    --------
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

    ``place``: that of each value in its run, from 0.
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

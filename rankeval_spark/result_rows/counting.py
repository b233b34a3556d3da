"""Counts and sums by integer key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark.engine.batch.codes import starts_of_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import FloatVector, IntVector

_ROOM: Final = 4
"""Cells of a dense count for each key: with more than these, sorting the keys takes less time and memory."""

_SMALL: Final = 1 << 20
"""Cells that are always counted densely: 8 MB."""


def counted(key: IntVector, *, n_keys: int) -> tuple[IntVector, IntVector]:
    """Count how often each key occurs.

    Parameters
    ----------
    key : int64, shape (n,)
        From 0 to ``n_keys`` - 1.

    Returns
    -------
    found : int64, shape (n_found,)
        The keys that occur, ascending.
    count : int64, shape (n_found,)

    Examples
    --------
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
    """Add up the weights of each key.

    Parameters
    ----------
    key : int64, shape (n,)
        From 0 to ``n_keys`` - 1.
    weights : sequence of float64, shape (n,)

    Returns
    -------
    found : int64, shape (n_found,)
        The keys that occur, ascending.
    sums : list of float64, shape (n_found,)
        Of each of the weights; they may be 0.

    Examples
    --------
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
    """Return the length of each run of rows, of the rows at which they start.

    Examples
    --------
    >>> run_lengths(np.array([0, 2]), n_rows=5)
    array([2, 3])
    """
    return np.diff(starts, append=n_rows)


def compact(numbers: IntVector) -> tuple[IntVector, IntVector]:
    """Replace whole numbers by their places among the distinct ones.

    Parameters
    ----------
    numbers : int64, shape (n,)
        0 or more; memory grows with the largest.

    Returns
    -------
    code : int64, shape (n,)
    values : int64, shape (n_codes,)
        The number of each code, ascending.

    Examples
    --------
    >>> compact(np.array([7, 2, 7]))
    (array([1, 0, 1]), array([2, 7]))
    """
    occurs = np.zeros(numbers.max(initial=-1) + 1, dtype=np.bool_)
    occurs[numbers] = True
    return (np.cumsum(occurs) - 1)[numbers], np.flatnonzero(occurs)

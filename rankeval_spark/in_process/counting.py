"""Counts and sums by integer key, and codes that several columns of ids share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.codes import Codes, starts_of_runs, to_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector

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


def lengths_of(starts: IntVector, *, n_rows: int) -> IntVector:
    """Return the length of each run of rows, of the rows at which they start.

    Examples
    --------
    >>> lengths_of(np.array([0, 2]), n_rows=5)
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


def changes(ids: pa.Array) -> BoolVector:
    """Mark the rows whose id differs from that of the row before, or either is NULL: bool, shape (n_rows,).

    Ids of users and models come in runs: to compare neighbours takes a fiftieth of the time of encoding every row.
    """
    is_change = np.ones(len(ids), dtype=np.bool_)
    if len(ids):
        is_change[1:] = to_numpy(pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)), null=1)
    return is_change


def codes_together(columns: Sequence[pa.ChunkedArray]) -> tuple[list[IntVector], pa.Array]:
    """Encode several columns of one type by the same codes.

    Returns
    -------
    codes : list of int64, shape (n_rows,)
        Of each column; -1 where it is NULL.
    values : pa.Array
        Distinct values of all columns.
    """
    own = [to_codes(column) for column in columns]
    joint = to_codes(pa.concat_arrays([one.values for one in own]))
    ends = np.cumsum([one.n_values for one in own])
    return [
        _renumbered(one, code) for one, code in zip(own, np.split(joint.code, ends[:-1]), strict=True)
    ], joint.values


def _renumbered(own: Codes, code: IntVector) -> IntVector:
    return np.append(code, -1)[own.code]  # the code of NULL is -1: the last


def codes_among(column: pa.Array | pa.ChunkedArray, values: pa.Array) -> IntVector:
    """Find the values of a column in others: int64, shape (n_rows,); -1 where they are not among them, or NULL."""
    found: IntVector = to_numpy(pc.index_in(in_one_piece(column), value_set=values), null=-1).astype(np.int64)
    return found


def codes_of_runs(column: pa.ChunkedArray, values: pa.Array) -> IntVector:
    """Do as :func:`codes_among`, faster where equal values follow one another."""
    whole = in_one_piece(column)
    starts = np.flatnonzero(changes(whole))
    code = codes_among(pc.take(whole, to_arrow(starts)), values)
    return np.repeat(code, lengths_of(starts, n_rows=len(column)))

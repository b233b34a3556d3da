"""Counts of the users with each value: they merge, are exact while values are few, and have quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankeval_spark.statistics.moments import Matrix

Ints: TypeAlias = NDArray[np.int64]
Doubles: TypeAlias = NDArray[np.float64]

MAX_VALUES: Final = 2049  # distinct values of a cell that are kept: [0, 1] has so many multiples of 2^-11
EXACT: Final = -1075  # exponent of a cell whose values are as they were: every double is a multiple of 2^-1074
_STEPS: Final = 11  # a range below 2^x has at most MAX_VALUES multiples of 2^(x - 11)


@dataclass(frozen=True, eq=False)
class EncodedColumns:
    """Columns of values that are counted by more than one grouping."""

    values: Sequence[Doubles]  # distinct values of each column, ascending, without NaN
    codes: Sequence[Ints]  # place of each row's value among them, -1 where it is NaN

    @classmethod
    def from_columns(cls, columns: Matrix) -> EncodedColumns:
        """Find the distinct values of each column."""
        values, codes = [], []
        for column in columns.T:
            found, code = np.unique(column + 0.0, return_inverse=True)  # -0.0 and 0.0 are one value
            n_defined = int(np.searchsorted(found, np.nan))
            values.append(found[:n_defined])
            codes.append(np.where(code < n_defined, code, -1))
        return cls(values, codes)

    def by_group(self, group: NDArray[np.integer], n_groups: int) -> ValueCounts:
        """Count the values of each column in each group; cells are numbered ``group * n_columns + column``."""
        n_columns = len(self.values)
        cells, values, counts = [], [], []
        for place, (levels, codes) in enumerate(zip(self.values, self.codes, strict=True)):
            is_defined = codes >= 0
            code = group[is_defined].astype(np.int64) * len(levels) + codes[is_defined]
            if n_groups * len(levels) > 4 * len(code):
                found, count = np.unique(code, return_counts=True)
            else:
                every = np.bincount(code, minlength=n_groups * len(levels))
                found = np.flatnonzero(every)
                count = every[found]
            cells.append(found // max(1, len(levels)) * n_columns + place)
            values.append(levels[found % max(1, len(levels))])
            counts.append(count)
        return _build_counts(cells, values, counts, np.full(n_groups * n_columns, EXACT, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Distinct values of each cell, and how many users have each.

    A cell with more than :data:`MAX_VALUES` of them holds its values rounded down to a multiple of ``2**exponent``,
    the smallest power of two with which they are not more. Multiples of a power of two are multiples of every smaller
    one. So rounding twice is rounding once, and the counts of the whole do not depend on how it was cut or united.

    >>> columns = EncodedColumns.from_columns(np.array([[0.5], [1.0], [0.5], [np.nan]]))
    >>> counts = columns.by_group(np.array([0, 0, 0, 0]), 1)
    >>> counts.value, counts.count
    (array([0.5, 1. ]), array([2, 1]))
    >>> counts.quantiles([0.5, 0.9])
    array([[0.5, 1. ]])
    """

    cell: Ints  # (n_values,), cell of each value, ascending
    value: Doubles  # (n_values,), ascending in a cell
    count: Ints  # (n_values,), users who have it
    exponent: Ints  # (n_cells,), `EXACT` where values are as they were

    @property
    def error(self) -> Doubles:
        """Grid of each cell, which no value lies further above its multiple; 0 where values are as they were."""
        return np.where(self.exponent == EXACT, 0.0, np.ldexp(1.0, self.exponent.astype(np.int32)))

    def quantiles(self, shares: Sequence[float]) -> Matrix:
        """Return the least value that at least a share of the users do not exceed: shape (n_cells, n_shares).

        NaN where a cell has no value; else a value that a user has, as ``quantile_disc`` of SQL. The share is taken as
        it is written, 0.07 as 7/100.
        """
        n_cells = len(self.exponent)
        found = np.full((n_cells, len(shares)), np.nan)
        if not len(self.cell):
            return found
        up_to = np.cumsum(self.count)
        n_users = np.zeros(n_cells, dtype=np.int64)
        np.add.at(n_users, self.cell, self.count)
        before = np.cumsum(n_users) - n_users
        has_value = n_users > 0
        for place, share in enumerate(shares):
            exact = Fraction(repr(float(share)))
            n = n_users[has_value].astype(object)  # whole numbers of any size
            wanted = np.maximum((-(-n * exact.numerator // exact.denominator)).astype(np.int64), 1)
            found[has_value, place] = self.value[np.searchsorted(up_to, before[has_value] + wanted)]
        return found

    def to_bytes(self, n_columns: int) -> list[bytes]:
        """Write the ``n_columns`` cells of each group."""
        n_cells = len(self.exponent)
        sizes = np.bincount(self.cell, minlength=n_cells)
        ends = np.cumsum(sizes)[n_columns - 1 :: n_columns]
        starts = np.append(0, ends[:-1])
        heads = np.stack([self.exponent, sizes], axis=-1).reshape(-1, 2 * n_columns)
        return [
            head.tobytes() + self.value[start:end].tobytes() + self.count[start:end].tobytes()
            for head, start, end in zip(heads, starts.tolist(), ends.tolist(), strict=True)
        ]

    @classmethod
    def from_bytes(cls, state: bytes, n_columns: int) -> ValueCounts:
        """Read the cells of one group, as :meth:`to_bytes` wrote them."""
        exponent, sizes = np.frombuffer(state, dtype=np.int64, count=2 * n_columns).reshape(n_columns, 2).T
        n_values, start = int(sizes.sum()), 16 * n_columns
        value = np.frombuffer(state, dtype=np.float64, count=n_values, offset=start)
        count = np.frombuffer(state, dtype=np.int64, count=n_values, offset=start + 8 * n_values)
        return cls(np.repeat(np.arange(n_columns), sizes), value, count, exponent)


def merge_counts(parts: Iterable[tuple[ValueCounts, Ints]], n_cells: int) -> ValueCounts:
    """Unite counts of users, each with the cell in the result of every own cell."""
    parts = list(parts)
    exponent = np.full(n_cells, EXACT, dtype=np.int64)
    for part, places in parts:
        np.maximum.at(exponent, places, part.exponent)
    cells = [places[part.cell] for part, places in parts]
    return _build_counts(cells, [part.value for part, _ in parts], [part.count for part, _ in parts], exponent)


def _build_counts(
    cells: Sequence[Ints], values: Sequence[Doubles], counts: Sequence[Ints], exponent: Ints
) -> ValueCounts:
    """Sort values, add up those that are equal on the grid of their cell, and coarsen the grids of cells with many."""
    none = np.empty(0, dtype=np.int64)
    cell, count = np.concatenate([none, *cells]), np.concatenate([none, *counts])
    value = _round_down(np.concatenate([np.empty(0), *values]), exponent[cell])
    order = np.lexsort((value, cell))
    cell, value, count = _add_equal_values(cell[order], value[order], count[order])
    ends = np.cumsum(np.bincount(cell, minlength=len(exponent)))
    large = np.flatnonzero(np.diff(ends, prepend=0) > MAX_VALUES)
    if not len(large):
        return ValueCounts(cell, value, count, exponent)
    exponent = exponent.copy()
    starts = np.append(0, ends[:-1])
    for crowded in large.tolist():
        exponent[crowded] = _finest_exponent(value[starts[crowded] : ends[crowded]], int(exponent[crowded]))
    return ValueCounts(*_add_equal_values(cell, _round_down(value, exponent[cell]), count), exponent)


def _add_equal_values(cell: Ints, value: Doubles, count: Ints) -> tuple[Ints, Doubles, Ints]:
    """Unite neighbours of one cell and one value."""
    if not len(cell):
        return cell, value, count
    starts = np.flatnonzero(np.append(True, (np.diff(cell) != 0) | (np.diff(value) != 0)))
    return cell[starts], value[starts], np.add.reduceat(count, starts)


def _finest_exponent(values: Doubles, least: int) -> int:
    """Find the smallest exponent above ``least`` whose multiples are few enough; values ascend."""

    def is_few(exponent: int) -> bool:
        return int(np.count_nonzero(np.diff(_round_down(values, np.int64(exponent))))) < MAX_VALUES

    # `coarse` is always few enough and `fine` is not: steps that double find `fine`, then bisection closes the gap.
    coarse = int(np.frexp(values[-1] / 2 - values[0] / 2)[1]) + 1 - _STEPS
    fine, step = least, 1
    while coarse - step > fine:  # values mostly fill their range: the first steps find it
        if not is_few(coarse - step):
            fine = coarse - step
            break
        coarse, step = coarse - step, 2 * step
    while coarse - fine > 1:
        middle = (coarse + fine) // 2
        coarse, fine = (middle, fine) if is_few(middle) else (coarse, middle)
    return coarse


def _round_down(values: Doubles, exponent: Ints | np.int64) -> Doubles:
    """Round down to multiples of a power of two; values beyond 2^52 multiples are multiples already."""
    power = exponent.astype(np.int32)
    with np.errstate(over="ignore"):
        scaled = np.ldexp(values, -power)
    is_multiple = np.abs(scaled) >= 2.0**52
    return np.where(is_multiple, values, np.ldexp(np.floor(np.where(is_multiple, 0.0, scaled)), power))

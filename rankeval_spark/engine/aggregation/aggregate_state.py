"""Partial moments on their way between the workers, and their union: a row for each group of users and part.

The moments of all measures are one cell of bytes. Twenty segments and ten crossings make 6,000 groups; with a row for
each measure as well, Spark would compare and merge sixteen times as many keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import nullable
from rankeval_spark.engine.batch.arrays import in_one_piece, lengths_of, list_column, to_arrow, to_numpy, to_texts
from rankeval_spark.statistics import value_counts
from rankeval_spark.statistics.moments import Moments, membership_of
from rankeval_spark.statistics.ratios import Ratios
from rankeval_spark.statistics.value_counts import ValueCounts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rankeval_spark.engine.aggregation.slices import Key

GROUP: Final = (C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K)  # key of a row: columns of every row here
STATE: Final = "state"  # column of the moments and counts, see :class:`AggregateLayout`

SPREAD: Final = "spread"  # column of what a bootstrap made of a group: errors, lower and upper ends, of all measures
COUNTED_VALUES: Final = "counted_values"  # column of the users' values and their numbers; NULL without quantiles

KEY_FIELDS: Final = tuple(map(pa.field, GROUP, (pa.string(), pa.int32(), pa.list_(pa.string()), pa.int32())))
PARTIAL: Final = pa.schema([*KEY_FIELDS, (STATE, pa.binary()), (COUNTED_VALUES, pa.binary())])

N_TIED: Final = "n_tied"

COUNTS: Final = ("n_population", "n_missing", "n_zero_relevant", "n_extra_users", "n_with_list", N_TIED)
"""Facts of a group of users that do not depend on the measure."""

N_NONZERO: Final = "n_nonzero"  # users whose value is not that of a user without a hit, of each measure
MOMENTS: Final = ("n", "mean", "m2", "m3")
WEIGHTED: Final = ("weight_mean", "weight_m2", "cross", "weight_m3", "cross_21", "cross_12")
"""More rows of a state where some measures are ratios of sums: moments of their denominators, and with the numerators,
whose moments then are ``mean``, ``m2`` and ``m3``; the last two are the sums of ``a a b`` and ``a b b``."""

DRAWN: Final = ("drawn_error", "drawn_low", "drawn_high")  # the parts of SPREAD, of each mean

QUANTILES: Final = "quantiles"
QUANTILE_GRID: Final = "quantile_grid"  # the step that quantiles are rounded down to: 0 where they are exact

BATCH_BYTES: Final = 1 << 26  # bytes of counted values from which on a batch of rows is closed


@dataclass(frozen=True)
class AggregateLayout:
    """Layout of moments and counts in a cell of bytes."""

    n_measures: int  # measures, of each of which there are MOMENTS
    # positions of the measures that are ratios of sums; if there are any, every measure has WEIGHTED too
    weighted: tuple[int, ...] = ()
    # whether the lists of each measure come after the other counts; where they do not, each user has one
    has_lists: bool = False

    @classmethod
    def of(cls, measures: Sequence[str], weights: Collection[str], *, has_lists: bool = False) -> AggregateLayout:
        """Return the layout of columns; those of ``weights`` are ratios of sums, in the order of their denominators."""
        return cls(len(measures), tuple(measures.index(name) for name in weights), has_lists)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rows of numbers, each as long as there are measures."""
        return (*MOMENTS, *(WEIGHTED if self.weighted else ()))

    def to_batches(
        self,
        slice_index: int,
        keys: Sequence[Key],
        moments: Moments,  # of each group and measure
        # float64 (n_groups, n_counts) as COUNTS, then N_NONZERO of each measure, then the lists of each measure where
        # users have several
        counts: np.ndarray,
        ratios: Ratios | None = None,  # of the measures that are ratios of sums, where there are any
        counted: ValueCounts | None = None,  # of each group and measure, where quantiles are requested
    ) -> Iterator[pa.RecordBatch]:
        """Yield the groups of a slice as rows of PARTIAL, some at a time where their values are many."""
        of_weights = []
        if ratios is not None:  # 0 for a measure that is no ratio of sums
            _, _, _, below_mean, below_m2, cross, _, *cubes = ratios.numbers
            for found in (below_mean, below_m2, cross, *cubes):
                of_weights.append(np.zeros(moments.n.shape))
                of_weights[-1][:, list(self.weighted)] = found
        states = doubles_to_cells(np.hstack([*moments.numbers, *of_weights, counts]))
        columns = [*key_columns(slice_index, keys), states]
        if counted is None:
            yield pa.RecordBatch.from_arrays([*columns, pa.nulls(len(keys), pa.binary())], schema=PARTIAL)
            return
        values = counted.to_bytes(self.n_measures)
        block = np.cumsum([0, *map(len, values[:-1])]) // BATCH_BYTES
        ends = [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(keys)]
        for start, end in pairwise([0, *ends]):
            own = [column.slice(start, end - start) for column in columns]
            yield pa.RecordBatch.from_arrays([*own, bytes_to_cells(values[start:end])], schema=PARTIAL)

    def pool(self, rows: pa.Table, *, quantiles: Sequence[float] = ()) -> pa.RecordBatch:
        """Unite rows of PARTIAL, and of SPREAD where there was a bootstrap: one row for each group and measure.

        All rows of a group are there. Returns ``GROUP``, ``measure_index``, the columns :attr:`parts`, COUNTS,
        N_NONZERO, ``n_lists``, DRAWN where there is a column SPREAD, and QUANTILES and QUANTILE_GRID where quantiles,
        shares of the users, are requested.
        """
        spread = rows.filter(pc.is_valid(rows[SPREAD])) if SPREAD in rows.column_names else None
        rows = rows.filter(pc.is_valid(rows[STATE]))
        first, group = rows_by_key(rows)
        # Sums depend on the order of their terms in the last bits, and rows arrive in any order.
        order = np.lexsort((_order_of(rows[STATE]), group))
        numbers, counts = np.split(cells_to_doubles(rows[STATE]), [len(self.parts) * self.n_measures], axis=1)
        parts = numbers[order].reshape(-1, len(self.parts), self.n_measures).transpose(1, 0, 2)
        columns = self._united(parts, group[order], len(first))
        ends = np.cumsum([len(COUNTS), self.n_measures])
        summed, nonzero, lists = np.split(membership_of(group[order], len(first)) @ counts[order], ends, axis=1)
        columns[N_NONZERO] = np.rint(nonzero).astype(np.int64)
        columns[C.N_LISTS] = np.rint(lists).astype(np.int64) if self.has_lists else columns["n"]
        keys = pc.take(rows.select(GROUP), to_arrow(first))
        if spread is not None:
            columns |= self._drawn(keys, spread)
        repeated = np.repeat(np.arange(len(first)), self.n_measures)
        by_group = pc.take(keys, to_arrow(repeated))
        pooled = pa.RecordBatch.from_pydict(
            {
                **{name: in_one_piece(by_group[name]) for name in GROUP},
                "measure_index": to_arrow(np.tile(np.arange(self.n_measures, dtype=np.int32), len(first))),
                **{name: nullable(found.ravel()) for name, found in columns.items()},
                **{name: to_arrow(summed[repeated, index]) for index, name in enumerate(COUNTS)},
            }
        )
        return self._with_quantiles(pooled, rows[COUNTED_VALUES], group, quantiles) if quantiles else pooled

    def _united(self, parts: np.ndarray, group: np.ndarray, n_groups: int) -> dict[str, np.ndarray]:
        """Unite moments whose rows are in the order of their groups."""
        n, mean, m2, m3, *of_weights = parts
        if not self.weighted:
            found = Moments(n.astype(np.int64), mean, m2, m3).united(group, n_groups)
            return dict(zip(MOMENTS, found.numbers, strict=True))
        weighted = Ratios.of(n, mean, m2, *of_weights[:3], m3, *of_weights[3:]).united(group, n_groups)
        names = (*MOMENTS[:3], *WEIGHTED[:3], MOMENTS[3], *WEIGHTED[3:])
        return dict(zip(names, weighted.numbers, strict=True))

    def _drawn(self, keys: pa.Table, spread: pa.Table) -> dict[str, np.ndarray]:
        """Return the spread of each group by the bootstrap, NaN where there is none."""
        _, place = rows_by_key(pa.concat_tables([keys, spread.select(GROUP)]))
        found = np.full((place.max(initial=-1) + 1, len(DRAWN), self.n_measures), np.nan)
        found[place[keys.num_rows :]] = cells_to_doubles(spread[SPREAD]).reshape(-1, len(DRAWN), self.n_measures)
        return dict(zip(DRAWN, found[place[: keys.num_rows]].transpose(1, 0, 2), strict=True))

    def _with_quantiles(
        self, pooled: pa.RecordBatch, cells: pa.ChunkedArray, group: np.ndarray, shares: Sequence[float]
    ) -> pa.RecordBatch:
        """Add the quantiles of each group and measure: lists of as many numbers, NULL where no user has a value."""
        measure = np.arange(self.n_measures)
        parts = (
            (ValueCounts.from_bytes(state, self.n_measures), own * self.n_measures + measure)
            for state, own in zip(cells.to_pylist(), group.tolist(), strict=True)
        )
        counted = value_counts.united(parts, pooled.num_rows)
        found = counted.quantiles(shares)
        lists = pa.FixedSizeListArray.from_arrays(nullable(found.ravel()), len(shares))
        return pooled.append_column(QUANTILES, lists).append_column(QUANTILE_GRID, to_arrow(counted.error))


def key_columns(slice_index: int, keys: Sequence[Key]) -> list[pa.Array]:
    """Build the columns GROUP of some groups of a slice."""
    ends = np.cumsum([0, *(len(values) for _, values, _ in keys)], dtype=np.int32)
    return [
        to_texts(model for model, _, _ in keys),
        to_arrow(np.full(len(keys), slice_index, dtype=np.int32)),
        pa.ListArray.from_arrays(to_arrow(ends), to_texts(value for _, values, _ in keys for value in values)),
        to_arrow(np.array([k for _, _, k in keys], dtype=np.int32)),
    ]


def doubles_to_cells(numbers: np.ndarray) -> pa.Array:
    """Build a cell of bytes of each row of doubles."""
    rows = np.ascontiguousarray(numbers, dtype=np.float64)
    ends = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(rows.shape[1] * rows.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(rows)])


def bytes_to_cells(states: Sequence[bytes]) -> pa.Array:
    """Build cells of bytes of any sizes."""
    ends = np.cumsum([0, *map(len, states)], dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(states), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(states))])


def cells_to_doubles(cells: pa.ChunkedArray) -> np.ndarray:
    """Return the rows of doubles that cells of bytes, all of one size, were made of."""
    numbers = np.frombuffer(b"".join(cells.to_pylist()), dtype=np.float64)
    return numbers.reshape(len(cells), -1) if len(cells) else np.empty((0, 0))


def rows_by_key(rows: pa.Table, key: Sequence[str] = GROUP) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each key, of the columns of GROUP or some of them, and the key of each row."""
    code = np.zeros(rows.num_rows, dtype=np.int64)
    for name in key:
        column = rows[name]
        if name == C.SLICE_VALUES:
            lists = in_one_piece(column)
            values = lists.flatten().dictionary_encode(null_encoding="encode").indices.cast(pa.string())
            column = pc.binary_join(list_column(lengths_of(lists), values), to_texts([","])[0])
        own = to_numpy(column) if pa.types.is_integer(column.type) else _order_of(column)
        code = code * (own.max(initial=0) + 1) + own
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return first, group


def _order_of(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return the position of each value among the distinct values in their order."""
    return to_numpy(pc.rank(column, tiebreaker="dense")).astype(np.int64) - 1

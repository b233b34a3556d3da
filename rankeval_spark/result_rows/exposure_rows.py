"""Rows of ``metrics`` for measures of all lists: how often each item is shown, and rates per group of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import GROUP, key_columns, rows_by_key
from rankeval_spark.engine.aggregation.parity_sums import SUMS, is_disparity
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.buckets import GROUP as GROUP_OF_USERS, N_GROUPS
from rankeval_spark.measures import Rates
from rankeval_spark.measures.required_facts import BY_POPULARITY
from rankeval_spark.result_rows.histograms import COUNTS, EVERYONE, Entries, Histograms
from rankeval_spark.result_rows.jackknife_rows import (
    ALL_USERS,
    SLICE,
    MeasuredSlices,
    SlicesOfUsers,
    first_order_share,
    jackknife_columns,
    slices_in,
)
from rankeval_spark.result_rows.metric_rows import metric_batch
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.request import ReportedSlices
    from rankeval_spark.measures import Measure

ENTRY_TYPE: Final = (
    f"{C.MODEL_ID} string, slice_index int, {C.SLICE_VALUES} array<string>, {C.K} int, without bigint, times bigint, "
    + ", ".join(f"{name} double" for name in COUNTS)
)
"""Columns of entries: of a model, slice, slice values and cutoff."""

ENTRIES_AT_ONCE: Final = 1_000_000  # entries of histograms that are finished in one go; each is copied up to 21 times


def to_entry_rows(entries: Entries, keys: Mapping[str, pa.Array], *, k: int) -> pa.RecordBatch:
    """Build rows of :data:`ENTRY_TYPE`; ``keys`` are model, ``slice_index`` and ``slice_values`` of each cell."""
    cell = to_arrow(entries.cell)
    columns = {name: pc.take(column, cell) for name, column in keys.items()}
    columns[C.K] = to_arrow(np.full(len(cell), k, dtype=np.int32))
    columns |= {name: to_arrow(getattr(entries, name)) for name in ("without", "times", *COUNTS)}
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class ExposureRows:
    """Computes rows of ``metrics`` from histograms on the workers."""

    measures: tuple[Measure, ...]
    reported: ReportedSlices
    models: tuple[str, ...] = ()

    def no_lists(self, slices: SlicesOfUsers = ALL_USERS) -> pa.Table:
        """Build entries that add no item and no list: a model without any list has its rows too."""
        ks = dict.fromkeys(one.k for one in self.measures)
        cells = [(index, (model, tuple(values), k)) for index, values in slices for k in ks for model in self.models]
        keys = [key for _, key in cells]
        nothing = to_arrow(np.zeros(len(keys)))
        columns = dict(zip(GROUP, key_columns(0, keys), strict=True))
        columns["slice_index"] = pa.array([index for index, _ in cells], pa.int32())
        columns["without"] = to_arrow(np.full(len(keys), EVERYONE, dtype=np.int64))
        columns["times"] = to_arrow(np.ones(len(keys), dtype=np.int64))  # of an item, if there were one
        return pa.Table.from_pydict({**columns, **dict.fromkeys(COUNTS, nothing)})

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build the rows of each measure from entries with ``catalogue_size``: all of each slice that is there.

        In a slice where one model has lists, all have rows.
        """
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given)
        absent = self.no_lists(slices_in(table))
        size = pa.array(
            [table["catalogue_size"][0].as_py()] * absent.num_rows, table.schema.field("catalogue_size").type
        )
        absent = absent.append_column("catalogue_size", size).select(table.column_names).cast(table.schema)
        table = pa.concat_tables([table, absent])
        for k in dict.fromkeys(measure.k for measure in self.measures):
            measures = [measure for measure in self.measures if measure.k == k]
            for keys, entries, row in _parts(table.filter(pc.equal(table[C.K], k))):
                histograms = Histograms.of(keys, entries, row)
                slices = MeasuredSlices(keys, histograms.n_users, histograms.n_lists)
                for measure in measures:
                    values = measure.entry.values(histograms.exposure, measure.options).reshape(-1, N_GROUPS + 1)
                    shrinkage = first_order_share(measure, histograms.of_everyone, values[:, 0])
                    yield metric_batch(jackknife_columns(self.reported, measure, slices, values, shrinkage))


def _parts(entries: pa.Table) -> Iterator[tuple[pa.RecordBatch, pa.Table, np.ndarray]]:
    """Cut entries of a cutoff into some slices at a time: a row for each, their entries, and the row of each entry."""
    first, row = rows_by_key(entries, SLICE)
    order = np.argsort(row, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(row)))
    start, names = 0, (*SLICE, C.K, "catalogue_size")
    while start < len(first):
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + ENTRIES_AT_ONCE, side="right")) - 1)
        chosen = order[ends[start] : ends[end]]
        keys = {name: pc.take(in_one_piece(entries[name]), to_arrow(first[start:end])) for name in names}
        yield pa.RecordBatch.from_pydict(keys), pc.take(entries, to_arrow(chosen)), row[chosen] - start
        start = end


@dataclass(frozen=True)
class ParityRows:
    """Computes rows of ``metrics`` on the workers from sums per group of users."""

    measures: tuple[Measure, ...]
    reported: ReportedSlices
    models: tuple[str, ...] = ()

    def no_lists(self, slices: SlicesOfUsers = ALL_USERS) -> pa.Table:
        """Build sums of no list: a model without any list has its rows too."""
        cells = [(index, (model, tuple(values), C.WHOLE_LIST)) for index, values in slices for model in self.models]
        keys = dict(zip(SLICE, key_columns(0, [key for _, key in cells]), strict=False))
        keys["slice_index"] = pa.array([index for index, _ in cells], pa.int32())
        sums = [[0.0] * sum(map(_n_sums, self.measures))] * len(cells)
        counts = dict.fromkeys(("n_users", C.N_LISTS), pa.array([0] * len(cells), pa.int64()))
        group = pa.array([0] * len(cells), pa.int32())
        return pa.Table.from_pydict(
            {**keys, GROUP_OF_USERS: group, **counts, SUMS: pa.array(sums, pa.list_(pa.float64()))}
        )

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build the rows of each measure from all rows of ``parity_sums.PARTIAL`` that the slices have.

        In a slice where one model has lists, all have rows.
        """
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given)
        absent = self.no_lists(slices_in(table)).select(table.column_names).cast(table.schema)
        table = pa.concat_tables([table, absent])
        first, row = rows_by_key(table, SLICE)
        keys = pa.RecordBatch.from_pydict({name: pc.take(in_one_piece(table[name]), to_arrow(first)) for name in SLICE})
        place = row * N_GROUPS + to_numpy(table[GROUP_OF_USERS])
        n_users, n_lists = (_summed(to_numpy(table[name]), place, len(first)) for name in ("n_users", C.N_LISTS))
        sums = _summed(to_numpy(in_one_piece(table[SUMS]).flatten()).reshape(len(place), -1), place, len(first))
        everyone = sums.sum(axis=1, keepdims=True)
        without = np.concatenate([everyone, everyone - sums], axis=1)
        ends = np.cumsum([_n_sums(measure) for measure in self.measures])
        slices = MeasuredSlices(keys, n_users, n_lists.sum(axis=1))
        for measure, own in zip(self.measures, np.split(without, ends[:-1], axis=2), strict=True):
            taken, possible = np.split(own.reshape(-1, own.shape[2]), 2, axis=1)
            values = measure.entry.values(Rates(taken, possible), measure.options).reshape(-1, 1 + N_GROUPS)
            shrinkage: np.ndarray | float = 1.0
            if not is_disparity(measure):  # near 0 the error of a spread of rates is no deviation, as of a root
                level = self.reported.confidence
                spread = intervals.delete_a_group(values[:, 0], values[:, 1:], n_users, level, (0.0, np.inf))
                shrinkage = np.where(spread.low > 0, 1.0, np.nan)
            yield metric_batch(jackknife_columns(self.reported, measure, slices, values, shrinkage))


def _n_sums(measure: Measure) -> int:
    """Return how many sums a measure has: taken and possible, for a category and all items or for each group."""
    return 4 if is_disparity(measure) else 2 * len(BY_POPULARITY)


def _summed(values: np.ndarray, place: np.ndarray, n_rows: int) -> np.ndarray:
    """Add values up by row and group of users: shape (n_rows, N_GROUPS, ...)."""
    found = np.zeros((n_rows * N_GROUPS, *values.shape[1:]), dtype=values.dtype)
    np.add.at(found, place, values)
    return found.reshape(n_rows, N_GROUPS, *values.shape[1:])

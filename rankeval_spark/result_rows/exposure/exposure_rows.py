"""Rows of ``metrics`` of the measures that are functions of how often each item is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import GROUP, key_columns, rows_by_key
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow
from rankeval_spark.engine.batch.user_hashes import N_GROUPS
from rankeval_spark.result_rows.exposure.first_order import first_order_share
from rankeval_spark.result_rows.exposure.histograms import COUNTS, EVERYONE, Entries, Histograms
from rankeval_spark.result_rows.exposure.jackknife_rows import (
    ALL_USERS,
    SLICE,
    JackknifeRows,
    MeasuredSlices,
    SlicesOfUsers,
    slices_in,
)
from rankeval_spark.result_rows.metric_rows import metric_batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.measures import Measure

ENTRY_TYPE: Final = (
    f"{C.MODEL_ID} string, slice_index int, {C.SLICE_VALUES} array<string>, {C.K} int, without bigint, times bigint, "
    + ", ".join(f"{name} double" for name in COUNTS)
)
"""Columns of entries: of a model, slice, slice values and cutoff."""

ENTRIES_AT_ONCE: Final = 1_000_000
"""Entries of histograms that are finished in one go; each is copied up to 21 times."""


def to_entry_rows(entries: Entries, keys: Mapping[str, pa.Array], *, k: int) -> pa.RecordBatch:
    """Write the entries at a cutoff as rows of :data:`ENTRY_TYPE`.

    Parameters
    ----------
    keys : mapping of str to pa.Array
        ``model_id``, ``slice_index`` and ``slice_values`` of each cell.
    """
    cell = to_arrow(entries.cell)
    columns = {name: pc.take(column, cell) for name, column in keys.items()}
    columns[C.K] = to_arrow(np.full(len(cell), k, dtype=np.int32))
    columns |= {name: to_arrow(getattr(entries, name)) for name in ("without", "times", *COUNTS)}
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class ExposureRows:
    """What the workers need to turn histograms into rows of ``metrics``."""

    measures: tuple[Measure, ...]
    rows: JackknifeRows
    models: tuple[str, ...] = ()

    def no_lists(self, slices: SlicesOfUsers = ALL_USERS) -> pa.Table:
        """Make entries that add no item and no list: a model without any list has its rows too."""
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
        """Make the rows of each measure, of entries with ``catalogue_size``: all of each slice that is there.

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
                    yield metric_batch(self.rows.columns(measure, slices, values, shrinkage))


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

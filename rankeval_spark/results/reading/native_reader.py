"""Tables of a results root read by this process, as Arrow; see :class:`table_readers.Reader`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.results.storage import local_tables
from rankeval_spark.results.storage.file_store import LocalStorage

if TYPE_CHECKING:
    from datetime import date

    import pyarrow.dataset as ds

    from rankeval_spark.results.reading.table_readers import Requested
    from rankeval_spark.results.storage.row_filters import Filters


class NativeReader:
    """Reads a root on a local disk without Spark: scans are datasets of Arrow, frames its tables."""

    def __init__(self, root: str) -> None:
        self._storage = LocalStorage(root)

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> ds.Dataset:
        """Plan to read rows of a table."""
        return local_tables.scan(self._storage, table, version=version, where=where)

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        """Name the evaluations and dates that a table has rows of."""
        return local_tables.nights_of(self._storage, table, version=version)

    def names(self, scan: ds.Dataset) -> Sequence[str]:
        """Name the columns of a scan."""
        names: list[str] = scan.schema.names
        return names

    def frame(self, scan: ds.Dataset) -> pa.Table:
        """Read the rows of a scan."""
        return scan.to_table()

    def arrow(self, scan: ds.Dataset, columns: Sequence[str] | None = None) -> pa.Table:
        """Read some columns of a scan."""
        return scan.to_table(columns=list(columns) if columns else None)

    def user_values(
        self, user_metrics: ds.Dataset, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> pa.Table:
        """Make a row for each list and requested measure."""
        columns = sorted({one.column for one in requested})
        wide = user_metrics.to_table(columns=[*names, *columns])
        parts = [_values(wide, one, runs, names) for one, runs in requested.items()]
        return pa.concat_tables(parts or [_values(wide.slice(0, 0), None, (), names)])


def _values(wide: pa.Table, of: Requested | None, runs: Collection[str], names: Sequence[str]) -> pa.Table:
    """Take one measure of the runs that were requested to compute it; no rows, but all columns, without a measure."""
    if of is not None:
        is_own = pc.and_(
            pc.equal(wide[C.K], of.k), pc.is_in(wide[C.RUN_ID], value_set=pa.array(sorted(runs), pa.string()))
        )
        wide = wide.filter(is_own)
    values = pa.nulls(0, pa.float64()) if of is None else wide[of.column]
    label = pa.repeat("" if of is None else of.measure, wide.num_rows)
    key = [name for name in names if name != C.K]
    return pa.Table.from_arrays(
        [*(wide[name] for name in key), label, wide[C.K], values], [*key, C.MEASURE, C.K, C.VALUE]
    )

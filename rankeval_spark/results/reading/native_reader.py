"""Tables of a results root read by this process, as Arrow; see :class:`table_readers.Reader`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.results.storage import local_tables
from rankeval_spark.results.storage.file_store import LocalStorage
from rankeval_spark.results.storage.requested_rows import Requested

if TYPE_CHECKING:
    from datetime import date

    import pyarrow.dataset as ds

    from rankeval_spark.results.storage.requested_rows import Filters, Order


class NativeReader:
    """Reads a root on a local disk without Spark: scans are datasets of Arrow, frames its tables."""

    def __init__(self, root: str) -> None:
        self._storage = LocalStorage(root)

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> ds.Dataset:
        """Plan to read rows of a table."""
        return local_tables.scan(self._storage, table, version=version, where=where)

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table as it is now."""
        return [field["name"] for field in local_tables.schema_of(self._storage, table)["fields"]]

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        """Name the evaluations and dates that a table has rows of."""
        return local_tables.nights_of(self._storage, table, version=version)

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
        wanted = requested or {Requested("", 0, C.N_HITS): ()}  # no row, but all columns
        columns = sorted({one.column for one in wanted if one.column is not None})
        wide = user_metrics.to_table(columns=[*names, *columns])
        return pa.concat_tables([_values(wide, one, runs, names) for one, runs in wanted.items()])

    def users(self, user_metrics: ds.Dataset, column: str) -> pa.Table:
        """Make a row a user."""
        counts = [C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS]
        lists = user_metrics.to_table(columns=[C.USER_ID, column, *counts])
        how = [(column, "mean"), *((name, "max" if name == C.N_RELEVANT else "sum") for name in counts)]
        rows = lists.group_by(C.USER_ID).aggregate(how)
        return pa.table(
            [rows[C.USER_ID], *(rows[f"{name}_{function}"] for name, function in how)], [C.USER_ID, C.VALUE, *counts]
        )

    def paired(self, one: pa.Table, other: pa.Table) -> pa.Table:
        """Join the users of two sides."""
        ids = pc.unique(pa.chunked_array([*one[C.USER_ID].chunks, *other[C.USER_ID].chunks], pa.string()))
        left, right = (side.take(pc.index_in(ids, value_set=side[C.USER_ID].combine_chunks())) for side in (one, other))
        own = {name: left[name] for name in left.column_names if name != C.USER_ID}
        others = {f"other_{name}": right[name] for name in right.column_names if name != C.USER_ID}
        rows = pa.table({C.USER_ID: ids, **own, **others})
        return rows.append_column("delta", pc.subtract(rows[C.VALUE], rows[f"other_{C.VALUE}"]))

    def with_value(self, frame: pa.Table) -> pa.Table:
        """Leave out the rows without a value."""
        return frame.filter(pc.is_valid(frame[C.VALUE]))

    def with_texts(self, frame: pa.Table, name: str, texts: Mapping[str, str], *, key: str) -> pa.Table:
        """Add a column of texts."""
        places = pc.index_in(frame[key], value_set=pa.array(texts.keys(), pa.string()))
        return frame.append_column(name, pa.array(texts.values(), pa.string()).take(places.combine_chunks()))

    def ordered(self, frame: pa.Table, *, columns: Sequence[str], order: Order, n: int | None = None) -> pa.Table:
        """Sort rows, and keep the first of them."""
        rows = frame.sort_by([(name, f"{way}ending") for name, way in order]).select(list(columns))
        return rows if n is None else rows.slice(0, n)

    def of_arrow(self, rows: pa.Table) -> pa.Table:
        """Return the rows."""
        return rows


def _values(wide: pa.Table, of: Requested, runs: Collection[str], names: Sequence[str]) -> pa.Table:
    """Take one measure of the runs that were requested to compute it."""
    is_of_runs = pc.is_in(wide[C.RUN_ID], value_set=pa.array(sorted(runs), pa.string()))
    own = wide.filter(pc.and_(pc.equal(wide[C.K], of.k), is_of_runs))
    key = [name for name in names if name != C.K]
    values = [pa.repeat(of.measure, own.num_rows), own[C.K], own[of.column].cast(pa.float64())]
    return pa.Table.from_arrays([*(own[name] for name in key), *values], [*key, C.MEASURE, C.K, C.VALUE])

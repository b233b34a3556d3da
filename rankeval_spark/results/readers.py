"""Readers of a results root: by Arrow, as all commands read, or by Spark where a session is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import warn_user
from rankeval_spark.results import delta_log, table_scans
from rankeval_spark.results.roots import storage_at
from rankeval_spark.results.table_scans import DamagedResultsError, Requested, delta_table

if TYPE_CHECKING:
    from rankeval_spark.results.storage import Storage
    from rankeval_spark.results.table_scans import Filters, Order

Scan = TypeVar("Scan")
Frame = TypeVar("Frame")


class Reader(Protocol[Scan, Frame]):
    """Reads tables of one root: a scan is a plan (a dataset or a DataFrame), a frame what a user gets of it."""

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> Scan:
        """Return a plan to read a table at a version, by default the newest.

        Raises ConfigError for an unknown table or column, and for files outside the allowed folders.
        """

    def frame(self, scan: Scan) -> Frame:
        """Return a scan as a user gets it."""

    def user_values(
        self, user_metrics: Scan, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> Frame:
        """Return the long view of ``user_metrics``: a row per list and requested measure.

        ``requested`` maps measures to the runs that computed them. ``names`` are the columns that are kept, the cutoff
        last; the measure comes before it and the value after it.
        """

    def users(self, user_metrics: Scan, column: str) -> Frame:
        """Return a row per user: ``user_id``, mean ``value``, ``n_relevant``, sums of the other counts over lists."""

    def paired(self, one: Frame, other: Frame) -> Frame:
        """Outer join two frames of :meth:`users` by user: columns of the second as ``other_...``, and ``delta``."""

    def with_texts(self, frame: Frame, name: str, texts: Mapping[str, str], *, key: str) -> Frame:
        """Add the text that belongs to each value of the column ``key``; NULL without one."""

    def ordered(self, frame: Frame, *, columns: Sequence[str], order: Order, n: int | None = None) -> Frame:
        """Sort rows, and select columns; with ``n`` only of the first rows that have a value."""

    def from_arrow(self, rows: pa.Table) -> Frame:
        """Return a few Arrow rows as a user gets them."""


class ArrowReader:
    """Reader in this process: scans are datasets of Arrow, frames its tables."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> ds.Dataset:
        return table_scans.scan(self._storage, table, version=version, where=where)

    def readable_events(self, where: Filters = ()) -> ds.Dataset:
        """Return a plan to read events for display; damaged files are left out with a warning, if others stay."""
        try:
            return self.scan(schemas.RUNS.name, where=where)
        except DamagedResultsError as error:
            readable = table_scans.scan(self._storage, schemas.RUNS.name, where=where, without=error.files)
            if not readable.files:
                raise
            for fault in error.faults:
                warn_user(f"events that cannot be read are left out: {fault}")
            return readable

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        """Return the evaluations and dates that a table has rows of."""
        nights = delta_table(self._storage, table, version).partitions()  # from the log
        return {(night[C.EVALUATION], date.fromisoformat(night[C.EVALUATION_DATE])) for night in nights}

    def frame(self, scan: ds.Dataset) -> pa.Table:
        return scan.to_table()

    def arrow(self, scan: ds.Dataset, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a few rows, all columns where none is named; times know their zone."""
        return scan.to_table(columns=list(columns) if columns else None)

    def user_values(
        self, user_metrics: ds.Dataset, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> pa.Table:
        wanted = requested or {Requested("", 0, C.N_HITS): ()}  # no row, but all columns
        columns = sorted({fact.column for fact in wanted if fact.column is not None})
        wide = user_metrics.to_table(columns=[*names, *columns])
        key, parts = [name for name in names if name != C.K], []
        for fact, runs in wanted.items():
            is_of_runs = pc.is_in(wide[C.RUN_ID], value_set=pa.array(sorted(runs), pa.string()))
            own = wide.filter(pc.and_(pc.equal(wide[C.K], fact.k), is_of_runs))
            values = [pa.repeat(fact.measure, own.num_rows), own[C.K], own[fact.column].cast(pa.float64())]
            parts.append(pa.Table.from_arrays([*(own[name] for name in key), *values], [*key, C.MEASURE, C.K, C.VALUE]))
        return pa.concat_tables(parts)

    def users(self, user_metrics: ds.Dataset, column: str) -> pa.Table:
        counts = [C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS]
        lists = user_metrics.to_table(columns=[C.USER_ID, column, *counts])
        how = [(column, "mean"), *((name, "max" if name == C.N_RELEVANT else "sum") for name in counts)]
        rows = lists.group_by(C.USER_ID).aggregate(how)
        values = (rows[f"{name}_{function}"] for name, function in how)
        return pa.table([rows[C.USER_ID], *values], [C.USER_ID, C.VALUE, *counts])

    def paired(self, one: pa.Table, other: pa.Table) -> pa.Table:
        """Join two tables by user, keeping the users of both: see :meth:`Reader.paired`."""
        ids = pc.unique(pa.chunked_array([*one[C.USER_ID].chunks, *other[C.USER_ID].chunks], pa.string()))
        left, right = (side.take(pc.index_in(ids, value_set=side[C.USER_ID].combine_chunks())) for side in (one, other))
        own = {name: left[name] for name in left.column_names if name != C.USER_ID}
        others = {f"other_{name}": right[name] for name in right.column_names if name != C.USER_ID}
        rows = pa.table({C.USER_ID: ids, **own, **others})
        return rows.append_column("delta", pc.subtract(rows[C.VALUE], rows[f"other_{C.VALUE}"]))

    def with_texts(self, frame: pa.Table, name: str, texts: Mapping[str, str], *, key: str) -> pa.Table:
        places = pc.index_in(frame[key], value_set=pa.array(texts.keys(), pa.string()))
        return frame.append_column(name, pa.array(texts.values(), pa.string()).take(places.combine_chunks()))

    def ordered(self, frame: pa.Table, *, columns: Sequence[str], order: Order, n: int | None = None) -> pa.Table:
        known = frame if n is None else frame.filter(pc.is_valid(frame[C.VALUE]))
        rows = known.sort_by([(name, f"{way}ending") for name, way in order]).select(list(columns))
        return rows if n is None else rows.slice(0, n)

    def from_arrow(self, rows: pa.Table) -> pa.Table:
        return rows


def require_whole(storage: Storage, versions: Mapping[str, int], *, is_opened_here: bool = True) -> None:
    """Raise LostCommitsError if published versions are lost; in an object store this is checked as tables open here."""
    if not (is_opened_here and storage.is_mirror):
        for table, version in versions.items():
            delta_log.require_whole(storage, table, version, published=version)


def arrow_reader(root: str) -> ArrowReader:
    """Return the reader of a root in this process."""
    return ArrowReader(storage_at(root))

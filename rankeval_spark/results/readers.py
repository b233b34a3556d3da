"""Readers of a results root: Arrow in this process, or Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.allowed_folders import scheme_of
from rankeval_spark.errors import ConfigError, Fault, warn_user
from rankeval_spark.results import delta_log, local_tables
from rankeval_spark.results.file_store import LocalStorage, normalise, reachable_storage
from rankeval_spark.results.local_tables import DamagedResultsError, Requested

if TYPE_CHECKING:
    from datetime import date

    import pyarrow.dataset as ds
    from pyspark.sql import SparkSession

    from rankeval_spark.results.local_tables import Filters, Order

Scan = TypeVar("Scan")
Frame = TypeVar("Frame")


class Reader(Protocol[Scan, Frame]):
    """Reads tables of one root: a scan is a plan (a dataset or a DataFrame), a frame what a user gets of it."""

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> Scan:
        """Return a plan to read a table at a version, by default the newest; declared columns that it lacks are NULL.

        Raises ConfigError for an unknown table or column, and for files outside the allowed folders.
        """

    def readable_events(self, where: Filters = ()) -> Scan:
        """Return a plan to read events for display; damaged files are left out with a warning, if others stay."""

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table as it is now; :meth:`scan` also has those that it lacks, as NULL."""

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        """Return the evaluations and dates that a table has rows of."""

    def frame(self, scan: Scan) -> Frame:
        """Return a scan as a user gets it."""

    def arrow(self, scan: Scan, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a few rows, all columns where none is named; times know their zone."""

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
        """Join two frames of :meth:`users` by user, the second as ``other_...``, with ``delta``."""

    def with_texts(self, frame: Frame, name: str, texts: Mapping[str, str], *, key: str) -> Frame:
        """Add the text that belongs to each value of the column ``key``; NULL without one."""

    def ordered(self, frame: Frame, *, columns: Sequence[str], order: Order, n: int | None = None) -> Frame:
        """Sort rows, and select columns; with ``n`` only of the first rows that have a value."""

    def of_arrow(self, rows: pa.Table) -> Frame:
        """Return a few Arrow rows as a user gets them."""


def is_native(root: str) -> bool:
    """Return whether this process reads and writes a root: a local folder whose name deltalake can open."""
    location = normalise(root)
    return not scheme_of(location) and local_tables.are_at(LocalStorage(location))


def require_whole(spark: SparkSession | None, root: str, versions: Mapping[str, int]) -> None:
    """Raise LostCommitsError if published versions are lost; not for stores that Spark Connect does not reach."""
    if storage := reachable_storage(spark, normalise(root)):
        for table, version in versions.items():
            delta_log.require_whole(storage, table, version, published=version)


def reader_of(spark: SparkSession | None, root: str) -> Reader[Any, Any]:
    """Return the reader of small tables: this process if it can; ConfigError if Spark is needed without a session."""
    if is_native(root):
        return NativeReader(normalise(root))
    if spark is None:
        found = f"{root!r}, which only Spark can read"
        fix = "give a session too: Results(spark, root)"
        raise ConfigError(Fault("results root", found, "a local folder without any of [ ] \\ ^ | %XX in its path", fix))
    return spark_reader(spark, root)


def spark_reader(spark: SparkSession, root: str) -> Reader[Any, Any]:
    """Return the reader by Spark, which reads a root in any store."""
    from rankeval_spark.results.spark_tables import SparkReader  # noqa: PLC0415 - imports pyspark

    return SparkReader(spark, normalise(root))


class NativeReader:
    """Reads a root on a local disk without Spark: scans are datasets of Arrow, frames its tables."""

    def __init__(self, root: str) -> None:
        self._storage = LocalStorage(root)

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> ds.Dataset:
        return local_tables.scan(self._storage, table, version=version, where=where)

    def readable_events(self, where: Filters = ()) -> ds.Dataset:
        table = schemas.RUNS.name
        try:
            return self.scan(table, where=where)
        except DamagedResultsError as error:
            readable = local_tables.scan(self._storage, table, where=where, without=error.files)
            if not readable.files:
                raise
            for fault in error.faults:
                warn_user(f"events that cannot be read are left out: {fault}")
            return readable

    def columns(self, table: str) -> list[str]:
        return [field["name"] for field in local_tables.schema_of(self._storage, table)["fields"]]

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        return local_tables.nights_of(self._storage, table, version=version)

    def frame(self, scan: ds.Dataset) -> pa.Table:
        return scan.to_table()

    def arrow(self, scan: ds.Dataset, columns: Sequence[str] | None = None) -> pa.Table:
        return scan.to_table(columns=list(columns) if columns else None)

    def user_values(
        self, user_metrics: ds.Dataset, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> pa.Table:
        wanted = requested or {Requested("", 0, C.N_HITS): ()}  # no row, but all columns
        columns = sorted({fact.column for fact in wanted if fact.column is not None})
        wide = user_metrics.to_table(columns=[*names, *columns])
        return pa.concat_tables([_values(wide, fact, runs, names) for fact, runs in wanted.items()])

    def users(self, user_metrics: ds.Dataset, column: str) -> pa.Table:
        counts = [C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS]
        lists = user_metrics.to_table(columns=[C.USER_ID, column, *counts])
        how = [(column, "mean"), *((name, "max" if name == C.N_RELEVANT else "sum") for name in counts)]
        rows = lists.group_by(C.USER_ID).aggregate(how)
        return pa.table(
            [rows[C.USER_ID], *(rows[f"{name}_{function}"] for name, function in how)], [C.USER_ID, C.VALUE, *counts]
        )

    def paired(self, one: pa.Table, other: pa.Table) -> pa.Table:
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

    def of_arrow(self, rows: pa.Table) -> pa.Table:
        return rows


def _values(wide: pa.Table, of: Requested, runs: Collection[str], names: Sequence[str]) -> pa.Table:
    """Return the values of one measure of the runs that computed it."""
    is_of_runs = pc.is_in(wide[C.RUN_ID], value_set=pa.array(sorted(runs), pa.string()))
    own = wide.filter(pc.and_(pc.equal(wide[C.K], of.k), is_of_runs))
    key = [name for name in names if name != C.K]
    values = [pa.repeat(of.measure, own.num_rows), own[C.K], own[of.column].cast(pa.float64())]
    return pa.Table.from_arrays([*(own[name] for name in key), *values], [*key, C.MEASURE, C.K, C.VALUE])

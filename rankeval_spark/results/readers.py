"""Readers of a results root: ``local_tables.NativeReader`` in this process, or ``spark_tables.SparkReader``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results import delta_log, local_tables
from rankeval_spark.results.file_store import LocalStorage, normalise
from rankeval_spark.results.stores import open_native, reachable_storage

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rankeval_spark.results.local_tables import Filters, Order, Requested

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
        """Return the column names of a table as it is now; :meth:`scan` also has those that it lacks, as NULL."""

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
        """Outer join two frames of :meth:`users` by user: columns of the second as ``other_...``, and ``delta``."""

    def with_texts(self, frame: Frame, name: str, texts: Mapping[str, str], *, key: str) -> Frame:
        """Add the text that belongs to each value of the column ``key``; NULL without one."""

    def ordered(self, frame: Frame, *, columns: Sequence[str], order: Order, n: int | None = None) -> Frame:
        """Sort rows, and select columns; with ``n`` only of the first rows that have a value."""

    def from_arrow(self, rows: pa.Table) -> Frame:
        """Return a few Arrow rows as a user gets them."""


def is_native(root: str) -> bool:
    """Return whether this process reads and writes a root: an object store, or a folder that deltalake can open."""
    storage = open_native(normalise(root))
    return storage is not None and local_tables.are_at(storage)


def require_whole(spark: SparkSession | None, root: str, versions: Mapping[str, int]) -> None:
    """Raise LostCommitsError if published versions are lost; not for stores that Spark Connect does not reach."""
    storage = reachable_storage(spark, normalise(root))
    if spark is None and isinstance(storage, LocalStorage) and storage.is_mirror:
        return  # each table is checked when it is opened
    if storage is not None:
        for table, version in versions.items():
            delta_log.require_whole(storage, table, version, published=version)


def reader_of(spark: SparkSession | None, root: str) -> Reader[Any, Any]:
    """Return the reader of small tables: this process if it can; ConfigError if Spark is needed without a session."""
    storage = open_native(normalise(root))
    if storage is not None and local_tables.are_at(storage):
        return local_tables.NativeReader(storage)
    if spark is None:
        found = f"{root!r}, which only Spark can read"
        fix = "give a session too: Results(spark, root)"
        raise ConfigError(Fault("results root", found, "a local folder without any of [ ] \\ ^ | %XX in its path", fix))
    return spark_reader(spark, root)


def spark_reader(spark: SparkSession, root: str) -> Reader[Any, Any]:
    """Return the reader by Spark, which reads a root in any store."""
    from rankeval_spark.results.spark_tables import SparkReader  # noqa: PLC0415 - imports pyspark

    # Hadoop's name of S3; the canonical one is that of all others.
    return SparkReader(spark, normalise(root).replace("s3://", "s3a://", 1))

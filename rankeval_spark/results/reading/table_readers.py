"""Who reads the tables of a results root: this process, or Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results.reading.native_reader import NativeReader
from rankeval_spark.results.storage import delta_log, local_tables
from rankeval_spark.results.storage.file_store import LocalStorage, normalise, scheme_of

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage.requested_rows import Filters, Order, Requested

Scan = TypeVar("Scan")
Frame = TypeVar("Frame")


class Reader(Protocol[Scan, Frame]):
    """Reads tables of one results root.

    A scan is a plan to read rows, which takes conditions and columns: a dataset of Arrow, or a DataFrame. A frame is
    what a user gets: a table of Arrow, or a DataFrame.
    """

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> Scan:
        """Plan to read rows of a table, at one version or as it is now, with all declared columns.

        A column that a table of an older version lacks is NULL.

        Raises
        ------
        ConfigError
            There is no such table, its log names a file outside the folders that the environment allows, or a condition
            is about a column that it does not have.
        """
        ...

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table as it is now; :meth:`scan` also has those that it lacks, as NULL."""
        ...

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        """Name the evaluations and dates that a table has rows of."""
        ...

    def frame(self, scan: Scan) -> Frame:
        """Turn a scan into what a user gets."""
        ...

    def arrow(self, scan: Scan, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a few rows, all columns where none is named; times know their zone."""
        ...

    def user_values(
        self, user_metrics: Scan, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> Frame:
        """Make a row for each list and measure of the long view of ``user_metrics``.

        Parameters
        ----------
        user_metrics : Scan
            Rows of this table.
        requested : mapping
            Measures, with the runs that computed them.
        names : sequence of str
            Columns that are kept, the cutoff last; the measure comes before it and the value after it.
        """
        ...

    def users(self, user_metrics: Scan, column: str) -> Frame:
        """Make a row a user: ``user_id``, the mean ``value`` of a column over their lists, and the counts.

        ``n_relevant`` is the same for all lists of a user; ``n_recommended`` and ``n_hits`` are sums over lists.
        """
        ...

    def paired(self, one: Frame, other: Frame) -> Frame:
        """Join two frames of :meth:`users` by user; columns of the other are named ``other_...``.

        A user of one side alone has NULL on the other; ``delta`` is the value less the other value.
        """
        ...

    def with_value(self, frame: Frame) -> Frame:
        """Leave out the rows without a value."""
        ...

    def with_texts(self, frame: Frame, name: str, texts: Mapping[str, str], *, key: str) -> Frame:
        """Add a column of the text that belongs to each value of the column ``key``; NULL where there is none."""
        ...

    def ordered(self, frame: Frame, *, columns: Sequence[str], order: Order, n: int | None = None) -> Frame:
        """Sort rows, keep the first ``n`` where it is given, and take some columns."""
        ...

    def of_arrow(self, rows: pa.Table) -> Frame:
        """Turn a few rows that are here into what a user gets."""
        ...


def is_native(root: str) -> bool:
    """Whether this process reads and writes a root without Spark: a local folder whose name its library can open."""
    location = normalise(root)
    return not scheme_of(location) and local_tables.are_at(LocalStorage(location))


def require_whole(root: str, versions: Mapping[str, int]) -> None:
    """Refuse a root on a disk of this machine if published versions of its tables are lost.

    Other stores have a commit whole or not at all, and Spark refuses a version that is not there.

    Raises
    ------
    LostCommitsError
        The first of them.
    """
    location = normalise(root)
    for table, version in versions.items() if not scheme_of(location) else ():
        delta_log.require_whole(LocalStorage(location), table, version, published=version)


def reader_of(spark: SparkSession | None, root: str) -> Reader[Any, Any]:
    """Choose who reads a few rows of a root: always this process where it can.

    Raises
    ------
    ConfigError
        Spark is needed and there is no session.
    """
    if is_native(root):
        return NativeReader(normalise(root))
    if spark is None:
        found = f"{root!r}, which only Spark can read"
        fix = "give a session too: Results(spark, root)"
        raise ConfigError(Fault("results root", found, "a local folder without any of [ ] \\ ^ | %XX in its path", fix))
    return spark_reader(spark, root)


def spark_reader(spark: SparkSession, root: str) -> Reader[Any, Any]:
    """Let Spark read a root, wherever it is."""
    from rankeval_spark.results.reading.spark_reader import SparkReader  # noqa: PLC0415 - imports pyspark

    return SparkReader(spark, normalise(root))

"""Tables of a results root read by Spark, as DataFrames; see :class:`table_readers.Reader`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results import delta_log, spark_tables
from rankeval_spark.results.file_store import inside, reachable_storage
from rankeval_spark.results.local_tables import require_columns

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

    from rankeval_spark.results.local_tables import Filters, Order, Requested


class SparkReader:
    """Reader by Spark, in any store: scans and frames are DataFrames. Spark Connect sessions work too."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> DataFrame:
        """Plan to read rows of a table."""
        if table == schemas.RUNS.name and (storage := reachable_storage(self._spark, self._root)):
            delta_log.require_whole(storage, table)  # of the others, the published versions are looked at
        reader = self._spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        try:
            spark_tables.refuse_log(self._root, table)
            frame = reader.load(inside(self._root, table))
            spark_tables.refuse_outside(frame, table)
            frame = spark_tables.declared_first(table, frame)  # resolves now: a missing table is an error here
        except AnalysisException as error:
            raise ConfigError(
                Fault("results root", f"{self._root!r} (no table {table})", "the results of an earlier run")
            ) from error
        except Py4JJavaError as error:
            if "DATA_SOURCE_NOT_FOUND" not in str(error):
                raise
            fix = "make it by rankeval_spark.build_session(), which adds the jars and settings"
            raise ConfigError(Fault("Results(spark=)", "a session without Delta", "one with it", fix)) from None
        require_columns(table, where, frame.columns)
        return frame.where(spark_tables.row_condition(where)) if where else frame

    def readable_events(self, where: Filters = ()) -> DataFrame:
        """Plan to read all events; Spark finds damaged files when it reads them."""
        return self.scan(schemas.RUNS.name, where=where)

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table as it is now."""
        return self._spark.read.format("delta").load(inside(self._root, table)).columns

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        """Return the evaluations and dates of a table."""
        nights = self.scan(table, version=version).select(C.EVALUATION, C.EVALUATION_DATE).distinct()
        return {(night[C.EVALUATION], night[C.EVALUATION_DATE]) for night in nights.collect()}

    def frame(self, scan: DataFrame) -> DataFrame:
        """Return the scan, which Spark reads when it is used."""
        return scan

    def arrow(self, scan: DataFrame, columns: Sequence[str] | None = None) -> pa.Table:
        """Read some columns of a scan."""
        return (scan.select(*columns) if columns else scan).toArrow()

    def user_values(
        self, user_metrics: DataFrame, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> DataFrame:
        """Return a row per list and requested measure."""
        rows = [(run, *one) for one, runs in requested.items() for run in sorted(runs)]
        wanted = self._spark.createDataFrame(rows, f"{C.RUN_ID} string, {C.MEASURE} string, {C.K} int, _column string")
        columns = sorted({one.column for one in requested if one.column is not None}) or [
            C.N_HITS
        ]  # an array of nothing has no type
        values = (F.struct(F.lit(name).alias("_column"), F.col(name).cast("double").alias(C.VALUE)) for name in columns)
        long = user_metrics.select(*names, F.inline(F.array(*values)))
        key = [name for name in names if name != C.K]
        joined = long.join(F.broadcast(wanted), on=[C.RUN_ID, C.K, "_column"], how="inner")
        return joined.select(*key, C.MEASURE, C.K, C.VALUE)

    def users(self, user_metrics: DataFrame, column: str) -> DataFrame:
        """Return a row per user."""
        sums = (F.sum(name).alias(name) for name in (C.N_RECOMMENDED, C.N_HITS))
        most = F.max(C.N_RELEVANT).alias(C.N_RELEVANT)
        return user_metrics.groupBy(C.USER_ID).agg(F.avg(column).alias(C.VALUE), most, *sums)

    def paired(self, one: DataFrame, other: DataFrame) -> DataFrame:
        """Join the users of two sides."""
        named = (F.col(name).alias(f"other_{name}") for name in other.columns if name != C.USER_ID)
        rows = one.join(other.select(C.USER_ID, *named), on=C.USER_ID, how="full")
        return rows.withColumn("delta", F.col(C.VALUE) - F.col(f"other_{C.VALUE}"))

    def with_value(self, frame: DataFrame) -> DataFrame:
        """Leave out the rows without a value."""
        return frame.where(F.col(C.VALUE).isNotNull())

    def with_texts(self, frame: DataFrame, name: str, texts: Mapping[str, str], *, key: str) -> DataFrame:
        """Join the texts, which are few."""
        rows = self._spark.createDataFrame(list(texts.items()), f"{key} string, {name} string")
        return frame.join(F.broadcast(rows), on=key, how="left")

    def ordered(self, frame: DataFrame, *, columns: Sequence[str], order: Order, n: int | None = None) -> DataFrame:
        """Sort rows, and keep the first of them."""
        ways = {"asc": F.asc_nulls_last, "desc": F.desc_nulls_last}
        rows = frame.orderBy(*(ways[way](name) for name, way in order)).select(*columns)
        return rows if n is None else rows.limit(n)

    def of_arrow(self, rows: pa.Table) -> DataFrame:
        """Ship the rows to Spark."""
        return self._spark.createDataFrame(rows)

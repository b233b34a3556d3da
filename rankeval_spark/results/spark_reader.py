"""Published tables as DataFrames of Spark.

No text of a user or of a config is pasted into SQL. Delta's Python package is not used: a cluster need not have it, and
through Spark Connect it needs a jar of the server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.allowed_folders import spark_address
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results import delta_log
from rankeval_spark.results.roots import normalise, storage_at
from rankeval_spark.results.storage import inside
from rankeval_spark.results.table_scans import AT, require_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.table_scans import Filters, Order, Requested


def read_table(spark: SparkSession, root: str, table: str, version: int | None = None) -> DataFrame:
    """Return a frame of a table; ConfigError if a file or its log is, or links, outside the allowed folders."""
    reader, location = spark.read.format("delta"), inside(root, table)
    if version is not None:
        reader = reader.option("versionAsOf", version)
    where = f"results root, table {table}"
    allowed_folders.require_each(where, allowed_folders.delta_log_paths(location))
    frame = reader.load(location)
    if allowed_folders.is_limited():
        allowed_folders.require_each(where, frame.inputFiles())
    return frame


class SparkReader:
    """Reader by Spark: scans and frames are DataFrames. Spark Connect sessions work too."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark, self._root, self._location = spark, normalise(root), spark_address(normalise(root))

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> DataFrame:
        if table == schemas.RUNS.name:
            delta_log.require_whole(storage_at(self._root), table)  # of the others, published versions are looked at
        try:
            frame = read_table(self._spark, self._location, table, version)  # resolves now
        except AnalysisException as error:
            found = f"{self._root!r} (no table {table})"
            raise ConfigError(Fault("results root", found, "the results of an earlier run")) from error
        except Py4JJavaError as error:
            if "DATA_SOURCE_NOT_FOUND" not in str(error):
                raise
            fix = "make it by rankeval_spark.build_session(), which adds the jars and settings"
            raise ConfigError(Fault("Results(spark=)", "a session without Delta", "one with it", fix)) from None
        require_columns(table, where, frame.columns)
        for name, how, value in where:
            column = F.col(name)
            if how == AT:
                at = {label: F.col(C.K).isin(ks) if ks else F.lit(True) for label, ks in value.items()}
                frame = frame.where(reduce(or_, ((column == label) & is_at for label, is_at in at.items())))
            else:
                frame = frame.where(column == F.lit(value) if how == "=" else column.isin(*value))
        return frame

    def frame(self, scan: DataFrame) -> DataFrame:
        return scan

    def user_values(
        self, user_metrics: DataFrame, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> DataFrame:
        rows = [(run, *asked) for asked, runs in requested.items() for run in sorted(runs)]
        wanted = self._spark.createDataFrame(rows, f"{C.RUN_ID} string, {C.MEASURE} string, {C.K} int, _column string")
        columns = sorted({asked.column for asked in requested if asked.column is not None})
        columns = columns or [C.N_HITS]  # an array of nothing has no type
        values = (F.struct(F.lit(name).alias("_column"), F.col(name).cast("double").alias(C.VALUE)) for name in columns)
        long = user_metrics.select(*names, F.inline(F.array(*values)))
        key = [name for name in names if name != C.K]
        joined = long.join(F.broadcast(wanted), on=[C.RUN_ID, C.K, "_column"], how="inner")
        return joined.select(*key, C.MEASURE, C.K, C.VALUE)

    def users(self, user_metrics: DataFrame, column: str) -> DataFrame:
        sums = (F.sum(name).alias(name) for name in (C.N_RECOMMENDED, C.N_HITS))
        most = F.max(C.N_RELEVANT).alias(C.N_RELEVANT)
        return user_metrics.groupBy(C.USER_ID).agg(F.avg(column).alias(C.VALUE), most, *sums)

    def paired(self, one: DataFrame, other: DataFrame) -> DataFrame:
        """Join two frames by user, keeping the users of both: see :meth:`Reader.paired`."""
        named = (F.col(name).alias(f"other_{name}") for name in other.columns if name != C.USER_ID)
        rows = one.join(other.select(C.USER_ID, *named), on=C.USER_ID, how="full")
        return rows.withColumn("delta", F.col(C.VALUE) - F.col(f"other_{C.VALUE}"))

    def with_texts(self, frame: DataFrame, name: str, texts: Mapping[str, str], *, key: str) -> DataFrame:
        rows = self._spark.createDataFrame(list(texts.items()), f"{key} string, {name} string")
        return frame.join(F.broadcast(rows), on=key, how="left")

    def ordered(self, frame: DataFrame, *, columns: Sequence[str], order: Order, n: int | None = None) -> DataFrame:
        ways = {"asc": F.asc_nulls_last, "desc": F.desc_nulls_last}
        known = frame if n is None else frame.where(F.col(C.VALUE).isNotNull())
        rows = known.orderBy(*(ways[way](name) for name, way in order)).select(*columns)
        return rows if n is None else rows.limit(n)

    def from_arrow(self, rows: pa.Table) -> DataFrame:
        return self._spark.createDataFrame(rows.combine_chunks())  # which loses rows next to an empty chunk

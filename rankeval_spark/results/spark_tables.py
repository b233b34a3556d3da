"""Published tables that Spark reads and writes, where this process does not reach them or DataFrames are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as T

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import delta_log
from rankeval_spark.results.file_store import inside, reachable_storage
from rankeval_spark.results.local_tables import AT, require_columns

if TYPE_CHECKING:
    from datetime import date

    import pyarrow as pa

    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.local_tables import Filters, Order, Requested
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.schemas import Field, Schema


def struct_type(schema: Schema, extra_fields: Iterable[Field] = ()) -> T.StructType:
    """Build the Spark schema of the columns of ``schema``, then ``extra_fields``, each with its comment.

    >>> struct_type(schemas.TRAIN).simpleString()
    'struct<user_id:string,item_id:string,interacted_at:timestamp>'
    """
    return T.StructType.fromJson(columns_json(schema, extra_fields))


def rows_of(night: NightKey) -> Column:
    """Return the condition on the rows of a night in a published table."""
    return (F.col(C.EVALUATION) == F.lit(night.evaluation)) & (F.col(C.EVALUATION_DATE) == F.lit(night.evaluation_date))


def only_after(version: int) -> dict[str, str]:
    """Return options of a write that must make the version after one that was seen.

    Delta repeats a commit that was overtaken by itself, as a later version; but not if the other commit, too, has a
    transaction number of the same application. It leaves a write out if such a number is no lower.
    """
    return {"txnAppId": delta_log.FENCE, "txnVersion": str(version + 1)}


def add_columns(spark: SparkSession, storage: Storage, table: str, columns: Json, *, after: int) -> None:
    """Extend a table to more columns; ``columns`` include those that it has.

    Spark appends no rows with schema merging. Unlike ALTER TABLE that needs no SQL text, into which the definition of a
    measure would have to be quoted, and it keeps the comment.
    """
    empty = spark.createDataFrame([], T.StructType.fromJson(dict(columns)))
    writer = empty.write.format("delta").mode("append").options(**only_after(after))
    writer.option("mergeSchema", "true").save(inside(storage.root, table))


def identifier(storage: Storage, table: str) -> str:
    """Return the name of a path table for Spark's writers; the root has no backtick (``file_store.normalise``)."""
    return f"delta.`{inside(storage.root, table)}`"


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


def append_events(
    spark: SparkSession, storage: Storage, rows: Iterable[Mapping[str, Any]], *, tag: str, after: int
) -> None:
    """Append a few rows to ``runs`` in one commit that carries ``tag`` as its user metadata."""
    frame = spark.createDataFrame([dict(values) for values in rows], struct_type(schemas.RUNS)).coalesce(1)
    writer = frame.writeTo(identifier(storage, schemas.RUNS.name)).options(**only_after(after))
    writer.option("userMetadata", tag).append()


def merge_files(spark: SparkSession, storage: Storage, table: str) -> tuple[int, int]:
    """Merge small files of each partition, in one commit; return their number before and after."""
    done = spark.sql(f"OPTIMIZE {identifier(storage, table)}").select("metrics.*").head()
    return (done["numFilesRemoved"], done["numFilesAdded"]) if done else (0, 0)


def declared_first(table: str, frame: DataFrame) -> DataFrame:
    """Return the columns as :func:`local_tables.declared_first`: declared columns that the table lacks are NULL."""
    declared = next(schema for schema in (schemas.RUNS, *schemas.PUBLISHED) if schema.name == table)
    names, types = frame.columns, struct_type(declared)
    lacking = (field for field in types if field.name not in names)
    nulls = {
        field.name: F.lit(None).cast(field.dataType).alias(field.name, metadata=field.metadata) for field in lacking
    }
    first = (nulls.get(name, F.col(name)) for name in types.fieldNames())
    return frame.select(*first, *(F.col(name) for name in names if name not in types.fieldNames()))


def _condition(name: str, how: str, value: Any) -> Column:  # noqa: ANN401 - of the type of the column, or several
    """Return one of ``Filters`` as a condition of Spark."""
    column = F.col(name)
    if how == AT:
        at = {label: F.col(C.K).isin(ks) if ks else F.lit(True) for label, ks in value.items()}
        of_any: Column = reduce(or_, ((column == label) & is_at for label, is_at in at.items()))
        return of_any
    return column == F.lit(value) if how == "=" else column.isin(*value)


class SparkReader:
    """Reader by Spark, in any store: scans and frames are DataFrames. Spark Connect sessions work too."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def scan(self, table: str, *, version: int | None = None, where: Filters = ()) -> DataFrame:
        if table == schemas.RUNS.name and (storage := reachable_storage(self._spark, self._root)):
            delta_log.require_whole(storage, table)  # of the others, the published versions are looked at
        try:
            frame = read_table(self._spark, self._root, table, version)
            frame = declared_first(table, frame)  # resolves now: a missing table is an error here
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
        for condition in where:
            frame = frame.where(_condition(*condition))
        return frame

    def readable_events(self, where: Filters = ()) -> DataFrame:
        """Return a plan to read all events; Spark finds damaged files when it reads them."""
        return self.scan(schemas.RUNS.name, where=where)

    def columns(self, table: str) -> list[str]:
        return self._spark.read.format("delta").load(inside(self._root, table)).columns

    def nights(self, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
        nights = self.scan(table, version=version).select(C.EVALUATION, C.EVALUATION_DATE).distinct()
        return {(night[C.EVALUATION], night[C.EVALUATION_DATE]) for night in nights.collect()}

    def frame(self, scan: DataFrame) -> DataFrame:
        return scan

    def arrow(self, scan: DataFrame, columns: Sequence[str] | None = None) -> pa.Table:
        return (scan.select(*columns) if columns else scan).toArrow()

    def user_values(
        self, user_metrics: DataFrame, requested: Mapping[Requested, Collection[str]], names: Sequence[str]
    ) -> DataFrame:
        rows = [(run, *asked) for asked, runs in requested.items() for run in sorted(runs)]
        wanted = self._spark.createDataFrame(rows, f"{C.RUN_ID} string, {C.MEASURE} string, {C.K} int, _column string")
        columns = sorted({asked.column for asked in requested if asked.column is not None}) or [
            C.N_HITS
        ]  # an array of nothing has no type
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

    def of_arrow(self, rows: pa.Table) -> DataFrame:
        return self._spark.createDataFrame(rows.combine_chunks())  # which loses rows next to an empty chunk

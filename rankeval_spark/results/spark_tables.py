"""Published tables that Spark reads and writes, because this process does not reach their store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as T

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.results import delta_log
from rankeval_spark.results.file_store import inside
from rankeval_spark.spark.spark_types import struct_type

if TYPE_CHECKING:
    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.local_tables import Filters
    from rankeval_spark.results.run_record import NightKey


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


def read_table(spark: SparkSession, storage: Storage, table: str, version: int | None = None) -> DataFrame:
    """Read a table of the root, at one version or as it is now."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    refuse_log(storage.root, table)
    frame = reader.load(inside(storage.root, table))
    refuse_outside(frame, table)
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


def row_condition(where: Filters) -> Column:
    """Return conditions as one column of Spark."""
    each = (F.col(name) == F.lit(value) if how == "=" else F.col(name).isin(*value) for name, how, value in where)
    return reduce(and_, each, F.lit(True))


def refuse_log(root: str, table: str) -> None:
    """Raise ConfigError if a table's log, or a file in it, is a link out of the allowed folders."""
    if allowed_folders.is_limited():
        logs = allowed_folders.delta_log_paths(inside(root, table))
        allowed_folders.require_allowed(*((f"results root, table {table}", path) for path in logs))


def refuse_outside(frame: DataFrame, table: str) -> None:
    """Raise ConfigError if the log of a table names files outside the allowed folders."""
    if allowed_folders.is_limited():
        allowed_folders.require_allowed(*((f"results root, table {table}", file) for file in frame.inputFiles()))


def declared_first(table: str, frame: DataFrame) -> DataFrame:
    """Return the columns as :func:`local_tables.declared_first`: declared columns that the table lacks are NULL."""
    declared = next(schema for schema in (schemas.RUNS, *schemas.PUBLISHED) if schema.name == table)
    names, types = frame.columns, struct_type(declared)
    first = [
        F.col(field.name)
        if field.name in names
        else F.lit(None).cast(field.dataType).alias(field.name, metadata=field.metadata)
        for field in types
    ]
    return frame.select(*first, *(F.col(name) for name in names if name not in types.fieldNames()))


def widened(staged: DataFrame, table_schema: T.StructType) -> DataFrame:
    """Extend staged rows to the columns of the table: measures that only other runs computed are NULL."""
    absent = set(table_schema.fieldNames()) - set(staged.schema.fieldNames())
    return staged.select(
        *(
            F.lit(None).cast(field.dataType).alias(field.name) if field.name in absent else F.col(field.name)
            for field in table_schema.fields
        )
    )

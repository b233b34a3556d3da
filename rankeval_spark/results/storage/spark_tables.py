"""The published tables as Spark reads and writes them: those of stores that this process does not reach itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as T

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.results.storage import delta_log
from rankeval_spark.results.storage.file_store import inside
from rankeval_spark.spark.spark_types import struct_type

if TYPE_CHECKING:
    from rankeval_spark.result_rows.column_json import Json
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.results.storage.file_store import Storage
    from rankeval_spark.results.storage.requested_rows import Filters


def rows_of(night: NightKey) -> Column:
    """Condition that holds for the rows of a night in a published table."""
    return (F.col(C.EVALUATION) == F.lit(night.evaluation)) & (F.col(C.EVALUATION_DATE) == F.lit(night.evaluation_date))


def only_after(version: int) -> dict[str, str]:
    """Options of a write that is to make the version after one that was seen.

    Delta makes a commit that was overtaken again by itself, as a later version. It does not where the other one, too,
    has a number of a transaction of the same application, and leaves a write out where such a number is no lower.
    """
    return {"txnAppId": delta_log.FENCE, "txnVersion": str(version + 1)}


def add_columns(spark: SparkSession, storage: Storage, table: str, columns: Json, *, after: int) -> None:
    """Give a table more columns, those that it has among them.

    Spark appends no rows with schema merging: unlike ALTER TABLE it needs no SQL text, into which the definition of
    a measure would have to be quoted, and it keeps the comment.
    """
    empty = spark.createDataFrame([], T.StructType.fromJson(dict(columns)))
    writer = empty.write.format("delta").mode("append").options(**only_after(after))
    writer.option("mergeSchema", "true").save(inside(storage.root, table))


def identifier(storage: Storage, table: str) -> str:
    """Name by which Spark's writers reach a path table; the root holds no backtick (see ``file_store.normalise``)."""
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
    """Merge small files of each partition, in one commit; return how many there were, and how many they became."""
    done = spark.sql(f"OPTIMIZE {identifier(storage, table)}").select("metrics.*").head()
    return (done["numFilesRemoved"], done["numFilesAdded"]) if done else (0, 0)


def row_condition(where: Filters) -> Column:
    """Write conditions as one of Spark."""
    each = (F.col(name) == F.lit(value) if how == "=" else F.col(name).isin(*value) for name, how, value in where)
    return reduce(and_, each, F.lit(True))


def refuse_log(root: str, table: str) -> None:
    """Refuse a table whose log, or a file of it, is a link out of the folders that the environment allows."""
    if allowed_folders.is_limited():
        logs = allowed_folders.delta_log_paths(inside(root, table))
        allowed_folders.require_allowed(*((f"results root, table {table}", path) for path in logs))


def refuse_outside(frame: DataFrame, table: str) -> None:
    """Refuse a table whose log names files outside the folders that the environment allows.

    Raises
    ------
    ConfigError
        The files that lie outside.
    """
    if allowed_folders.is_limited():
        allowed_folders.require_allowed(*((f"results root, table {table}", file) for file in frame.inputFiles()))


def declared_first(table: str, frame: DataFrame) -> DataFrame:
    """Read a table as :func:`local_tables.declared_first` says: declared columns that it lacks are NULL."""
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
    """Bring staged rows to the columns of the table: measures that only other runs computed are NULL.

    (What a run stages is compared with the declared columns before.)
    """
    absent = set(table_schema.fieldNames()) - set(staged.schema.fieldNames())
    return staged.select(
        *(
            F.lit(None).cast(field.dataType).alias(field.name) if field.name in absent else F.col(field.name)
            for field in table_schema.fields
        )
    )

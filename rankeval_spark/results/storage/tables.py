"""The published tables: how they are created, read and compared with what the code declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as T

from rankeval_spark import allowed_folders, schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results.storage import constraints, delta_log, local_tables
from rankeval_spark.results.storage.file_store import inside
from rankeval_spark.spark.spark_types import data_type, struct_field, struct_type

if TYPE_CHECKING:
    from rankeval_spark.results.storage.file_store import Storage
    from rankeval_spark.results.storage.row_filters import Filters
    from rankeval_spark.schemas import Field, Schema

TABLES: Final = (schemas.RUNS, *schemas.PUBLISHED)
READER_VERSION: Final = 1
"""Reader protocol of every table: the one that all readers of Delta understand."""

RETENTION: Final = "interval 30 days"

PROPERTIES: Final[Mapping[str, str]] = {
    "delta.logRetentionDuration": RETENTION,
    "delta.deletedFileRetentionDuration": RETENTION,
    # Said explicitly, because defaults of the session or of the platform would raise the reader version.
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
}

CONSTRAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    table: {name: str(rule) for name, rule in rules.items()} for table, rules in constraints.CONSTRAINTS.items()
}
"""CHECK constraints by table, as Delta reads them."""


def table_path(storage: Storage, table: str) -> str:
    """Location of a table of the root."""
    return inside(storage.root, table)


def identifier(storage: Storage, table: str) -> str:
    """Name by which Spark's writers reach a path table; the root holds no backtick (see ``file_store.normalise``)."""
    return f"delta.`{table_path(storage, table)}`"


def missing_tables(storage: Storage) -> list[Schema]:
    """List the published tables that the root does not have yet."""
    return [schema for schema in TABLES if not delta_log.exists(storage, schema.name)]


def create_table(storage: Storage, schema: Schema) -> None:
    """Create one published table, empty; nothing happens where it exists. The caller holds the publish lock.

    Raises
    ------
    ResultsError
        There are files where the table belongs, and no log of Delta that says which are its own.
    """
    if delta_log.is_unborn(storage, schema.name):
        storage.remove(schema.name)
    if delta_log.exists(storage, schema.name):
        return
    if storage.names(schema.name):
        fix = "restore _delta_log, or move the folder away"
        raise ResultsError(Fault(f"table {schema.name}", "files without a log of Delta", "a Delta table", fix))
    delta_log.create_log(
        storage,
        schema.name,
        columns=struct_type(schema).json(),
        partitions=local_tables.PARTITIONS,
        description=f"Grain: {schema.grain}. Key: {', '.join(schema.key)}.",
        configuration={**PROPERTIES, **_constraints(schema)},
    )


def _constraints(schema: Schema) -> dict[str, str]:
    return {f"delta.constraints.{name}": rule for name, rule in CONSTRAINTS.get(schema.name, {}).items()}


def read_table(spark: SparkSession, storage: Storage, table: str, version: int | None = None) -> DataFrame:
    """Read a table of the root, at one version or as it is now."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    frame = reader.load(table_path(storage, table))
    refuse_outside(frame, table)
    return frame


def append(
    spark: SparkSession, storage: Storage, schema: Schema, rows: Iterable[Mapping[str, Any]], *, tag: str
) -> None:
    """Append a few rows in one commit that carries ``tag`` as its user metadata."""
    frame = spark.createDataFrame([dict(values) for values in rows], struct_type(schema)).coalesce(1)
    frame.writeTo(identifier(storage, schema.name)).option("userMetadata", tag).append()


def row_condition(where: Filters) -> Column:
    """Write conditions as one of Spark."""
    each = (F.col(name) == F.lit(value) if how == "=" else F.col(name).isin(*value) for name, how, value in where)
    return reduce(and_, each, F.lit(True))


def columns_of(spark: SparkSession, storage: Storage, table: str) -> T.StructType:
    """Columns of a table as it is now."""
    if local_tables.are_at(storage):
        return T.StructType.fromJson(local_tables.schema_of(storage, table))
    return read_table(spark, storage, table).schema


def refuse_outside(frame: DataFrame, table: str) -> None:
    """Refuse a table whose log names files outside the folders that the environment allows.

    Raises
    ------
    ConfigError
        The files that lie outside.
    """
    if allowed_folders.is_limited():
        allowed_folders.require_allowed(*((f"results root, table {table}", file) for file in frame.inputFiles()))


def require_reader_version(storage: Storage, table: str, *, after: int = -1) -> None:
    """Refuse a table that was changed so that other readers cannot read it, or not correctly.

    Only the commits after version ``after`` are looked at: each is checked once, by the publish that finds it.
    (Delta's own description of a table takes a second.)
    """
    found = delta_log.reader_version(storage, table, after=after)
    if found > READER_VERSION:
        raise ResultsError(
            Fault(
                f"table {table}",
                f"reader version {found}",
                f"reader version {READER_VERSION}",
                "drop the table feature that raised it (deletion vectors, column mapping, v2 checkpoints)",
            )
        )


def measure_columns(table_schema: T.StructType) -> list[str]:
    """Columns of ``user_metrics`` that hold measures: all that are not declared for every table."""
    declared = set(schemas.USER_METRICS.field_names())
    return [name for name in table_schema.fieldNames() if name not in declared]


def add_measure_columns(spark: SparkSession, storage: Storage, fields: Iterable[Field]) -> None:
    """Add the measure columns that ``user_metrics`` lacks; the caller holds the publish lock.

    Spark appends no rows with schema merging: unlike ALTER TABLE it needs no SQL text, into which the definition of
    a measure would have to be quoted, and it keeps the comment.
    """
    table = schemas.USER_METRICS.name
    present = columns_of(spark, storage, table)
    lacking = [struct_field(field) for field in fields if field.name not in present.fieldNames()]
    if lacking and local_tables.are_at(storage):
        local_tables.add_columns(storage, table, [field.json() for field in lacking])
    elif lacking:
        empty = spark.createDataFrame([], T.StructType([*present.fields, *lacking]))
        writer = empty.write.format("delta").mode("append").option("mergeSchema", "true")
        writer.save(table_path(storage, table))


def require_declared(table_schema: T.StructType, schema: Schema) -> None:
    """Compare a published table with its declaration: names, types, order; measure columns follow it."""
    found = [(field.name, field.dataType.simpleString()) for field in table_schema.fields]
    declared = [(field.name, data_type(field.type).simpleString()) for field in schema.fields]
    extra = found[len(declared) :]
    is_measured = schema is schemas.USER_METRICS and all(type_ == "double" for _, type_ in extra)
    if found[: len(declared)] != declared or (extra and not is_measured):
        unlike = [f"{name} {type_}" for name, type_ in set(found) ^ set(declared)] or ["another order"]
        raise ResultsError(
            Fault(
                f"table {schema.name}",
                f"other columns than this version declares ({', '.join(sorted(unlike)[:5])})",
                "the declared columns in their order",
                "use the version of rankeval-spark that wrote the table, or a new results root",
            )
        )


def conform(frame: DataFrame, fields: tuple[Field, ...], *, where: str) -> DataFrame:
    """Select ``fields`` of a frame; a missing, surplus or mistyped column is an error, never a NULL or a cast.

    The columns take their comments along.
    """
    found = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    expected = {field.name: data_type(field.type).simpleString() for field in fields}
    faults = [
        Fault(f"{where}, column {name}", found.get(name, "none"), expected.get(name, "no such column"))
        for name in dict.fromkeys([*expected, *found])
        if found.get(name) != expected.get(name)
    ]
    if faults:
        raise ResultsError(*faults)
    return frame.select(*(F.col(field.name).alias(field.name, metadata=_metadata(field)) for field in fields))


def _metadata(field: Field) -> dict[str, str]:
    return {"comment": field.comment}


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

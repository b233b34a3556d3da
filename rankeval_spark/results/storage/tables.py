"""The published tables: how they are created, and compared with what the code declares.

Tables of a disk of this machine take no Spark; those of other stores are read and written by :mod:`spark_tables`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.result_rows.column_json import columns_json, type_name
from rankeval_spark.results.storage import delta_log, local_tables
from rankeval_spark.results.storage.commits import retried
from rankeval_spark.results.storage.constraints import CONSTRAINTS
from rankeval_spark.results.storage.file_store import LocalStorage, sync

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.result_rows.column_json import Json
    from rankeval_spark.results.storage.commits import Root
    from rankeval_spark.results.storage.file_store import Storage
    from rankeval_spark.schemas import Schema

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
    if delta_log.exists(storage, schema.name):
        return
    if delta_log.is_unborn(storage, schema.name):
        delta_log.remove_drafts(storage, schema.name)
    elif storage.names(schema.name):
        fix = "restore _delta_log, or move the folder away"
        raise ResultsError(Fault(f"table {schema.name}", "files without a log of Delta", "a Delta table", fix))
    rules = {f"delta.constraints.{name}": str(rule) for name, rule in CONSTRAINTS.get(schema.name, {}).items()}
    with suppress(delta_log.OvertakenError):  # whoever took the lock from us made it
        delta_log.create_log(
            storage,
            schema.name,
            columns=json.dumps(columns_json(schema)),
            partitions=[] if schema is schemas.RUNS else local_tables.PARTITIONS,
            description=f"Grain: {schema.grain}. Key: {', '.join(schema.key)}.",
            configuration={**PROPERTIES, **rules},
        )
    if isinstance(storage, LocalStorage):
        sync(Path(storage.root, schema.name), Path(storage.root))


def columns_of(spark: SparkSession, storage: Storage, table: str) -> Json:
    """Columns of a table as it is now; a session is needed where only Spark reads the root."""
    if local_tables.are_at(storage):
        return local_tables.schema_of(storage, table)
    from rankeval_spark.results.storage import spark_tables  # noqa: PLC0415 - imports pyspark

    return spark_tables.read_table(spark, storage, table).schema.jsonValue()


def require_reader_version(storage: Storage, table: str, *, after: int = -1) -> None:
    """Refuse a table that was changed so that other readers cannot read it, or not correctly.

    Only the commits after version ``after`` are looked at: each is checked once, by the publish that finds it.
    (Delta's own description of a table takes a second.)
    """
    found = delta_log.reader_version(storage, table, after=after)
    if found > READER_VERSION:
        fix = "drop the table feature that raised it (deletion vectors, column mapping, v2 checkpoints)"
        raise ResultsError(Fault(f"table {table}", f"reader version {found}", f"reader version {READER_VERSION}", fix))


def measure_columns(columns: Json) -> list[dict[str, Any]]:
    """Columns of ``user_metrics`` that hold measures: all that are not declared for every table; each may be NULL."""
    declared = set(schemas.USER_METRICS.field_names())
    return [{**field, "nullable": True} for field in columns["fields"] if field["name"] not in declared]


def add_columns(root: Root, table: str, wanted: Iterable[Json]) -> None:
    """Add those of some columns that a table lacks, in a commit without rows."""
    spark, storage, columns = root.spark, root.storage, list(wanted)

    def add(seen: int) -> None:
        present = columns_of(spark, storage, table)["fields"]
        names = {field["name"] for field in present}
        lacking = [field for field in columns if field["name"] not in names]
        if lacking and local_tables.are_at(storage):
            local_tables.add_columns(storage, table, map(json.dumps, lacking), after=seen)
        elif lacking:
            from rankeval_spark.results.storage import spark_tables  # noqa: PLC0415 - imports pyspark

            fields = {"type": "struct", "fields": [*present, *lacking]}
            spark_tables.add_columns(spark, storage, table, fields, after=seen)

    retried(storage, table, add, held=[root.lock])


def lacking_columns(spark: SparkSession, storage: Storage, schema: Schema) -> list[Json]:
    """Return the declared columns that a table of an older version lacks; its rows are NULL in them.

    Raises
    ------
    ResultsError
        As :func:`require_declared`.
    """
    columns = columns_of(spark, storage, schema.name)
    require_declared(columns, schema)
    names = {field["name"] for field in columns["fields"]}
    return [{**field, "nullable": True} for field in columns_json(schema)["fields"] if field["name"] not in names]


def require_declared(columns: Json, schema: Schema) -> None:
    """Compare the columns of a published table with their declaration, by name.

    A table of an older version may lack columns that are no part of its key. A column that is not declared is of a
    newer version, which alone knows what to write into it; ``user_metrics`` also has measures.
    """
    found = {field["name"]: type_name(field["type"]) for field in columns["fields"]}
    declared = {field.name: field.type for field in schema.fields}
    is_measured = schema.name == schemas.USER_METRICS.name
    unlike = [
        f"{name} {type_}"
        for name, type_ in found.items()
        if declared.get(name, "double" if is_measured else None) != type_
    ]
    unlike += [f"no {name}" for name in schema.key if name not in found]
    if unlike:
        others = f"other columns than this version declares ({', '.join(sorted(unlike)[:5])})"
        fix = "use the version of rankeval-spark that wrote the table, or a new results root"
        raise ResultsError(Fault(f"table {schema.name}", others, "declared columns", fix))

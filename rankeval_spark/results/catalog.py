"""Schemas of Spark's catalog: where one is, and external tables of a results root in it."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from rankeval_spark import schemas
from rankeval_spark.allowed_folders import spark_address
from rankeval_spark.errors import ConfigError, Fault, first_line
from rankeval_spark.results.published_results import Results
from rankeval_spark.results.roots import normalise
from rankeval_spark.results.storage import inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_FACT: Final = re.compile(r"^(Type|Location): (.*)$", re.MULTILINE)  # of a table, as Spark shows it
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_TABLES: Final = tuple(schema.name for schema in (schemas.RUNS, *schemas.PUBLISHED))
_EXPECTED: Final = "a schema whose location is a folder of this machine or in an object store, which a run can lock"


def root_of(spark: SparkSession, schema: str, where: str) -> str:
    """Return the location of a schema as a results root; ConfigError, with ``where`` it is named, where it is none."""
    with _refusals(where, schema, "a schema of Spark's catalog"):
        location = spark.catalog.getDatabase(_checked(schema, where)).locationUri
    fix = "make a schema with a location: CREATE SCHEMA ... LOCATION 's3a://bucket/results'"
    found = f"{schema}, whose catalog names no location" if not location else f"{schema} at {location}"
    try:
        return normalise(location or "")
    except ConfigError as error:
        raise ConfigError(Fault(where, found, _EXPECTED, fix)) from error


def register_tables(spark: SparkSession, root: str, schema: str | None, where: str) -> dict[str, bool]:
    """Create the external tables that a schema lacks; return by name whether each is new.

    ``schema`` is by default the current one. Comments are those of the tables. Raises ConfigError, before a table is
    made, where the schema has another table or a view of a name.
    """
    tables = [schemas.RUNS.name, *Results(root).table_versions()]
    names = registered_names(spark, root, schema, where, tables=tables)
    for name, is_there in names.items():
        if not is_there:
            with _refusals(where, name, "a table that the catalog accepts"):
                spark.catalog.createTable(
                    name, path=inside(spark_address(normalise(root)), name.rpartition(".")[2]), source="delta"
                )
    return {name: not is_there for name, is_there in names.items()}


def registered_names(
    spark: SparkSession,
    root: str,
    schema: str | None,
    where: str,
    *,
    tables: Sequence[str] = _TABLES,
) -> dict[str, bool]:
    """Return the names that tables of a root have in a schema, and whether they are there.

    ConfigError, with ``where`` the schema is named, if one is a view, or a table at another location.
    """
    with _refusals(where, schema or "the current schema", "a schema of Spark's catalog"):
        within = spark.catalog.currentDatabase() if schema is None else _checked(schema, where)
        quoted = ".".join(f"`{part}`" for part in within.split("."))
        # One statement, which reads no log of a table.
        rows = spark.sql(f"SHOW TABLE EXTENDED IN {quoted} LIKE '{'|'.join(tables)}'").collect()
    facts = {row["tableName"]: dict(_FACT.findall(row["information"])) for row in rows if not row["isTemporary"]}
    places = {table: str(found.get("Location", found.get("Type"))) for table, found in facts.items()}
    expected, fix = f"no table of that name, or that of {root}", "drop it, or choose another schema"
    faults = [
        Fault(where, f"{within}.{table}, {place}", expected, fix)
        for table, place in places.items()
        if not _is_same(place, inside(normalise(root), table))
    ]
    if faults:
        raise ConfigError(*faults)
    return {f"{within}.{table}": table in places for table in tables}


def is_in_memory(spark: SparkSession, schema: str | None) -> bool:
    """Return whether tables of a schema end with the session."""
    is_own = schema is None or schema.count(".") == 0 or schema.startswith("spark_catalog.")
    return is_own and spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"


def _is_same(location: str, place: str) -> bool:
    with suppress(ConfigError):  # of a place that holds no results
        return spark_address(normalise(location)) == spark_address(place)
    return False


def _checked(schema: str, where: str) -> str:
    """Return the name of a schema that can be part of a statement."""
    if not _PLAIN.fullmatch(schema):
        expected = "letters, digits, '_' and '-', such as analytics or main.analytics"
        raise ConfigError(Fault(where, repr(schema), expected))
    return schema


@contextmanager
def _refusals(where: str, name: str, expected: str) -> Iterator[None]:
    """Raise what Spark's catalog refuses as a ConfigError."""
    try:
        yield
    except PySparkException as error:
        raise ConfigError(Fault(where, f"{name} ({first_line(str(error))})", expected)) from error

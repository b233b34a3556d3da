"""What Delta offers as SQL text only; no text of a user or of a config is pasted into it.

A location stands between backticks, which no results root holds (see ``storage.normalise``); the rest is declared in
this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from delta.tables import DeltaTable

from rankeval_spark.results import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage import Storage
    from rankeval_spark.schemas import Field

LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""VACUUM lists the files of a table in this many tasks, 10,000 by default, however small the table is."""
ENOUGH_TASKS: Final = "64"


@contextmanager
def _listing_in_few_tasks(spark: SparkSession) -> Iterator[None]:
    """Spare VACUUM thousands of empty tasks, a minute for each table, and leave the session as it was."""
    before = str(spark.conf.get(LISTING_TASKS))
    spark.conf.set(LISTING_TASKS, ENOUGH_TASKS)
    try:
        yield
    finally:
        spark.conf.set(LISTING_TASKS, before)


def unneeded_files(spark: SparkSession, storage: Storage, table: str) -> int:
    """Count the files that VACUUM would delete: those no version within the table's retention needs."""
    with _listing_in_few_tasks(spark):
        return spark.sql(f"VACUUM {tables.identifier(storage, table)} DRY RUN").count()


def vacuum(spark: SparkSession, storage: Storage, table: str) -> None:
    """Delete these files."""
    with _listing_in_few_tasks(spark):
        DeltaTable.forPath(spark, tables.path_of(storage, table)).vacuum()


def add_column(spark: SparkSession, storage: Storage, table: str, field: Field, *, after: str | None) -> None:
    """Add a column behind another one, NULL in the rows there are."""
    place = f"AFTER `{after}`" if after else "FIRST"
    column = f"`{field.name}` {field.type} COMMENT {_quoted(field.comment)} {place}"
    spark.sql(f"ALTER TABLE {tables.identifier(storage, table)} ADD COLUMNS ({column})")


def add_constraint(spark: SparkSession, storage: Storage, table: str, name: str, rule: str) -> None:
    """Declare a CHECK constraint, in place of one of that name; rows that break it are an error."""
    identifier = tables.identifier(storage, table)
    spark.sql(f"ALTER TABLE {identifier} DROP CONSTRAINT IF EXISTS `{name}`")
    spark.sql(f"ALTER TABLE {identifier} ADD CONSTRAINT `{name}` CHECK ({rule})")


def set_property(spark: SparkSession, storage: Storage, table: str, key: str, value: str) -> None:
    """Set a property of a table."""
    pair = f"{_quoted(key)} = {_quoted(value)}"
    spark.sql(f"ALTER TABLE {tables.identifier(storage, table)} SET TBLPROPERTIES ({pair})")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

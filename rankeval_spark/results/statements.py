"""What Delta offers as SQL text only; no text of a user or of a config is pasted into it.

A location stands between backticks, which no results root holds (see ``storage.normalise``); the rest is declared in
this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.results import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage import Storage
    from rankeval_spark.schemas import Field


def unneeded_files(spark: SparkSession, storage: Storage, table: str) -> int:
    """Count the files that VACUUM would delete: those no version within the table's retention needs."""
    return spark.sql(f"VACUUM {tables.identifier(storage, table)} DRY RUN").count()


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

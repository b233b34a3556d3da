"""What Delta offers for maintenance as SQL text; no text of a user or of a config is pasted into it.

Its Python package has calls for some of it. They are not used: a cluster need not have that package, and through Spark
Connect they need a jar of the server. Statements need neither.

A location is between backticks, which no results root contains (see ``file_store.normalise``); the rest is declared in
this package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results.storage import spark_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage.file_store import Storage

LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""VACUUM lists the files of a table in this many tasks, 10,000 by default, however small the table is."""
ENOUGH_TASKS: Final = "64"

LEAST: Final = timedelta(days=7)
"""Shortest retention under which VACUUM runs: a reader may have pinned a version a week ago."""

_RETENTION: Final = "delta.deletedFileRetentionDuration"
_DELTA_DEFAULT: Final = "interval 1 week"
_PART: Final = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)


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
        return spark.sql(f"VACUUM {spark_tables.identifier(storage, table)} DRY RUN").count()


def vacuum(spark: SparkSession, storage: Storage, table: str) -> None:
    """Delete these files."""
    with _listing_in_few_tasks(spark):
        spark.sql(f"VACUUM {spark_tables.identifier(storage, table)}")


def compact_files(spark: SparkSession, storage: Storage, table: str) -> tuple[int, int]:
    """Merge small files into larger ones; return how many there were, and how many they became."""
    done = spark.sql(f"OPTIMIZE {spark_tables.identifier(storage, table)}").select("metrics.*").head()
    return (done["numFilesRemoved"], done["numFilesAdded"]) if done else (0, 0)


def require_retention(spark: SparkSession, storage: Storage, table: str) -> None:
    """Refuse a table that keeps the files of older versions, which readers hold, for too short a time."""
    detail = spark.sql(f"DESCRIBE DETAIL {spark_tables.identifier(storage, table)}").select("properties").head()
    require_enough(table, detail["properties"].get(_RETENTION, _DELTA_DEFAULT) if detail else _DELTA_DEFAULT)


def require_enough(table: str, retention: str) -> None:
    """Refuse a retention that is shorter than :data:`LEAST` or cannot be read."""
    length = length_of(retention)
    if length is None or length < LEAST:
        expected = f"at least {LEAST.days} days, such as 'interval 30 days': readers hold older versions"
        fix = "set the property of the table"
        raise ConfigError(Fault(f"table {table}, property {_RETENTION}", repr(retention), expected, fix))


def length_of(retention: str) -> timedelta | None:
    """Read an interval as Delta writes it; None where it is something else.

    Examples
    --------
    >>> length_of("interval 1 week 12 hours")
    datetime.timedelta(days=7, seconds=43200)
    """
    text = retention.strip().lower().removeprefix("interval").strip()
    if not text or _PART.sub("", text).strip():
        return None
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in _PART.findall(text)), timedelta())

"""What Delta offers as SQL text; no text of a user or of a config is pasted into it.

Its Python package has calls for some of it. They are not used: a cluster need not have that package, and through Spark
Connect they need a jar of the server. Statements need neither.

A location is between backticks, which no results root contains (see ``file_store.normalise``); the rest is declared in
this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rankeval_spark.results.storage import spark_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage.file_store import Storage

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
        return spark.sql(f"VACUUM {spark_tables.identifier(storage, table)} DRY RUN").count()


def vacuum(spark: SparkSession, storage: Storage, table: str) -> None:
    """Delete these files."""
    with _listing_in_few_tasks(spark):
        spark.sql(f"VACUUM {spark_tables.identifier(storage, table)}")


def compact_files(spark: SparkSession, storage: Storage, table: str) -> tuple[int, int]:
    """Merge small files into larger ones; return how many there were, and how many they became."""
    done = spark.sql(f"OPTIMIZE {spark_tables.identifier(storage, table)}").select("metrics.*").head()
    return (done["numFilesRemoved"], done["numFilesAdded"]) if done else (0, 0)


def properties_of(spark: SparkSession, storage: Storage, table: str) -> dict[str, str]:
    """Properties of a table, its constraints among them; Delta takes a second."""
    detail = spark.sql(f"DESCRIBE DETAIL {spark_tables.identifier(storage, table)}").select("properties").head()
    return dict(detail["properties"]) if detail else {}

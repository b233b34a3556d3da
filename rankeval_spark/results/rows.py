"""Few rows of the results, as dictionaries: without a Spark job where the root is on a local disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval_spark import schemas
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.results import delta_log, journal, local_tables, tables
from rankeval_spark.results.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


def read_events(
    spark: SparkSession, root: str, *, columns: Sequence[str] | None = None, where: local_tables.Filters = ()
) -> list[journal.Event]:
    """Read events of ``runs``, see :func:`journal.read_events`.

    Raises
    ------
    ConfigError
        There are no results at the root.
    """
    storage = open_storage(spark, root, one_run_per_root=True)
    if not delta_log.exists(storage, schemas.RUNS.name):
        raise ConfigError(Fault("results root", f"{storage.root!r} (no table runs)", "the results of an earlier run"))
    return journal.read_events(spark, storage, columns=columns, where=where)


def read_published(spark: SparkSession, root: str, table: str, *, where: local_tables.Filters) -> list[dict[str, Any]]:
    """Read rows of a table at the version that was published last.

    Raises
    ------
    InputError
        Nothing was published.
    """
    commits = read_events(spark, root, columns=["table_versions"], where=[("status", "in", journal.COMMITS)])
    if not commits:
        raise InputError(Fault(f"results {root}", "no published run", "at least one", "run an evaluation first"))
    storage = open_storage(spark, root, one_run_per_root=True)
    version = commits[-1]["table_versions"][table]
    if local_tables.are_at(storage):
        return local_tables.read(storage, table, version=version, where=where)
    frame = tables.read(spark, storage, table, version).where(tables.condition(where))
    return [row.asDict(recursive=True) for row in frame.collect()]

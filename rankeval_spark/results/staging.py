"""Where a run keeps its results until they are published: Delta tables, in which a torn write is invisible."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T

from rankeval_spark.results import delta_log, tables
from rankeval_spark.results.storage import inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.results.facts import Night
    from rankeval_spark.results.storage import Storage

STAGING_FOLDER: Final = "_staging"
ONLY: Final = 0
"""Version of a staged table. Where a session compacts on its own there are later ones, of a part of its rows."""

TEMPORARY: Final = "temporary_"
"""Prefix of staged tables that are not published."""


class Staging:
    """The staging area of one run."""

    def __init__(self, spark: SparkSession, storage: Storage, night: Night, run_id: str) -> None:
        self._spark = spark
        self._storage = storage
        self._folder = f"{STAGING_FOLDER}/{night.slug}.{run_id}"

    def write(self, table: str, frame: DataFrame) -> DataFrame:
        """Stage a frame in one Delta commit and return a frame that reads it.

        Raises
        ------
        AnalysisException
            The run has staged this table before. (Where Delta may overwrite, it first works out what there is.)
        """
        writer = frame.write.format("delta").options(**tables.PROPERTIES).mode("error")
        writer.save(tables.path_of(self._storage, self._table(table)))
        return self.read(table)

    def read(self, table: str) -> DataFrame:
        """Read a staged table: the files of its one commit.

        Reading them as Parquet spares the jobs by which Delta works out what a table holds: the audit of four small
        tables took 25 jobs with them and takes 6 without.
        """
        path = self._table(table)
        schema = T.StructType.fromJson(delta_log.columns(self._storage, path))
        files = delta_log.files_written(self._storage, path, ONLY)
        if not files:
            return self._spark.createDataFrame([], schema)
        paths = [_literal(inside(self._storage.root, f"{path}/{file}")) for file in files]
        return self._spark.read.schema(schema).parquet(*paths)

    def has(self, table: str) -> bool:
        """Whether a table was staged, whole."""
        return delta_log.exists(self._storage, self._table(table))

    def lacking(self, tables: Iterable[str]) -> list[str]:
        """List those of some tables that were not staged, or are gone."""
        return [table for table in tables if not self.has(table)]

    def n_rows(self, table: str) -> int:
        """Rows of a staged table, from its commit where it says so."""
        n_rows = delta_log.n_rows_written(self._storage, self._table(table), ONLY)
        return self.read(table).count() if n_rows is None else n_rows

    def remove(self) -> None:
        """Remove the staging area of this run."""
        self._storage.remove(self._folder)

    def _table(self, table: str) -> str:
        return f"{self._folder}/{table}"


def _literal(path: str) -> str:
    """Keep Spark from taking a path for a pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def remove_all(storage: Storage, night: Night) -> None:
    """Remove what the runs of a night left behind, those that crashed; the caller holds the run lock of the night."""
    for name in storage.names(STAGING_FOLDER):
        if name.rpartition(".")[0] == night.slug:
            storage.remove(f"{STAGING_FOLDER}/{name}")

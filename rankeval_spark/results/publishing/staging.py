"""Where a run keeps its results until they are published: Delta tables, in which a torn write is invisible."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from rankeval_spark.results.publishing.staged_rows_arrow import RowsInProcess
from rankeval_spark.results.storage import delta_log, local_tables
from rankeval_spark.results.storage.file_store import inside
from rankeval_spark.results.storage.local_tables import NewTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.result_rows.column_json import Json
    from rankeval_spark.results.publishing.staged_rows import StagedRows
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.results.storage.file_store import Storage

STAGING_FOLDER: Final = "_staging"
MOST_ROWS_HERE: Final = 20_000_000
"""Rows of users that this process looks at; their keys take some 100 bytes each."""

ONLY: Final = 0
"""Version of a staged table. Where a session compacts on its own there are later ones, of a part of its rows."""


class Staging:
    """The staging area of one run.

    Attributes
    ----------
    run_id : str
        The run.
    """

    def __init__(self, spark: SparkSession, storage: Storage, night: NightKey, run_id: str) -> None:
        self._spark = spark
        self._storage = storage
        self.run_id = run_id
        self._night = night
        self._folder = f"{STAGING_FOLDER}/{night.slug}.{run_id}"

    def write(self, table: str, rows: DataFrame | pa.Table) -> None:
        """Stage the rows of a table, in one commit; a frame is computed by Spark.

        Raises
        ------
        AnalysisException, FileExistsError
            The run has staged this table before.
        """
        path = self._table(table)
        if isinstance(rows, pa.Table) and local_tables.are_at(self._storage):
            local_tables.write_new(self._storage, path, rows)
            return
        from rankeval_spark.results.publishing import writes_on_spark  # noqa: PLC0415 - imports pyspark

        writes_on_spark.stage(self._spark, self._storage, path, self._night, rows)

    def new(self, table: str, schema: pa.Schema) -> NewTable:
        """Begin to stage a table whose rows come in parts; on a disk of this machine only."""
        if not local_tables.are_at(self._storage):
            message = "only tables on this machine are staged in parts"
            raise ValueError(message)
        return NewTable(self._storage, self._table(table), self._night, schema)

    def read(self, table: str) -> DataFrame:
        """Read a staged table: the files of its one commit."""
        from rankeval_spark.results.publishing import writes_on_spark  # noqa: PLC0415 - imports pyspark

        return writes_on_spark.staged(self._spark, self._storage, self._table(table), self._night, self.files(table))

    def columns(self, table: str) -> Json:
        """Columns of a staged table."""
        return delta_log.columns(self._storage, self._table(table))

    def files(self, table: str) -> list[dict[str, Any]]:
        """Return what is recorded of each file of a staged table, and its ``location``: the folder of the table."""
        path = self._table(table)
        location = inside(self._storage.root, path)
        return [{**file, "location": location} for file in delta_log.files_written(self._storage, path, ONLY)]

    def scan(self, table: str) -> DataFrame | ds.Dataset:
        """Read a staged table in this process where it is on this machine, by Spark elsewhere."""
        if not local_tables.are_at(self._storage):
            return self.read(table)
        return ds.dataset([str(path) for path in self._paths(table)], format="parquet")

    def _paths(self, table: str) -> list[Path]:
        return [Path(file["location"], file["path"]) for file in self.files(table)]

    def staged_rows(self, table: str) -> StagedRows:
        """Give the rows of a staged table to the audit: read here, where they are on this machine and not too many."""
        if local_tables.are_at(self._storage) and self.n_rows(table) <= MOST_ROWS_HERE:
            return RowsInProcess(self._paths(table))
        from rankeval_spark.results.publishing.staged_rows_spark import RowsOnSpark  # noqa: PLC0415 - imports pyspark

        return RowsOnSpark(self.read(table))

    def has(self, table: str) -> bool:
        """Whether a table was staged, whole."""
        return delta_log.exists(self._storage, self._table(table))

    def lacking(self, tables: Iterable[str]) -> list[str]:
        """List those of some tables that were not staged, or are gone, or have files that a power loss took or cut."""
        return [table for table in tables if not (self.has(table) and self._has_files(table))]

    def _has_files(self, table: str) -> bool:
        if not local_tables.are_at(self._storage):
            return True
        sizes = ((Path(file["location"], file["path"]), file["size"]) for file in self.files(table))
        return all(path.exists() and path.stat().st_size == size for path, size in sizes)

    def n_rows(self, table: str) -> int:
        """Rows of a staged table, from its commit where it says so."""
        n_rows = delta_log.n_rows_written(self._storage, self._table(table), ONLY)
        return self.read(table).count() if n_rows is None else n_rows

    def remove(self) -> None:
        """Remove the staging area of this run."""
        self._storage.remove(self._folder)

    def _table(self, table: str) -> str:
        return f"{self._folder}/{table}"


def remove_all(storage: Storage, night: NightKey) -> None:
    """Remove what the runs of a night left behind, those that crashed; the caller holds the run lock of the night."""
    for name in storage.names(STAGING_FOLDER):
        if name.rpartition(".")[0] == night.slug:
            storage.remove(f"{STAGING_FOLDER}/{name}")

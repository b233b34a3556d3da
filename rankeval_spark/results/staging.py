"""The staging area of a run: Delta tables, in which a torn write is invisible, and the rows it could not use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.dataset as ds

from rankeval_spark.results import delta_log, local_tables, local_writes
from rankeval_spark.results.audit import RowsInProcess
from rankeval_spark.results.file_store import inside
from rankeval_spark.results.local_writes import NewTable, folder_of
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.table_store import STAGED_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.audit import StagedRows
    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.table_store import TableStore

STAGING_FOLDER: Final = "_staging"
QUARANTINE_FOLDER: Final = "_quarantine"
MAX_ROWS_HERE: Final = 20_000_000  # rows of users that this process audits; their keys take some 100 bytes each
_DATE_LENGTH: Final = len("2026-01-31")


class Staging:
    """The staging area of one run."""

    def __init__(self, tables: TableStore, night: NightKey, run_id: str) -> None:
        self.night = night
        self.run_id = run_id
        self._tables, self._storage = tables, tables.storage
        self._folder = f"{STAGING_FOLDER}/{night.slug}.{run_id}"

    def path(self, table: str) -> str:
        """Return the path of a staged table within the root."""
        return f"{self._folder}/{table}"

    def write(self, table: str, rows: DataFrame | pa.Table) -> None:
        """Stage the rows of a table in one commit; AnalysisException or FileExistsError if it was staged before."""
        if isinstance(rows, pa.Table) and local_tables.are_at(self._storage):
            local_writes.write_new(self._storage, self.path(table), rows)
            return
        from rankeval_spark.results import spark_tables  # noqa: PLC0415 - imports pyspark

        spark_tables.stage(self._tables.spark, inside(self._storage.root, self.path(table)), rows)

    def new(self, table: str, schema: pa.Schema, conform: Callable[[pa.Table], pa.Table]) -> NewTable:
        """Return a table to be staged in parts; ValueError where only Spark writes."""
        if not local_tables.are_at(self._storage):
            message = "only tables on this machine are staged in parts"
            raise ValueError(message)
        path = self.path(table)  # a worker makes no folder, which could outlive the staging area
        Path(inside(self._storage.root, path), folder_of(self.night)).mkdir(parents=True, exist_ok=True)
        return NewTable(self._storage, path, self.night, schema, conform)

    def read(self, table: str) -> DataFrame:
        """Read a staged table by Spark: the files of its one commit."""
        from rankeval_spark.results import spark_tables  # noqa: PLC0415 - imports pyspark

        return spark_tables.read_staged(self._tables.spark, self._storage, self.path(table), self.night)

    def scan(self, table: str) -> DataFrame | ds.Dataset:
        """Read a staged table: as a dataset if it is on this machine, else by Spark."""
        if not local_tables.are_at(self._storage):
            return self.read(table)
        return ds.dataset([str(path) for path in self._sizes(table)], format="parquet")

    def staged_rows(self, table: str) -> StagedRows:
        """Return the rows of a staged table for the audit: read here, if they are on this machine and not too many.

        Copies of a store are read here, however many: executors do not see them.
        """
        storage = self._storage
        if local_tables.are_at(storage) and (storage.is_mirror or self.n_rows(table) <= MAX_ROWS_HERE):
            return RowsInProcess([*self._sizes(table)])
        from rankeval_spark.results.spark_tables import RowsOnSpark  # noqa: PLC0415 - imports pyspark

        return RowsOnSpark(self.read(table))

    def columns(self, table: str) -> Json:
        """Return the columns of a staged table."""
        return delta_log.columns(self._storage, self.path(table))

    def n_rows(self, table: str) -> int:
        """Count the rows of a staged table, by the statistics of its commit if it has them."""
        n_rows = delta_log.n_rows_written(self._storage, self.path(table), STAGED_VERSION)
        return self.read(table).count() if n_rows is None else n_rows

    def has(self, table: str) -> bool:
        """Return whether a table was staged, whole."""
        return delta_log.exists(self._storage, self.path(table))

    def lacking(self, tables: Iterable[str]) -> list[str]:
        """Return the tables that were not staged, are gone, or have files that a power loss took or cut."""
        is_here, found = local_tables.are_at(self._storage), []
        for table in tables:
            sizes = self._sizes(table) if is_here and self.has(table) else {}
            is_whole = all(path.exists() and path.stat().st_size == size for path, size in sizes.items())
            found += [] if self.has(table) and is_whole else [table]
        return found

    def _sizes(self, table: str) -> dict[Path, int]:
        """Return the files of a staged table on this machine, with their sizes as written."""
        files = delta_log.files_written(self._storage, self.path(table), STAGED_VERSION)
        self._storage.fetch(f"{self.path(table)}/{file['path']}" for file in files)
        return {Path(file["location"], file["path"]): file["size"] for file in files}

    def remove(self) -> None:
        """Remove the staging area of this run."""
        self._storage.remove(self._folder)


def remove_all(storage: Storage, night: NightKey) -> None:
    """Remove the staging of a night's crashed runs; the caller holds its run lock."""
    for name in storage.names(STAGING_FOLDER):
        if name.rpartition(".")[0] == night.slug:
            storage.remove(f"{STAGING_FOLDER}/{name}")


def quarantine_path(storage: Storage, night: NightKey) -> str:
    """Return the path of the input rows that a night could not use."""
    return f"{storage.address}/{QUARANTINE_FOLDER}/{night.slug}"


def replace_quarantined(storage: Storage, night: NightKey, rows: DataFrame | None) -> None:
    """Replace the input rows that a night could not use by those of its newest run; None leaves nothing.

    They are a Delta table of its own for each night, which no reader of results reads. It is made again as a folder, so
    that no version of it outlives the night's next run, the retention or the erasure of a user.
    """
    storage.remove(f"{QUARANTINE_FOLDER}/{night.slug}")
    if rows is not None:
        rows.write.format("delta").save(quarantine_path(storage, night))


def remove_quarantined(storage: Storage, *, evaluation: str | None = None, before: date | None = None) -> list[str]:
    """Remove such rows of past nights, of one evaluation or all, before a date or all; return the folders."""
    removed, start = [], None if evaluation is None else NightKey(evaluation, date.min).slug[:-_DATE_LENGTH]
    for name in storage.names(QUARANTINE_FOLDER):
        of_evaluation, day = name[:-_DATE_LENGTH], name[-_DATE_LENGTH:]
        if start in (None, of_evaluation) and (before is None or day < before.isoformat()):
            storage.remove(f"{QUARANTINE_FOLDER}/{name}")
            removed.append(name)
    return removed

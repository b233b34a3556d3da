"""The staging area of a run: Delta tables, in which a torn write is invisible, and the rows it could not use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.dataset as ds

from rankeval_spark.results import data_files, delta_log
from rankeval_spark.results.audit import StagedRows
from rankeval_spark.results.data_files import NewTable, folder_of
from rankeval_spark.results.result_tables import STAGED_VERSION
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import inside

if TYPE_CHECKING:
    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.result_tables import ResultTables
    from rankeval_spark.results.storage import Storage

STAGING_FOLDER: Final = "_staging"
QUARANTINE_FOLDER: Final = "_quarantine"
QUARANTINED: Final = pa.schema([("input", pa.string()), ("check", pa.string()), ("row", pa.string())])
_DATE_LENGTH: Final = len("2026-01-31")


class Staging:
    """The staging area of one run."""

    def __init__(self, tables: ResultTables, night: NightKey, run_id: str) -> None:
        self.night = night
        self.run_id = run_id
        self._tables, self._storage = tables, tables.storage
        self._folder = f"{STAGING_FOLDER}/{night.slug}.{run_id}"

    def path(self, table: str) -> str:
        """Return the path of a staged table within the root."""
        return f"{self._folder}/{table}"

    def write(self, table: str, rows: pa.Table) -> None:
        """Stage the rows of a table in one commit; FileExistsError if it was staged before."""
        data_files.write_new(self._storage, self.path(table), rows)

    def new(self, table: str, schema: pa.Schema, conform: Callable[[pa.Table], pa.Table]) -> NewTable:
        """Return a table to be staged in parts."""
        path = self.path(table)  # a worker makes no folder, which could outlive the staging area
        Path(inside(self._storage.root, path), folder_of(self.night)).mkdir(parents=True, exist_ok=True)
        return NewTable(self._storage, path, self.night, schema, conform)

    def scan(self, table: str) -> ds.Dataset:
        """Return the rows of a staged table as a dataset."""
        return ds.dataset([*map(str, self._sizes(table))], format="parquet")

    def staged_rows(self, table: str) -> StagedRows:
        """Return the rows of a staged table for the audit."""
        return StagedRows([*self._sizes(table)])

    def columns(self, table: str) -> Json:
        """Return the columns of a staged table."""
        return delta_log.columns(self._storage, self.path(table))

    def n_rows(self, table: str) -> int:
        """Count the rows of a staged table, by the statistics of its commit."""
        return delta_log.n_rows_written(self._storage, self.path(table), STAGED_VERSION)

    def has(self, table: str) -> bool:
        """Return whether a table was staged, whole."""
        return delta_log.exists(self._storage, self.path(table))

    def lacking(self, tables: Iterable[str]) -> list[str]:
        """Return the tables that were not staged, are gone, or have files that a power loss took or cut."""
        found = []
        for table in tables:
            sizes = self._sizes(table) if self.has(table) else {}
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


def replace_quarantined(storage: Storage, night: NightKey, write: Callable[[NewTable], None] | None) -> None:
    """Replace the input rows that a night could not use by what ``write`` adds; None leaves nothing.

    They are a Delta table of its own for each night, which no reader of results reads. It is made again as a folder, so
    that no version of it outlives the night's next run, the retention or the erasure of a user.
    """
    table = f"{QUARANTINE_FOLDER}/{night.slug}"
    storage.remove(table)
    if write is not None:
        Path(inside(storage.root, table)).mkdir(parents=True, exist_ok=True)
        new = NewTable(storage, table, None, QUARANTINED)
        write(new)
        new.commit()


def remove_quarantined(storage: Storage, *, evaluation: str | None = None, before: date | None = None) -> list[str]:
    """Remove such rows of past nights, of one evaluation or all, before a date or all; return the folders."""
    removed, start = [], None if evaluation is None else NightKey(evaluation, date.min).slug[:-_DATE_LENGTH]
    for name in storage.names(QUARANTINE_FOLDER):
        of_evaluation, day = name[:-_DATE_LENGTH], name[-_DATE_LENGTH:]
        if start in (None, of_evaluation) and (before is None or day < before.isoformat()):
            storage.remove(f"{QUARANTINE_FOLDER}/{name}")
            removed.append(name)
    return removed

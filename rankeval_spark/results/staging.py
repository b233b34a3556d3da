"""Staged rows: files that no version names, their list, and the input rows a run could not use.

Files are written once, into the folder where they stay, under names that begin with the run's id. A reader opens a
table through its log and never sees them. Before a run announces its publish it writes the list, one file in the
staging area, from which whoever finds the announcement completes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds

from rankeval_spark import schemas
from rankeval_spark.results import data_files, journal
from rankeval_spark.results.audit import StagedRows
from rankeval_spark.results.data_files import FileWriter, folder_of, path_of
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import inside
from rankeval_spark.results.tables import measure_columns

if TYPE_CHECKING:
    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.result_tables import ResultTables
    from rankeval_spark.results.storage import Storage

STAGING_FOLDER: Final = "_staging"
QUARANTINE_FOLDER: Final = "_quarantine"
QUARANTINED: Final = pa.schema([("input", pa.string()), ("check", pa.string()), ("row", pa.string())])
_DATE_LENGTH: Final = len("2026-01-31")


class Staging:
    """The files that one run staged, by the table whose rows they are."""

    def __init__(self, storage: Storage, night: NightKey, run_id: str) -> None:
        self.night = night
        self.run_id = run_id
        self.measures: Sequence[Json] = []  # columns of ``user_metrics`` that are not declared
        self._storage = storage
        self._path = f"{STAGING_FOLDER}/{night.slug}.{run_id}"
        self._files: dict[str, Sequence[Mapping[str, Any]]] = {}  # add actions of each staged table
        self._of_workers: set[str] = set()  # tables with files of workers
        self._is_listed = False

    @classmethod
    def announced(cls, storage: Storage, night: NightKey, run_id: str) -> Staging:
        """Read the list of a run that announced its publish; nothing is staged if the list is gone or damaged."""
        found = cls(storage, night, run_id)
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            listed = json.loads(storage.read(found._path))
            found.measures, found._files = listed["measures"], listed["files"]
        return found

    def save(self) -> None:
        """Write the list, which a power loss does not take."""
        self._is_listed = True
        self._storage.put(self._path, json.dumps({"measures": self.measures, "files": self._files}).encode())

    def writer(self, table: str, conform: Callable[[pa.Table], pa.Table] | None = None) -> FileWriter:
        """Return the writer of a table's files."""
        made = FileWriter(self._storage, table, self.night, self.run_id, conform)
        made.make_folder()
        return made

    def add(self, table: str, written: FileWriter, schema: pa.Schema) -> int:
        """Stage what was written of a table; return the number of its rows."""
        self._files[table] = written.finish()
        if written.has_workers:
            self._of_workers.add(table)
        if table == schemas.USER_METRICS.name:
            self.measures = measure_columns(json.loads(deltalake.Schema.from_arrow(schema).to_json()))
        return sum(json.loads(action["add"]["stats"])["numRecords"] for action in self._files[table])

    def files(self, table: str) -> Sequence[Mapping[str, Any]]:
        """Return the add actions of the files of a table; none if it was not staged."""
        return self._files.get(table, [])

    def scan(self, table: str) -> ds.Dataset:
        """Return the rows of a staged table as a dataset."""
        return ds.dataset([*map(str, self._sizes(table))], format="parquet")

    def staged_rows(self, table: str) -> StagedRows:
        """Return the rows of a staged table for the audit."""
        return StagedRows([*self._sizes(table)])

    def lacking(self, tables: Iterable[str]) -> list[str]:
        """Return the tables that were not staged, are gone, or have files that a power loss took or cut."""
        found = []
        for table in tables:
            is_whole = all(path.exists() and path.stat().st_size == size for path, size in self._sizes(table).items())
            found += [] if table in self._files and is_whole else [table]
        return found

    def _sizes(self, table: str) -> dict[Path, int]:
        """Return the files of a staged table on this machine, with their sizes as written."""
        sizes = {path_of(action): action["add"]["size"] for action in self.files(table)}
        self._storage.fetch(f"{table}/{path}" for path in sizes)
        return {Path(inside(self._storage.root, table), path): size for path, size in sizes.items()}

    def close(self) -> None:
        """Remove the list of a published run, and the files of repeated worker tasks."""
        self._storage.forget([self._path, *self._strays(self._of_workers)])

    def discard(self) -> int:
        """Remove the files of a run that never announced its publish; return how many there were."""
        self._files, self.measures = {}, []
        strays = self._strays(schema.name for schema in schemas.PUBLISHED)
        self._storage.forget([*strays, *([self._path] if self._is_listed else [])])
        return len(strays)

    def _strays(self, tables: Iterable[str]) -> list[str]:
        """Return the files of tables that have this run in their names, and are not listed."""
        folder = folder_of(self.night)

        def strays_of(table: str) -> list[str]:
            listed = {path_of(action) for action in self.files(table)}
            names = self._storage.names(f"{table}/{folder}")
            own = (f"{folder}/{name}" for name in names if name.startswith(f"{self.run_id}."))
            return [f"{table}/{path}" for path in own if path not in listed]

        return [path for strays in self._storage.side_by_side(strays_of, tables) for path in strays]


def staged_runs(storage: Storage) -> list[tuple[str, str]]:
    """Return the slug of the night and the id of each run whose list is there."""
    named = (name.rpartition(".") for name in storage.names(STAGING_FOLDER))
    return [(slug, run_id) for slug, _, run_id in named if slug]


def discard_run(tables: ResultTables, slug: str, run_id: str) -> int:
    """Remove the list of a dead run, and its files if it never announced a publish; return how many files there were.

    Whoever calls this has held the publish lock since the run died: it can announce nothing any more.
    """
    storage, where = tables.storage, [("run_id", "=", run_id)]
    events = journal.event_table(tables.reader, columns=("evaluation", "evaluation_date", "status"), where=where)
    found = events.to_pylist()
    n_files = 0
    if found and not any(event["status"] in (*journal.INTENTS, *journal.COMMITS) for event in found):
        night = NightKey(found[0]["evaluation"], found[0]["evaluation_date"])
        n_files = Staging(storage, night, run_id).discard()
    if (slug, run_id) in staged_runs(storage):
        storage.forget([f"{STAGING_FOLDER}/{slug}.{run_id}"])
        n_files += 1
    return n_files


def quarantine_path(storage: Storage, night: NightKey) -> str:
    """Return the path of the input rows that a night could not use."""
    return f"{storage.address}/{QUARANTINE_FOLDER}/{night.slug}"


def replace_quarantined(storage: Storage, night: NightKey, write: Callable[[FileWriter], None] | None) -> None:
    """Replace the input rows that a night could not use by what ``write`` adds; None leaves nothing.

    They are a Delta table of its own for each night, which no reader of results reads. It is made again as a folder, so
    that no version of it outlives the night's next run, the retention or the erasure of a user.
    """
    table = f"{QUARANTINE_FOLDER}/{night.slug}"
    storage.remove(table)
    if write is not None:
        rows = FileWriter(storage, table)
        rows.make_folder()
        write(rows)
        data_files.create_table(storage, table, QUARANTINED, rows.finish(), partitions=())


def remove_quarantined(storage: Storage, *, evaluation: str | None = None, before: date | None = None) -> list[str]:
    """Remove such rows of past nights, of one evaluation or all, before a date or all; return the folders."""
    removed, start = [], None if evaluation is None else NightKey(evaluation, date.min).slug[:-_DATE_LENGTH]
    for name in storage.names(QUARANTINE_FOLDER):
        of_evaluation, day = name[:-_DATE_LENGTH], name[-_DATE_LENGTH:]
        if start in (None, of_evaluation) and (before is None or day < before.isoformat()):
            storage.remove(f"{QUARANTINE_FOLDER}/{name}")
            removed.append(name)
    return removed

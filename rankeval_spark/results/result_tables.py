"""The Delta tables of a results root, and how their rows are committed, replaced and changed.

Commits are ours (:mod:`delta_log`), files are of :mod:`data_files`. Spark would need several stages and a second for a
commit; a few rows, or files that are written already, take 10 ms here. Locks are of :mod:`locks`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, table_scans
from rankeval_spark.results.data_files import (
    ROWS_AT_ONCE,
    DataFile,
    commit,
    data_files,
    metadata_action,
    path_of,
    remove_action,
    restore_action,
    small_files,
    write_file,
)
from rankeval_spark.results.delta_log import NO_OTHER_WRITER, OvertakenError
from rankeval_spark.results.locks import turn_for_runs
from rankeval_spark.results.readers import ArrowReader
from rankeval_spark.results.storage import inside
from rankeval_spark.results.table_scans import delta_table
from rankeval_spark.results.tables import PARTITIONS

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.measures.arrays import BoolVector
    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.results.storage import Storage

Made = TypeVar("Made")
MAX_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class RowChange:
    """A change of some rows."""

    columns: list[str]  # read to find the affected rows
    affects: Callable[[pa.RecordBatch], BoolVector]  # (n_rows,) affected rows of a batch with these columns
    apply: Callable[[pa.RecordBatch, BoolVector], pa.RecordBatch]  # whole batch and affected rows -> new batch


class ResultTables:
    """The tables of one results root; only files with an affected row are rewritten."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._held: tuple[Lock, ...] = ()

    def holding(self, lock: Lock) -> Self:
        """Return the same tables, to which nothing is committed once this lock is lost, too."""
        tables = copy(self)
        tables._held = (*self._held, lock)
        return tables

    @contextmanager
    def turn_for(self, table: str, owner: str) -> Iterator[Self]:
        """Yield the tables under the lock of ``runs``, to which runs append side by side; others need no turn."""
        if table != schemas.RUNS.name:
            yield self
            return
        with turn_for_runs(self.storage, owner) as turn:
            yield self.holding(turn)

    @property
    def reader(self) -> ArrowReader:
        """The reader of the tables as of now."""
        return ArrowReader(self.storage)

    def commit(self, table: str, make: Callable[[int], Made]) -> Made:
        """Commit to a table while locks are held; retry a commit that was overtaken.

        A writer that was suspended for too long loses its locks, and may wake up at any line. So the newest version is
        read before the locks are checked, and ``make`` makes the next one or fails: the process that takes over makes
        that version first, see :meth:`fence`.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            seen = delta_log.latest_version(self.storage, table, is_fresh=attempt > 1)
            self.assert_held()
            try:
                return make(seen)
            except Exception as error:
                self.assert_held()  # whoever took a lock may be the cause
                if attempt == MAX_ATTEMPTS or not isinstance(error, OvertakenError):
                    raise
        raise AssertionError  # pragma: no cover - the last attempt returned or raised

    def assert_held(self) -> None:
        """Raise ResultsBusyError if another run took a lock."""
        for lock in self._held:
            lock.assert_held()

    def own_commit(self, table: str, run_id: str, *, after: int) -> int:
        """Return the version that a run just made; ResultsError if its commit is not in the log, as after a fence."""
        version = delta_log.find_commit(self.storage, table, tag=run_id, after=after)
        if version is None:
            found = f"no commit of run {run_id} after version {after}"
            raise ResultsError(Fault(f"table {table}", found, "the commit that this run just made", NO_OTHER_WRITER))
        return version

    def fence(self, owner: str) -> None:
        """Fence off a holder that lost the publish lock and may still be at work: it cannot commit to any table.

        Each gets a version without rows, so that no writer who read it before can make its next one.
        """
        for schema in (*schemas.PUBLISHED, schemas.RUNS):
            if delta_log.exists(self.storage, schema.name):
                with self.turn_for(schema.name, owner) as in_turn:
                    in_turn._make_empty_version(schema.name)

    def _make_empty_version(self, table: str) -> None:
        self.commit(table, lambda seen: delta_log.commit(self.storage, table, seen + 1, []))

    def latest_versions(self, names: Iterable[str]) -> dict[str, int]:
        """Return the newest versions of some tables."""
        return {table: delta_log.latest_version(self.storage, table) for table in names}

    def add_columns(self, table: str, wanted: Sequence[Json]) -> None:
        """Add those columns that a table lacks, in a commit without rows."""

        def add(seen: int) -> None:
            present = self.columns(table)["fields"]
            names = {field["name"] for field in present}
            if lacking := [field for field in wanted if field["name"] not in names]:
                columns = json.dumps({"type": "struct", "fields": [*present, *lacking]})
                opened = delta_table(self.storage, table, seen)
                commit(self.storage, table, seen, [metadata_action(opened, schemaString=columns)])

        self.commit(table, add)

    def columns(self, table: str) -> Json:
        """Return the columns of a table as it is now, in the form of ``StructType.fromJson``."""
        known = delta_log.latest_version(self.storage, table, is_fresh=False)
        columns: Json = json.loads(delta_table(self.storage, table, known).schema().to_json())
        return columns

    def properties(self, table: str) -> dict[str, str]:
        """Return the properties of a table."""
        return dict(delta_table(self.storage, table).metadata().configuration)

    def append_events(self, rows: Sequence[Mapping[str, Any]], *, tag: str, after: int) -> None:
        """Append rows to ``runs``, in the commit after a version that was seen, which carries a tag."""
        table = schemas.RUNS.name
        opened = delta_table(self.storage, table, after)
        values = pa.Table.from_pylist(list(rows), schema=pa.schema(opened.schema().to_arrow()))
        missing = [name for name in values.column_names if values[name].null_count and not values.field(name).nullable]
        if missing:
            message = f"table {table}: no value for {', '.join(missing)}"
            raise ValueError(message)
        written = write_file(self.storage, table, values, None)
        commit(self.storage, table, after, [written] if written else [], tag=tag)

    def restore_night(self, table: str, night: NightKey, run_id: str, version: int | None) -> int:
        """Replace a night's rows by those of an earlier version, None by no rows; return the new version."""
        files = [] if version is None else data_files(self.storage, table, version, night=night)
        self._require(table, files)
        return self.replace_night(table, night, run_id, [*map(restore_action, files)])

    def replace_night(self, table: str, night: NightKey, run_id: str, adds: Sequence[Mapping[str, Any]]) -> int:
        """Replace the files of a night, in one commit; return the version, the newest if it has just these files.

        ``adds`` are add actions of files in the table's folder, which the commit refers to.
        """
        named = {path_of(action) for action in adds}

        def replace(seen: int) -> int:
            own = {file.path: file for file in data_files(self.storage, table, seen, night=night)}
            new = [action for action in adds if path_of(action) not in own]
            gone = [remove_action(file) for path, file in own.items() if path not in named]
            if not new and not gone:
                return seen
            commit(self.storage, table, seen, [*new, *gone], tag=run_id)
            return self.own_commit(table, run_id, after=seen)

        return self.commit(table, replace)

    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        """Return the nights of earlier dates that have rows, of one evaluation or all."""
        nights = {file.night for file in self._files(table, evaluation) if file.night is not None}
        return [night for night in nights if night.evaluation_date < day]

    def delete_nights(self, table: str, nights: Collection[NightKey]) -> None:
        """Delete the rows of some nights, in one commit."""
        wanted = frozenset(nights)

        def delete(seen: int) -> None:
            if files := [file for file in self._files(table, None, seen) if file.night in wanted]:
                self.rewrite_files(table, dict.fromkeys(files), after=seen)

        self.commit(table, delete)
        self._require_none(table, sum(file.night in wanted for file in self._files(table, None)))

    def change_rows(self, table: str, change: RowChange, evaluation: str | None) -> int:
        """Change or delete rows of one evaluation or all; return how many were affected."""
        n_rows = 0

        def changed(batch: pa.RecordBatch) -> pa.RecordBatch:
            return change.apply(batch, change.affects(batch))

        def write(seen: int) -> None:
            nonlocal n_rows
            counts = self._affected_rows(table, change, evaluation, seen)
            n_rows = sum(counts.values())
            if counts:
                self.rewrite_files(table, dict.fromkeys(counts, changed), after=seen)

        self.commit(table, write)
        newest = delta_log.latest_version(self.storage, table)
        self._require_none(table, sum(self._affected_rows(table, change, evaluation, newest).values()))
        return n_rows

    def _require_none(self, table: str, n_rows: int) -> None:
        """Raise ResultsError if rows are still there after they were deleted or changed."""
        self.assert_held()
        if n_rows:
            where = f"table {table}, version {delta_log.latest_version(self.storage, table)}"
            raise ResultsError(Fault(where, "rows that were just deleted or changed", "none of them", NO_OTHER_WRITER))

    def _files(self, table: str, evaluation: str | None, version: int | None = None) -> list[DataFile]:
        found = data_files(self.storage, table, version)
        return [file for file in found if file.night is None or evaluation in (None, file.night.evaluation)]

    def _affected_rows(
        self, table: str, change: RowChange, evaluation: str | None, version: int
    ) -> dict[DataFile, int]:
        location, counts = inside(self.storage.root, table), {}
        for file in self._files(table, evaluation, version):
            self._require(table, [file])
            with pq.ParquetFile(Path(location, file.path)) as opened:
                batches = opened.iter_batches(ROWS_AT_ONCE, columns=change.columns)
                if n_rows := sum(int(change.affects(batch).sum()) for batch in batches):
                    counts[file] = n_rows
        return counts

    def _require(self, table: str, files: Iterable[DataFile]) -> None:
        """Bring files to this machine; DamagedResultsError for those that are missing or damaged."""
        paths = [file.path for file in files]
        self.storage.fetch(f"{table}/{path}" for path in paths)
        table_scans.require_files(inside(self.storage.root, table), paths)

    def rewrite_files(
        self, table: str, files: Mapping[DataFile, Callable[[pa.RecordBatch], pa.RecordBatch] | None], *, after: int
    ) -> None:
        """Rewrite files in one commit: by a change of each batch, or None to delete their rows."""
        location, written = inside(self.storage.root, table), []
        for file, change in files.items():
            if change is not None:
                self._require(table, [file])
                with pq.ParquetFile(Path(location, file.path)) as opened:
                    batches = map(change, opened.iter_batches(ROWS_AT_ONCE))
                    rows = pa.RecordBatchReader.from_batches(opened.schema_arrow, batches)
                    written.append(write_file(self.storage, table, rows, file.night, beside=file.path))
        commit(self.storage, table, after, [*filter(None, written), *map(remove_action, files)])

    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files of each night, of ``runs`` across nights; return their number before and after."""

        def merge(seen: int) -> tuple[int, int]:
            opened, is_of_runs = delta_table(self.storage, table, seen), table == schemas.RUNS.name
            groups = small_files(data_files(self.storage, table, seen), are_of_events=is_of_runs)
            if not groups:
                return 0, 0
            self._require(table, (file for group in groups for file in group))
            dataset = table_scans.scan(self.storage, table, version=seen, is_fetched=False)
            names = [field.name for field in opened.schema().fields if is_of_runs or field.name not in PARTITIONS]
            schema = pa.schema([dataset.schema.field(name) for name in names])
            fragments = {fragment.path: fragment for fragment in dataset.get_fragments()}
            options: dict[str, Any] = {"schema": dataset.schema, "columns": names, "batch_size": ROWS_AT_ONCE}
            written = []
            for group in groups:
                batches = (batch for file in group for batch in fragments[file.path].to_batches(**options))
                rows = pa.RecordBatchReader.from_batches(schema, batches)
                night, beside = group[0].night, group[0].path
                if is_of_runs:
                    rows, beside = rows.read_all(), ""
                written.append(write_file(self.storage, table, rows, night, beside=beside, changes=False))
            removes = [remove_action(file, changes=False) for group in groups for file in group]
            commit(self.storage, table, seen, [*filter(None, written), *removes])
            return len(removes), len(groups)

        return self.commit(table, merge)

    def give_up_damaged_events(self) -> list[str]:
        """Remove missing or damaged files from ``runs``, not from the store; return the damage of each."""
        table = schemas.RUNS.name
        location = Path(inside(self.storage.root, table))

        def give_up(seen: int) -> list[str]:
            files = data_files(self.storage, table, seen)
            self.storage.fetch(f"{table}/{file.path}" for file in files)
            damaged = {file: reason for file in files if (reason := table_scans.why_damaged(location / file.path))}
            if damaged:
                commit(self.storage, table, seen, [remove_action(file) for file in damaged])
            return [f"{file.path}, which is {reason}" for file, reason in damaged.items()]

        return self.commit(table, give_up)

    def vacuum(self, table: str, *, deletes: bool) -> int:
        """Count, or delete, the files that no version within the retention needs."""
        with self.storage.listed(table):
            unneeded = [unquote(path) for path in delta_table(self.storage, table).vacuum(dry_run=True, full=True)]
        if needed := {file.path for file in data_files(self.storage, table)}.intersection(unneeded):
            found = f"{len(needed)} files of its newest version among those to be deleted, such as {min(needed)}"
            fix = "delete none of them by hand; this is a fault of the reader of Delta logs"
            raise ResultsError(Fault(f"table {table}", found, "files that no version needs", fix))
        if deletes:
            self.storage.forget(f"{table}/{path}" for path in unneeded)
        return len(unneeded)

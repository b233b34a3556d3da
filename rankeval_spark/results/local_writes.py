"""Delta tables on a disk of this machine or in the mirror of a store: commits, new tables, rewritten files.

Spark needs several stages and a second for a commit; a few rows, or files that are written already, take 10 ms here.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, local_tables
from rankeval_spark.results.file_store import LocalStorage, inside
from rankeval_spark.results.local_tables import Span, delta_table, partitions_of
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.table_store import STAGED_VERSION, TableStore
from rankeval_spark.results.tables import PARTITIONS, measure_columns

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.table_store import RowChange

ROWS_A_FILE: Final = 200_000  # least rows of users in a file, except the last one of a night
ROWS_AT_ONCE: Final = 65_536  # of a file in memory
SMALL: Final = 64 << 20  # bytes; smaller files of a night are merged
FEW_EVENTS: Final = 2_000
"""Rows below which a file of ``runs`` is small. Each has a config of 10 KB: a merge of as many takes half a second."""

_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""Characters that Spark writes as %XX in the name of a partition's folder."""


class DataFile(NamedTuple):
    """A file of a version of a table."""

    path: str  # its path within the table
    size: int  # its bytes
    night: NightKey | None  # that of its rows; None in `runs`, whose files have rows of many nights
    n_rows: int | None  # None where the log has no statistics


class LocalTables(TableStore):
    """Tables that this process reads and writes: only files with an affected row are rewritten."""

    storage: LocalStorage

    @property
    def reader(self) -> local_tables.NativeReader:
        return local_tables.NativeReader(self.storage)

    def columns(self, table: str) -> Json:
        known = delta_log.latest_version(self.storage, table, is_fresh=False)
        columns: Json = json.loads(delta_table(self.storage, table, known).schema().to_json())
        return columns

    def properties(self, table: str) -> dict[str, str]:
        return dict(delta_table(self.storage, table).metadata().configuration)

    def is_by_night(self, table: str) -> bool:
        known = delta_log.latest_version(self.storage, table, is_fresh=False)
        return bool(partitions_of(delta_table(self.storage, table, known)))

    def _extend(self, table: str, columns: Json, *, after: int) -> None:
        opened = delta_table(self.storage, table, after)
        commit(self.storage, table, after, [metadata_action(opened, schemaString=json.dumps(columns))])

    def append_events(self, rows: Sequence[Mapping[str, Any]], *, tag: str, after: int) -> None:
        table = schemas.RUNS.name
        opened = delta_table(self.storage, table, after)
        values = pa.Table.from_pylist(list(rows), schema=pa.schema(opened.schema().to_arrow()))
        missing = [name for name in values.column_names if values[name].null_count and not values.field(name).nullable]
        if missing:
            message = f"table {table}: no value for {', '.join(missing)}"
            raise ValueError(message)
        is_by_night = bool(partitions_of(opened))
        write = (
            write_by_night(self.storage, table, values)
            if is_by_night
            else [write_file(self.storage, table, values, None)]
        )
        commit(self.storage, table, after, [*filter(None, write)], tag=tag)

    def replace_by_staged(self, table: str, night: NightKey, run_id: str, staged: str | None) -> int:
        files = [] if staged is None else delta_log.files_written(self.storage, staged, STAGED_VERSION)
        if files and staged is not None and table == schemas.USER_METRICS.name:
            self.add_columns(table, measure_columns(delta_log.columns(self.storage, staged)))
        return self.replace_night(table, night, run_id, files)

    def restore_night(self, table: str, night: NightKey, run_id: str, version: int | None) -> int:
        files = [] if version is None else night_files(self.storage, table, night, version)
        return self.replace_night(table, night, run_id, files)

    def replace_night(self, table: str, night: NightKey, run_id: str, files: Sequence[Mapping[str, Any]]) -> int:
        """Replace the files of a night, in one commit, if there are any; return the version.

        ``files`` are add actions of a partitioned table, with its ``location``. They are linked into this table, so
        that either table can be deleted.
        """
        location = inside(self.storage.root, table)

        def replace(seen: int) -> int:
            own = data_files(self.storage, table, seen, night=night)
            if not files and not own:
                return seen
            linked = ((file, _link(self.storage, file, table)) for file in files)
            adds = [add_action(location, path, night, stats=file.get("stats") or "{}") for file, path in linked]
            commit(self.storage, table, seen, [*adds, *map(remove_action, own)], tag=run_id)
            return self.own_commit(table, run_id, after=seen)

        return self.commit(table, replace)

    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        nights = {file.night for file in self._files(table, evaluation) if file.night is not None}
        return [night for night in nights if night.evaluation_date < day]

    def delete_nights(self, table: str, nights: Collection[NightKey]) -> None:
        wanted = frozenset(nights)

        def delete(seen: int) -> None:
            if files := [file for file in self._files(table, None, seen) if file.night in wanted]:
                self.rewrite_files(table, dict.fromkeys(files), after=seen)

        self.commit(table, delete)
        self._require_none(table, sum(file.night in wanted for file in self._files(table, None)))

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
        local_tables.require_files(inside(self.storage.root, table), paths)

    def _rewrite(self, table: str, parts: Collection[DataFile], change: RowChange, *, after: int) -> None:
        self.rewrite_files(table, dict.fromkeys(parts, change.changed), after=after)

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
        """Merge small files; ``runs`` is without partitions afterwards."""
        return self.commit(table, lambda seen: self._merge(table, seen))

    def _merge(self, table: str, seen: int) -> tuple[int, int]:
        """Merge small files of each night, or of ``runs``, in a commit; return how many were removed and written."""
        opened, files = delta_table(self.storage, table, seen), data_files(self.storage, table, seen)
        is_of_runs, partitions = table == schemas.RUNS.name, partitions_of(opened)
        groups = _groups_of_events(files, takes_all=bool(partitions)) if is_of_runs else _groups_of_nights(files)
        if not groups:
            return 0, 0
        self._require(table, (file for group in groups for file in group))
        dataset = local_tables.scan(self.storage, table, version=seen, is_fetched=False)
        names = [field.name for field in opened.schema().fields if is_of_runs or field.name not in PARTITIONS]
        schema = pa.schema([dataset.schema.field(name) for name in names])
        fragments = {fragment.path: fragment for fragment in dataset.get_fragments()}
        options: dict[str, Any] = {"schema": dataset.schema, "columns": names, "batch_size": ROWS_AT_ONCE}
        written = []
        for group in groups:
            batches = (batch for file in group for batch in fragments[file.path].to_batches(**options))
            rows = pa.RecordBatchReader.from_batches(schema, batches)
            if is_of_runs:
                written.append(write_file(self.storage, table, rows.read_all(), None, changes=False))
            else:
                beside = group[0].path
                written.append(write_file(self.storage, table, rows, group[0].night, beside=beside, changes=False))
        metadata = [metadata_action(opened, partitionColumns=[])] if is_of_runs and partitions else []
        removes = [remove_action(file, changes=False) for group in groups for file in group]
        commit(self.storage, table, seen, [*metadata, *filter(None, written), *removes])
        return len(removes), len(groups)

    def give_up_damaged_events(self) -> list[str]:
        table = schemas.RUNS.name
        location = Path(inside(self.storage.root, table))

        def give_up(seen: int) -> list[str]:
            files = data_files(self.storage, table, seen)
            self.storage.fetch(f"{table}/{file.path}" for file in files)
            damaged = {file: reason for file in files if (reason := local_tables.why_damaged(location / file.path))}
            if damaged:
                commit(self.storage, table, seen, [remove_action(file) for file in damaged])
            return [f"{file.path}, which is {reason}" for file, reason in damaged.items()]

        return self.commit(table, give_up)

    def vacuum(self, table: str, *, deletes: bool) -> int:
        with self.storage.listed(table):
            unneeded = [unquote(path) for path in delta_table(self.storage, table).vacuum(dry_run=True, full=True)]
        if needed := {file.path for file in data_files(self.storage, table)}.intersection(unneeded):
            found = f"{len(needed)} files of its newest version among those to be deleted, such as {min(needed)}"
            fix = "delete none of them by hand; this is a fault of the reader of Delta logs"
            raise ResultsError(Fault(f"table {table}", found, "files that no version needs", fix))
        if deletes:
            self.storage.forget(f"{table}/{path}" for path in unneeded)
        return len(unneeded)


def open_tables(spark: SparkSession | None, storage: Storage) -> TableStore:
    """Return the tables of a root: written by this process on a disk or an object store, by Spark elsewhere."""
    if local_tables.are_at(storage):
        return LocalTables(spark, storage)
    from rankeval_spark.results.spark_tables import SparkTables  # noqa: PLC0415 - imports pyspark

    return SparkTables(spark, storage)


def commit(
    storage: LocalStorage, table: str, seen: int, actions: Sequence[Mapping[str, Any]], *, tag: str | None = None
) -> int:
    """Write actions as the version after one that was seen, and return it; OvertakenError if the table has it.

    The names of new files are synced before.
    """
    location, version = Path(inside(storage.root, table)), seen + 1
    nights = {Path(location, unquote(action["add"]["path"])).parent for action in actions if "add" in action}
    storage.sync(*{*nights, *(night.parent for night in nights), location})
    delta_log.commit(storage, table, version, actions, tag=tag)
    if (version + 1) % storage.checkpoint_every == 0:
        opened, log = delta_table(storage, table, version), location / delta_log.LOG_FOLDER
        opened.create_checkpoint()
        storage.trim_log(opened, f"{table}/{delta_log.LOG_FOLDER}")
        storage.sync(*log.glob(f"{version:020d}.checkpoint*"), log / delta_log.HINT, log)
    return version


def data_files(
    storage: LocalStorage, table: str, version: int | None = None, *, night: NightKey | None = None
) -> list[DataFile]:
    """Return the files of a version, by default the newest, for one night or all; the oldest first."""
    found = pa.table(delta_table(storage, table, version).get_add_actions())
    if night is not None:
        of_night = (pc.equal(pc.struct_field(found["partition"], name), own) for name, own in asdict(night).items())
        found = found.filter(pc.and_(*of_night))
    return [
        DataFile(  # the log has paths as parts of a URL
            unquote(file["path"]),
            file["size_bytes"],
            NightKey(**file["partition"]) if file.get("partition") else None,
            file["num_records"],
        )
        for file in found.sort_by("modification_time").to_pylist()
    ]


def night_files(storage: LocalStorage, table: str, night: NightKey, version: int) -> list[dict[str, Any]]:
    """Return the files with the rows of a night at some version, as :meth:`LocalTables.replace_night` takes them."""
    location = inside(storage.root, table)
    where = [(name, "=", value) for name, value in asdict(night).items()]
    files = []
    for path in sorted(local_tables.scan(storage, table, version=version, where=where).files):
        n_rows = pq.read_metadata(Path(location, path)).num_rows
        files.append({"path": path, "location": location, "stats": json.dumps({"numRecords": n_rows})})
    return files


def _groups_of_events(files: Iterable[DataFile], *, takes_all: bool) -> list[list[DataFile]]:
    """Group the files of ``runs`` to merge: those with few events, or ``takes_all`` of a table that has partitions."""
    small = [file for file in files if takes_all or (file.n_rows or 0) < FEW_EVENTS]
    groups = _group(small, lambda _: "", lambda file: file.n_rows or 0, FEW_EVENTS)
    return groups if takes_all or len(small) > 1 else []


def _groups_of_nights(files: Iterable[DataFile]) -> list[list[DataFile]]:
    """Group the small files of each night to merge; a night with one small file has none."""
    small = sorted((file for file in files if file.size < SMALL), key=lambda file: (str(file.night), file.path))
    groups = _group(small, lambda file: str(file.night), lambda file: file.size, SMALL)
    return [group for group in groups if len(group) > 1]


def _group(
    files: Iterable[DataFile], key: Callable[[DataFile], str], size: Callable[[DataFile], int], enough: int
) -> list[list[DataFile]]:
    """Group neighbours of one key until they are large enough."""
    groups: list[list[DataFile]] = []
    for file in files:
        if groups and key(groups[-1][0]) == key(file) and sum(map(size, groups[-1])) < enough:
            groups[-1].append(file)
        else:
            groups.append([file])
    return groups


def write_new(storage: LocalStorage, table: str, rows: pa.Table) -> None:
    """Create a table with rows, in one commit."""
    create_log(storage, table, rows.schema, write_by_night(storage, table, rows))


def create_log(storage: LocalStorage, table: str, schema: pa.Schema, adds: Sequence[Mapping[str, Any]]) -> None:
    """Write the first commit of a partitioned table."""
    columns = deltalake.Schema.from_arrow(schema).to_json()
    delta_log.create_log(storage, table, columns=columns, partitions=PARTITIONS, adds=adds)


def write_by_night(storage: LocalStorage, table: str, rows: pa.Table) -> list[dict[str, Any]]:
    """Write a file a night; return the add actions."""
    adds = []
    for values in rows.select(PARTITIONS).group_by(PARTITIONS).aggregate([]).to_pylist():
        night = NightKey(*(values[name] for name in PARTITIONS))
        Path(inside(storage.root, table), folder_of(night)).mkdir(parents=True, exist_ok=True)
        is_own = local_tables.is_of((night.evaluation, night.evaluation_date))
        adds.append(write_file(storage, table, rows.filter(is_own), night))
    return [*filter(None, adds)]


def write_file(
    storage: LocalStorage,
    table: str,
    rows: pa.Table | pa.RecordBatchReader,
    night: NightKey | None,  # that of the rows; None for rows of `runs`
    *,
    beside: str = "",  # path of the file whose rows these are, in whose folder they are written
    changes: bool = True,
) -> dict[str, Any] | None:
    """Write rows to a file of a table; return its add action, None without rows. deltalake aborts on a full disk.

    The name of a file of ``runs`` has its nights, for the day when it cannot be read. Statistics of some columns in the
    log would do too, but deltalake takes those of all others for NULL, and finds no row by them.
    """
    if night is not None and not beside:
        rows = rows.drop_columns(PARTITIONS)
    span = None if night is not None else Span.from_path(beside) if beside else Span.from_events(rows)
    name = f"{uuid.uuid4().hex}{span.in_name() if span else ''}.parquet"
    path = str(Path(beside).with_name(name) if beside else Path(folder_of(night), name))
    location, n_rows = inside(storage.root, table), 0
    target = Path(location, path)
    if storage.is_mirror:
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with pq.ParquetWriter(target, rows.schema) as writer:
            for part in [rows] if isinstance(rows, pa.Table) else rows:
                writer.write(part)
                n_rows += part.num_rows
        if n_rows:
            storage.sync(target)
    except OSError:
        target.unlink(missing_ok=True)
        raise
    if not n_rows:
        target.unlink()
        return None
    return add_action(location, path, night, stats=json.dumps({"numRecords": n_rows}), changes=changes)


def folder_of(night: NightKey | None) -> str:
    """Return the folder of a night's files, named as by Spark, from which Polars reads the values; empty for None."""
    values = _partition_of(night)
    escaped = {name: _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value) for name, value in values.items()}
    return "/".join(f"{name}={value}" for name, value in escaped.items())


def _partition_of(night: NightKey | None) -> dict[str, str]:
    """Return the partition of a night as in the log."""
    return {} if night is None else {name: str(value) for name, value in asdict(night).items()}


def _link(storage: LocalStorage, file: Mapping[str, Any], table: str) -> str:
    """Link a file into a table under a new name; return its path within the table."""
    path = Path(file["path"])
    name = path.with_name(f"{uuid.uuid4().hex}-{path.name}")
    Path(inside(storage.root, table), name).parent.mkdir(parents=True, exist_ok=True)
    source = os.path.relpath(Path(file["location"], path), inside(storage.root, ""))
    storage.link(source, f"{table}/{name}")
    return str(name)


def add_action(location: str, path: str, night: NightKey | None, *, stats: str, changes: bool = True) -> dict[str, Any]:
    """Return the add action of a file of a table; ``changes`` is False if other files had its rows before."""
    found = Path(location, path).stat()
    action = _action_on(path, found.st_size, night, changes=changes)
    return {"add": {**action, "modificationTime": found.st_mtime_ns // 1_000_000, "stats": stats}}


def remove_action(file: DataFile, *, changes: bool = True) -> dict[str, Any]:
    """Return the remove action of a file, which older versions keep; ``changes`` is False if others have its rows."""
    action = _action_on(file.path, file.size, file.night, changes=changes)
    return {"remove": {**action, "deletionTimestamp": delta_log.now_ms(), "extendedFileMetadata": True}}


def _action_on(path: str, size: int, night: NightKey | None, *, changes: bool) -> dict[str, Any]:
    name = quote(path, safe=delta_log.AS_IT_IS)
    return {"path": name, "partitionValues": _partition_of(night), "size": size, "dataChange": changes}


def metadata_action(opened: deltalake.DeltaTable, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - values of JSON
    """Return the metadata action of a table, with some changes."""
    known = opened.metadata()
    metadata = {
        "id": str(known.id),
        "name": known.name,
        "description": known.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": opened.schema().to_json(),
        "partitionColumns": known.partition_columns,
        "createdTime": known.created_time,
        "configuration": known.configuration,
    }
    return {"metaData": {**metadata, **changes}}


class NewTable:
    """A new table: rows of one night are added in parts, from any thread, and visible once committed.

    A copy that travels to a worker of Spark is empty: it drains the files that the worker wrote.
    """

    def __init__(
        self,
        storage: LocalStorage,
        table: str,
        night: NightKey,
        schema: pa.Schema,  # the columns with their comments, those of the night included
        conform: Callable[[pa.Table], pa.Table],  # from added rows to rows of the schema
    ) -> None:
        self._facts = storage, table, night, schema, conform
        self._storage, self._table, self._night, self._conform = storage, table, night, conform
        self._adding = Lock()
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._adds: list[dict[str, Any]] = []

    def __reduce__(self) -> tuple[type[NewTable], tuple[Any, ...]]:
        """Return what an empty copy is made of."""
        return NewTable, self._facts

    def add(self, rows: pa.Table) -> None:
        """Buffer rows, and write them to a file once they are many."""
        conformed, ready = self._conform(rows), list[pa.Table]()
        with self._adding:
            self._waiting.append(conformed)
            self._n_waiting += conformed.num_rows
            if self._n_waiting >= ROWS_A_FILE:
                ready, self._waiting, self._n_waiting = self._waiting, [], 0
        self._write(ready)

    def _write(self, parts: Sequence[pa.Table]) -> None:
        if parts and (written := write_file(self._storage, self._table, pa.concat_tables(parts), self._night)):
            self._adds.append(written)

    def _write_rest(self) -> list[dict[str, Any]]:
        """Write the buffered rows; return the add actions of all files so far."""
        ready, self._waiting, self._n_waiting = self._waiting, [], 0
        self._write(ready)
        return self._adds

    def drain(self) -> pa.RecordBatch:
        """Write the buffered rows, and return the add action of each file so far, for :meth:`adopt`."""
        actions = [json.dumps(action) for action in self._write_rest()]
        self._adds = []
        return pa.RecordBatch.from_pydict({"add": pa.array(actions, pa.string())})

    def adopt(self, files: pa.Table) -> None:
        """Add files that workers wrote and drained; ResultsError if this process does not see them."""
        for action in map(json.loads, files["add"].to_pylist()):
            path = Path(inside(self._storage.root, self._table), unquote(action["add"]["path"]))
            if not path.is_file() and not self._storage.is_mirror:
                fix = "use a folder that all machines share, or a store"
                raise ResultsError(Fault("results root", f"no {path}", "the file that a worker wrote there", fix))
            self._adds.append(action)

    def commit(self) -> None:
        """Write the buffered rows, and create the table."""
        storage, table, _, schema, _ = self._facts
        create_log(storage, table, schema, self._write_rest())

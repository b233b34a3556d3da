"""Delta tables on a disk of this machine, written by this process: commits, new tables, rewritten files.

Spark needs several stages and a second for a commit; a few rows, or files that are written already, take 10 ms here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, local_tables
from rankeval_spark.results.file_store import LocalStorage, inside, sync
from rankeval_spark.results.run_record import NightKey

ROWS_A_FILE: Final = 200_000  # least rows of users in a file, except the last one of a night
CHECKPOINT_EVERY: Final = 100  # commits after which a checkpoint spares readers those before it

_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""Characters that Spark writes as %XX in the name of a partition's folder."""

ROWS_AT_ONCE: Final = 65_536  # of a file in memory
SMALL: Final = 64 << 20  # bytes; smaller files of a night are merged

FEW_EVENTS: Final = 2_000
"""Rows below which a file of ``runs`` is small. Each has a config of 10 KB: a merge of as many takes half a second."""


def append_rows(
    storage: LocalStorage, table: str, rows: Iterable[Mapping[str, Any]], *, tag: str, after: int | None = None
) -> int:
    """Append rows in one commit that carries ``tag`` as its user metadata; see :func:`commit`."""
    opened = local_tables.delta_table(storage, table, after)
    values = pa.Table.from_pylist(list(rows), schema=pa.schema(opened.schema().to_arrow()))
    missing = [name for name in values.column_names if values[name].null_count and not values.field(name).nullable]
    if missing:
        message = f"table {table}: no value for {', '.join(missing)}"
        raise ValueError(message)
    files = _written(values, inside(storage.root, table), by=local_tables.partitions_of(opened))
    return commit(storage, table, opened.version(), files, tag=tag)


def commit(
    storage: LocalStorage, table: str, seen: int, actions: Sequence[Mapping[str, Any]], *, tag: str | None = None
) -> int:
    """Write actions as the version after one that was seen, and return it; OvertakenError if the table has it.

    The names of new files are synced before.
    """
    location, version = Path(inside(storage.root, table)), seen + 1
    nights = {Path(location, unquote(action["add"]["path"])).parent for action in actions if "add" in action}
    sync(*{*nights, *(night.parent for night in nights), location})
    delta_log.commit(storage, table, version, actions, tag=tag)
    if (version + 1) % CHECKPOINT_EVERY == 0:
        opened = local_tables.delta_table(storage, table, version)
        opened.create_checkpoint()
        opened.cleanup_metadata()
        log = location / delta_log.LOG_FOLDER
        sync(*log.glob(f"{version:020d}.checkpoint*"), log / "_last_checkpoint", log)
    return version


def write_new(storage: LocalStorage, table: str, rows: pa.Table) -> None:
    """Create a table with rows, in one commit."""
    _create(storage, table, rows.schema, _written(rows, inside(storage.root, table)))


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
        self._storage, self._table, self._night, self._schema = storage, table, night, schema
        self._conform = conform
        self._path = inside(storage.root, table)
        self._adding = Lock()
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._adds: list[dict[str, Any]] = []

    def __reduce__(self) -> tuple[type[NewTable], tuple[Any, ...]]:
        """Return what an empty copy is made of."""
        return NewTable, (self._storage, self._table, self._night, self._schema, self._conform)

    def add(self, rows: pa.Table) -> None:
        """Buffer rows, and write them to a file once they are many."""
        conformed = self._conform(rows)
        with self._adding:
            self._waiting.append(conformed)
            self._n_waiting += conformed.num_rows
            ready = self._drain_waiting() if self._n_waiting >= ROWS_A_FILE else []
        self._write(ready)

    def drain(self) -> pa.RecordBatch:
        """Write the buffered rows, and return the add action of each file so far, for :meth:`adopt`."""
        self._write(self._drain_waiting())
        actions, self._adds = [json.dumps(action) for action in self._adds], []
        return pa.RecordBatch.from_pydict({"add": pa.array(actions, pa.string())})

    def adopt(self, files: pa.Table) -> None:
        """Add files that workers wrote and drained; ResultsError if this process does not see them."""
        for action in map(json.loads, files["add"].to_pylist()):
            path = Path(self._path, unquote(action["add"]["path"]))
            if not path.is_file():
                fix = "use a folder that all machines share, or a store"
                raise ResultsError(Fault("results root", f"no {path}", "the file that a worker wrote there", fix))
            self._adds.append(action)

    def commit(self) -> None:
        """Write the buffered rows, and create the table."""
        self._write(self._drain_waiting())
        _create(self._storage, self._table, self._schema, self._adds)

    def _drain_waiting(self) -> list[pa.Table]:
        ready, self._waiting, self._n_waiting = self._waiting, [], 0
        return ready

    def _write(self, parts: Sequence[pa.Table]) -> None:
        rows = pa.concat_tables(parts) if parts else None
        if rows is not None and rows.num_rows:
            self._adds.append(file_of(rows, self._path, self._night))


def night_files(storage: LocalStorage, table: str, night: NightKey, version: int) -> list[dict[str, Any]]:
    """Return the files with the rows of a night at some version, as :func:`replace_night` takes them."""
    location = inside(storage.root, table)
    where = [(name, "=", value) for name, value in asdict(night).items()]
    files = []
    for path in sorted(local_tables.scan(storage, table, version=version, where=where).files):
        n_rows = pq.read_metadata(Path(location, path)).num_rows
        files.append({"path": path, "location": location, "stats": json.dumps({"numRecords": n_rows})})
    return files


def replace_night(
    storage: LocalStorage,
    table: str,
    night: NightKey,
    *,
    files: Sequence[Mapping[str, Any]],
    tag: str,
    after: int | None = None,
) -> int:
    """Replace the files of a night, in one commit; see :func:`commit`.

    ``files`` are add actions of a partitioned table, with its ``location``. The files are linked into this
    table, so that either table can be deleted.
    """
    opened, folder = local_tables.delta_table(storage, table, after), inside(storage.root, table)
    present = pa.table(opened.get_add_actions(flatten=True))
    is_own = [pc.equal(present[f"partition.{name}"], value) for name, value in asdict(night).items()]
    own = present.filter(pc.and_(*is_own)).to_pylist()
    actions = [
        *(added(folder, _linked(file, folder), night, stats=file.get("stats") or "{}") for file in files),
        *(removed(DataFile(unquote(file["path"]), file["size_bytes"], night)) for file in own),
    ]
    return commit(storage, table, opened.version(), actions, tag=tag)


def add_columns(storage: LocalStorage, table: str, fields: Iterable[str], *, after: int | None = None) -> int:
    """Add columns, given as ``StructField.json()`` writes them, in one commit; see :func:`commit`."""
    opened = local_tables.delta_table(storage, table, after)
    columns = json.loads(opened.schema().to_json())
    columns["fields"] += map(json.loads, fields)
    return commit(storage, table, opened.version(), [described(opened, schemaString=json.dumps(columns))])


def described(opened: deltalake.DeltaTable, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - values of JSON
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


def folder_of(night: NightKey | None) -> str:
    """Return the folder of a night's files, named as by Spark, from which Polars reads the values; empty for None."""
    escaped = (
        (name, _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value))
        for name, value in local_tables.partition_of(night).items()
    )
    return "/".join(f"{name}={value}" for name, value in escaped)


def _create(storage: LocalStorage, table: str, schema: pa.Schema, adds: Sequence[Mapping[str, Any]]) -> None:
    columns = deltalake.Schema.from_arrow(schema).to_json()
    delta_log.create_log(storage, table, columns=columns, partitions=local_tables.PARTITIONS, adds=adds)


def _written(rows: pa.Table, folder: str, *, by: Sequence[str] = local_tables.PARTITIONS) -> list[dict[str, Any]]:
    """Write a file per night, or one if ``by`` no column, by pyarrow (see _written_next_to); return the add actions."""
    if not by:
        return [file_of(rows, folder, None)]
    adds = []
    for values in rows.select(local_tables.PARTITIONS).group_by(local_tables.PARTITIONS).aggregate([]).to_pylist():
        night = NightKey(*(values[name] for name in local_tables.PARTITIONS))
        is_own = local_tables.is_of((night.evaluation, night.evaluation_date))
        Path(folder, folder_of(night)).mkdir(parents=True, exist_ok=True)
        adds.append(file_of(rows.filter(is_own), folder, night))
    return adds


def file_of(rows: pa.Table, folder: str, night: NightKey | None, *, changes: bool = True) -> dict[str, Any]:
    """Write a night's rows, or rows of ``runs`` for None, to a file of a table; return its add action.

    The name of a file of ``runs`` has its nights, for the day when it cannot be read. Statistics of some columns in the
    log would do too, but deltalake takes those of all others for NULL, and finds no row by them.
    """
    of_nights = "" if night else local_tables.Span.of_events(rows).in_name()
    path = str(Path(folder_of(night), f"{uuid.uuid4().hex}{of_nights}.parquet"))
    try:
        pq.write_table(rows if night is None else rows.drop_columns(local_tables.PARTITIONS), Path(folder, path))
        sync(Path(folder, path))
    except OSError:
        Path(folder, path).unlink(missing_ok=True)
        raise
    return added(folder, path, night, stats=json.dumps({"numRecords": rows.num_rows}), changes=changes)


def added(folder: str, path: str, night: NightKey | None, *, stats: str, changes: bool = True) -> dict[str, Any]:
    """Return the add action of a file in the folder of a table."""
    found = Path(folder, path).stat()
    action = {
        **_file_action(path, found.st_size, night, changes=changes),
        "modificationTime": found.st_mtime_ns // 1_000_000,
        "stats": stats,
    }
    return {"add": action}


def removed(file: DataFile, *, changes: bool = True) -> dict[str, Any]:
    """Return the remove action of a file, which older versions keep."""
    action = _file_action(*file, changes=changes)
    return {"remove": {**action, "deletionTimestamp": delta_log.now_ms(), "extendedFileMetadata": True}}


def _file_action(path: str, size: int, night: NightKey | None, *, changes: bool) -> dict[str, Any]:
    """Return fields of both actions; ``changes`` is False if other files have the rows before or afterwards."""
    name, values = quote(path, safe=delta_log.AS_IT_IS), local_tables.partition_of(night)
    return {"path": name, "partitionValues": values, "size": size, "dataChange": changes}


def _linked(file: Mapping[str, Any], table: str) -> str:
    """Link a file into a table under a new name; return its path within the table."""
    source = Path(file["location"], file["path"])
    path = Path(file["path"])
    name = path.with_name(f"{uuid.uuid4().hex}-{path.name}")
    target = Path(table, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a mounted file system without links; a full disk is full for the copy too, which says so
        shutil.copyfile(source, target)
        sync(target)
    return str(name)


class DataFile(NamedTuple):
    """A file of the newest version of a table."""

    path: str  # its path within the table
    size: int  # its bytes
    night: NightKey | None  # that of its rows; None in `runs`, whose files have rows of many nights


def data_files(storage: LocalStorage, table: str, version: int | None = None) -> list[DataFile]:
    """Return the files of a version of a table, by default the newest."""
    return _files_of(local_tables.delta_table(storage, table, version))


def read_batches(
    storage: LocalStorage, table: str, file: DataFile, *, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches, without the columns of its night; by default all other columns."""
    location = inside(storage.root, table)
    local_tables.require_files(location, [file.path])
    with pq.ParquetFile(Path(location, file.path)) as opened:
        yield from opened.iter_batches(ROWS_AT_ONCE, columns=columns)


def replace_files(
    storage: LocalStorage,
    table: str,
    files: Mapping[DataFile, Callable[[pa.RecordBatch], pa.RecordBatch] | None],
    *,
    after: int | None = None,
) -> None:
    """Rewrite files in one commit: by a change of each batch, or None to delete their rows; see commit."""
    seen = delta_log.latest_version(storage, table) if after is None else after
    written = []
    for file, change in files.items():
        if change is not None:
            with pq.ParquetFile(Path(inside(storage.root, table), file.path)) as opened:
                batches = map(change, opened.iter_batches(ROWS_AT_ONCE))
                rows = pa.RecordBatchReader.from_batches(opened.schema_arrow, batches)
                written.append(_written_next_to(storage, table, file, rows, changes=True))
    actions = [*filter(None, written), *map(removed, files)]
    commit(storage, table, seen, actions)


def merge_small_files(storage: LocalStorage, table: str, *, after: int | None = None) -> tuple[int, int]:
    """Merge small files of each night, in one commit; return their number before and after."""
    opened = local_tables.delta_table(storage, table, after)
    groups, written = _small_files(_files_of(opened)), []
    if not groups:
        return 0, 0
    dataset = local_tables.scan(storage, table, version=after)
    names = [field.name for field in opened.schema().fields if field.name not in local_tables.PARTITIONS]
    schema = pa.schema([dataset.schema.field(name) for name in names])
    fragments = {fragment.path: fragment for fragment in dataset.get_fragments()}
    options: dict[str, Any] = {"schema": dataset.schema, "columns": names, "batch_size": ROWS_AT_ONCE}
    for files in groups:
        batches = (batch for file in files for batch in fragments[file.path].to_batches(**options))
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        written.append(_written_next_to(storage, table, files[0], rows, changes=False))
    removes = [removed(file, changes=False) for files in groups for file in files]
    commit(storage, table, opened.version(), [*filter(None, written), *removes])
    return sum(map(len, groups)), len(groups)


def merge_events(storage: LocalStorage, table: str, *, after: int | None = None) -> tuple[int, int]:
    """Merge small files of ``runs``, then without partitions, in one commit; return their number before and after."""
    opened = local_tables.delta_table(storage, table, after)
    partitions = local_tables.partitions_of(opened)
    found = pa.table(opened.get_add_actions()).sort_by("modification_time").to_pylist()
    paths = [unquote(file["path"]) for file in found if partitions or file["num_records"] < FEW_EVENTS]
    if not partitions and not paths[1:]:
        return 0, 0
    dataset = local_tables.scan(storage, table, version=after)
    fragments = {fragment.path: fragment for fragment in dataset.get_fragments()}
    small = ds.FileSystemDataset([fragments[path] for path in paths], dataset.schema, dataset.format)
    adds = [
        file_of(rows, inside(storage.root, table), None, changes=False)
        for rows in _in_parts(small.to_batches(columns=[field.name for field in opened.schema().fields]))
    ]
    own = {file.path: file for file in _files_of(opened)}
    removes = [removed(own[path], changes=False) for path in paths]
    metadata = [described(opened, partitionColumns=[])] if partitions else []
    commit(storage, table, opened.version(), [*metadata, *adds, *removes])
    return len(paths), len(adds)


def give_up_damaged(storage: LocalStorage, table: str, *, after: int) -> list[str]:
    """Remove missing or damaged files from ``runs`` in one commit, not from the disk; return the damage of each."""
    location = inside(storage.root, table)
    damaged = {}
    for file in data_files(storage, table, after):
        if reason := local_tables.why_damaged(Path(location, file.path)):
            damaged[file] = f"{file.path}, which is {reason}"
    if damaged:
        commit(storage, table, after, [removed(file) for file in damaged])
    return list(damaged.values())


def _in_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Collect batches into tables of enough rows for a file."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= FEW_EVENTS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _small_files(files: Iterable[DataFile]) -> list[list[DataFile]]:
    """Group the small files of each night for merging; a file that would be alone stays."""
    groups: list[list[DataFile]] = []
    for file in sorted((file for file in files if file.size < SMALL), key=lambda file: (str(file.night), file.path)):
        last = groups[-1] if groups else []
        if last and last[0].night == file.night and sum(small.size for small in last) < SMALL:
            last.append(file)
        else:
            groups.append([file])
    return [group for group in groups if len(group) > 1]


def unneeded_files(storage: LocalStorage, table: str) -> list[str]:
    """Return paths within the table of files that no version within its retention needs."""
    opened = local_tables.delta_table(storage, table)
    unneeded = [unquote(path) for path in opened.vacuum(dry_run=True, full=True)]
    if needed := {file.path for file in _files_of(opened)}.intersection(unneeded):
        found = f"{len(needed)} files of its newest version among those to be deleted, such as {min(needed)}"
        fix = "delete none of them by hand; this is a fault of the reader of Delta logs"
        raise ResultsError(Fault(f"table {table}", found, "files that no version needs", fix))
    return unneeded


def delete_unneeded(storage: LocalStorage, table: str) -> None:
    """Delete the files that :func:`unneeded_files` returns."""
    for path in unneeded_files(storage, table):
        storage.remove(f"{table}/{path}")


def _files_of(opened: deltalake.DeltaTable) -> list[DataFile]:
    files = []
    for file in pa.table(opened.get_add_actions()).to_pylist():  # the log has paths as parts of a URL
        night = NightKey(**file["partition"]) if file.get("partition") else None
        files.append(DataFile(unquote(file["path"]), file["size_bytes"], night))
    return files


def _written_next_to(
    storage: LocalStorage, table: str, neighbour: DataFile, rows: pa.RecordBatchReader, *, changes: bool
) -> dict[str, Any] | None:
    """Write rows next to another file of their night; None without one. deltalake's writer aborts on a full disk."""
    folder = inside(storage.root, table)
    span = None if neighbour.night else local_tables.Span.of_file(neighbour.path)
    path = str(Path(neighbour.path).with_name(f"{uuid.uuid4().hex}{span.in_name() if span else ''}.parquet"))
    n_rows = 0
    try:
        with pq.ParquetWriter(Path(folder, path), rows.schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
                n_rows += batch.num_rows
    except OSError:
        Path(folder, path).unlink(missing_ok=True)
        raise
    if not n_rows:
        Path(folder, path).unlink()
        return None
    sync(Path(folder, path))
    stats = json.dumps({"numRecords": n_rows})
    return added(folder, path, neighbour.night, stats=stats, changes=changes)

"""Delta tables on a local disk, read and written by this process.

Spark needs several stages and a second for a commit; a few rows, or files that are written already, take 10 ms here.
Other stores keep their credentials in Spark's settings, so their tables are left to Spark.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import lru_cache
from itertools import compress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeGuard
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError
from pyarrow import fs

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault, first_line
from rankeval_spark.inputs.missing_inputs import nearest_location
from rankeval_spark.result_rows.column_json import columns_json
from rankeval_spark.results import delta_log, whole_files
from rankeval_spark.results.file_store import LocalStorage, Storage, inside, sync
from rankeval_spark.results.requested_rows import require_columns
from rankeval_spark.results.run_record import NightKey

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from rankeval_spark.results.requested_rows import Filters

ROWS_A_FILE: Final = 200_000
"""Rows of users that a file has at least, but for the last one of a night."""

PARTITIONS: Final = [C.EVALUATION, C.EVALUATION_DATE]
"""Columns by which every table but ``runs`` is partitioned: a file of ``runs`` has rows of many nights."""

CHECKPOINT_EVERY: Final = 100
"""Commits after which a checkpoint spares readers those before it."""

MOST_OPENED: Final = 16
"""Versions of tables that stay open: of each table the one before a run and the one after it."""

_REFUSED: Final = re.compile(r"[\[\]\\^|]|%[0-9A-Fa-f]{2}")
"""What deltalake cannot open in a path, or takes for something else."""

_ABSOLUTE: Final = re.compile(r"/*[A-Za-z][A-Za-z0-9+.-]*:/*(?P<path>/.*)")
"""A file of a table that its log names by a URI."""

_CONFIGS: Final = (".yaml", ".yml")
"""How the names of configs end."""

_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""What Spark writes as %XX in the name of a partition's folder."""


def are_at(storage: Storage) -> TypeGuard[LocalStorage]:
    """Whether this module reads and writes the tables of a root; of all others Spark does."""
    return isinstance(storage, LocalStorage) and not _REFUSED.search(storage.root)


def schema_of(storage: LocalStorage, table: str) -> dict[str, Any]:
    """Columns of a table as JSON, the form that ``StructType.fromJson`` takes."""
    columns: dict[str, Any] = json.loads(delta_table(storage, table).schema().to_json())
    return columns


def scan(storage: LocalStorage, table: str, *, version: int | None = None, where: Filters = ()) -> ds.Dataset:
    """Plan to read rows of a table; of the files, only those of the wanted nights are ever opened.

    Raises
    ------
    ConfigError
        There is no such table or version, this process cannot read it, its log names a file outside the folders that
        the environment allows, or a condition compares a column with a value of another type.
    """
    opened = delta_table(storage, table, version)
    _require_own_files(storage, table, opened)
    schema = declared_first(table, pa.schema(opened.schema().to_arrow()))
    require_columns(table, where, schema.names)
    partitions = partitions_of(opened)
    is_of_nights = [name in partitions and bool(value) for name, _, value in where]
    partition_filters = [(name, how, _as_text(value)) for name, how, value in compress(where, is_of_nights)]
    row_filters = [
        _expression(schema, table, *one) for one, is_pruned in zip(where, is_of_nights, strict=True) if not is_pruned
    ]
    # By Arrow's own file system. That of deltalake is Python: threads of Arrow that still hold a file of it when Python
    # ends abort the process, one in three on a busy machine.
    files = fs.SubTreeFileSystem(inside(storage.root, table), fs.LocalFileSystem())
    try:
        dataset = opened.to_pyarrow_dataset(
            filesystem=files, file_pruning_predicate=partition_filters or None, schema=schema
        )
    except DeltaProtocolError as error:
        message = first_line(str(error))
        raise _unreadable(storage, f"table {table}: {message}", "drop that feature of the table") from error
    _require_no_links(storage, table, dataset.files)
    whole_files.require(inside(storage.root, table), dataset.files)
    for condition in row_filters:
        dataset = dataset.filter(condition)
    return dataset


def declared_first(table: str, found: pa.Schema) -> pa.Schema:
    """Return the columns as which a table is read: those that are declared, which may be NULL, then all others.

    A table of an older version lacks some; a table that is not declared is read as it is.
    """
    fields = {schema.name: columns_json(schema) for schema in (schemas.RUNS, *schemas.PUBLISHED)}.get(table)
    if fields is None:
        return found
    declared = pa.schema(deltalake.Schema.from_json(json.dumps(fields)).to_arrow())
    first = [
        found.field(field.name) if field.name in found.names else field.with_nullable(nullable=True)
        for field in declared
    ]
    return pa.schema([*first, *(field for field in found if field.name not in declared.names)])


def _require_own_files(storage: LocalStorage, table: str, opened: deltalake.DeltaTable) -> None:
    """Refuse a table whose log names files outside of it, which no run writes and deltalake leaves out silently."""
    paths = pa.table(opened.get_add_actions())["path"]
    absolute = paths.filter(pc.match_substring_regex(paths, _ABSOLUTE.pattern)).to_pylist()
    elsewhere = [match["path"] for path in absolute if (match := _ABSOLUTE.match(path))]
    allowed_folders.require_allowed(*((f"results root, table {table}", path) for path in elsewhere))
    if elsewhere:
        raise _unreadable(storage, f"table {table} with files elsewhere, such as {elsewhere[0]}", "restore the table")


def _require_no_links(storage: LocalStorage, table: str, files: Iterable[str]) -> None:
    """Refuse files of a table that a link leads out of the folders that the environment allows."""
    if allowed_folders.is_limited():
        location = inside(storage.root, table)
        allowed_folders.require_allowed(*((f"results root, table {table}", f"{location}/{file}") for file in files))


def partitions_of(opened: deltalake.DeltaTable) -> list[str]:
    """List the columns by which a table is partitioned."""
    columns: list[str] = opened.metadata().partition_columns
    return columns


def is_by_night(storage: Storage, table: str) -> bool:
    """Whether a table that this process reads has partitions, as ``runs`` had in earlier versions."""
    return are_at(storage) and bool(partitions_of(delta_table(storage, table)))


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Turn rows into dictionaries; maps are dictionaries too."""
    columns = map(_to_values, table.columns)
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _to_values(column: pa.ChunkedArray) -> list[Any]:
    """Turn a column into values of Python; the keys and items of all its maps at once, which is far faster."""
    if not pa.types.is_map(column.type):
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
        return values
    maps = column.combine_chunks()
    ends = maps.offsets.to_pylist()
    first, n_entries = ends[0], ends[-1] - ends[0]
    keys, items = (side.slice(first, n_entries).to_pylist(maps_as_pydicts="strict") for side in (maps.keys, maps.items))
    pairs = list(zip(keys, items, strict=True))
    found = zip(maps.is_valid().to_pylist(), ends[:-1], ends[1:], strict=True)
    return [dict(pairs[start - first : end - first]) if is_valid else None for is_valid, start, end in found]


def nights_of(storage: LocalStorage, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
    """Name the evaluations and dates that a table has rows of; its log says so."""
    nights = delta_table(storage, table, version).partitions()
    return {(night[C.EVALUATION], date.fromisoformat(night[C.EVALUATION_DATE])) for night in nights}


def append_rows(
    storage: LocalStorage, table: str, rows: Iterable[Mapping[str, Any]], *, tag: str, after: int | None = None
) -> int:
    """Append rows in one commit that carries ``tag`` as its user metadata; see :func:`commit`."""
    opened = delta_table(storage, table, after)
    values = pa.Table.from_pylist(list(rows), schema=pa.schema(opened.schema().to_arrow()))
    missing = [name for name in values.column_names if values[name].null_count and not values.field(name).nullable]
    if missing:
        message = f"table {table}: no value for {', '.join(missing)}"
        raise ValueError(message)
    files = _written(values, inside(storage.root, table), by=partitions_of(opened))
    return commit(storage, table, opened.version(), files, tag=tag)


def commit(
    storage: LocalStorage, table: str, seen: int, actions: Sequence[Mapping[str, Any]], *, tag: str | None = None
) -> int:
    """Write actions as the version after one that was seen, and return it; the names of new files are synced before.

    Raises
    ------
    OvertakenError
        The table has that version.
    """
    location, version = Path(inside(storage.root, table)), seen + 1
    nights = {Path(location, unquote(action["add"]["path"])).parent for action in actions if "add" in action}
    sync(*{*nights, *(night.parent for night in nights), location})
    delta_log.commit(storage, table, version, actions, tag=tag)
    if (version + 1) % CHECKPOINT_EVERY == 0:
        opened = delta_table(storage, table, version)
        opened.create_checkpoint()
        opened.cleanup_metadata()
        log = location / delta_log.LOG_FOLDER
        sync(*log.glob(f"{version:020d}.checkpoint*"), log / "_last_checkpoint", log)
    return version


def write_new(storage: LocalStorage, table: str, rows: pa.Table) -> None:
    """Write a table that is not there yet, in one commit."""
    _create(storage, table, rows.schema, _written(rows, inside(storage.root, table)))


class NewTable:
    """A table that is not there yet: rows of one night come in parts, from any thread, and are there once committed.

    Parameters
    ----------
    schema : pa.Schema
        Its columns, those of the night among them, with their comments.
    """

    def __init__(self, storage: LocalStorage, table: str, night: NightKey, schema: pa.Schema) -> None:
        self._storage, self._table, self._night, self._schema = storage, table, night, schema
        self._path = inside(storage.root, table)
        self._adding = Lock()
        self._waiting: list[pa.Table] = []
        self._n_waiting = 0
        self._adds: list[dict[str, Any]] = []

    def add(self, rows: pa.Table) -> None:
        """Write rows to a file together with those that wait, once they are many."""
        with self._adding:
            self._waiting.append(rows)
            self._n_waiting += rows.num_rows
            ready = self._drain_waiting() if self._n_waiting >= ROWS_A_FILE else []
        self._write(ready)

    def commit(self) -> None:
        """Write the rows that wait, and make the table."""
        self._write(self._drain_waiting())
        _create(self._storage, self._table, self._schema, self._adds)

    def _drain_waiting(self) -> list[pa.Table]:
        ready, self._waiting, self._n_waiting = self._waiting, [], 0
        return ready

    def _write(self, parts: Sequence[pa.Table]) -> None:
        rows = pa.concat_tables(parts) if parts else None
        if rows is not None and rows.num_rows:
            self._adds.append(file_of(rows, self._path, self._night))


def commit_new(storage: LocalStorage, table: str, columns: str, night: NightKey) -> None:
    """Make a table of the Parquet files that lie in the folder of a night, in one commit.

    Parameters
    ----------
    columns : str
        As ``StructType.json()`` writes them, those of the night among them.
    """
    path, folder = inside(storage.root, table), folder_of(night)
    files = sorted(Path(path, folder).glob("*.parquet"))
    sync(*files)
    adds = [added(path, f"{folder}/{file.name}", night, stats=_counted(file)) for file in files]
    delta_log.create_log(storage, table, columns=columns, partitions=PARTITIONS, adds=adds)


def night_files(storage: LocalStorage, table: str, night: NightKey, version: int) -> list[dict[str, Any]]:
    """Return the files with the rows of a night at some version, as :func:`replace_night` takes them."""
    location = inside(storage.root, table)
    where = [(name, "=", value) for name, value in asdict(night).items()]
    paths = sorted(scan(storage, table, version=version, where=where).files)
    return [{"path": path, "location": location, "stats": _counted(Path(location, path))} for path in paths]


def replace_night(
    storage: LocalStorage,
    table: str,
    night: NightKey,
    *,
    files: Sequence[Mapping[str, Any]],
    tag: str,
    after: int | None = None,
) -> int:
    """Let files be the rows of a night, in one commit: those that held its rows are removed; see :func:`commit`.

    Parameters
    ----------
    files : sequence of mappings
        The ``add`` actions of a table partitioned by :data:`PARTITIONS` with ``location``, where that table is. The
        files get a second name in this table, so that either table can be deleted.
    """
    opened, folder = delta_table(storage, table, after), inside(storage.root, table)
    present = pa.table(opened.get_add_actions(flatten=True))
    is_own = [pc.equal(present[f"partition.{name}"], value) for name, value in asdict(night).items()]
    own = present.filter(pc.and_(*is_own)).to_pylist()
    actions = [
        *(added(folder, _linked(file, folder), night, stats=file.get("stats") or "{}") for file in files),
        *(removed(unquote(file["path"]), night, size=file["size_bytes"]) for file in own),
    ]
    return commit(storage, table, opened.version(), actions, tag=tag)


def add_columns(storage: LocalStorage, table: str, fields: Iterable[str], *, after: int | None = None) -> int:
    """Add columns, given as ``StructField.json()`` writes them, in one commit; see :func:`commit`."""
    opened = delta_table(storage, table, after)
    columns = json.loads(opened.schema().to_json())
    columns["fields"] += map(json.loads, fields)
    return commit(storage, table, opened.version(), [described(opened, schemaString=json.dumps(columns))])


def described(opened: deltalake.DeltaTable, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - values of JSON
    """Say of a table what its log says, with some changes."""
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


def has_rows(storage: LocalStorage, table: str, night: NightKey, version: int | None = None) -> bool:
    """Whether a table has a file with rows of a night."""
    return bool(delta_table(storage, table, version).file_uris(file_pruning_predicate=_only(night)))


def folder_of(night: NightKey | None) -> str:
    """Where the files of a night are within a table; empty in a table without partitions.

    As Spark names folders: Polars takes the values from them, not from the log.
    """
    escaped = (
        (name, _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value))
        for name, value in partition_of(night).items()
    )
    return "/".join(f"{name}={value}" for name, value in escaped)


def _expression(schema: pa.Schema, table: str, name: str, how: str, value: object) -> pc.Expression:
    """Write a condition as Arrow's, with values of the type of the column."""
    type_ = schema.field(name).type
    try:
        if how == "in":
            return pc.field(name).isin(pa.array(value, type_))
        return pc.field(name) == pa.scalar(value, type_)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ConfigError(Fault(f"filter of {table}, {name}", repr(value), f"a value of type {type_}")) from error


def _as_text(value: Any) -> Any:  # noqa: ANN401 - a value of a partition, or several
    """Write values of partitions as the log does."""
    return str(value) if isinstance(value, str | date) else [str(one) for one in value]


def delta_table(storage: LocalStorage, table: str, version: int | None = None) -> deltalake.DeltaTable:
    """Open a table of a root.

    Raises
    ------
    ConfigError
        There is no such table or version, or its log is damaged.
    """
    try:
        location = inside(storage.root, table)
        if allowed_folders.is_limited():
            logs = allowed_folders.delta_log_paths(location)
            allowed_folders.require_allowed(*((f"results root, table {table}", path) for path in logs))
        readable = delta_log.readable(storage, table, version)
        if readable is None:
            return deltalake.DeltaTable(location, version=version)
        newest, names = readable
        log = Path(location, delta_log.LOG_FOLDER)
        return _opened(location, newest, tuple((name, *_mark(log / name)) for name in names))
    except TableNotFoundError as error:
        raise _unreadable(storage, *_without_table(Path(storage.root), table)) from error
    except DeltaError as error:
        at = "" if version is None else f" at version {version}"
        found = f"table {table}{at}: {first_line(str(error))}"
        fix = "" if version is None else "older versions are kept for 30 days"
        if not delta_log.is_hint_valid(storage, table):
            found = f"table {table}, whose {delta_log.HINT} names a checkpoint that is gone or damaged"
            fix = "the next run of any date, or rankeval maintain, removes it"
        raise _unreadable(storage, found, fix) from error


@lru_cache(maxsize=MOST_OPENED)
def _opened(location: str, version: int, log: tuple[tuple[str | int, ...], ...]) -> deltalake.DeltaTable:  # noqa: ARG001 - part of the key
    """Open a version of a table; one that is asked for again is the same as long as the files of its log are.

    After thousands of nights an open takes 50 ms, and a run asks 30 times.
    """
    return deltalake.DeltaTable(location, version=version)


def _mark(file: Path) -> tuple[int, int, int]:
    """Return what changes with a file."""
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _without_table(root: Path, table: str) -> tuple[str, str]:
    """Say what is there in place of results, and where some are."""
    if root.is_file():
        return "a file", "results.root of a config names the folder" if root.suffix in _CONFIGS else ""
    if not root.is_dir():
        return "no such folder", "" if allowed_folders.is_limited() else nearest_location(str(root))
    logs = sorted(root.glob(f"*/{table}/_delta_log"))
    return f"no table {table}", f"did you mean {logs[0].parents[1]}?" if logs else ""


def _unreadable(storage: LocalStorage, found: str, fix: str) -> ConfigError:
    return ConfigError(Fault("results root", f"{storage.root!r} ({found})", "the results of an earlier run", fix))


def _create(storage: LocalStorage, table: str, schema: pa.Schema, adds: Sequence[Mapping[str, Any]]) -> None:
    columns = deltalake.Schema.from_arrow(schema).to_json()
    delta_log.create_log(storage, table, columns=columns, partitions=PARTITIONS, adds=adds)


def _written(rows: pa.Table, folder: str, *, by: Sequence[str] = PARTITIONS) -> list[dict[str, Any]]:
    """Write a file for each night that has rows, and say what is to be added to the table for it.

    Where the table is partitioned ``by`` no column, that is one file for all rows.

    By pyarrow, which reports a full disk as Python does; where deltalake writes rows, a thread of its own panics.
    """
    if not by:
        return [file_of(rows, folder, None)]
    adds = []
    for values in rows.select(PARTITIONS).group_by(PARTITIONS).aggregate([]).to_pylist():
        night = NightKey(*(values[name] for name in PARTITIONS))
        is_own = (pc.field(C.EVALUATION) == night.evaluation) & (pc.field(C.EVALUATION_DATE) == night.evaluation_date)
        adds.append(file_of(rows.filter(is_own), folder, night))
    return adds


def file_of(rows: pa.Table, folder: str, night: NightKey | None, *, changes: bool = True) -> dict[str, Any]:
    """Write rows of one night, or of any where it is None, to a file of a table; return what is to be added for it."""
    path = str(Path(folder_of(night), f"{uuid.uuid4().hex}.parquet"))
    Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
    try:
        pq.write_table(rows if night is None else rows.drop_columns(PARTITIONS), Path(folder, path))
        sync(Path(folder, path))
    except OSError:
        Path(folder, path).unlink(missing_ok=True)
        raise
    return added(folder, path, night, stats=json.dumps({"numRecords": rows.num_rows}), changes=changes)


def partition_of(night: NightKey | None) -> dict[str, str]:
    """Write the partition of a night as the log does; there is none in a table without partitions."""
    if night is None:
        return {}
    return {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date.isoformat()}


def _only(night: NightKey) -> list[tuple[str, str, Any]]:
    return [(name, "=", value) for name, value in partition_of(night).items()]


def _counted(file: Path) -> str:
    """Return what the log says of the rows of a file, from its footer."""
    return json.dumps({"numRecords": pq.read_metadata(file).num_rows})


def added(folder: str, path: str, night: NightKey | None, *, stats: str, changes: bool = True) -> dict[str, Any]:
    """Say what is to be added to a table in ``folder`` for a file that lies there."""
    found = Path(folder, path).stat()
    action = {
        **_file_action(path, night, size=found.st_size, changes=changes),
        "modificationTime": found.st_mtime_ns // 1_000_000,
        "stats": stats,
    }
    return {"add": action}


def removed(path: str, night: NightKey | None, *, size: int, changes: bool = True) -> dict[str, Any]:
    """Say that a file is no part of a table any more; older versions keep it."""
    action = _file_action(path, night, size=size, changes=changes)
    return {"remove": {**action, "deletionTimestamp": delta_log.now_ms(), "extendedFileMetadata": True}}


def _file_action(path: str, night: NightKey | None, *, size: int, changes: bool) -> dict[str, Any]:
    """Describe a file for the log; ``changes`` is False where other files have its rows before or afterwards."""
    values = partition_of(night)
    return {"path": delta_log.path_text(path), "partitionValues": values, "size": size, "dataChange": changes}


def _linked(file: Mapping[str, Any], table: str) -> str:
    """Give a file a second name in a table, a new one each time; return its path within the table."""
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

"""Parquet files of Delta tables: how they are written, named, listed and told to a table's log."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import inside
from rankeval_spark.results.table_scans import Span, delta_table
from rankeval_spark.results.tables import PARTITIONS

if TYPE_CHECKING:
    from rankeval_spark.results.storage import Storage

ROWS_A_FILE: Final = 200_000  # least rows of users in a file, except the last one of a night
BYTES_A_FILE: Final = 256 << 20  # of rows in memory that are enough for a file, however few they are
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
    modified_ms: int


def commit(
    storage: Storage, table: str, seen: int, actions: Sequence[Mapping[str, Any]], *, tag: str | None = None
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
    storage: Storage, table: str, version: int | None = None, *, night: NightKey | None = None
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
            file["modification_time"],
        )
        for file in found.sort_by("modification_time").to_pylist()
    ]


def small_files(files: Iterable[DataFile], *, are_of_events: bool) -> list[list[DataFile]]:
    """Group small files to merge: those of each night, or those of ``runs``, which have few events."""
    if are_of_events:
        small = [file for file in files if (file.n_rows or 0) < FEW_EVENTS]
        groups = _group(small, lambda _: "", lambda file: file.n_rows or 0, FEW_EVENTS)
        return groups if len(small) > 1 else []
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


def create_table(
    storage: Storage,
    table: str,
    schema: pa.Schema,
    adds: Sequence[Mapping[str, Any]],
    *,
    partitions: Sequence[str] = PARTITIONS,
) -> None:
    """Write the first commit of a table of written files."""
    columns = deltalake.Schema.from_arrow(schema).to_json()
    delta_log.create_log(storage, table, columns=columns, partitions=partitions, adds=adds)


def write_file(
    storage: Storage,
    table: str,
    rows: pa.Table | pa.RecordBatchReader,
    night: NightKey | None,  # that of the rows; None for rows of `runs`
    *,
    beside: str = "",  # path of the file whose rows these are, in whose folder they are written
    run_id: str = "",  # that of a run whose files no version names yet: their names begin with it
    changes: bool = True,
) -> dict[str, Any] | None:
    """Write rows to a file of a table; return its add action, None without rows. deltalake aborts on a full disk.

    The name of a file of ``runs`` has its nights, for the day when it cannot be read. Statistics of some columns in the
    log would do too, but deltalake takes those of all others for NULL, and finds no row by them.
    """
    if night is not None and not beside:
        rows = rows.drop_columns(PARTITIONS)
    is_of_events = night is None and PARTITIONS[0] in rows.schema.names
    span = (Span.from_path(beside) if beside else Span.from_events(rows)) if is_of_events else None
    name = f"{run_id}{'.' if run_id else ''}{uuid.uuid4().hex}{span.in_name() if span else ''}.parquet"
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


def add_action(location: str, path: str, night: NightKey | None, *, stats: str, changes: bool = True) -> dict[str, Any]:
    """Return the add action of a file of a table; ``changes`` is False if other files had its rows before."""
    found = Path(location, path).stat()
    action = _action_on(path, found.st_size, night, changes=changes)
    return {"add": {**action, "modificationTime": found.st_mtime_ns // 1_000_000, "stats": stats}}


def restore_action(file: DataFile) -> dict[str, Any]:
    """Return the add action of a file that an earlier version named."""
    stats = json.dumps({"numRecords": file.n_rows})
    action = _action_on(file.path, file.size, file.night, changes=True)
    return {"add": {**action, "modificationTime": file.modified_ms, "stats": stats}}


def path_of(action: Mapping[str, Any]) -> str:
    """Return the path within its table of the file that an action adds."""
    return unquote(action["add"]["path"])


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


class FileWriter:
    """Files of a table that no version names: rows are added in parts, from any thread.

    A copy that travels to a worker of Spark is empty: it drains the files that the worker wrote.
    """

    def __init__(
        self,
        storage: Storage,
        table: str,
        night: NightKey | None = None,  # of the rows, by which the table is partitioned
        run_id: str = "",
        conform: Callable[[pa.Table], pa.Table] | None = None,  # from added rows to rows of the table
    ) -> None:
        self._facts = storage, table, night, run_id, conform
        self._adding = Lock()
        self._waiting: list[pa.Table] = []
        self._n_waiting = self._n_bytes = 0
        self._adds: list[dict[str, Any]] = []
        self.has_workers = False  # whether workers wrote files, of which some may belong to attempts that were repeated

    def __reduce__(self) -> tuple[type[FileWriter], tuple[Any, ...]]:
        """Return what an empty copy is made of."""
        return FileWriter, self._facts

    def make_folder(self) -> None:
        """Make the folder of the files, which workers do not."""
        storage, table, night, *_ = self._facts
        Path(inside(storage.root, table), folder_of(night)).mkdir(parents=True, exist_ok=True)

    def add(self, rows: pa.Table) -> None:
        """Buffer rows, and write them to a file once they are many."""
        *_, conform = self._facts
        conformed, ready = conform(rows) if conform else rows, list[pa.Table]()
        with self._adding:
            self._waiting.append(conformed)
            self._n_waiting += conformed.num_rows
            self._n_bytes += conformed.nbytes
            if self._n_waiting >= ROWS_A_FILE or self._n_bytes >= BYTES_A_FILE:
                ready = self._take()
        self._write(ready)

    def _take(self) -> list[pa.Table]:
        """Return the buffered rows, which are no longer buffered."""
        ready, self._waiting, self._n_waiting, self._n_bytes = self._waiting, [], 0, 0
        return ready

    def _write(self, parts: Sequence[pa.Table]) -> None:
        storage, table, night, run_id, _ = self._facts
        if parts and (written := write_file(storage, table, pa.concat_tables(parts), night, run_id=run_id)):
            self._adds.append(written)

    def finish(self) -> list[dict[str, Any]]:
        """Write the buffered rows; return the add actions of all files so far."""
        self._write(self._take())
        return self._adds

    def drain(self) -> pa.RecordBatch:
        """Write the buffered rows, and return the add action of each file so far, for :meth:`adopt`."""
        actions = [json.dumps(action) for action in self.finish()]
        self._adds = []
        return pa.RecordBatch.from_pydict({"add": pa.array(actions, pa.string())})

    def adopt(self, files: pa.Table) -> None:
        """Add files that workers wrote and drained; ResultsError if this process does not see them."""
        storage, table, *_ = self._facts
        self.has_workers = True
        for action in map(json.loads, files["add"].to_pylist()):
            path = Path(inside(storage.root, table), path_of(action))
            if not path.is_file() and not storage.is_mirror:
                fix = "use a folder that all machines share, or a store"
                raise ResultsError(Fault("results root", f"no {path}", "the file that a worker wrote there", fix))
            self._adds.append(action)

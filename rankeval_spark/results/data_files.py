"""Files of a Delta table on a local disk: read one by one, replaced, merged, and deleted once no version needs them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, local_tables, whole_files
from rankeval_spark.results.file_store import inside, sync
from rankeval_spark.results.run_record import NightKey

if TYPE_CHECKING:
    import deltalake

    from rankeval_spark.results.file_store import LocalStorage

ROWS_AT_ONCE: Final = 65_536  # of a file in memory
SMALL: Final = 64 << 20  # bytes; smaller files of a night are merged
FEW_EVENTS: Final = 2_000
"""Rows below which a file of ``runs`` is small. Each has a config of 10 KB: a merge of as many takes half a second."""


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
    whole_files.require(location, [file.path])
    with pq.ParquetFile(Path(location, file.path)) as opened:
        yield from opened.iter_batches(ROWS_AT_ONCE, columns=columns)


def replace_files(
    storage: LocalStorage,
    table: str,
    files: Mapping[DataFile, Callable[[pa.RecordBatch], pa.RecordBatch] | None],
    *,
    after: int | None = None,
) -> None:
    """Rewrite files in one commit: by a change of each batch, or None to delete their rows; see local_tables.commit."""
    seen = delta_log.latest_version(storage, table) if after is None else after
    written = [_rewritten(storage, table, file, change) for file, change in files.items() if change is not None]
    actions = [*filter(None, written), *(_removed(file, changes=True) for file in files)]
    local_tables.commit(storage, table, seen, actions)


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
    for files in groups:
        batches = (
            batch
            for file in files
            for batch in fragments[file.path].to_batches(schema=dataset.schema, columns=names, batch_size=ROWS_AT_ONCE)
        )
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        written.append(_written(storage, table, files[0], rows, changes=False))
    removed = [_removed(file, changes=False) for files in groups for file in files]
    local_tables.commit(storage, table, opened.version(), [*filter(None, written), *removed])
    return sum(map(len, groups)), len(groups)


def merge_events(storage: LocalStorage, table: str, *, after: int | None = None) -> tuple[int, int]:
    """Merge small files of ``runs`` across nights, in one commit; return their number before and after.

    A table that an earlier version partitioned by night has no partitions afterwards.
    """
    opened = local_tables.delta_table(storage, table, after)
    partitions = local_tables.partitions_of(opened)
    found = pa.table(opened.get_add_actions()).sort_by("modification_time").to_pylist()
    paths = [unquote(file["path"]) for file in found if partitions or file["num_records"] < FEW_EVENTS]
    if not partitions and not paths[1:]:
        return 0, 0
    dataset = local_tables.scan(storage, table, version=after)
    fragments = {fragment.path: fragment for fragment in dataset.get_fragments()}
    small = ds.FileSystemDataset([fragments[path] for path in paths], dataset.schema, dataset.format)
    added = [
        local_tables.file_of(rows, inside(storage.root, table), None, changes=False)
        for rows in _in_parts(small.to_batches(columns=[field.name for field in opened.schema().fields]))
    ]
    own = {file.path: file for file in _files_of(opened)}
    removed = [_removed(own[path], changes=False) for path in paths]
    described = [local_tables.described(opened, partitionColumns=[])] if partitions else []
    local_tables.commit(storage, table, opened.version(), [*described, *added, *removed])
    return len(paths), len(added)


def give_up_damaged(storage: LocalStorage, table: str, *, after: int) -> list[str]:
    """Remove missing or damaged files from ``runs`` in one commit, not from the disk; return the damage of each."""
    location = inside(storage.root, table)
    damaged = {}
    for file in data_files(storage, table, after):
        if reason := whole_files.why_damaged(Path(location, file.path)):
            damaged[file] = f"{file.path}, which is {reason}"
    if damaged:
        local_tables.commit(storage, table, after, [_removed(file, changes=True) for file in damaged])
    return list(damaged.values())


def _in_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Collect batches into tables of enough rows for a file."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= FEW_EVENTS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _small_files(files: Iterable[DataFile]) -> list[list[DataFile]]:
    """Group the small files of each night for merging; a file that would be alone stays."""
    groups: list[list[DataFile]] = []
    for file in sorted((file for file in files if file.size < SMALL), key=lambda file: (str(file.night), file.path)):
        last = groups[-1] if groups else []
        if last and last[0].night == file.night and sum(one.size for one in last) < SMALL:
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
    """Delete these files."""
    for path in unneeded_files(storage, table):
        storage.remove(f"{table}/{path}")


def properties_of(storage: LocalStorage, table: str) -> dict[str, str]:
    """Return the properties of a table, its constraints among them."""
    return dict(local_tables.delta_table(storage, table).metadata().configuration)


def _files_of(opened: deltalake.DeltaTable) -> list[DataFile]:
    # The log has paths as parts of a URL.
    return [
        DataFile(
            unquote(file["path"]), file["size_bytes"], NightKey(**night) if (night := file.get("partition")) else None
        )
        for file in pa.table(opened.get_add_actions()).to_pylist()
    ]


def _removed(file: DataFile, *, changes: bool) -> dict[str, Any]:
    return local_tables.removed(file.path, file.night, size=file.size, changes=changes)


def _rewritten(
    storage: LocalStorage, table: str, file: DataFile, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> dict[str, Any] | None:
    """Write the changed rows of a file next to it; None, and no file, if none is left."""
    with pq.ParquetFile(Path(inside(storage.root, table), file.path)) as opened:
        batches = map(change, opened.iter_batches(ROWS_AT_ONCE))
        rows = pa.RecordBatchReader.from_batches(opened.schema_arrow, batches)
        return _written(storage, table, file, rows, changes=True)


def _written(
    storage: LocalStorage, table: str, neighbour: DataFile, rows: pa.RecordBatchReader, *, changes: bool
) -> dict[str, Any] | None:
    """Write rows to a file next to another of their night; None, and no file, without a row.

    By pyarrow, which reports a full disk as Python does; a thread of deltalake's writer aborts the process there.
    """
    folder = inside(storage.root, table)
    path = str(Path(neighbour.path).with_name(f"{uuid.uuid4().hex}.parquet"))
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
    return local_tables.added(folder, path, neighbour.night, stats=stats, changes=changes)

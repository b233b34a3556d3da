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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import deltalake
import pyarrow as pa
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from rankeval_spark import allowed, columns as C
from rankeval_spark.results.storage import LocalStorage, Storage, inside

if TYPE_CHECKING:
    from rankeval_spark.results.facts import Night

PARTITIONS: Final = (C.EVALUATION, C.EVALUATION_DATE)

CONFLICTS: Final = (CommitFailedError,)
"""Somebody committed to the table between our look at it and our commit."""

_REFUSED: Final = re.compile(r"[\[\]\\^|]|%[0-9A-Fa-f]{2}")
"""What deltalake cannot open in a path, or takes for something else."""

Filters = Sequence[tuple[str, str, Any]]
"""Conditions that rows meet, all of them: column, ``=`` or ``in``, value or values."""


def are_at(storage: Storage) -> TypeGuard[LocalStorage]:
    """Whether this module reads and writes the tables of a root; of all others Spark does."""
    return isinstance(storage, LocalStorage) and not _REFUSED.search(storage.root)


def schema_of(storage: LocalStorage, table: str) -> dict[str, Any]:
    """Columns of a table as JSON, the form that ``StructType.fromJson`` takes."""
    columns: dict[str, Any] = json.loads(_opened(storage, table).schema().to_json())
    return columns


def read(
    storage: LocalStorage,
    table: str,
    *,
    version: int | None = None,
    columns: Sequence[str] | None = None,
    where: Filters = (),
) -> list[dict[str, Any]]:
    """Read rows of a table; maps are dictionaries, times are in UTC.

    Raises
    ------
    ConfigError
        The log names a file outside the folders that the environment allows.
    """
    opened = _opened(storage, table, version)
    if allowed.is_limited():
        allowed.demand(*((f"results root, table {table}", uri) for uri in opened.file_uris()))
    rows = opened.to_pyarrow_table(columns=list(columns) if columns else None, filters=list(where) or None)
    found: list[dict[str, Any]] = rows.to_pylist(maps_as_pydicts="strict")
    return found


def append(storage: LocalStorage, table: str, rows: Iterable[Mapping[str, Any]], *, tag: str) -> None:
    """Append rows in one commit that carries ``tag`` as its user metadata; the constraints of the table hold."""
    opened = _opened(storage, table)
    values = pa.Table.from_pylist(list(rows), schema=pa.schema(opened.schema().to_arrow()))
    deltalake.write_deltalake(opened, values, mode="append", commit_properties=_tagged(tag))


def write_new(storage: LocalStorage, table: str, rows: pa.Table) -> None:
    """Write a table that is not there yet, in one commit."""
    partitions = [name for name in PARTITIONS if name in rows.column_names]
    path = inside(storage.root, table)
    deltalake.write_deltalake(path, rows, mode="error", partition_by=partitions or None)


def replace_night(
    storage: LocalStorage, table: str, night: Night, *, files: Sequence[Mapping[str, Any]], tag: str
) -> None:
    """Let files be the rows of a night, in one commit: those that held its rows are removed from the table.

    Parameters
    ----------
    files : sequence of mappings
        The ``add`` actions of a table partitioned by :data:`PARTITIONS` with ``location``, where that table is. The
        files get a second name in this table, so that either table can be deleted.
    """
    opened = _opened(storage, table)
    values = {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date.isoformat()}
    adds: list[AddAction | RemoveAction] = [
        AddAction(
            path=_linked(file, inside(storage.root, table)),
            size=file["size"],
            partition_values=values,
            modification_time=file["modificationTime"],
            data_change=True,
            stats=file.get("stats") or "{}",
        )
        for file in files
    ]
    opened.create_write_transaction(
        adds,
        mode="overwrite",
        schema=opened.schema(),
        partition_by=list(PARTITIONS),
        partition_filters=[(name, "=", value) for name, value in values.items()],
        commit_properties=_tagged(tag),
    )


def add_columns(storage: LocalStorage, table: str, fields: Iterable[str]) -> None:
    """Add columns, given as ``StructField.json()`` writes them, in one commit."""
    _opened(storage, table).alter.add_columns([deltalake.Field.from_json(field) for field in fields])


def has_rows(storage: LocalStorage, table: str, night: Night) -> bool:
    """Whether a table has a file with rows of a night."""
    values = [(C.EVALUATION, "=", night.evaluation), (C.EVALUATION_DATE, "=", night.evaluation_date.isoformat())]
    return bool(_opened(storage, table).file_uris(file_pruning_predicate=values))


def _opened(storage: LocalStorage, table: str, version: int | None = None) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(inside(storage.root, table), version=version)


def _tagged(tag: str) -> deltalake.CommitProperties:
    return deltalake.CommitProperties(custom_metadata={"userMetadata": tag})


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
    return str(name)

"""Delta tables of a results root as datasets of Arrow, and whether their files are whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache, reduce
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError
from pyarrow import fs

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line, nearest
from rankeval_spark.inputs.input_files import nearest_location
from rankeval_spark.results import delta_log
from rankeval_spark.results.storage import Storage, inside
from rankeval_spark.results.tables import PARTITIONS

Filters: TypeAlias = Sequence[tuple[str, str, Any]]
"""Conditions that rows meet, all of them: column, ``=`` or ``in``, value or values.

With :data:`AT` the values are cutoffs by measure, none for all cutoffs of it.
"""
AT: Final = "at"
Order: TypeAlias = Sequence[tuple[str, str]]  # columns to sort by, each with `asc` or `desc`; NULL comes last in both

MAX_OPENED: Final = 16  # versions of tables that stay open: of each table that before a run and that after it
MAX_NAMED: Final = 5  # files in an error
_ABSOLUTE: Final = re.compile(r"/*[A-Za-z][A-Za-z0-9+.-]*:/*(?P<path>/.*)")  # a file that a log names by a URI
_OURS: Final = "rankeval."  # begin the evaluations of events of maintenance

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,110}")
"""Evaluations that may be part of the name of a file: those of configs, and their samples."""

_IN_NAME: Final = re.compile(rf"-({_NAME.pattern})@([\d-]+)(?:~({_NAME.pattern})@([\d-]+))?\.parquet$")
"""End of the name of a file of ``runs``: its only night, or the bounds of several."""

_MAGIC: Final = b"PAR1"
_LENGTH: Final = 4
"""Bytes of the magic word at both ends of a Parquet file, and of the length of its footer before the last one."""


class Requested(NamedTuple):
    """A measure at a cutoff that a run computed, and its column in ``user_metrics``; None where users have no value."""

    measure: str
    k: int
    column: str | None


def delta_table(storage: Storage, table: str, version: int | None = None) -> deltalake.DeltaTable:
    """Open a table of a root; ConfigError if there is no such table or version, or its log is damaged."""
    try:
        location = inside(storage.root, table)
        allowed_folders.require_each(f"results root, table {table}", allowed_folders.delta_log_paths(location))
        readable = delta_log.readable(storage, table, version)
        if readable is None:
            return deltalake.DeltaTable(location, version=version)
        newest, names = readable
        names = [name for name in names if not storage.is_mirror or name != delta_log.HINT]
        storage.fetch(f"{table}/{delta_log.LOG_FOLDER}/{name}" for name in names)
        log = Path(location, delta_log.LOG_FOLDER)
        stats = ((name, (log / name).stat()) for name in names)
        return _opened(location, newest, tuple((name, own.st_ino, own.st_size, own.st_mtime_ns) for name, own in stats))
    except TableNotFoundError as error:
        root = Path(storage.root)
        if root.is_file():
            found, fix = "a file", "results.root of a config names the folder"
            fix = fix if root.suffix in (".yaml", ".yml") else ""
        elif not root.is_dir():
            found, fix = "no such folder", "" if allowed_folders.is_limited() else nearest_location(storage.address)
        else:
            logs = sorted(root.glob(f"*/{table}/_delta_log"))
            found, fix = f"no table {table}", f"did you mean {logs[0].parents[1]}?" if logs else ""
        raise _unreadable(storage, found, fix) from error
    except DeltaError as error:
        at = "" if version is None else f" at version {version}"
        found = f"table {table}{at}: {first_line(str(error))}"
        fix = "" if version is None else "older versions are kept for 30 days"
        if not delta_log.is_hint_valid(storage, table):
            found = f"table {table}, whose {delta_log.HINT} names a checkpoint that is gone or damaged"
            fix = "the next run of any date, or rankeval maintain, removes it"
        raise _unreadable(storage, found, fix) from error


@lru_cache(maxsize=MAX_OPENED)
def _opened(location: str, version: int, log: tuple[tuple[str | int, ...], ...]) -> deltalake.DeltaTable:  # noqa: ARG001 - part of the key
    """Open a version of a table, the same again while its log does not change: 50 ms after thousands of nights."""
    return deltalake.DeltaTable(location, version=version)


def _unreadable(storage: Storage, found: str, fix: str) -> ConfigError:
    return ConfigError(Fault("results root", f"{storage.address!r} ({found})", "the results of an earlier run", fix))


def partitions_of(opened: deltalake.DeltaTable) -> list[str]:
    """Return the columns by which a table is partitioned."""
    columns: list[str] = opened.metadata().partition_columns
    return columns


def scan(
    storage: Storage,
    table: str,
    *,
    version: int | None = None,
    where: Filters = (),
    without: Mapping[str, Span | None] = MappingProxyType({}),  # files that are left out
    is_fetched: bool = True,  # False for a caller who reads some of the files alone, and has fetched them
) -> ds.Dataset:
    """Return the rows of a table as a dataset; files of other nights are never opened.

    If a file that is left out is about one night, so are all rows of that night: they may be of an earlier run.

    Raises ConfigError for an unknown or unreadable table or version, a log that names a file outside the allowed
    folders, or a condition with a value of another type than its column; DamagedResultsError for other files that are
    missing or damaged.
    """
    opened, location = delta_table(storage, table, version), inside(storage.root, table)
    # No run writes files outside the table, and deltalake skips them silently.
    paths = pa.table(opened.get_add_actions())["path"]
    absolute = paths.filter(pc.match_substring_regex(paths, _ABSOLUTE.pattern)).to_pylist()
    elsewhere = [match["path"] for path in absolute if (match := _ABSOLUTE.match(path))]
    allowed_folders.require_each(f"results root, table {table}", elsewhere)
    if elsewhere:
        raise _unreadable(storage, f"table {table} with files elsewhere, such as {elsewhere[0]}", "restore the table")
    schema = pa.schema(opened.schema().to_arrow())
    require_columns(table, where, schema.names)
    partitions, of_files, of_rows = partitions_of(opened), [], []
    for name, how, value in where:
        if name in partitions and value:
            text = str(value) if isinstance(value, str | date) else [str(each) for each in value]
            of_files.append((name, how, text))
        else:
            of_rows.append(_expression(schema, table, name, how, value))
    # By Arrow's own file system. That of deltalake is Python: threads of Arrow that still hold a file of it when Python
    # ends abort the process, one in three on a busy machine.
    files = fs.SubTreeFileSystem(location, fs.LocalFileSystem())
    try:
        dataset = opened.to_pyarrow_dataset(filesystem=files, file_pruning_predicate=of_files or None, schema=schema)
    except DeltaProtocolError as error:
        message = first_line(str(error))
        raise _unreadable(storage, f"table {table}: {message}", "drop that feature of the table") from error
    # no link may lead out of the allowed folders
    allowed_folders.require_each(f"results root, table {table}", (f"{location}/{file}" for file in dataset.files))
    if without:
        kept = [fragment for fragment in dataset.get_fragments() if fragment.path not in without]
        dataset = ds.FileSystemDataset(kept, dataset.schema, dataset.format, files)
        of_rows += [~is_of(night) for span in without.values() if span and (night := span.night)]
    if is_fetched:
        storage.fetch(f"{table}/{path}" for path in dataset.files)
        require_files(location, dataset.files)
    for condition in of_rows:
        dataset = dataset.filter(condition)
    return dataset


def require_columns(table: str, where: Filters, columns: Iterable[str]) -> None:
    """Raise ConfigError for conditions on columns that a table does not have."""
    known = list(columns)
    unknown = sorted({name for name, _, _ in where} - set(known))
    if unknown:
        fix = nearest(unknown[0], known)
        raise ConfigError(Fault(f"filter of {table}", ", ".join(unknown), f"columns: {', '.join(known)}", fix))


def _expression(schema: pa.Schema, table: str, name: str, how: str, value: object) -> pc.Expression:
    """Return a condition for Arrow, with values in the type of the column."""
    type_, column = schema.field(name).type, pc.field(name)
    if how == AT and isinstance(value, Mapping):
        measures = (
            column == label if not ks else (column == label) & pc.field(C.K).isin(ks) for label, ks in value.items()
        )
        return reduce(or_, measures)
    try:
        return column.isin(pa.array(value, type_)) if how == "in" else column == pa.scalar(value, type_)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ConfigError(Fault(f"filter of {table}, {name}", repr(value), f"a value of type {type_}")) from error


def is_of(night: tuple[str, date]) -> pc.Expression:
    """Return the condition that a row is of a night."""
    evaluation, day = night
    return (pc.field(C.EVALUATION) == evaluation) & (pc.field(C.EVALUATION_DATE) == pa.scalar(day))


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dictionaries; maps are dictionaries too."""
    columns = map(_to_values, table.columns)
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _to_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values; keys and items of all its maps at once, which is far faster."""
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


class Span(NamedTuple):
    """The nights between the first and the last of some rows."""

    evaluations: tuple[str, str]  # the first and the last one, as texts are ordered
    dates: tuple[date, date]

    @classmethod
    def from_events(cls, rows: pa.Table) -> Span:
        """Return the nights in rows of ``runs``; those of maintenance count only if there are no others."""
        of_nights = rows.filter(pc.invert(pc.starts_with(rows[C.EVALUATION], _OURS)))
        found = of_nights if of_nights.num_rows else rows
        evaluations, dates = (pc.min_max(found[name]).as_py() for name in PARTITIONS)
        return cls((evaluations["min"], evaluations["max"]), (dates["min"], dates["max"]))

    @classmethod
    def from_path(cls, path: str) -> Span | None:
        """Parse the nights of a file from its path within a table; None if that does not name any."""
        file = Path(path)
        folders = dict(part.split("=", 1) for part in file.parts[-3:-1] if "=" in part)
        in_folders = folders.get(C.EVALUATION), folders.get(C.EVALUATION_DATE)
        in_name = _IN_NAME.search(file.name)
        first, begin, last, end = in_name.groups() if in_name else (*in_folders, None, None)
        try:
            dates = date.fromisoformat(begin or ""), date.fromisoformat(end or begin or "")
        except ValueError:
            return None
        return cls((unquote(first), unquote(last or first)), dates) if first else None

    def in_name(self) -> str:
        """Return the end of the name of a file, see ``from_path``; empty for evaluations that no config names."""
        if not all(map(_NAME.fullmatch, self.evaluations)):
            return ""
        ends = zip(self.evaluations, self.dates, strict=True)
        return "-" + "~".join(dict.fromkeys(f"{evaluation}@{day}" for evaluation, day in ends))

    @property
    def night(self) -> tuple[str, date] | None:
        """The night, if it is only one."""
        is_one = self.evaluations[0] == self.evaluations[1] and self.dates[0] == self.dates[1]
        return (self.evaluations[0], self.dates[0]) if is_one else None

    def __str__(self) -> str:
        return ", ".join(" to ".join(dict.fromkeys(map(str, ends))) for ends in self)


class DamagedResultsError(InputError, pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """A file of published results, by its path with its nights, is missing or damaged; Arrow's error too."""

    title = "published results are missing or damaged"

    def __init__(self, *faults: Fault, files: Mapping[str, Span | None]) -> None:
        self.files = dict(files)
        super().__init__(*faults)

    @property
    def nights(self) -> frozenset[tuple[str, date]]:
        """Evaluations and dates of the files with a single night; a file of ``runs`` may have many."""
        return frozenset(night for span in self.files.values() if span and (night := span.night))


def require_files(location: str, files: Iterable[str]) -> None:
    """Raise DamagedResultsError if files of the table at a location are missing or damaged, by a few bytes of each."""
    damaged = {file: reason for file in sorted(files) if (reason := why_damaged(Path(location, file)))}
    if not damaged:
        return
    table, spans, faults = Path(location).name, {file: Span.from_path(file) for file in damaged}, []
    for file, reason in [*damaged.items()][:MAX_NAMED]:
        span = spans[file]
        where, found = f"table {table}" + (f", {span}" if span else ""), f"{file}, which is {reason}"
        if table == schemas.RUNS.name:
            again = "their dates" if span is None or span.night is None else "the date"
            fix = f"restore it from a backup, or give its events up by rankeval maintain and run {again} again"
            faults.append(Fault(where, found, "a whole file of events", fix))
        else:
            day = "" if span is None else f" (rankeval run CONFIG --date {span.dates[0]})"
            fix = f"run the date again{day}, which replaces it"
            faults.append(Fault(where, found, "the rows that its run published", fix))
    raise DamagedResultsError(*faults, files=spans)


def why_damaged(file: Path) -> str | None:
    """Return the damage of a Parquet file as a whole, in words; None if it is whole."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_LENGTH)
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - 2 * _LENGTH))
            length, tail = opened.read(_LENGTH), opened.read(_LENGTH)
    except FileNotFoundError:
        return "missing"
    if not size:
        return "empty"
    if head != _MAGIC:
        return "no Parquet file"
    is_whole = tail == _MAGIC and int.from_bytes(length, "little") + 3 * _LENGTH <= size
    return None if is_whole else "cut off"

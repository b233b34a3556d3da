"""Delta tables on a disk of this machine, read by this process as Arrow; the checks that their files are whole.

Other stores keep their credentials in Spark's settings, so their tables are left to Spark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache, reduce
from itertools import compress
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeGuard
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
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import delta_log
from rankeval_spark.results.file_store import LocalStorage, Storage, inside

if TYPE_CHECKING:
    from rankeval_spark.results.run_record import NightKey

Filters: TypeAlias = Sequence[tuple[str, str, Any]]
"""Conditions that rows meet, all of them: column, ``=`` or ``in``, value or values.

With :data:`AT` the values are cutoffs by measure, none for all cutoffs of it.
"""

AT: Final = "at"

Order: TypeAlias = Sequence[tuple[str, str]]  # columns to sort by, each with `asc` or `desc`; NULL comes last in both

PARTITIONS: Final = [C.EVALUATION, C.EVALUATION_DATE]
"""Columns by which every table but ``runs`` is partitioned: a file of ``runs`` has rows of many nights."""

MOST_OPENED: Final = 16  # versions of tables that stay open: of each table that before a run and that after it
_REFUSED: Final = re.compile(r"[\[\]\\^|]|%[0-9A-Fa-f]{2}")  # parts of a path that deltalake cannot open, or misreads

_ABSOLUTE: Final = re.compile(r"/*[A-Za-z][A-Za-z0-9+.-]*:/*(?P<path>/.*)")
"""A file of a table that its log names by a URI."""

MAX_NAMED: Final = 5  # files in an error
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


def require_columns(table: str, where: Filters, columns: Iterable[str]) -> None:
    """Raise ConfigError for conditions on columns that a table does not have."""
    known = list(columns)
    unknown = sorted({name for name, _, _ in where} - set(known))
    if unknown:
        fix = nearest(unknown[0], known)
        raise ConfigError(Fault(f"filter of {table}", ", ".join(unknown), f"columns: {', '.join(known)}", fix))


def are_at(storage: Storage) -> TypeGuard[LocalStorage]:
    """Return whether this process reads and writes the tables of a root; if not, Spark does."""
    return isinstance(storage, LocalStorage) and not _REFUSED.search(storage.root)


def schema_of(storage: LocalStorage, table: str) -> dict[str, Any]:
    """Return the columns of a table as JSON, the form of ``StructType.fromJson``."""
    columns: dict[str, Any] = json.loads(delta_table(storage, table).schema().to_json())
    return columns


def scan(
    storage: LocalStorage,
    table: str,
    *,
    version: int | None = None,
    where: Filters = (),
    without: Mapping[str, Span | None] = MappingProxyType({}),  # files that are left out
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
    schema = declared_first(table, pa.schema(opened.schema().to_arrow()))
    require_columns(table, where, schema.names)
    partitions = partitions_of(opened)
    is_of_nights = [name in partitions and bool(value) for name, _, value in where]
    partition_filters = [
        (name, how, str(value) if isinstance(value, str | date) else [str(text) for text in value])
        for name, how, value in compress(where, is_of_nights)
    ]
    row_filters = [
        _expression(schema, table, *rule) for rule, is_pruned in zip(where, is_of_nights, strict=True) if not is_pruned
    ]
    # By Arrow's own file system. That of deltalake is Python: threads of Arrow that still hold a file of it when Python
    # ends abort the process, one in three on a busy machine.
    files = fs.SubTreeFileSystem(location, fs.LocalFileSystem())
    try:
        dataset = opened.to_pyarrow_dataset(
            filesystem=files, file_pruning_predicate=partition_filters or None, schema=schema
        )
    except DeltaProtocolError as error:
        message = first_line(str(error))
        raise _unreadable(storage, f"table {table}: {message}", "drop that feature of the table") from error
    # no link may lead out of the allowed folders
    allowed_folders.require_each(f"results root, table {table}", (f"{location}/{file}" for file in dataset.files))
    if without:
        kept = [fragment for fragment in dataset.get_fragments() if fragment.path not in without]
        dataset = ds.FileSystemDataset(kept, dataset.schema, dataset.format, files)
        row_filters += [~is_of(night) for span in without.values() if span and (night := span.night)]
    require_files(location, dataset.files)
    for condition in row_filters:
        dataset = dataset.filter(condition)
    return dataset


def declared_first(table: str, found: pa.Schema) -> pa.Schema:
    """Return the columns of a table when read: the declared ones, which may be NULL, then all others."""
    fields = {schema.name: columns_json(schema) for schema in (schemas.RUNS, *schemas.PUBLISHED)}.get(table)
    if fields is None:
        return found
    declared = pa.schema(deltalake.Schema.from_json(json.dumps(fields)).to_arrow())
    first = [
        found.field(field.name) if field.name in found.names else field.with_nullable(nullable=True)
        for field in declared
    ]
    return pa.schema([*first, *(field for field in found if field.name not in declared.names)])


def partitions_of(opened: deltalake.DeltaTable) -> list[str]:
    """Return the columns by which a table is partitioned."""
    columns: list[str] = opened.metadata().partition_columns
    return columns


def is_by_night(storage: Storage, table: str) -> bool:
    """Return whether a table that this process reads has partitions, as ``runs`` had in earlier versions."""
    return are_at(storage) and bool(partitions_of(delta_table(storage, table)))


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


def nights_of(storage: LocalStorage, table: str, *, version: int | None = None) -> set[tuple[str, date]]:
    """Return the evaluations and dates that a table has rows of, from its log."""
    nights = delta_table(storage, table, version).partitions()
    return {(night[C.EVALUATION], date.fromisoformat(night[C.EVALUATION_DATE])) for night in nights}


def has_rows(storage: LocalStorage, table: str, night: NightKey, version: int | None = None) -> bool:
    """Return whether a table has a file with rows of a night."""
    where = [(name, "=", value) for name, value in partition_of(night).items()]
    return bool(delta_table(storage, table, version).file_uris(file_pruning_predicate=where))


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


def delta_table(storage: LocalStorage, table: str, version: int | None = None) -> deltalake.DeltaTable:
    """Open a table of a root; ConfigError if there is no such table or version, or its log is damaged."""
    try:
        location = inside(storage.root, table)
        allowed_folders.require_each(f"results root, table {table}", allowed_folders.delta_log_paths(location))
        readable = delta_log.readable(storage, table, version)
        if readable is None:
            return deltalake.DeltaTable(location, version=version)
        newest, names = readable
        log = Path(location, delta_log.LOG_FOLDER)
        stats = ((name, (log / name).stat()) for name in names)
        return _opened(location, newest, tuple((name, own.st_ino, own.st_size, own.st_mtime_ns) for name, own in stats))
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
    """Open a version of a table, the same again while its log does not change: 50 ms after thousands of nights."""
    return deltalake.DeltaTable(location, version=version)


def _without_table(root: Path, table: str) -> tuple[str, str]:
    """Return what is there in place of results, and a hint where some are."""
    if root.is_file():
        return "a file", "results.root of a config names the folder" if root.suffix in (".yaml", ".yml") else ""
    if not root.is_dir():
        return "no such folder", "" if allowed_folders.is_limited() else nearest_location(str(root))
    logs = sorted(root.glob(f"*/{table}/_delta_log"))
    return f"no table {table}", f"did you mean {logs[0].parents[1]}?" if logs else ""


def _unreadable(storage: LocalStorage, found: str, fix: str) -> ConfigError:
    return ConfigError(Fault("results root", f"{storage.root!r} ({found})", "the results of an earlier run", fix))


def partition_of(night: NightKey | None) -> dict[str, str]:
    """Return the partition of a night as in the log; none for None."""
    if night is None:
        return {}
    return {C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date.isoformat()}


class Span(NamedTuple):
    """The nights between the first and the last of some rows."""

    evaluations: tuple[str, str]  # the first and the last one, as texts are ordered
    dates: tuple[date, date]

    @classmethod
    def of_events(cls, rows: pa.Table) -> Span:
        """Return the nights in rows of ``runs``; those of maintenance count only if there are no others."""
        of_nights = rows.filter(pc.invert(pc.starts_with(rows[C.EVALUATION], _OURS)))
        found = of_nights if of_nights.num_rows else rows
        evaluations, dates = (pc.min_max(found[name]).as_py() for name in PARTITIONS)
        return cls((evaluations["min"], evaluations["max"]), (dates["min"], dates["max"]))

    @classmethod
    def of_file(cls, path: str) -> Span | None:
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
        """Return the end of the name of a file, see ``of_file``; empty for evaluations that no config names."""
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
    if damaged:
        table, found = Path(location).name, {file: Span.of_file(file) for file in damaged}
        faults = [_damage_fault(table, file, reason, found[file]) for file, reason in [*damaged.items()][:MAX_NAMED]]
        raise DamagedResultsError(*faults, files=found)


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


def _damage_fault(table: str, file: str, reason: str, span: Span | None) -> Fault:
    where, found = ", ".join([f"table {table}", *([str(span)] if span else [])]), f"{file}, which is {reason}"
    if table == schemas.RUNS.name:
        again = "their dates" if span is None or span.night is None else "the date"
        fix = f"restore it from a backup, or give its events up by rankeval maintain and run {again} again"
        return Fault(where, found, "a whole file of events", fix)
    day = "" if span is None else f" (rankeval run CONFIG --date {span.dates[0]})"
    return Fault(where, found, "the rows that its run published", f"run the date again{day}, which replaces it")

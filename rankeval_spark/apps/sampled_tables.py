"""Samples of the tables of a user, and guesses about their columns, arrays and events."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Final

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from rankeval_spark import columns as C
from rankeval_spark.allowed_folders import delta_log_paths, require_allowed, require_each, scheme_of
from rankeval_spark.config.base import DATE_PLACEHOLDER
from rankeval_spark.config.inputs import Gains, Nested, column_and_field
from rankeval_spark.engine.buckets import hashes_of
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line
from rankeval_spark.inputs.arrow.arrow_types import is_binary, is_list, is_number, is_text
from rankeval_spark.inputs.arrow.files import files_below, folder_columns, parquet_dataset, with_folder_columns
from rankeval_spark.inputs.column_names import (
    columns_by_name,
    columns_by_part,
    is_item_name,
    is_score_name,
    plain_name,
)
from rankeval_spark.inputs.input_files import ForSparkError

SAMPLE_ROWS: Final = 10_000  # that are looked at; of text files, lines
ROWS_OF_A_COLUMN: Final = 2_000_000  # of which a single column is read
ROWS_OF_USERS: Final = 400_000  # that are kept of whole users
_LEAST_SHARE: Final = 1 << 20  # one user in so many
_SKIPPED_BITS: Final = 1  # of a hash, so that its rest is none of the shares that a night draws
_HASH: Final = "hash of the user"
ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

_SUFFIXES: Final = {
    ".parquet": "parquet",
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), "csv"),
    **dict.fromkeys((".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson"), "json"),
}
_SEPARATORS: Final = (",", ";", "\t", "|")
_EXPECTED: Final = "a Delta table, or files that end with .parquet, .csv or .json"
_FIX: Final = "rankeval init CONFIG without tables writes every key, to be filled in"


@dataclass(frozen=True)
class TableSample:
    """A table that was looked at."""

    path: str  # as the user gave it, with ``{date}`` where it has that
    format: str  # ``delta``, ``parquet``, ``csv`` or ``json``
    rows: pa.Table  # its first rows, with all columns
    partitions: dict[str, list[str]] = field(default_factory=dict)  # values of the columns it is partitioned by
    path_date: str | None = None  # newest date for which the path has something; None for a path without ``{date}``
    separator: str = ","  # of csv
    dataset: ds.Dataset | None = None  # all rows, of Delta and Parquet
    files: tuple[Path, ...] = ()  # all files, of csv and json
    folders: pa.Table | None = None  # what the folders of these files say of their rows

    def distinct(self, column: str) -> list[str]:
        """List the values of a column, of many rows: only that column is kept of them."""
        found: set[str] = set()
        n_rows = 0
        for rows in self.all_rows([column]):
            found.update(texts_of(rows[column]))
            n_rows += rows.num_rows
            if n_rows >= ROWS_OF_A_COLUMN:
                break
        return sorted(found)

    def all_rows(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield some columns of all rows of the table, a part at a time; of csv as text.

        The sample alone where the rest cannot be read as its first lines are.
        """
        if self.dataset is not None:
            yield from (pa.Table.from_batches([part]) for part in self.dataset.to_batches(columns=list(columns)))
            return
        of_folders = [] if self.folders is None else self.folders.column_names
        own = [name for name in columns if name not in of_folders]
        try:
            for place, file in enumerate(self.files):
                for part in self._lines(file, own).to_batches(columns=own):
                    rows = pa.Table.from_batches([part])
                    if self.folders is not None:
                        rows = with_folder_columns(rows, self.folders, place)
                    yield rows.select(list(columns))
        except (OSError, pa.ArrowException, ValueError):
            yield self.rows.select(list(columns))

    def _lines(self, file: Path, columns: Sequence[str]) -> ds.Dataset:
        """Open one file of csv or json."""
        if self.format == "json":
            return ds.dataset([str(file)], format="json")
        parse = pa_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        texts = pa.schema([(name, pa.string()) for name in columns])
        return ds.dataset([str(file)], schema=texts, format=ds.CsvFileFormat(parse_options=parse))

    def of_some_users(self, columns: Sequence[str], user: str) -> pa.Table:
        """Return some columns of all rows of some users, wherever these rows are: all users, or a share by hash.

        The share is halved whenever more than :data:`ROWS_OF_USERS` rows are kept.
        """
        kept, share = list[pa.Table](), 1
        for rows in self.all_rows(list(dict.fromkeys([*columns, user]))):
            named = rows.filter(pc.is_valid(rows[user]))
            hashes = pa.array(hashes_of(named[user].cast(pa.string())) >> _SKIPPED_BITS)
            kept.append(_of_share(named.append_column(_HASH, hashes), share))
            while sum(each.num_rows for each in kept) > ROWS_OF_USERS and share < _LEAST_SHARE:
                share *= 2
                kept = [_of_share(pa.concat_tables(kept), share)]
        return pa.concat_tables(kept).drop_columns([_HASH]) if kept else self.rows


def _of_share(rows: pa.Table, share: int) -> pa.Table:
    return rows.filter(pa.array(rows[_HASH].to_numpy() % share == 0))


def look_at(option: str, path: str, *, splits_days: bool = True) -> TableSample:
    """Look at a table on this machine, named by an option; of a path with ``{date}``, at the newest date.

    With ``splits_days``, a folder that has a file or folder of each day, and nothing else, is read a day at a time.

    Raises ConfigError if it is elsewhere, or of no known format; InputError if it is not there, or cannot be read.
    """
    if scheme_of(path):
        raise ConfigError(Fault(option, repr(path), "a folder or file of this machine", _FIX))
    path = _of_days(option, path) if splits_days else path
    found, newest = _newest(option, path)
    require_allowed((option, str(found)))
    format_ = _format_of(option, found)
    if format_ == "delta":
        require_each(option, delta_log_paths(str(found)))
    try:
        files = files_below(found)
        if format_ == "delta":
            files = [found / name for name in deltalake.DeltaTable(str(found)).to_pyarrow_dataset().files]
        require_each(option, map(str, files))  # links may lead elsewhere
        read = (_of_lines if format_ in {"csv", "json"} else _of_columns)(found, format_)
    except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
        told = f"a table that cannot be read ({first_line(str(error))}) at {found}"
        raise InputError(Fault(option, told, "a readable table")) from error
    return replace(read, path=path, path_date=newest)


def _of_days(option: str, path: str) -> str:
    """Add ``{date}`` to the path of a folder of days; a partition such as ``day=2026-01-01`` is a column instead."""
    folder = Path(os.path.expanduser(path))
    if DATE_PLACEHOLDER in path or not folder.is_dir() or (folder / "_delta_log").is_dir():
        return path
    require_allowed((option, str(folder)))
    names = {entry.name for entry in folder.iterdir() if entry.name[0] not in "_."}
    forms = {ISO_DATE.sub(DATE_PLACEHOLDER, name, count=1) for name in names}
    form = forms.pop() if len(forms) == 1 else ""
    return f"{path.rstrip('/')}/{form}" if DATE_PLACEHOLDER in form and "=" not in form else path


def _newest(option: str, path: str) -> tuple[Path, str | None]:
    """Find what a path names; of one with a date, the newest, and its date."""
    digits = "-".join("[0-9]" * n for n in (4, 2, 2))
    found = sorted(glob.glob(glob.escape(os.path.expanduser(path)).replace(DATE_PLACEHOLDER, digits)))
    if not found:
        raise InputError(Fault(option, f"no such path at {path}", "a folder or file", "correct the path"))
    if DATE_PLACEHOLDER not in path:
        return Path(found[0]), None
    pattern = re.escape(os.path.expanduser(path)).replace(re.escape(DATE_PLACEHOLDER), f"({ISO_DATE.pattern})", 1)
    pattern = pattern.replace(re.escape(DATE_PLACEHOLDER), ISO_DATE.pattern)
    dated = {match[1]: place for place in found if (match := re.fullmatch(pattern, place))}
    newest = max(dated)
    return Path(dated[newest]), newest


def _format_of(option: str, path: Path) -> str:
    if (path / "_delta_log").is_dir():
        return "delta"
    files = files_below(path)
    formats = {format_ for file in files for suffix, format_ in _SUFFIXES.items() if file.name.endswith(suffix)}
    if len(formats) != 1:
        found = "files of several formats" if formats else "files of no known format" if files else "no file"
        raise ConfigError(Fault(option, f"{found} at {path}", _EXPECTED, _FIX))
    return formats.pop()


def _of_columns(path: Path, format_: str) -> TableSample:
    """Sample Delta or Parquet: the first rows, the values of its partitions, and the dataset of all rows."""
    if format_ == "delta":
        table = deltalake.DeltaTable(str(path))
        names = table.metadata().partition_columns
        partitions = table.partitions() if names else []
        values = {name: sorted({str(partition[name]) for partition in partitions}) for name in names}
        dataset = table.to_pyarrow_dataset()
    else:
        files = files_below(path)
        folders = _folders_of(path, files)
        values = _values_of(folders)
        dataset = parquet_dataset(files, folders, pq.read_schema(files[0]).remove_metadata())
    return TableSample(str(path), format_, dataset.head(SAMPLE_ROWS), values, separator="", dataset=dataset)


def _folders_of(path: Path, files: Sequence[Path]) -> pa.Table | None:
    """Return what the folders of files say of their rows; ValueError where only Spark surely reads them."""
    try:
        return folder_columns(path, files)
    except ForSparkError as error:
        raise ValueError(str(error)) from error


def _values_of(folders: pa.Table | None) -> dict[str, list[str]]:
    """Return the values of each column that folders have."""
    return {} if folders is None else {name: texts_of(folders[name]) for name in folders.column_names}


def _of_lines(path: Path, format_: str) -> TableSample:
    """Sample the first lines of csv or json; the separator of csv is the one that the header has most of."""
    files = files_below(path)
    folders, file = _folders_of(path, files), files[0]
    open_ = gzip.open if file.suffix == ".gz" else open
    with open_(file, "rt", encoding="utf-8") as lines:
        text = "".join(islice(lines, SAMPLE_ROWS))
    if format_ == "json":
        rows, separator = pa_json.read_json(io.BytesIO(text.encode())), ""
    else:
        header = text.split("\n", 1)[0]
        separator = max(_SEPARATORS, key=lambda sign: len(next(csv.reader([header], delimiter=sign), [])))
        rows = pa_csv.read_csv(io.BytesIO(text.encode()), parse_options=pa_csv.ParseOptions(delimiter=separator))
    if folders is not None:
        rows = with_folder_columns(rows, folders, 0)
    values = _values_of(folders)
    return TableSample(str(path), format_, rows, values, separator=separator, files=tuple(files), folders=folders)


def texts_of(values: pa.ChunkedArray) -> list[str]:
    """List the distinct values of a column as text."""
    return sorted({str(value) for value in values.unique().to_pylist() if value is not None})


def is_date(value: object) -> bool:
    """Return True if a value is written as the evaluation date is."""
    return isinstance(value, date | str) and bool(ISO_DATE.fullmatch(str(value)))


BY_NAME: Final = "its name"
BY_PART: Final = "a part of its name"
BY_TYPE: Final = "its type: no other column is left"
BY_PARTITION: Final = "the partitions of the table"
BY_VALUES: Final = "its name and values"
BY_TIMES: Final = "times that many items of a user share"

_DAYS: Final = ("evaluationdate", "date", "dt", "ds", "day", "rundate", "snapshotdate")
"""Names of a column with the evaluation date."""


def is_id(kind: pa.DataType) -> bool:
    """Return True if ids can be of a type."""
    is_whole = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return bool(is_text(kind) or is_whole or pa.types.is_dictionary(kind) or is_binary(kind))


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


_TYPES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    **dict.fromkeys((C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID), is_id),
    **dict.fromkeys((C.SCORE, C.GAIN, C.VALUE, C.PREDICTED_REWARD, C.PROPENSITY, C.WEIGHT), is_number),
    C.RANK: lambda kind: bool(pa.types.is_integer(kind)),
    **dict.fromkeys((C.INTERACTED_AT, C.RECOMMENDED_AT), lambda kind: _is_day(kind) or bool(pa.types.is_integer(kind))),
    C.CATEGORIES: lambda kind: is_text(kind) or (is_list(kind) and is_text(kind.value_type)),
    C.VECTOR: lambda kind: is_list(kind) and is_number(kind.value_type),
    C.PUBLISHED_AT: _is_day,
}


@dataclass(frozen=True)
class Guess:
    """The column of a table that is taken for a canonical one, and what it was guessed by."""

    column: str
    by: str


def guessed_columns(table: TableSample, wanted: Sequence[str], *, taken: Sequence[str] = ()) -> dict[str, Guess]:
    """Guess the columns of an input, by canonical column; those without a likely column are left out.

    ``wanted`` are looked for in this order; ``taken`` are columns of the table that are something else.
    """
    kinds = {column.name: column.type for column in table.rows.schema if column.name not in taken}
    found: dict[str, Guess] = {}
    for by in (BY_NAME, BY_PART, BY_TYPE):
        for name in wanted:
            if name in found or (by == BY_TYPE and name == C.SCORE and C.RANK in found):
                continue
            used = {guess.column for guess in found.values()}
            left = {column: kind for column, kind in kinds.items() if column not in used and _TYPES[name](kind)}
            likely = _likely(name, left, by)
            if likely:
                found[name] = Guess(likely[0], by)
    return {name: found[name] for name in wanted if name in found}


def _likely(name: str, columns: Mapping[str, pa.DataType], by: str) -> list[str]:
    """List the columns that may be a canonical one, the likeliest first.

    By their type, an input that needs ids of users and items, or scores, has the only column of it.
    """
    if by == BY_NAME:
        return columns_by_name(name, columns)
    if by == BY_PART:
        return columns_by_part(name, columns)
    likely = [column for column, kind in columns.items() if name != C.SCORE or pa.types.is_floating(kind)]
    return likely if name in (C.USER_ID, C.ITEM_ID, C.SCORE) and len(likely) == 1 else []


def date_column(table: TableSample, *, like: str | None = None) -> Guess | None:
    """Guess which column holds the evaluation date: a partition, or one by name whose values are dates.

    With ``like``, only a partition or a column of this name: in other inputs, a date may be that of an interaction.
    """
    for name, values in table.partitions.items():
        if values and all(map(is_date, values)):
            return Guess(name, BY_PARTITION)
    for column in table.rows.column_names:
        if (column == like or (like is None and plain_name(column) in _DAYS)) and has_dates(table, column):
            return Guess(column, BY_VALUES)
    return None


def has_dates(table: TableSample, column: str) -> bool:
    """Return True if a column has values, all of them written as the evaluation date is."""
    values = [value for value in table.rows[column].slice(0, 100).to_pylist() if value is not None]
    return bool(values) and all(map(is_date, values))


_EVENTS: Final = (
    *("event", "eventtype", "eventname", "action", "actiontype", "interaction", "interactiontype", "behavior"),
    *("behaviour", "activity", "type"),
)
"""Names of a column with kinds of events, the likeliest first."""

_AGAINST: Final = re.compile(
    r"skip|hid(?:e|den)|dis ?like|dismiss|impression|remove|delete|cancel|refund|\bundo|return(?!ing| to | visit)"
    r"|(?:\bun |un)(?:like|follow|subscri|sav|share|favou?rit|bookmark)"
)
"""What says, within the words of the name of an event, that the user takes something back or does not want it: gain 0.

It comes before the other words, because `dislike`, `remove from cart` and `cancel order` have one of those too."""

_GAINS: Final[Sequence[tuple[int, tuple[str, ...]]]] = (
    (3, ("purchase", "buy", "bought", "order", "transaction", "conversion", "checkout", "subscribe")),
    (2, ("cart", "wishlist", "favorite", "favourite", "like", "share", "save", "follow", "download", "bookmark")),
    (0, ("report",)),
    (1, ("view", "click", "watch", "play", "listen", "read", "open", "visit")),
)
"""Gains, and words within the name of an event of that gain. `report` comes late: who downloads a report wants it."""

MOST_EVENTS: Final = 20  # kinds of events up to which a column of text is taken for one of events


def guessed_nested(table: TableSample) -> Nested | None:
    """Guess which columns hold the lists of a log with a row per list; None where a row is an item."""
    kinds = {column.name: column.type for column in table.rows.schema}
    if any(is_item_name(name) and is_id(kind) for name, kind in kinds.items()):
        return None
    lists = {name: kind.value_type for name, kind in kinds.items() if is_list(kind)}
    structs = [(name, kind) for name, kind in lists.items() if pa.types.is_struct(kind)]
    places = [{f"{name}.{member.name}": member.type for member in kind} for name, kind in structs]
    for place in [*places, lists]:
        items = _likeliest(place, is_id, is_item_name)
        if items is not None:
            others = {name: kind for name, kind in place.items() if name != items}
            return Nested(items=items, scores=_likeliest(others, is_number, is_score_name))
    return None


def _likeliest(
    kinds: Mapping[str, pa.DataType], is_of_type: Callable[[pa.DataType], bool], is_name: Callable[[str], bool]
) -> str | None:
    """Choose the first column of a type by its name, be it in the plural; else the only one of the type."""
    likely = [(name, name.rpartition(".")[2]) for name, kind in kinds.items() if is_of_type(kind)]
    named = [name for name, field in likely if is_name(field) or is_name(field.rstrip("s"))]
    return next(iter(named or (name for name, _ in likely if len(likely) == 1)), None)


def guessed_gains(table: TableSample) -> tuple[Gains, tuple[str, ...]] | None:
    """Guess the gains of a column of events, and list the events that no known word is in, whose gain is 1.

    None without a column of events, or where all would be worth the same.
    """
    texts = [column.name for column in table.rows.schema if is_text(column.type) or pa.types.is_dictionary(column.type)]
    named = [name for name in texts if plain_name(name) in _EVENTS]
    if not named:
        return None
    column = min(named, key=lambda name: _EVENTS.index(plain_name(name)))
    kinds = table.distinct(column)
    found = {kind: _gain_of(kind) for kind in kinds}
    if len(kinds) > MOST_EVENTS or len({1 if gain is None else gain for gain in found.values()}) < 2:  # noqa: PLR2004 - a single gain says nothing
        return None
    values = {kind: 1 if gain is None else gain for kind, gain in found.items()}
    best_first = dict(sorted(values.items(), key=lambda pair: (-pair[1], pair[0])))
    return Gains(column=column, values=best_first), tuple(kind for kind, gain in found.items() if gain is None)


def _gain_of(kind: str) -> int | None:
    apart = re.sub("([a-z0-9])([A-Z])", r"\1 \2", kind)  # of `removeFromCart` as of `remove_from_cart`
    if _AGAINST.search(re.sub("[^a-z0-9]+", " ", apart.lower())):
        return 0
    plain = plain_name(kind)
    return next((gain for gain, words in _GAINS if any(word in plain for word in words)), None)


def nested_values(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return the elements of all lists of a column, or of a field of their structs."""
    name, field = column_and_field(path, table.column_names)
    elements = pc.list_flatten(table[name])
    return elements if field is None else pc.struct_field(elements, field)


OF_NESTED: Final = (C.ITEM_ID, C.SCORE, C.RANK)
"""Columns of an item that arrays have instead."""

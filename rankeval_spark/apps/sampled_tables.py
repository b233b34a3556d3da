"""Samples of the tables of a user, which ``rankeval init`` looks at."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.json as pa_json
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyarrow import fs

from rankeval_spark.allowed_folders import delta_log_paths, local_path, require_allowed, require_each
from rankeval_spark.config.base import DATE_PLACEHOLDER, resolve_path
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line
from rankeval_spark.inputs import places
from rankeval_spark.inputs.arrow.file_frames import FORMATS, ending_of
from rankeval_spark.inputs.arrow.files import (
    FileTable,
    expect_files,
    files_below,
    folder_columns,
    local_paths,
    partition_expressions,
    with_folder_columns,
)
from rankeval_spark.inputs.input_files import ForSparkError

SAMPLE_ROWS: Final = 10_000  # that are looked at; of text files, lines
MAX_ROWS_OF_COLUMN: Final = 2_000_000  # rows of a single column that are read
MAX_USERS: Final = 2_000  # whose rows are read from the whole table
ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

MAX_BYTES: Final = 1 << 28  # of the first files of a table in a store, which are copied here

_SAMPLED: Final = ("parquet", "csv", "json")
_FIX: Final = "rankeval init CONFIG without tables writes every key, to be filled in"


@dataclass(frozen=True)
class TableSample:
    """The first rows of a table, and the table to read more of."""

    format: str  # ``delta``, ``parquet``, ``csv`` or ``json``
    rows: pa.Table  # its first rows, with all columns
    table: FileTable  # all rows, of a store those of the first files; of csv as text
    partitions: dict[str, list[str]] = field(default_factory=dict)  # values of the columns it is partitioned by
    separator: str = ""  # of csv
    path: str = ""  # as the user gave it, with ``{date}`` where it has that
    is_part: bool = False  # whether files of a store are left out
    path_date: str | None = None  # newest date for which the path has something; None for a path without ``{date}``

    @property
    def is_large_text(self) -> bool:
        """True for text that would be read for long: a table of it is read whole, of a store its files are copied."""
        if self.format not in {"csv", "json"}:
            return False
        paths = map(Path, local_paths(self.table.dataset.get_fragments()))
        return self.is_part or sum(path.stat().st_size for path in paths) > MAX_BYTES

    def distinct(self, column: str) -> list[str]:
        """List the distinct values of a column, as text, in its first :data:`MAX_ROWS_OF_COLUMN` rows."""
        try:
            return distinct_texts(self.table.head(MAX_ROWS_OF_COLUMN, [column])[column])
        except (OSError, pa.ArrowException, ValueError):
            if self.format not in {"csv", "json"}:
                raise
            return distinct_texts(self.rows[column])  # the first lines of text are not like the others

    def read_users(self, columns: Sequence[str], user: str) -> pa.Table:
        """Read all rows of the users in the first rows; where text is odd, the first rows alone."""
        names = list(dict.fromkeys([*columns, user]))
        try:
            first = self.table.head(SAMPLE_ROWS, [user])[user].cast(pa.string())
            users = first.drop_null().unique()[:MAX_USERS]
            return self.table.read(names, pc.field(user).cast(pa.string()).isin(users))
        except (OSError, pa.ArrowException, ValueError):
            if self.format not in {"csv", "json"}:
                raise
            return self.rows.select(names)


def distinct_texts(values: pa.ChunkedArray) -> list[str]:
    """List the distinct values of a column as text."""
    return sorted({str(value) for value in values.unique().to_pylist() if value is not None})


def sample_table(option: str, path: str, *, splits_days: bool = True) -> TableSample:
    """Sample a table, named by an option; of a path with ``{date}``, at the newest date.

    With ``splits_days``, a folder that has a file or folder of each day, and nothing else, is read a day at a time.

    Raises ConfigError if it is neither on this machine nor in an object store, or of no known format; InputError if it
    is not there, or cannot be read.
    """
    if places.is_in_store(path):
        from rankeval_spark import object_stores  # noqa: F401, PLC0415 - says so where the extra `stores` is missing
    elif local_path(resolve_path(path, "")) is None:
        raise ConfigError(Fault(option, repr(path), "a folder or file of this machine or of an object store", _FIX))
    shown = path
    try:
        path = _add_date_to_folder(option, path) if splits_days else path
        newest = _find_newest(option, path)
        shown = path.replace(DATE_PLACEHOLDER, newest or "")
        location = resolve_path(shown, "")
        require_allowed((option, location))
        place, is_delta = places.open_any(location)
        if place is None or not place.exists():
            raise InputError(Fault(option, f"no such path at {path}", "a folder or file", "correct the path"))
        if is_delta:
            require_each(option, delta_log_paths(str(place)))
            sample = _sample_delta(option, location, place)
        else:
            sample = _sample_files(option, shown, place)
    except (DeltaError, ForSparkError, OSError, pa.ArrowException, ValueError) as error:
        found = f"a table that cannot be read ({places.show_addresses(first_line(str(error)))}) at {shown}"
        raise InputError(Fault(option, found, "a readable table")) from error
    return replace(sample, path=path, path_date=newest)


def _add_date_to_folder(option: str, path: str) -> str:
    """Add ``{date}`` to the path of a folder of days; a partition such as ``day=2026-01-01`` is a column instead."""
    if DATE_PLACEHOLDER in path:
        return path
    names = _list_names(option, resolve_path(path, ""))
    patterns = {ISO_DATE.sub(DATE_PLACEHOLDER, name, count=1) for name in names if name[0] not in "_."}
    pattern = patterns.pop() if len(patterns) == 1 and "_delta_log" not in names else ""
    return f"{path.rstrip('/')}/{pattern}" if DATE_PLACEHOLDER in pattern and "=" not in pattern else path


def _list_names(option: str, folder: str) -> list[str]:
    require_allowed((option, folder))
    with suppress(FileNotFoundError, NotADirectoryError):
        return places.names_in(folder)
    return []


def _find_newest(option: str, path: str) -> str | None:
    """Return the newest date for which a path with ``{date}`` has a file or folder; None for another path."""
    if DATE_PLACEHOLDER not in path:
        return None
    location = resolve_path(path, "")
    folder = location.partition(DATE_PLACEHOLDER)[0].rpartition("/")[0]
    name = location[len(folder) + 1 :].partition("/")[0]  # the first one with a date
    of_day = re.compile(re.escape(name).replace(re.escape(DATE_PLACEHOLDER), f"({ISO_DATE.pattern})", 1))
    days = {found[1] for name in _list_names(option, folder) if (found := of_day.fullmatch(name))}
    for day in sorted(days, reverse=True):
        dated = location.replace(DATE_PLACEHOLDER, day)
        require_allowed((option, dated))
        place, _ = places.open_any(dated)
        if place is not None and place.exists():
            return day
    raise InputError(Fault(option, f"no such path at {path}", "a folder or file", "correct the path"))


def _first_files(table: FileTable) -> FileTable:
    """Keep the first files of a table in a store, up to :data:`MAX_BYTES`; on this machine all of them."""
    files = list(table.dataset.get_fragments()) if places.is_in_store(table.location) else []
    sizes = np.cumsum([Path(path).stat().st_size for path in local_paths(files)])
    if not files or sizes[-1] <= MAX_BYTES:
        return table
    kept = files[: max(1, int(np.searchsorted(sizes, MAX_BYTES, side="right")))]
    return replace(table, dataset=ds.FileSystemDataset(kept, table.schema, kept[0].format))


def _sample_delta(option: str, location: str, path: Path) -> TableSample:
    log = deltalake.DeltaTable(str(path))
    dataset = log.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()))
    expect_files(log, location, path)
    require_each(option, (str(path / name) for name in dataset.files))  # links may lead elsewhere
    names = log.metadata().partition_columns
    partitions = log.partitions() if names else []
    values = {name: sorted({str(partition[name]) for partition in partitions}) for name in names}
    whole = FileTable(location, "delta", log.version(), dataset)
    table = _first_files(whole)
    rows = table.head(SAMPLE_ROWS, table.schema.names)
    return TableSample("delta", rows, table, values, is_part=table is not whole)


def _sample_files(option: str, location: str, path: Path) -> TableSample:
    """Sample the first rows of Parquet, or the first lines of text, whose separator is most frequent in the header."""
    files = files_below(path)
    formats = {FORMATS.get(ending_of(file.name), "") for file in files} & {*_SAMPLED}
    if len(formats) != 1:
        found = "files of several formats" if formats else "files of no known format" if files else "no file"
        expected = "a Delta table, or files that end with .parquet, .csv or .json"
        raise ConfigError(Fault(option, f"{found} at {location}", expected, _FIX))
    require_each(option, map(str, files))  # links may lead elsewhere
    format_ = formats.pop()
    folders = folder_columns(path, files)
    separator, rows = "", None
    places.fetch(files[:1], only_footers=format_ == "parquet")
    if format_ == "parquet":
        reader, schema = ds.ParquetFileFormat(), pq.read_schema(files[0]).remove_metadata()
    else:
        open_ = gzip.open if files[0].suffix == ".gz" else open
        with open_(files[0], "rt", encoding="utf-8") as lines:
            text = "".join(islice(lines, SAMPLE_ROWS))
        if format_ == "json":
            rows, reader = pa_json.read_json(io.BytesIO(text.encode())), ds.JsonFileFormat()
            schema = rows.schema
        else:
            header = text.split("\n", 1)[0]
            separator = max(",;\t|", key=lambda sign: len(next(csv.reader([header], delimiter=sign), [])))
            rows = pa_csv.read_csv(io.BytesIO(text.encode()), parse_options=pa_csv.ParseOptions(delimiter=separator))
            reader = ds.CsvFileFormat(pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True))
            schema = pa.schema([(name, pa.string()) for name in rows.column_names])
        rows = rows if folders is None else with_folder_columns(rows, folders, 0)
    expressions = [None] * len(files) if folders is None else partition_expressions(folders)
    here = fs.LocalFileSystem()
    fragments = [
        reader.make_fragment(str(file), filesystem=here, partition_expression=expression)
        for file, expression in zip(files, expressions, strict=True)
    ]
    schema = pa.schema([*schema, *(() if folders is None else folders.schema)])
    whole = FileTable(location, format_, None, ds.FileSystemDataset(fragments, schema, reader, here))
    table = _first_files(whole)
    values = {} if folders is None else {name: distinct_texts(folders[name]) for name in folders.column_names}
    rows = table.head(SAMPLE_ROWS, schema.names) if rows is None else rows
    return TableSample(format_, rows, table, values, separator, is_part=table is not whole)

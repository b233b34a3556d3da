"""Samples of the tables of a user, which ``rankeval init`` looks at."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from pyarrow import fs

from rankeval_spark.allowed_folders import delta_log_paths, require_allowed, require_each, scheme_of
from rankeval_spark.config.base import DATE_PLACEHOLDER
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line
from rankeval_spark.inputs.arrow.files import files_below, folder_columns, partition_expressions, with_folder_columns
from rankeval_spark.inputs.input_files import ForSparkError

SAMPLE_ROWS: Final = 10_000  # that are looked at; of text files, lines
MAX_ROWS_OF_COLUMN: Final = 2_000_000  # rows of a single column that are read
MAX_USERS: Final = 2_000  # whose rows are read from the whole table
ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

_FORMATS: Final = {  # by the end of a file's name
    ".parquet": "parquet",
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), "csv"),
    **dict.fromkeys((".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson"), "json"),
}
_FIX: Final = "rankeval init CONFIG without tables writes every key, to be filled in"


@dataclass(frozen=True)
class TableSample:
    """The first rows of a table, and the table to read more of."""

    format: str  # ``delta``, ``parquet``, ``csv`` or ``json``
    rows: pa.Table  # its first rows, with all columns
    dataset: ds.Dataset  # all rows; of csv as text
    partitions: dict[str, list[str]] = field(default_factory=dict)  # values of the columns it is partitioned by
    separator: str = ""  # of csv
    path: str = ""  # as the user gave it, with ``{date}`` where it has that
    path_date: str | None = None  # newest date for which the path has something; None for a path without ``{date}``

    def distinct(self, column: str) -> list[str]:
        """List the distinct values of a column, as text, in its first :data:`MAX_ROWS_OF_COLUMN` rows."""
        try:
            return distinct_texts(self.dataset.head(MAX_ROWS_OF_COLUMN, columns=[column])[column])
        except (OSError, pa.ArrowException, ValueError):
            if self.format not in {"csv", "json"}:
                raise
            return distinct_texts(self.rows[column])  # the first lines of text are not like the others

    def read_users(self, columns: Sequence[str], user: str) -> pa.Table:
        """Read columns of all rows, wherever they are, of the users in the first rows; of odd text the first rows."""
        names = list(dict.fromkeys([*columns, user]))
        try:
            first = self.dataset.head(SAMPLE_ROWS, columns=[user])[user].cast(pa.string())
            users = first.drop_null().unique()[:MAX_USERS]
            return self.dataset.to_table(names, filter=pc.field(user).cast(pa.string()).isin(users))
        except (OSError, pa.ArrowException, ValueError):
            if self.format not in {"csv", "json"}:
                raise
            return self.rows.select(names)


def distinct_texts(values: pa.ChunkedArray) -> list[str]:
    """List the distinct values of a column as text."""
    return sorted({str(value) for value in values.unique().to_pylist() if value is not None})


def sample_table(option: str, path: str, *, splits_days: bool = True) -> TableSample:
    """Sample a table on this machine, named by an option; of a path with ``{date}``, at the newest date.

    With ``splits_days``, a folder that has a file or folder of each day, and nothing else, is read a day at a time.

    Raises ConfigError if it is elsewhere, or of no known format; InputError if it is not there, or cannot be read.
    """
    if scheme_of(path):
        raise ConfigError(Fault(option, repr(path), "a folder or file of this machine", _FIX))
    path = _add_date_to_folder(option, path) if splits_days else path
    place, newest = _find_newest(option, path)
    require_allowed((option, str(place)))
    try:
        if (place / "_delta_log").is_dir():
            require_each(option, delta_log_paths(str(place)))
            sample = _sample_delta(option, place)
        else:
            sample = _sample_files(option, place)
    except (DeltaError, ForSparkError, OSError, pa.ArrowException, ValueError) as error:
        found = f"a table that cannot be read ({first_line(str(error))}) at {place}"
        raise InputError(Fault(option, found, "a readable table")) from error
    return replace(sample, path=path, path_date=newest)


def _add_date_to_folder(option: str, path: str) -> str:
    """Add ``{date}`` to the path of a folder of days; a partition such as ``day=2026-01-01`` is a column instead."""
    folder = Path(os.path.expanduser(path))
    if DATE_PLACEHOLDER in path or not folder.is_dir() or (folder / "_delta_log").is_dir():
        return path
    require_allowed((option, str(folder)))
    names = {entry.name for entry in folder.iterdir() if entry.name[0] not in "_."}
    patterns = {ISO_DATE.sub(DATE_PLACEHOLDER, name, count=1) for name in names}
    pattern = patterns.pop() if len(patterns) == 1 else ""
    return f"{path.rstrip('/')}/{pattern}" if DATE_PLACEHOLDER in pattern and "=" not in pattern else path


def _find_newest(option: str, path: str) -> tuple[Path, str | None]:
    """Return the file or folder at a path, the newest if it has ``{date}``, and its date."""
    expanded = os.path.expanduser(path)
    digits = "-".join("[0-9]" * n for n in (4, 2, 2))
    places = sorted(glob.glob(glob.escape(expanded).replace(DATE_PLACEHOLDER, digits)))
    if not places:
        raise InputError(Fault(option, f"no such path at {path}", "a folder or file", "correct the path"))
    if DATE_PLACEHOLDER not in path:
        return Path(places[0]), None
    start = expanded.index(DATE_PLACEHOLDER)
    date = slice(start, start + len("2026-01-01"))  # place of the date in a path
    newest = max(places, key=lambda place: place[date])
    return Path(newest), newest[date]


def _sample_delta(option: str, path: Path) -> TableSample:
    table = deltalake.DeltaTable(str(path))
    dataset = table.to_pyarrow_dataset()
    require_each(option, (str(path / name) for name in dataset.files))  # links may lead elsewhere
    names = table.metadata().partition_columns
    partitions = table.partitions() if names else []
    values = {name: sorted({str(partition[name]) for partition in partitions}) for name in names}
    return TableSample("delta", dataset.head(SAMPLE_ROWS), dataset, values)


def _sample_files(option: str, path: Path) -> TableSample:
    """Sample the first rows of Parquet, or the first lines of text, whose separator is most frequent in the header."""
    files = files_below(path)
    formats = {format_ for file in files for suffix, format_ in _FORMATS.items() if file.name.endswith(suffix)}
    if len(formats) != 1:
        found = "files of several formats" if formats else "files of no known format" if files else "no file"
        expected = "a Delta table, or files that end with .parquet, .csv or .json"
        raise ConfigError(Fault(option, f"{found} at {path}", expected, _FIX))
    require_each(option, map(str, files))  # links may lead elsewhere
    format_ = formats.pop()
    folders = folder_columns(path, files)
    separator, rows = "", None
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
    dataset = ds.FileSystemDataset(fragments, schema, reader, filesystem=here)
    values = {} if folders is None else {name: distinct_texts(folders[name]) for name in folders.column_names}
    return TableSample(format_, dataset.head(SAMPLE_ROWS) if rows is None else rows, dataset, values, separator)

"""Samples of the tables of a user, which ``rankeval init`` looks at."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
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
from rankeval_spark.engine.buckets import hashes_of
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line
from rankeval_spark.inputs.arrow.files import files_below, folder_columns, partition_expressions, with_folder_columns
from rankeval_spark.inputs.input_files import ForSparkError

SAMPLE_ROWS: Final = 10_000  # that are looked at; of text files, lines
ROWS_OF_A_COLUMN: Final = 2_000_000  # rows of a single column that are read
ROWS_OF_USERS: Final = 400_000  # that are kept of whole users
ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

_MIN_SHARE: Final = 1 << 20  # one user in so many
_SKIPPED_BITS: Final = 1  # of a hash, so that its rest differs from the shares that a night draws
_HASH: Final = "hash of the user"
_SUFFIXES: Final = {
    ".parquet": "parquet",
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), "csv"),
    **dict.fromkeys((".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson"), "json"),
}
_FIX: Final = "rankeval init CONFIG without tables writes every key, to be filled in"


@dataclass(frozen=True)
class TableSample:
    """A table that was looked at."""

    path: str  # as the user gave it, with ``{date}`` where it has that
    format: str  # ``delta``, ``parquet``, ``csv`` or ``json``
    rows: pa.Table  # its first rows, with all columns
    dataset: ds.Dataset  # all rows; of csv as text
    partitions: dict[str, list[str]] = field(default_factory=dict)  # values of the columns it is partitioned by
    separator: str = ""  # of csv
    path_date: str | None = None  # newest date for which the path has something; None for a path without ``{date}``

    def distinct(self, column: str) -> list[str]:
        """List the distinct values of a column in its first :data:`ROWS_OF_A_COLUMN` rows; only that column is read."""
        found: set[str] = set()
        n_rows = 0
        for rows in self.all_rows([column]):
            found.update(texts_of(rows[column]))
            n_rows += rows.num_rows
            if n_rows >= ROWS_OF_A_COLUMN:
                break
        return sorted(found)

    def all_rows(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield some columns of all rows, a part at a time; the sample if text is not as its first lines are."""
        try:
            for part in self.dataset.to_batches(columns=list(columns)):
                yield pa.Table.from_batches([part])
        except (OSError, pa.ArrowException, ValueError):
            if self.format not in {"csv", "json"}:
                raise
            yield self.rows.select(list(columns))

    def of_some_users(self, columns: Sequence[str], user: str) -> pa.Table:
        """Return some columns of all rows of some users, wherever these rows are: all users, or a share by hash.

        The share is halved whenever more than :data:`ROWS_OF_USERS` rows are kept.
        """

        def keep_share(rows: pa.Table) -> pa.Table:
            return rows.filter(pa.array(rows[_HASH].to_numpy() % share == 0))

        kept, share = list[pa.Table](), 1
        for rows in self.all_rows(list(dict.fromkeys([*columns, user]))):
            named = rows.filter(pc.is_valid(rows[user]))
            hashes = pa.array(hashes_of(named[user].cast(pa.string())) >> _SKIPPED_BITS)
            kept.append(keep_share(named.append_column(_HASH, hashes)))
            while sum(each.num_rows for each in kept) > ROWS_OF_USERS and share < _MIN_SHARE:
                share *= 2
                kept = [keep_share(pa.concat_tables(kept))]
        return pa.concat_tables(kept).drop_columns([_HASH]) if kept else self.rows


def texts_of(values: pa.ChunkedArray) -> list[str]:
    """List the distinct values of a column as text."""
    return sorted({str(value) for value in values.unique().to_pylist() if value is not None})


def look_at(option: str, path: str, *, splits_days: bool = True) -> TableSample:
    """Sample a table on this machine, named by an option; of a path with ``{date}``, at the newest date.

    With ``splits_days``, a folder that has a file or folder of each day, and nothing else, is read a day at a time.

    Raises ConfigError if it is elsewhere, or of no known format; InputError if it is not there, or cannot be read.
    """
    if scheme_of(path):
        raise ConfigError(Fault(option, repr(path), "a folder or file of this machine", _FIX))
    path = _path_of_days(option, path) if splits_days else path
    found, newest = _newest_place(option, path)
    require_allowed((option, str(found)))
    if is_delta := (found / "_delta_log").is_dir():
        require_each(option, delta_log_paths(str(found)))
    files = files_below(found)
    formats = {format_ for file in files for suffix, format_ in _SUFFIXES.items() if file.name.endswith(suffix)}
    if not is_delta and len(formats) != 1:
        what = "files of several formats" if formats else "files of no known format" if files else "no file"
        expected = "a Delta table, or files that end with .parquet, .csv or .json"
        raise ConfigError(Fault(option, f"{what} at {found}", expected, _FIX))
    try:
        if is_delta:
            dataset = deltalake.DeltaTable(str(found)).to_pyarrow_dataset()
            files = [found / name for name in dataset.files]
        require_each(option, map(str, files))  # links may lead elsewhere
        sample = _sample_delta(found) if is_delta else _sample_files(found, files, formats.pop())
    except (DeltaError, ForSparkError, OSError, pa.ArrowException, ValueError) as error:
        told = f"a table that cannot be read ({first_line(str(error))}) at {found}"
        raise InputError(Fault(option, told, "a readable table")) from error
    return replace(sample, path=path, path_date=newest)


def _path_of_days(option: str, path: str) -> str:
    """Add ``{date}`` to the path of a folder of days; a partition such as ``day=2026-01-01`` is a column instead."""
    folder = Path(os.path.expanduser(path))
    if DATE_PLACEHOLDER in path or not folder.is_dir() or (folder / "_delta_log").is_dir():
        return path
    require_allowed((option, str(folder)))
    names = {entry.name for entry in folder.iterdir() if entry.name[0] not in "_."}
    forms = {ISO_DATE.sub(DATE_PLACEHOLDER, name, count=1) for name in names}
    form = forms.pop() if len(forms) == 1 else ""
    return f"{path.rstrip('/')}/{form}" if DATE_PLACEHOLDER in form and "=" not in form else path


def _newest_place(option: str, path: str) -> tuple[Path, str | None]:
    """Return the file or folder that a path names, the newest if it has ``{date}``, and its date."""
    expanded = os.path.expanduser(path)
    digits = "-".join("[0-9]" * n for n in (4, 2, 2))
    found = sorted(glob.glob(glob.escape(expanded).replace(DATE_PLACEHOLDER, digits)))
    if not found:
        raise InputError(Fault(option, f"no such path at {path}", "a folder or file", "correct the path"))
    if DATE_PLACEHOLDER not in path:
        return Path(found[0]), None
    before = expanded.index(DATE_PLACEHOLDER)
    of_date = slice(before, before + len("2026-01-01"))
    newest = max(found, key=lambda place: place[of_date])
    return Path(newest), newest[of_date]


def _sample_delta(path: Path) -> TableSample:
    table = deltalake.DeltaTable(str(path))
    names, dataset = table.metadata().partition_columns, table.to_pyarrow_dataset()
    partitions = table.partitions() if names else []
    values = {name: sorted({str(partition[name]) for partition in partitions}) for name in names}
    return TableSample(str(path), "delta", dataset.head(SAMPLE_ROWS), dataset, values)


def _sample_files(path: Path, files: Sequence[Path], format_: str) -> TableSample:
    """Sample the first rows of Parquet, or the first lines of text, whose separator is most frequent in the header."""
    folders = folder_columns(path, files)
    separator, rows = "", None
    if format_ == "parquet":
        form, schema = ds.ParquetFileFormat(), pq.read_schema(files[0]).remove_metadata()
    else:
        open_ = gzip.open if files[0].suffix == ".gz" else open
        with open_(files[0], "rt", encoding="utf-8") as lines:
            text = "".join(islice(lines, SAMPLE_ROWS))
        if format_ == "json":
            rows, form = pa_json.read_json(io.BytesIO(text.encode())), ds.JsonFileFormat()
            schema = rows.schema
        else:
            header = text.split("\n", 1)[0]
            separator = max(",;\t|", key=lambda sign: len(next(csv.reader([header], delimiter=sign), [])))
            rows = pa_csv.read_csv(io.BytesIO(text.encode()), parse_options=pa_csv.ParseOptions(delimiter=separator))
            form = ds.CsvFileFormat(pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True))
            schema = pa.schema([(name, pa.string()) for name in rows.column_names])
        rows = rows if folders is None else with_folder_columns(rows, folders, 0)
    expressions = [None] * len(files) if folders is None else partition_expressions(folders)
    here = fs.LocalFileSystem()
    fragments = [
        form.make_fragment(str(file), filesystem=here, partition_expression=expression)
        for file, expression in zip(files, expressions, strict=True)
    ]
    schema = pa.schema([*schema, *(() if folders is None else folders.schema)])
    dataset = ds.FileSystemDataset(fragments, schema, form, filesystem=here)
    values = {} if folders is None else {name: texts_of(folders[name]) for name in folders.column_names}
    return TableSample(
        str(path), format_, dataset.head(SAMPLE_ROWS) if rows is None else rows, dataset, values, separator
    )

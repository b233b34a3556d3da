"""What a table of the user holds: its format, its columns and some of its rows."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Final

import deltalake
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.json as pa_json
from deltalake.exceptions import DeltaError

from rankeval_spark.allowed_folders import delta_log_paths, require_allowed, scheme_of
from rankeval_spark.config.base import DATE_PLACEHOLDER
from rankeval_spark.errors import ConfigError, Fault, InputError, first_line

SAMPLE_ROWS: Final = 10_000
"""Rows that are looked at; of text files, lines."""

ROWS_OF_A_COLUMN: Final = 2_000_000
"""Rows of which a single column is read."""

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
    """A table that was looked at.

    Attributes
    ----------
    path : str
        As the user gave it, with ``{date}`` where it has that.
    format : str
        ``delta``, ``parquet``, ``csv`` or ``json``.
    rows : pa.Table
        Its first rows, with all columns.
    partitions : mapping of str to list of str
        Values of each column that the table is partitioned by.
    path_date : str or None
        Newest date for which the path has something; None for a path without ``{date}``.
    separator : str
        Of csv.
    dataset : ds.Dataset or None
        All rows, of Delta and Parquet.
    """

    path: str
    format: str
    rows: pa.Table
    partitions: dict[str, list[str]] = field(default_factory=dict)
    path_date: str | None = None
    separator: str = ","
    dataset: ds.Dataset | None = None

    def distinct(self, column: str) -> list[str]:
        """Name the values of a column, of many rows where only that column has to be read for it."""
        if self.dataset is None:
            return _texts(self.rows[column])
        found: set[str] = set()
        n_rows = 0
        for batch in self.dataset.to_batches(columns=[column]):
            found.update(_texts(batch[column]))
            n_rows += batch.num_rows
            if n_rows >= ROWS_OF_A_COLUMN:
                break
        return sorted(found)

    @property
    def has_typed_ids(self) -> bool:
        """Whether ids have the types of their columns: those of text files are text."""
        return self.format in {"delta", "parquet"}


def look_at(option: str, path: str, *, splits_days: bool = True) -> TableSample:
    """Look at a table on this machine.

    Parameters
    ----------
    option : str
        The option that has the path, for messages.
    path : str
        Folder or file; of one with ``{date}``, the newest date is looked at.
    splits_days : bool
        Whether a folder that has a file or folder of each day, and nothing else, is read a day at a time.

    Raises
    ------
    ConfigError
        It is elsewhere, or of no known format.
    InputError
        It is not there, or cannot be read.
    """
    if scheme_of(path):
        raise ConfigError(Fault(option, repr(path), "a folder or file of this machine", _FIX))
    path = _of_days(option, path) if splits_days else path
    found, newest = _newest(option, path)
    require_allowed((option, str(found)))
    format_ = _format_of(option, found)
    if format_ == "delta":
        require_allowed(*((option, log) for log in delta_log_paths(str(found))))
    try:
        require_allowed(*((option, str(file)) for file in _opened_files(found, format_)))  # links may lead elsewhere
        read = _READERS[format_](found)
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
    dated = {match[1]: one for one in found if (match := re.fullmatch(pattern, one))}
    newest = max(dated)
    return Path(dated[newest]), newest


def _format_of(option: str, path: Path) -> str:
    if (path / "_delta_log").is_dir():
        return "delta"
    files = _files_of(path)
    formats = {format_ for file in files for suffix, format_ in _SUFFIXES.items() if file.name.endswith(suffix)}
    if len(formats) != 1:
        found = "files of several formats" if formats else "files of no known format" if files else "no file"
        raise ConfigError(Fault(option, f"{found} at {path}", _EXPECTED, _FIX))
    return formats.pop()


def _files_of(path: Path) -> Sequence[Path]:
    if path.is_file():
        return [path]
    files = (file for file in path.rglob("*") if file.is_file())
    return sorted(file for file in files if not any(part[0] in "_." for part in file.relative_to(path).parts))


def _opened_files(path: Path, format_: str) -> Sequence[Path]:
    if format_ != "delta":
        return _files_of(path)
    names = deltalake.DeltaTable(str(path)).to_pyarrow_dataset().files
    return [path / name for name in names]


def _delta(path: Path) -> TableSample:
    table = deltalake.DeltaTable(str(path))
    names = table.metadata().partition_columns
    folders = table.partitions() if names else []
    partitions = {name: sorted({str(folder[name]) for folder in folders}) for name in names}
    dataset = table.to_pyarrow_dataset()
    return TableSample(str(path), "delta", dataset.head(SAMPLE_ROWS), partitions, separator="", dataset=dataset)


def _parquet(path: Path) -> TableSample:
    files = _files_of(path)
    partitions: dict[str, set[str]] = {}
    for file in files:
        for name, is_given, value in (part.partition("=") for part in file.parts[:-1]):
            if is_given and path.is_dir() and f"{name}={value}" in file.relative_to(path).parts:
                partitions.setdefault(name, set()).add(value)
    values = {name: sorted(each) for name, each in partitions.items()}
    dataset = ds.dataset([str(file) for file in files], format="parquet", partitioning="hive")
    return TableSample(str(path), "parquet", dataset.head(SAMPLE_ROWS), values, separator="", dataset=dataset)


def _csv(path: Path) -> TableSample:
    """Read the first lines; the separator is the one that the header has most of."""
    text = _first_lines(path)
    header = text.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=lambda one: len(next(csv.reader([header], delimiter=one), [])))
    options = pa_csv.ParseOptions(delimiter=separator)
    rows = pa_csv.read_csv(io.BytesIO(text.encode()), parse_options=options)
    return TableSample(str(path), "csv", rows, separator=separator)


def _json(path: Path) -> TableSample:
    rows = pa_json.read_json(io.BytesIO(_first_lines(path).encode()))
    return TableSample(str(path), "json", rows, separator="")


def _first_lines(path: Path) -> str:
    file = _files_of(path)[0]
    open_ = gzip.open if file.suffix == ".gz" else open
    with open_(file, "rt", encoding="utf-8") as lines:
        return "".join(islice(lines, SAMPLE_ROWS))


_READERS: Final = {"delta": _delta, "parquet": _parquet, "csv": _csv, "json": _json}


def _texts(values: pa.ChunkedArray) -> list[str]:
    return sorted({str(value) for value in values.unique().to_pylist() if value is not None})


def is_date(value: object) -> bool:
    """Whether a value is written as the evaluation date is."""
    return isinstance(value, date | str) and bool(ISO_DATE.fullmatch(str(value)))

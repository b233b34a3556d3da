"""Faults of input files that are missing, of another kind, or with a wrong header; before a run and in it."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, get_args

from rankeval_spark import allowed_folders
from rankeval_spark.config.inputs import Format
from rankeval_spark.errors import Fault, InputError, nearest, nearest_days, require_same
from rankeval_spark.inputs import places
from rankeval_spark.inputs.input_columns import NANOSECONDS, NANOSECONDS_FIX, UUIDS, UUIDS_FIX

EXPECTED: Final[Mapping[str, str]] = {
    "delta": "a Delta table",
    "parquet": "Parquet files",
    "orc": "ORC files",
    "csv": "csv files with a header",
    "json": "json lines",
    "trec": "files of TREC",
}
"""Expected content at the path of an input, by format."""
require_same("EXPECTED", (*EXPECTED, "table"), get_args(Format))  # tables of a catalog have no path

NO_PATH: Final = "no such path"
NO_FILES: Final = "no data files"
NO_DELTA: Final = "no Delta table"
NO_VERSION: Final = "no such version"

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_KNOWN_SUFFIXES: Final = ("parquet", "orc", "csv", "json")

COMMA: Final = ","  # the separator where the option ``sep`` does not name another one
RFC_4180: Final[Mapping[str, str]] = {"escape": '"', "multiLine": "true"}
"""Default options of Spark's csv reader: quotes are doubled, and quoted text may have new lines."""

JSON_LINES_PROBED: Final = 1000
"""Lines of JSON whose keys are the columns; a key in none of them is a missing column, not a column of NULL."""

_SEPARATORS: Final = (";", "\t", "|", COMMA)
_MAX_LINE: Final = 1 << 20


class ForSparkError(Exception):
    """Only Spark surely reads a table as Spark does; with where it is, and why."""

    def __init__(self, where: str, why: object, faults: Sequence[Fault] = ()) -> None:
        super().__init__(f"{where}: {places.show_addresses(str(why))}")
        self.faults = tuple(faults)  # in the words of a run, where it is known that Spark refuses the table too


def missing_input_fault(name: str, location: str, expected: str, found: str) -> Fault:
    """Build the fault of an input that is missing or of another kind."""
    path = places.path_here(location)
    if found in (NANOSECONDS, UUIDS):
        fix = NANOSECONDS_FIX if found == NANOSECONDS else UUIDS_FIX
    elif found == NO_VERSION:  # a cleaned log no longer has the oldest ones
        newest = max(delta_versions(path) if path else [], default=None)
        fix = "" if newest is None else f"the newest is {newest}"
    else:
        fix = nearest_location(location)
        if found == NO_DELTA and not fix and path is not None:
            suffixes = {file.suffix.removeprefix(".") for file in path.glob("*.*")}
            fix = next((f"did you mean format: {known}?" for known in _KNOWN_SUFFIXES if known in suffixes), "")
    return Fault(f"inputs.{name}", f"{found} at {location}", expected, fix)


def no_row_fault(name: str, location: str) -> Fault:
    """Build the fault of an input without any row."""
    fix = "is the path right, and did the job that writes it run?"
    return Fault(f"inputs.{name}", f"no row in {location}", "rows", fix)


def nearest_location(location: str) -> str:
    """Return a hint for a missing path: the days that exist instead of its day, else the most similar name, or ''."""
    if (level := places.nearest_level(location)) is None:
        return ""
    folder, below, names = level
    if (found := _DAY.search(below)) is not None:
        alike = re.compile(
            f"{re.escape(below[: found.start()])}({_DAY.pattern}){re.escape(below[found.end() :])}", re.ASCII
        )
        named = [_parse_day(match[1]) for name in names if (match := alike.fullmatch(name))]
        days, day = [each for each in named if each is not None], _parse_day(found[0])
        if days and day is not None:
            others = f"{len(days)} other day{'s' if len(days) > 1 else ''}"
            return f"{folder} has {others}: {nearest_days(day, days)}"
        names = [name for name in names if found[0] in name]  # that of another day is no typing mistake
    hint = nearest(below, names)
    return f"{folder} has no {below!r}{f', {hint}' if hint else ''}"


def _parse_day(text: str) -> dt.date | None:
    with suppress(ValueError):
        return dt.date.fromisoformat(text)
    return None


def delta_versions(table: Path) -> list[int]:
    """List the versions of a Delta table whose commits are in its log; empty where there is no such table."""
    return [int(found[1]) for file in table.glob("_delta_log/*.json") if (found := places.COMMIT.fullmatch(file.name))]


def check_header(header: Sequence[str | None], name: str, location: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of a header; refused if it has none, or one twice, or another separator."""
    if not header:
        raise InputError(missing_input_fault(name, location, EXPECTED["csv"], "no line"))
    names = [column or "" for column in header]
    others = [sign for sign in _SEPARATORS if sign in names[0]]
    if len(names) == 1 and others:
        found = f"one column, {names[0]!r}, in the header at {location}"
        fix = f"write inputs.{name.partition('.')[0]}.options: {{sep: {json.dumps(others[0])}}}"
        expected = f"columns separated by {json.dumps(options.get('sep', COMMA))}"
        raise InputError(Fault(f"inputs.{name}", found, expected, fix))
    folded = [column.casefold() for column in names]
    twice = sorted({column for column in names if folded.count(column.casefold()) > 1})
    if twice:
        found = f"a header with {', '.join(map(repr, twice))} more than once at {location}"
        raise InputError(Fault(f"inputs.{name}", found, "each column once", "rename or remove one of them"))
    return tuple(names)


def find_separator(location: str) -> str | None:
    """Return the separator of csv files of this machine whose header is one column by commas; None for another one."""
    names = read_local_header(location, {}) or ()
    return next((sign for sign in _SEPARATORS if len(names) == 1 and sign in names[0]), None)


def read_local_header(location: str, options: Mapping[str, str]) -> list[str] | None:
    """Read the header of a file or folder of this machine; None where only Spark surely reads it as Spark does."""
    path, separator = allowed_folders.local_path(location), options.get("sep", COMMA)
    is_plain = options.keys() <= {"sep"} and len(separator) == 1
    if path is None or not is_plain or allowed_folders.outside_faults([("inputs", str(path))]):
        return None
    names = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    files = [file for file in names if file.name[0] not in ("_", ".")]
    if not files or not all(file.is_file() for file in files):  # folders of partitions, whose names are columns
        return None
    openers: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    with (
        suppress(OSError, UnicodeDecodeError, EOFError),
        openers.get(files[0].suffix, open)(files[0], "rt", encoding="utf-8-sig", newline="\n") as lines,
    ):
        while read := lines.readline(_MAX_LINE):
            line = str(read).rstrip("\r\n")
            if line.strip():  # the first line that holds something
                return next(csv.reader([line], delimiter=separator)) if len(line) < _MAX_LINE else None
    return None

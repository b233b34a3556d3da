"""The header of csv files: its names, which Spark reads too, and what is wrong with it."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rankeval_spark import allowed_folders
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.missing_inputs import EXPECTED, missing_input

COMMA: Final = ","
"""The separator where the option ``sep`` does not name another one."""

RFC_4180: Final[Mapping[str, str]] = {"escape": '"', "multiLine": "true"}
"""What Spark's reader is set to, where the options say nothing else: quotes are doubled, and may hold new lines."""

_SEPARATORS: Final = (";", "\t", "|", COMMA)
_HIDDEN: Final = ("_", ".")
_LONGEST_LINE: Final = 1 << 20
_MARK: Final = "\ufeff"


def checked_header(
    header: Sequence[str | None], name: str, location: str, options: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the names of a header.

    Raises
    ------
    InputError
        There is none, a name occurs twice, or the columns are separated by something else.
    """
    if not header:
        raise InputError(missing_input(name, location, EXPECTED["csv"], "no line"))
    names = [column or "" for column in header]
    others = [one for one in _SEPARATORS if one in names[0]]
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


def header_here(location: str, options: Mapping[str, str]) -> list[str] | None:
    """Read the header of a file or folder of this machine; None where only Spark surely reads it as Spark does."""
    path, separator = allowed_folders.local_path(location), options.get("sep", COMMA)
    is_plain = options.keys() <= {"sep"} and len(separator) == 1
    if path is None or not is_plain or allowed_folders.outside_faults([("inputs", str(path))]):
        return None
    names = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    files = [file for file in names if file.name[0] not in _HIDDEN]
    if not files or not all(file.is_file() for file in files):  # folders of partitions, whose names are columns
        return None
    with suppress(OSError, UnicodeDecodeError, EOFError):
        line = _first_line(files[0])
        is_plain = line != "" and _MARK not in line and len(line) < _LONGEST_LINE
        return next(csv.reader([line], delimiter=separator)) if is_plain else None
    return None


def _first_line(file: Path) -> str:
    """Return the first line that holds something."""
    open_ = gzip.open if file.suffix == ".gz" else open
    with open_(file, "rt", encoding="utf-8", newline="\n") as lines:
        while line := lines.readline(_LONGEST_LINE):
            if line.strip():
                return str(line.rstrip("\r\n"))
    return ""

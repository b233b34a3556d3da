"""Checks that data files of tables on this machine are there and whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from rankeval_spark.errors import Fault, InputError

MAX_NAMED: Final = 5  # files in an error
_MAGIC: Final = b"PAR1"
_LENGTH: Final = 4
"""Bytes of the magic word at both ends of a Parquet file, and of the length of its footer before the last one."""


class DamagedResultsError(InputError, pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow has no types
    """A file of published results is missing or damaged; also Arrow's error for such a file.

    ``nights`` are the evaluations and dates of its rows; none for ``runs``, whose files have rows of many.
    """

    title = "published results are missing or damaged"

    def __init__(self, *faults: Fault, nights: Iterable[tuple[str, date]] = ()) -> None:
        self.nights = frozenset(nights)
        super().__init__(*faults)


def require(location: str, files: Iterable[str]) -> None:
    """Raise DamagedResultsError if files, by their paths within the table at a location, are missing or damaged.

    A few bytes of both ends of each file are read, before any row is.
    """
    damaged = {file: reason for file in files if (reason := why_damaged(Path(location, file)))}
    if damaged:
        table, nights = Path(location).name, {file: _night_of(file) for file in damaged}
        faults = [_fault(table, file, reason, nights[file]) for file, reason in sorted(damaged.items())[:MAX_NAMED]]
        raise DamagedResultsError(*faults, nights=filter(None, nights.values()))


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


def _night_of(file: str) -> tuple[str, date] | None:
    """Parse evaluation and date of a file from the names of its folders; None in a table without partitions."""
    names = dict(part.split("=", 1) for part in Path(file).parts[-3:-1] if "=" in part)
    try:
        evaluation, day = names["evaluation"], names["evaluation_date"]
        return unquote(evaluation), date.fromisoformat(day)
    except (KeyError, ValueError):
        return None


def _fault(table: str, file: str, reason: str, night: tuple[str, date] | None) -> Fault:
    found = f"{file}, which is {reason}"
    if night is None:
        fix = "restore it from a backup, or give its events up by rankeval maintain and run their dates again"
        return Fault(f"table {table}", found, "a whole file of events", fix)
    fix = f"run the date again (rankeval run CONFIG --date {night[1]}), which replaces it"
    return Fault(f"table {table}, {night[0]}, {night[1]}", found, "the rows that its run published", fix)

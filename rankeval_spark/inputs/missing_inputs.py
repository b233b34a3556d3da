"""What to say of an input that is not there, or is of another kind; the same before a run and in it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rankeval_spark.allowed_folders import local_path
from rankeval_spark.errors import Fault, nearest, nearest_days
from rankeval_spark.inputs.input_columns import NANOSECONDS, NANOSECONDS_FIX

if TYPE_CHECKING:
    from pathlib import Path

EXPECTED: Final[Mapping[str, str]] = {
    "delta": "a Delta table",
    "parquet": "Parquet files",
    "orc": "ORC files",
    "csv": "csv files with a header",
    "json": "json lines",
    "trec": "files of TREC",
}
"""What is at the path of an input, by its format."""

NO_PATH: Final = "no such path"
NO_FILES: Final = "no data files"
NO_DELTA: Final = "no Delta table"
NO_VERSION: Final = "no such version"

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_KNOWN_SUFFIXES: Final = ("parquet", "orc", "csv", "json")


def missing_input(name: str, location: str, expected: str, found: str) -> Fault:
    """Build the fault of an input that is missing or of another kind."""
    return Fault(f"inputs.{name}", f"{found} at {location}", expected, _fix_of(found, location))


def _fix_of(found: str, location: str) -> str:
    if found == NANOSECONDS:
        return NANOSECONDS_FIX
    if found == NO_VERSION:
        return _newest_version(location)
    return nearest_location(location) or (_other_format(location) if found == NO_DELTA else "")


def no_row(name: str, location: str) -> Fault:
    """Build the fault of an input without any row."""
    fix = "is the path right, and did the job that writes it run?"
    return Fault(f"inputs.{name}", f"no row in {location}", "rows", fix)


def nearest_location(location: str) -> str:
    """Name the days that there are, where a file or folder of a day is missing, else the name that is most similar.

    Empty where something is there, and for a location that is not of this machine.
    """
    path = local_path(location)
    if path is None or path.exists():
        return ""
    folder = next(parent for parent in path.parents if parent.is_dir())
    below = path.relative_to(folder).parts[0]
    names = sorted(entry.name for entry in folder.iterdir())
    day = _DAY.search(below)
    if day is not None:
        if days := _days_of(below, day, names):
            others = f"{len(days)} other day{'s' if len(days) > 1 else ''}"
            return f"{folder} has {others}: {nearest_days(dt.date.fromisoformat(day[0]), days)}"
        names = [name for name in names if day[0] in name]  # that of another day is no typing mistake
    hint = nearest(below, names)
    return f"{folder} has no {below!r}{f', {hint}' if hint else ''}"


def _days_of(below: str, day: re.Match[str], names: list[str]) -> list[dt.date]:
    """Find the days of the names that differ from ``below`` by the day only; none where its own is no day."""
    alike = re.compile(f"{re.escape(below[: day.start()])}({_DAY.pattern}){re.escape(below[day.end() :])}", re.ASCII)
    days = [_day(found[1]) for name in names if (found := alike.fullmatch(name))]
    return [one for one in days if one is not None] if _day(day[0]) else []


def _day(text: str) -> dt.date | None:
    with suppress(ValueError):
        return dt.date.fromisoformat(text)
    return None


def _newest_version(location: str) -> str:
    """Name the newest version of a Delta table on this machine; a cleaned log no longer has the oldest ones."""
    path = local_path(location)
    versions = delta_versions(path) if path else []
    return f"the newest is {max(versions)}" if versions else ""


def delta_versions(table: Path) -> list[int]:
    """List the versions of a Delta table whose commits are in its log; none where there is no such table."""
    return [int(found[1]) for file in table.glob("_delta_log/*.json") if (found := _COMMIT.fullmatch(file.name))]


def _other_format(location: str) -> str:
    """Suggest the format of the files of a local folder that is not a Delta table."""
    path = local_path(location)
    if path is None:
        return ""
    suffixes = {file.suffix.removeprefix(".") for file in path.glob("*.*")}
    seen = [known for known in _KNOWN_SUFFIXES if known in suffixes]
    return f"did you mean format: {seen[0]}?" if seen else ""

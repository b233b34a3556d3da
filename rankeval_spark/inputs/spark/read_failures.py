"""Explain in one sentence why an input could not be read; ``--debug`` shows Java's message."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from rankeval_spark.allowed_folders import local_path
from rankeval_spark.errors import CONDITION, Fault, InputError, first_line
from rankeval_spark.inputs import input_files
from rankeval_spark.inputs.input_columns import NANOSECONDS, PARQUET_UUID, UUIDS
from rankeval_spark.inputs.input_files import missing_input
from rankeval_spark.jar_faults import of_jars

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOUND: Final = {
    "PATH_NOT_FOUND": input_files.NO_PATH,
    "DELTA_PATH_DOES_NOT_EXIST": input_files.NO_PATH,
    "TABLE_OR_VIEW_NOT_FOUND": "no such table",
    "SCHEMA_NOT_FOUND": "no such schema",
    "UNABLE_TO_INFER_SCHEMA": input_files.NO_FILES,
    "DELTA_MISSING_DELTA_TABLE": input_files.NO_DELTA,
    "DELTA_TABLE_NOT_FOUND": input_files.NO_DELTA,
    "DELTA_TABLE_ONLY_OPERATION": input_files.NO_DELTA,
    "DELTA_SCHEMA_NOT_SET": input_files.NO_DELTA,
    "DELTA_VERSION_NOT_FOUND": input_files.NO_VERSION,
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION": "a version older than the table keeps",
    "DELTA_LOG_FILE_NOT_FOUND": "a version older than the table keeps",
    "DELTA_VERSIONS_NOT_CONTIGUOUS": "a version older than the table keeps",
    "CATALOG_NOT_FOUND": "no such catalog",
    "FAILED_READ_FILE": "files of another format, or damaged ones",
}
_READ_FAILURES: Final = ("FAILED_READ_FILE", "MALFORMED_", "CANNOT_READ_", "DELTA_FILE_NOT_FOUND")
_FILE_GONE: Final = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_FILE_NOT_FOUND")
"""A file of the table's log that does not exist, usually because VACUUM removed it from an old version."""

_OF_NANOSECONDS: Final = "(TIMESTAMP(NANOS"
_HEADER_DIFFERS: Final = "CSV header does not conform"
_CSV_FILE: Final = re.compile(r"CSV file: (\S+)")


@contextmanager
def as_input_error(name: str, location: str, expected: str) -> Iterator[None]:
    """Convert what Spark raises while it opens an input into an :class:`InputError`, which says what was expected."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if of_jars(str(error)):  # which is no fault of the input: `apps.error_translation` says what it is one of
            raise
        raise InputError(missing_input(name, location, expected, _describe(error))) from error


def explain(error: BaseException, locations: dict[str, str]) -> InputError | None:
    """Return the InputError behind the failure of a running job, if the cause is an unreadable input.

    A file can be damaged, missing, or have another header than other files; only reading it shows that. ``locations``
    are those of the inputs, by name.
    """
    text = str(error)
    # any condition in the text, because the cause follows the condition of the failed job
    if not any(name.startswith(_READ_FAILURES) for name in _conditions(error)) and _HEADER_DIFFERS not in text:
        return None
    concerned = [name for name, location in locations.items() if (path := local_path(location)) and str(path) in text]
    where = f"inputs.{concerned[0]}" if len(concerned) == 1 else "inputs"
    if _HEADER_DIFFERS in text:
        file = _CSV_FILE.search(text)
        found = f"csv files with different headers{f', among them {unquote(file[1])}' if file else ''}"
        return InputError(Fault(where, found, "the same header in all files of an input"))
    if any(name.startswith(_FILE_GONE) for name in _conditions(error)):
        fix = "VACUUM removes the files of old versions: read a later one, or raise delta.deletedFileRetentionDuration"
        return InputError(Fault(where, "a missing data file", "every file of the version that is read", fix))
    return InputError(Fault(where, f"a file that cannot be read ({first_line(text)})", "readable data files"))


def _describe(error: PySparkException | Py4JJavaError) -> str:
    if "ClassNotFoundException" in str(error) and "FileSystem" in str(error):
        return "a file system for which Spark has no jar"
    if _OF_NANOSECONDS in str(error):
        return NANOSECONDS
    if PARQUET_UUID in str(error):
        return UUIDS
    known = _FOUND.get(next(iter(_conditions(error)), "").partition(".")[0])
    return known or f"a failure ({first_line(str(error))})"


def _conditions(error: BaseException) -> list[str]:
    """Return Spark's error conditions; an exception of Java has them in its text."""
    given = error.getCondition() if isinstance(error, PySparkException) else None
    return [*([given] if given else []), *CONDITION.findall(str(error))]


def refuse_special(name: str, location: str) -> None:
    """Refuse a location on this machine that is or contains a pipe or device, which Spark might read for ever."""
    path = local_path(location)
    if path is None:
        return
    special = [one for one in (path, *(path.iterdir() if path.is_dir() else ())) if _is_special(one)]
    if special:
        fix = "write its content to a file first"
        raise InputError(Fault(f"inputs.{name}", f"a pipe or a device: {special[0]}", "a folder or file", fix))


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()

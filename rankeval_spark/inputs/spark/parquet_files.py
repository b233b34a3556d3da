"""Parquet files with different columns: Spark uses the columns of one file for all.

A column that is only in other files would silently get its default in every row. A column that a file lacks would
silently be NULL in its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rankeval_spark.errors import Fault, first_line
from rankeval_spark.inputs.spark import probes

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession, types as T

    from rankeval_spark.inputs.spark.opening import Table

MOST_FILES: Final = 256
"""Files whose footers are read, which takes half a second; a table of years has many more."""

_NARROWER: Final = ("tinyint", "smallint", "int", "bigint")
_READ_AS: Final = {
    *((narrow, wide) for index, narrow in enumerate(_NARROWER) for wide in _NARROWER[index:]),
    *((narrow, "double") for narrow in ("tinyint", "smallint", "int", "float")),
}
"""Types that Spark reads as a wider type."""


def faults(spark: SparkSession, table: Table, names: Iterable[str], where: str, date: dt.date) -> list[Fault]:
    """Find columns that some files of a table lack, or have with another type than the table.

    Only the columns ``names`` are checked. If names of files or folders contain the date, only those files are read.
    """
    schemas: dict[str, T.StructType] = {}
    for file in chosen_files(sorted(table.frame.inputFiles()), date):
        try:
            if (schema := probes.parquet_schema(spark, file)) is not None:
                schemas[file] = schema
        except (PySparkException, Py4JError) as error:  # its message may not name the file
            found = f"a file that cannot be read, {_short(file)} ({first_line(str(error))})"
            return [Fault(where, found, "readable data files")]
    types = {field.name.casefold(): field.dataType.simpleString() for field in table.frame.schema.fields}
    return [fault for name in dict.fromkeys(names) for fault in _faults_of(name, types, schemas, where)]


def chosen_files(files: Sequence[str], date: dt.date) -> list[str]:
    """Choose the files to read: the first, whose columns Spark uses, and the last ones of the date, or of all.

    Examples
    --------
    >>> import datetime
    >>> chosen_files(["f/day=2025-12-31/a", "f/day=2026-01-01/a", "f/day=2026-01-02/a"], datetime.date(2026, 1, 1))
    ['f/day=2025-12-31/a', 'f/day=2026-01-01/a']
    """
    of_date = [file for file in files if date.isoformat() in file]
    return list(dict.fromkeys([*files[:1], *(of_date or files)[-MOST_FILES:]]))


def _faults_of(name: str, types: Mapping[str, str], schemas: Mapping[str, T.StructType], where: str) -> list[Fault]:
    """Name one file of each kind, because usually all files of a day are equal."""
    of_file = {file: _type(schema, name) for file, schema in schemas.items()}
    having = [file for file, found in of_file.items() if found]
    lacking = [file for file, found in of_file.items() if not found]
    fix = "write these files again, or read only the others, with path: or filters:"
    if having and lacking:
        found = f"no column {name!r} in {_short(lacking[0])}, while {_short(having[0])} has it"
        return [Fault(where, found, "the same columns in all files", fix)]
    wanted = types.get(name.casefold(), "")
    other = [file for file in having if of_file[file] != wanted and (of_file[file], wanted) not in _READ_AS]
    if other and wanted:
        found = f"column {name!r} of type {of_file[other[0]]} in {_short(other[0])}, and {wanted} in others"
        return [Fault(where, found, "one type in all files", fix)]
    return []


def _type(schema: T.StructType, name: str) -> str:
    folded = name.casefold()
    return next((field.dataType.simpleString() for field in schema.fields if field.name.casefold() == folded), "")


def _short(file: str) -> str:
    """Name a file by its last folder and its own name."""
    return "/".join(unquote(file).split("/")[-2:])

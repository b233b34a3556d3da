"""Open csv and json: every value as text, columns by name and never by position, broken lines marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as T

from rankeval_spark.errors import Fault, InputError
from rankeval_spark.sources import probes
from rankeval_spark.sources.failures import as_input_error, missing
from rankeval_spark.sources.table import CORRUPT, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrameReader, SparkSession


def open_csv(spark: SparkSession, name: str, location: str, options: Mapping[str, str]) -> Table:
    """Open csv files, whose first line names the columns.

    Raises
    ------
    InputError
        If there is none, or a name is missing or occurs twice.
    """
    with as_input_error(name, location, "csv files with a header"):
        header = probes.csv_header(spark, location, options)
    columns = _checked_header(header, name, location)
    # enforceSchema=false: Spark compares the header of every file; with true it goes by position, silently.
    reader = spark.read.format("csv").options(**options, header=True, enforceSchema=False)
    return _open(reader, name, location, columns)


def open_json(spark: SparkSession, name: str, location: str, options: Mapping[str, str]) -> Table:
    """Open json lines: one object a line.

    Raises
    ------
    InputError
        If there is none.
    """
    with as_input_error(name, location, "json lines"):
        keys = probes.json_keys(spark, location, options)
    if not keys:
        raise InputError(missing(name, location, "json lines, one object a line", "no json object"))
    distinct = {key.casefold(): key for key in reversed(keys)}  # Spark takes 'Item' and 'item' for one column
    return _open(spark.read.format("json").options(**options), name, location, tuple(reversed(distinct.values())))


def _open(reader: DataFrameReader, name: str, location: str, columns: Sequence[str]) -> Table:
    schema = T.StructType([T.StructField(column, T.StringType()) for column in (*columns, CORRUPT)])
    with as_input_error(name, location, "readable files"):
        frame = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT).schema(schema).load(location)
        return Table(frame, tuple(column for column in frame.columns if column != CORRUPT), location)


def _checked_header(header: Sequence[str | None], name: str, location: str) -> tuple[str, ...]:
    if not header:
        raise InputError(missing(name, location, "csv files with a header", "no line"))
    names = [column or "" for column in header]
    folded = [column.casefold() for column in names]
    twice = sorted({column for column in names if folded.count(column.casefold()) > 1})
    if twice:
        found = f"a header with {', '.join(map(repr, twice))} more than once at {location}"
        raise InputError(Fault(f"inputs.{name}", found, "each column once", "rename or remove one of them"))
    return tuple(names)

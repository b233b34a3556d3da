"""Open the table of an input as it is: Delta at one version, Parquet, and csv and json as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark import allowed
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.sources import probes, reach, text_tables
from rankeval_spark.sources.failures import as_input_error, refuse_special
from rankeval_spark.sources.table import Table

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import SparkSession

    from rankeval_spark.config.inputs import InputConfig


def open_table(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> Table:
    """Open the table of an input for an evaluation date.

    Raises
    ------
    InputError
        If it is missing, of another format, or cannot be read.
    ConfigError
        If it, or a file that it leads to, lies outside the folders that the environment allows.
    """
    if config.table is not None or not allowed.is_limited():  # tables of a catalog are its own to allow
        return _opened(spark, name, config, date)
    reach.check_path(spark, name, config.location(date), config.format)
    table = _opened(spark, name, config, date)
    reach.check_files(spark, name, table.frame)
    return table


def _opened(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> Table:
    location = config.location(date)
    if not config.table:
        refuse_special(name, location)
    match config.format:
        case "delta":
            return _open_delta(spark, name, config, date)
        case "parquet":
            return _open_parquet(spark, name, config, location)
        case "csv":
            return text_tables.open_csv(spark, name, location, config.options)
        case "json":
            return text_tables.open_json(spark, name, location, config.options)


def _open_delta(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> Table:
    location = config.location(date)
    expected = "a Delta table" if config.version is None else f"a Delta table with version {config.version}"
    with as_input_error(name, location, expected):
        version = _delta_version(spark, name, config, date)
        reader = spark.read.format("delta").option("versionAsOf", version)
        frame = reader.table(_quoted(config.table)) if config.table else reader.load(location)
        return Table(frame, tuple(frame.columns), location, version)


def _delta_version(spark: SparkSession, name: str, config: InputConfig, date: dt.date) -> int:
    if config.version is not None:
        return config.version
    location, moment = config.location(date), config.moment(date)
    newest = probes.local_delta_version(spark, location) if moment is None and not config.table else None
    if newest is not None:
        return newest
    table = _quoted(location) if config.table else f"delta.{_backticked(location)}"
    version = probes.delta_version(spark, table, moment)
    if version is None:
        found = f"no version as old as {moment} at {location}"
        raise InputError(Fault(f"inputs.{name}.timestamp", found, "a time since the table has been there"))
    return version


def _open_parquet(spark: SparkSession, name: str, config: InputConfig, location: str) -> Table:
    expected = "a table of the catalog" if config.table else "Parquet files"
    with as_input_error(name, location, expected):
        frame = spark.read.table(_quoted(config.table)) if config.table else spark.read.parquet(location)
        return Table(frame, tuple(frame.columns), location)


def _quoted(table: str) -> str:
    """Quote each part of a table name; the config lets only letters, digits, '_' and '-' pass."""
    return ".".join(map(_backticked, table.split(".")))


def _backticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

"""Which files an input leads to, by patterns and links, where the environment says which folders may be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rankeval_spark import allowed
from rankeval_spark.sources import probes
from rankeval_spark.sources.failures import as_input_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELTA_LOG: Final = "_delta_log"


def check_path(spark: SparkSession, name: str, location: str, format_: str) -> None:
    """Refuse an input that lies, or leads, outside the allowed folders, before a byte of it is read.

    Raises
    ------
    ConfigError
        What lies outside.
    InputError
        If there is no such path.
    """
    where, default = f"inputs.{name}.path", probes.default_file_system(spark)
    allowed.demand((where, location), default=default)
    if format_ == "delta":  # its log names the files: they are looked at when it has been read
        allowed.demand((where, f"{location}/{_DELTA_LOG}"), default=default)
        return
    with as_input_error(name, location, "files"):
        files = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(location).inputFiles()
    allowed.demand(*((where, file) for file in files), default=default)


def check_files(spark: SparkSession, name: str, frame: DataFrame) -> None:
    """Refuse a frame that would read files outside the allowed folders: the log of a Delta table may name some.

    Raises
    ------
    ConfigError
        The files that lie outside.
    """
    default = probes.default_file_system(spark)
    allowed.demand(*((f"inputs.{name}.path", file) for file in frame.inputFiles()), default=default)

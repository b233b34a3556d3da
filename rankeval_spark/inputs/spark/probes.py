"""Small Spark jobs that open or check an input; all actions of this package are here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F, types as T

from rankeval_spark.inputs.input_columns import PARQUET_UUID
from rankeval_spark.inputs.input_files import JSON_LINES_PROBED, RFC_4180, delta_versions

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from rankeval_spark.inputs.spark.reading import Source

PARTITION_BYTES: Final = 16 << 20, 64 << 20
"""Least and most bytes of input files per partition of cached rows: about one and four million recommendations."""


def is_wholly_empty(source: Source) -> bool:
    """Return True if a table has no row at all, not only none for the date; one job that reads one row."""
    return source.unfiltered.isEmpty()


def estimated_bytes(source: Source) -> int:
    """Return the size of an input as Spark's planner estimates it, in effect the size of its files. No job.

    The estimate of a DataFrame of the caller can be far too large; without a plan in this process it is the maximum.
    """
    plan = getattr(source.frame, "_jdf", None)  # a frame of Spark Connect has none
    return sys.maxsize if plan is None else int(plan.queryExecution().optimizedPlan().stats().sizeInBytes())


def cached_partitions(*sources: Source) -> int | None:
    """Return the number of partitions where results are cached; None for Spark's default.

    Spark adapts the number to the size of the rows, but not in a cached plan. Here it is that of the cores, if they are
    of a fitting size: each partition costs 0.3 s of processor time. The result is never above the default.
    """
    n_bytes, spark = sum(map(estimated_bytes, sources)), sources[0].frame.sparkSession
    usual = spark.conf.get("spark.sql.shuffle.partitions") or ""
    most, least = (max(1, -(-n_bytes // size)) for size in PARTITION_BYTES)
    # A frame of Spark Connect has no plan here; its size is unknown, and so are the cores.
    cores = spark.sparkContext.defaultParallelism if n_bytes < sys.maxsize else 1
    wanted = min(most, max(least, cores))
    return wanted if usual.isdecimal() and wanted < int(usual) else None


def delta_version(spark: SparkSession, table: str, moment: dt.datetime | None) -> int | None:
    """Return the newest version of a Delta table (name quoted as in SQL), also at a moment; None without one.

    By a statement: the call of Delta's Python package needs that package, and a jar on a Spark Connect server.
    """
    if moment is None:
        return int(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").select("version").collect()[0][0])
    earlier = spark.sql(f"DESCRIBE HISTORY {table}").where(
        F.col("timestamp") <= F.lit(moment.isoformat()).cast("timestamp")
    )
    newest = earlier.agg(F.max("version")).collect()[0][0]
    return None if newest is None else int(newest)


def local_delta_version(spark: SparkSession, location: str) -> int | None:
    """Return the newest version of a Delta table on a disk of this machine, by its log and no job; None elsewhere."""
    if not location.startswith("/") or not default_file_system(spark).startswith("file:"):
        return None
    return max(delta_versions(Path(location)), default=None)


def parquet_schema(spark: SparkSession, file: str) -> T.StructType | None:
    """Read the columns of a Parquet file from its footer as Spark does; no job. None without access to the JVM.

    Spark's public call merges the schemas of all files, and refuses UUIDs, which are bytes here.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return None
    state = spark._jsparkSession.sessionState()
    conf, path = state.newHadoopConf(), jvm.org.apache.hadoop.fs.Path
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
    footer = jvm.org.apache.parquet.hadoop.ParquetFileReader.readFooter(conf, path(jvm.java.net.URI(file)))
    message = footer.getFileMetaData().getSchema()
    if PARQUET_UUID in message.toString():
        text = message.toString().replace(f" {PARQUET_UUID}", "")
        message = jvm.org.apache.parquet.schema.MessageTypeParser.parseMessageType(text)
    converter = parquet.ParquetToSparkSchemaConverter(state.conf())
    return T.StructType.fromJson(json.loads(converter.convert(message).json()))


def default_file_system(spark: SparkSession) -> str:
    """Return the file system of a path without a scheme; empty without access to the JVM."""
    if getattr(spark, "_jvm", None) is None:
        return ""
    return str(spark._jsparkSession.sessionState().newHadoopConf().get("fs.defaultFS", ""))


def csv_header(spark: SparkSession, location: str, options: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return the names in the header of a csv input, unchanged; empty without any line."""
    frame = spark.read.options(**{**RFC_4180, **options}, header=False, inferSchema=False).csv(location)
    in_file = [name for index, name in enumerate(frame.columns) if name == f"_c{index}"]  # the others are partitions
    lines = frame.select(*in_file).limit(1).collect()
    return tuple(lines[0]) if lines else ()


def first_trec_line(spark: SparkSession, location: str) -> str:
    """Return the first line that holds something; empty without any."""
    lines = spark.read.text(location).where(~F.col("value").rlike(r"^\s*(#|$)")).select("value").limit(1).collect()
    return str(lines[0][0]) if lines else ""


def json_keys(spark: SparkSession, location: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of a json input's first objects, in order of first mention."""
    is_whole = options.get("multiLine", "false").lower() == "true"
    reader = spark.read.options(wholetext=is_whole, **{key: text for key, text in options.items() if key == "lineSep"})
    lines = reader.text(location).select("value").limit(1 if is_whole else JSON_LINES_PROBED).collect()
    return tuple(dict.fromkeys(key for line in lines for found in _objects(line[0]) for key in found))


def _objects(text: str) -> list[dict[str, object]]:
    """Read one JSON object or an array of them; empty for other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [found for found in (value if isinstance(value, list) else [value]) if isinstance(found, dict)]

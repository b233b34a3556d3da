"""Checks of a running session: a worker and a Delta table, each with the smallest job that shows a fault."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException

from rankeval_spark.spark.session.machine_checks import Check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 3


def of_session(spark: SparkSession) -> Iterator[tuple[str, Callable[[], Check]]]:
    """Yield the two jobs that every evaluation depends on, with what is waited for.

    Delta is tried in a temporary folder of the driver, so only on a local master, whose executors see it too.
    """
    yield "a worker of Spark", partial(worker_python, spark)
    if spark.conf.getAll.get("spark.master", "").startswith("local"):
        yield "a table of Delta", partial(delta_table, spark)


def worker_python(spark: SparkSession) -> Check:
    """Check that a worker has the Python and the pyarrow of the driver, as kernels travel by value."""
    name = "Python of the workers"
    fix = "set PYSPARK_PYTHON to a Python of the driver's version that has our packages on every executor"
    try:
        (answer,) = spark.range(1).repartition(1).mapInArrow(_describe_worker, "python string, arrow string").collect()
    except PySparkException as error:
        return Check(name, ok=False, found=_last_line(error), fix=fix)
    driver = "{}.{}".format(*sys.version_info[:2])
    found = f"{answer.python} with pyarrow {answer.arrow}; driver {driver}"
    return Check(name, answer.python.startswith(f"{driver}."), found, fix)


def delta_table(spark: SparkSession) -> Check:
    """Check that a Delta table can be written and read back."""
    name = "Delta write and read"
    with tempfile.TemporaryDirectory(prefix="rankeval-probe-") as folder:
        path = str(Path(folder) / "table")
        try:
            spark.range(_ROWS).write.format("delta").save(path)
            n_rows = len(spark.read.format("delta").load(path).collect())
        except PySparkException as error:
            return Check(name, ok=False, found=_last_line(error), fix="see 'Delta jars' above")
    return Check(name, ok=n_rows == _ROWS, found=f"{n_rows} of {_ROWS} rows came back")


def _describe_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the versions of a worker as one row."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.version.split()[0]], "arrow": [pa.__version__]})


def _last_line(error: PySparkException) -> str:
    """Return the line of a trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line or "[" in line), str(error))

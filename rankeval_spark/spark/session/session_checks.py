"""Try a running session: a Delta table and a worker, each with the smallest job that shows a fault."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException

from rankeval_spark.spark.session.machine_checks import Check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 3


def probe(spark: SparkSession) -> Iterator[Check]:
    """Run the two jobs that every evaluation depends on.

    `spark`: the session that a run would use; Delta is tried in a temporary folder of the driver, so only where the
    executors see it too, on a local master.
    """
    yield worker_python(spark)
    if spark.conf.getAll.get("spark.master", "").startswith("local"):
        yield delta_table(spark)


def worker_python(spark: SparkSession) -> Check:
    """Ask a worker for its Python and its pyarrow; both have to be the driver's, as kernels travel by value."""
    name = "Python of the workers"
    fix = "set PYSPARK_PYTHON to a Python of the driver's version that has our packages on every executor"
    try:
        (answer,) = spark.range(1).repartition(1).mapInArrow(_describe_worker, "python string, arrow string").collect()
    except PySparkException as error:
        return Check(name, ok=False, found=_last_line(error), fix=fix)
    driver = "{}.{}".format(*sys.version_info[:2])
    return Check(
        name,
        ok=answer.python.startswith(f"{driver}."),
        found=f"{answer.python} with pyarrow {answer.arrow}; driver {driver}",
        fix=fix,
    )


def delta_table(spark: SparkSession) -> Check:
    """Write a Delta table and read it back."""
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
    """Run in a worker: give its versions as one row."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.version.split()[0]], "arrow": [pa.__version__]})


def _last_line(error: PySparkException) -> str:
    """Return the line of a trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line or "[" in line), str(error))

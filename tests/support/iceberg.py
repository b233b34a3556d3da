"""Tables of Iceberg in a folder, written by Spark in a process of its own: jars have to be there when a JVM starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark.spark.session import build_session, cache_dir
from tests.support.cli import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RUNTIMES: Final = {
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""What Iceberg publishes for each line of Spark; it has nothing for 4.2."""

NAMESPACE: Final = "lake.logs"


def settings_of(spark: str, folder: Path) -> dict[str, str]:
    """Return what a config says under ``spark.settings``: the jar, and a catalog called lake in a folder."""
    return {
        "spark.jars.packages": RUNTIMES[spark],
        "spark.jars.ivy": str(cache_dir() / "ivy"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder),
    }


def write_by_day(settings: Mapping[str, str], inputs: Iterable[Path]) -> None:
    """Write Parquet inputs with a column ``day`` again, each as a table of Iceberg that is partitioned by the day."""
    arguments = [json.dumps(dict(settings)), *map(str, inputs)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.iceberg", *arguments],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _write(settings: Mapping[str, str], inputs: Iterable[Path]) -> None:
    spark = build_session("tables of Iceberg", master="local[2]", settings=settings)
    for path in inputs:
        rows = spark.read.parquet(str(path))
        rows = rows.withColumn("day", rows["day"].cast("date"))
        rows.writeTo(f"{NAMESPACE}.{path.name}").using("iceberg").partitionedBy("day").create()
    spark.stop()


if __name__ == "__main__":
    _write(json.loads(sys.argv[1]), map(Path, sys.argv[2:]))

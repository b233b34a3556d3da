"""What the figures were measured on, and with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = ("pyspark", "delta-spark", "numpy", "pyarrow")
_GIGABYTE: Final = 1 << 30


def describe(spark: SparkSession) -> dict[str, str]:
    """Describe processor, memory, Java and libraries, as the table in the README has them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIGABYTE
    return {
        "processor": f"{n_cores()} cores, {_processor()}",
        "memory": f"{memory:.0f} GB, Spark driver heap {spark.conf.get('spark.driver.memory')}",
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "Java": str(_java(spark)),
        **{name: package_version(name) for name in PACKAGES},
        "shuffle partitions": str(spark.conf.get("spark.sql.shuffle.partitions")),
    }


def n_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def package_version(name: str) -> str:
    """Return the version of an installed package, or say that it is absent."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _java(spark: SparkSession) -> object:
    row = spark.range(1).selectExpr("java_method('java.lang.System', 'getProperty', 'java.version')").first()
    return row[0] if row else "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())

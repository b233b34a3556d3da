"""The Spark that this package works with; looked at before anything that imports it."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Final

from rankeval_spark.errors import EnvironmentFaultError, Fault

SPARK_LINES: Final = ("4.0", "4.1", "4.2")
"""The lines of Spark that this version is tested with, and that there are pinned jars for; the oldest first."""

INSTALL: Final = "pip install 'pyspark>=4.0.1,<4.3' 'delta-spark>=4.4.0,<4.4.1'"
"""Command that installs what the extra `spark` names: this package itself need not be on an index."""

TESTED: Final = f"{SPARK_LINES[0]} to {SPARK_LINES[-1]}"


class UnsupportedSparkError(EnvironmentFaultError, ImportError):
    """There is no pyspark, or one that this package does not work with."""


def require_spark(why: str = "") -> None:
    """Refuse a pyspark that cannot be imported, or that is too old, with what was found, and why it is needed."""
    try:
        pyspark = import_module("pyspark")
    except Exception as error:  # an old one fails on a newer Python in ways of its own
        found = f"none that can be imported ({error})"
        raise UnsupportedSparkError(_fault(found, why)) from error
    if _numbers(pyspark.__version__) < _numbers(SPARK_LINES[0]):
        found = f"{pyspark.__version__} in {pyspark.__path__[0]}"
        raise UnsupportedSparkError(_fault(found, why))


def spark_line() -> str:
    """Return the line of the installed pyspark, such as ``4.2``."""
    require_spark()
    return "{}.{}".format(*_numbers(import_module("pyspark").__version__))


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else ()


def _fault(found: str, why: str) -> Fault:
    fix = f"{INSTALL}; on a cluster, use one of Spark {TESTED}"
    needed = f", for {why}" if why else ""
    return Fault("pyspark", found, f"{TESTED}, which this version is tested with{needed}", fix)

"""The Spark that this package works with; looked at before anything that imports it."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Final

from rankeval_spark.errors import EnvironmentFaultError, Fault

OLDEST_SPARK: Final = (4, 2)
SPARK_LINE: Final = "4.2"
"""The line of Spark that this version is tested with, and that the pinned jars are built for."""


class UnsupportedSparkError(EnvironmentFaultError, ImportError):
    """There is no pyspark, or one that this package does not work with."""


def require_spark() -> None:
    """Refuse a pyspark that cannot be imported, or that is too old.

    Raises
    ------
    UnsupportedSparkError
        With what was found, and where.
    """
    try:
        pyspark = import_module("pyspark")
    except Exception as error:  # an old one fails on a newer Python in ways of its own
        found = f"none that can be imported ({error})"
        raise UnsupportedSparkError(_fault(found)) from error
    numbers = re.match(r"(\d+)\.(\d+)", pyspark.__version__)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST_SPARK:
        found = f"{pyspark.__version__} in {pyspark.__path__[0]}"
        raise UnsupportedSparkError(_fault(found))


def _fault(found: str) -> Fault:
    fix = f"pip install 'pyspark=={SPARK_LINE}.*'; on a cluster, use one of Spark {SPARK_LINE}"
    return Fault("pyspark", found, f"{SPARK_LINE}, which this version is made for", fix)

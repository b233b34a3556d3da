"""Sessions of commands: the user sees that they start, and whoever only reads gets none where none is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval_spark.cli.display.terminal import waiting
from rankeval_spark.results.reading.table_readers import is_native
from rankeval_spark.spark.version import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start(name: str, **options: Any) -> SparkSession:  # noqa: ANN401 - those of `build_session`
    """Start a session and show meanwhile that it does."""
    with waiting("starting Spark"):
        return new_session(name, **options)


def new_session(name: str, **options: Any) -> SparkSession:  # noqa: ANN401 - those of `build_session`
    """Start a session.

    Raises
    ------
    UnsupportedSparkError
        There is no pyspark, or one that this package does not work with.
    """
    require_spark()
    from rankeval_spark.spark.session import build_session  # noqa: PLC0415 - imports pyspark

    return build_session(name, **options)


def session_for(root: str, command: str) -> SparkSession | None:
    """Start a session where only Spark can read a root; None, and nothing of Spark, where this process can."""
    return None if is_native(root) else start(f"rankeval {command}")

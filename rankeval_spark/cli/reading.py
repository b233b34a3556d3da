"""What commands that only read results have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.results.readers import is_native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_for(root: str, command: str) -> SparkSession | None:
    """Start a session where only Spark can read a root; None, and nothing of Spark, where this process can."""
    if is_native(root):
        return None
    from rankeval_spark.session import build_session  # noqa: PLC0415 - imports pyspark

    return build_session(f"rankeval {command}")

"""Whether someone chose a Spark for this process, found out without importing pyspark."""

from __future__ import annotations

import os
import sys

from rankeval_spark.spark.runtime.spark_home import spark_defaults


def is_chosen(master: str | None) -> bool:
    """Return True if someone chose a Spark: an active session, a server, ``spark-submit``, or a master."""
    if _has_active_session() or is_under_spark_submit() or os.environ.get("SPARK_REMOTE"):
        return True
    return bool(master or spark_defaults().get("spark.master"))


def is_under_spark_submit() -> bool:
    """Return True if ``spark-submit`` started this process, and with it the driver's JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _has_active_session() -> bool:
    sql = sys.modules.get("pyspark.sql")  # a session is active only where its module was loaded
    return sql is not None and sql.SparkSession.getActiveSession() is not None

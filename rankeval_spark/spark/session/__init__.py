"""The Spark session: Java, the Delta jars, settings, and whether this machine is fit for a run."""

from rankeval_spark.spark.runtime.cache import cache_dir
from rankeval_spark.spark.session.builder import build_session

__all__ = ["build_session", "cache_dir"]

"""The Spark session: Java, the Delta jars, settings, and whether this machine is fit for a run."""

from rankeval_spark.session.builder import build_session
from rankeval_spark.session.cache import cache_dir

__all__ = ["build_session", "cache_dir"]

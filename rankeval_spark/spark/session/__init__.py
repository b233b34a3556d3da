"""The Spark session: Java, the Delta jars, settings, and whether this machine is fit for a run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankeval_spark.spark.runtime.cache import cache_dir

if TYPE_CHECKING:
    from rankeval_spark.spark.session.builder import build_session

__all__ = ["build_session", "cache_dir"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function
    """Load what imports pyspark at first use: nights that this process computes do without it."""
    if name != "build_session":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return import_module(f"{__name__}.builder").build_session

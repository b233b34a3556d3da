"""The Spark session: built with Java, the Delta jars and settings, at once or when something is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from rankeval_spark.spark.session.settings import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.spark.session.builder import build_session

__all__ = ["build_session", "cache_dir", "is_on_demand", "on_demand"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function
    """Load what imports pyspark at first use: nights that this process computes do without it."""
    if name != "build_session":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return import_module(f"{__name__}.builder").build_session


class _SessionOnDemand:
    """Proxy of a session that `start` builds when one of its attributes is first read."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._starting = Lock()
        self._session: SparkSession | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the session has it
        """Be the session in everything else."""
        if name.startswith("__"):  # what copies and shows objects looks for
            raise AttributeError(name)
        with self._starting:
            if self._session is None:
                self._session = self._start()
        return getattr(self._session, name)


def on_demand(start: Callable[[], SparkSession]) -> SparkSession:
    """Return a session that is started when something is asked of it."""
    return cast("SparkSession", _SessionOnDemand(start))


def is_on_demand(session: SparkSession | None) -> bool:
    """Return True if a session is one of :func:`on_demand`, started or not."""
    return isinstance(session, _SessionOnDemand)

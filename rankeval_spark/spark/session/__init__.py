"""The Spark session: built with Java, the Delta jars and settings, at once or when something is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from rankeval_spark.errors import RankevalError
from rankeval_spark.spark.session.settings import cache_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.spark.session.builder import build_session

__all__ = ["build_session", "cache_dir", "is_on_demand", "on_demand", "why_wanted"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function
    """Load what imports pyspark at first use: nights that this process computes do without it."""
    if name != "build_session":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return import_module(f"{__name__}.builder").build_session


class _SessionOnDemand:
    """Proxy of a session that `start` builds when one of its attributes is first read.

    A start that failed is not tried again: a backfill of many dates would wait for each of them.
    """

    def __init__(self, start: Callable[[], SparkSession], why: str | None) -> None:
        self._start = start
        self._starting = Lock()
        self._session: SparkSession | None = None
        self._failure: RankevalError | None = None
        self.why_wanted = why  # why Spark computes every night; None where that depends on the inputs

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the session has it
        """Return the attribute of the session, which is built at the first one."""
        if name.startswith("__"):  # what copies and shows objects looks for
            raise AttributeError(name)
        with self._starting:
            if self._failure is not None:
                raise self._failure
            if self._session is None:
                try:
                    self._session = self._start()
                except RankevalError as error:
                    self._failure = error
                    raise
        return getattr(self._session, name)


def on_demand(start: Callable[[], SparkSession], *, why: str | None = None) -> SparkSession:
    """Return a session that is started when something is asked of it; `why` Spark computes every night, if it does."""
    return cast("SparkSession", _SessionOnDemand(start, why))


def is_on_demand(session: SparkSession | None) -> bool:
    return isinstance(session, _SessionOnDemand)


def why_wanted(session: SparkSession | None) -> str | None:
    """Return why a session of :func:`on_demand` computes every night; None where that depends on the inputs."""
    return session.why_wanted if isinstance(session, _SessionOnDemand) else None

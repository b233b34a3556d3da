"""A session that is started when something is asked of it: whoever needs none waits for no JVM."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionOnDemand:
    """Proxy of a session that starts it when one of its attributes is first read.

    Parameters
    ----------
    start : callable
        Builds the session.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._starting = Lock()
        self._session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        """The session, started once."""
        with self._starting:
            if self._session is None:
                self._session = self._start()
            return self._session

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the session has it
        """Be the session in everything else."""
        if name.startswith("__"):  # what copies and shows objects looks for
            raise AttributeError(name)
        return getattr(self.session, name)


def on_demand(start: Callable[[], SparkSession]) -> SparkSession:
    """Return a session that is started when something is asked of it."""
    return cast("SparkSession", SessionOnDemand(start))


def is_on_demand(session: SparkSession | None) -> bool:
    """Whether a session is one of :func:`on_demand`, started or not."""
    return isinstance(session, SessionOnDemand)

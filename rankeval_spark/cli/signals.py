"""What a signal to end does to a command: Spark stops computing, and an exception unwinds what is under way."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from rankeval_spark.errors import Stopped

ENDING: Final = (signal.SIGINT, signal.SIGTERM)

SECONDS_TO_CANCEL: Final = 10.0
"""Patience with a driver that may be gone itself, out of the half minute that schedulers give us."""


class Ending:
    """The wish that a command ends.

    Attributes
    ----------
    stopped : Stopped or None
        The first signal that came, as it was raised.
    """

    def __init__(self) -> None:
        self.stopped: Stopped | None = None

    def hear(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what a handler is called with
        """Raise the first signal; a later one is ignored while we clean up, unless Ctrl-C is pressed again."""
        if self.stopped is None:
            self.stopped = Stopped.pending = Stopped(number)
            _cancel_jobs()
            raise self.stopped
        if number == signal.SIGINT:
            raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[Ending]:
    """Turn signals to end into :class:`Stopped` within the block; the handlers there were come back after it.

    A signal that is ignored, as Ctrl-C is by a command in the background, stays ignored. Only the main thread of a
    process can handle signals; elsewhere nothing changes.
    """
    ending = Ending()
    is_main = threading.current_thread() is threading.main_thread()
    heard = [number for number in ENDING if is_main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ending.hear) for number in heard}
    try:
        yield ending
    finally:
        if is_main:
            Stopped.pending = None
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel_jobs() -> None:
    """Cancel what Spark computes, so that the row that says so need not wait for it.

    In a thread, which has a connection of its own to the driver: this one may be waiting for an answer. And without an
    import, because this may be in the middle of one.
    """
    context = getattr(sys.modules.get("pyspark.core.context"), "SparkContext", None)
    running = getattr(context, "_active_spark_context", None)
    if running is None:
        return

    def cancel() -> None:
        with suppress(Exception):  # it has stopped already, or its JVM is gone
            running.cancelAllJobs()

    thread = threading.Thread(target=cancel, name="cancel jobs", daemon=True)
    thread.start()
    thread.join(SECONDS_TO_CANCEL)

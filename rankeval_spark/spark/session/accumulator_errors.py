"""Errors of the accumulator server of pyspark when the JVM of the driver is gone: only our own message is shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def silence_lost_driver_traceback(session: SparkSession) -> None:
    """Keep pyspark's server of accumulators from printing a traceback when its connection to the JVM ends.

    Its other errors are reported as before. The next call to the JVM fails, and that failure is explained.
    """
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    report = server.handle_error

    def handle_error(*request_arguments: Any) -> None:  # noqa: ANN401 - a socket and its address, handed on
        if not isinstance(sys.exc_info()[1], EOFError):
            report(*request_arguments)

    server.handle_error = handle_error

"""Entry point: run a command, and turn errors and signals into one message and an exit code."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

from rankeval_spark.cli.app import app
from rankeval_spark.cli.terminal import console, headline, keep_libraries_quiet, quietly
from rankeval_spark.errors import RankevalError, Stopped, exit_code_of, note, notes_of, without_secrets
from rankeval_spark.spark.version import UnsupportedSparkError, require_spark

DEBUG: Final = "--debug"
QUIET: Final = "--quiet"
"""Options that are read wherever they stand among the arguments."""

ENDING: Final = (signal.SIGINT, signal.SIGTERM)

SECONDS_TO_CANCEL: Final = 10.0
"""Patience with a driver that may be gone, out of the half minute that schedulers give us."""


class Ending:
    """Signals to end that reached the command."""

    def __init__(self) -> None:
        self.stopped: Stopped | None = None  # the first one, as it was raised

    def on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what a handler is called with
        """Raise the first signal; a later one is ignored while we clean up, unless Ctrl-C is pressed again."""
        if self.stopped is None:
            self.stopped = Stopped.pending = Stopped(number)
            _cancel_jobs()
            raise self.stopped
        if number == signal.SIGINT:
            raise Stopped(number)


@contextmanager
def stoppable() -> Iterator[Ending]:
    """Convert signals to end into :class:`Stopped` within the block; the handlers before it come back after it.

    A signal that is ignored, as Ctrl-C is by a command in the background, stays ignored. Only the main thread of a
    process can handle signals; elsewhere nothing changes.
    """
    ending = Ending()
    is_main = threading.current_thread() is threading.main_thread()
    heard = [number for number in ENDING if is_main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ending.on_signal) for number in heard}
    try:
        yield ending
    finally:
        if is_main:
            Stopped.pending = None
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel_jobs() -> None:
    """Cancel the jobs of Spark, so that the row FAILED need not wait for them.

    In a thread, which has its own connection to the driver: this one may be waiting for an answer. Without an import,
    because the signal may have interrupted one.
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


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``rankeval``.

    Exit codes: 0 published, 1 unexpected, 2 usage or config, 3 checks failed and nothing published, 4 an input is
    missing or unreadable. 5 another run holds the results, 6 published, but a gate failed, 7 a reproduced run differs.
    130 stopped by Ctrl-C, 143 stopped by SIGTERM.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    wanted = [argument for argument in given if argument not in (DEBUG, QUIET)]
    keep_libraries_quiet()
    with quietly(QUIET in given), stoppable() as ending:
        try:
            app(wanted, prog_name="rankeval")
        except (Exception, SystemExit) as error:  # the last resort
            if ending.stopped is not None:  # typer makes a status of Ctrl-C out of it, and a failed clean-up an error
                for line in notes_of(error):
                    note(ending.stopped, line)
                _end(ending.stopped, is_debug=DEBUG in given)
            if isinstance(error, SystemExit):
                raise
            _end(_known(error), is_debug=DEBUG in given)
    sys.exit(0)


def _known(error: Exception) -> Exception:
    """Translate an error that no command expected."""
    if isinstance(error, RankevalError):
        return error
    if "pyspark" in sys.modules or isinstance(error, ImportError):
        try:
            require_spark()
        except UnsupportedSparkError as unsupported:
            unsupported.__cause__ = error
            return unsupported
    from rankeval_spark.apps.error_translation import machine_fault  # noqa: PLC0415 - only where something went wrong

    known = machine_fault(error)
    if known is not error:
        known.__cause__ = error
    return known


def _end(error: BaseException, *, is_debug: bool) -> NoReturn:
    """Print the error and exit with its code."""
    out = console(is_error=True)
    if is_debug:
        trace = without_secrets("".join(traceback.format_exception(error)))
        out.print(trace, markup=False, style="dim", soft_wrap=True)
    out.print("error: ", style="bold red", end="")
    out.print(headline(error), markup=False, soft_wrap=True)
    if not is_debug and isinstance(error, Exception) and not isinstance(error, RankevalError):
        out.print(f"{DEBUG} shows the trace", style="dim")
    sys.exit(exit_code_of(error))

"""The entry point: run a command, and turn what goes wrong into one message and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from rankeval_spark.cli.app import app
from rankeval_spark.cli.display.terminal import console, headline, keep_libraries_quiet, quietly
from rankeval_spark.cli.signals import stoppable
from rankeval_spark.errors import RankevalError, exit_code_of, note, notes_of, without_secrets
from rankeval_spark.spark.version import UnsupportedSparkError, require_spark

DEBUG = "--debug"
"""Shows the trace of an error; read wherever it stands among the arguments."""

QUIET = "--quiet"
"""Leaves out progress and advice; read likewise."""


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
    """Say what an error means that no command expected."""
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
    """Say what went wrong and end with its exit code."""
    out = console(is_error=True)
    if is_debug:
        trace = without_secrets("".join(traceback.format_exception(error)))
        out.print(trace, markup=False, style="dim", soft_wrap=True)
    out.print("error: ", style="bold red", end="")
    out.print(headline(error), markup=False, soft_wrap=True)
    if not is_debug and isinstance(error, Exception) and not isinstance(error, RankevalError):
        out.print(f"{DEBUG} shows the trace", style="dim")
    sys.exit(exit_code_of(error))

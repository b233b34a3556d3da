"""The entry point: run a command, and turn what goes wrong into one message and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from rankeval_spark.cli.commands import app
from rankeval_spark.cli.terminal import console, headline
from rankeval_spark.errors import RankevalError, without_secrets

DEBUG = "--debug"
"""Shows the trace of an error; read wherever it stands among the arguments."""

UNEXPECTED = 1


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``rankeval``.

    Exit codes: 0 published, 1 unexpected, 2 usage or config, 3 checks failed and nothing published, 4 an input is
    missing or unreadable, 5 another run holds the results, 6 published, but a gate failed, 7 a reproduced run differs.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    wanted = [argument for argument in given if argument != DEBUG]
    try:
        app(wanted, prog_name="rankeval")
    except Exception as error:  # the last resort
        _explain(error, is_debug=DEBUG in given)
        sys.exit(error.exit_code if isinstance(error, RankevalError) else UNEXPECTED)
    sys.exit(0)


def _explain(error: Exception, *, is_debug: bool) -> None:
    out = console(is_error=True)
    if is_debug:
        trace = without_secrets("".join(traceback.format_exception(error)))
        out.print(trace, markup=False, style="dim", soft_wrap=True)
    out.print("error: ", style="bold red", end="")
    out.print(headline(error), markup=False, soft_wrap=True)
    if not is_debug and not isinstance(error, RankevalError):
        out.print(f"{DEBUG} shows the trace", style="dim")

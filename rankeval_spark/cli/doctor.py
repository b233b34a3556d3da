"""``rankeval doctor``: check this machine, and print the fix of each fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from rankeval_spark.allowed_folders import temporary_folder
from rankeval_spark.cli.terminal import console as standard_console, json_text, write_out
from rankeval_spark.errors import ExitCode
from rankeval_spark.spark.session import machine_checks
from rankeval_spark.spark.session.jars import FOLDER, cached_jars
from rankeval_spark.spark.session.machine_checks import PYSPARK, Check, within
from rankeval_spark.spark.session.settings import CACHE_VARIABLE, cache_dir, find_spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

_NAME_WIDTH = 23
SECONDS_TO_START: Final = 120.0
SECONDS_OF_A_JOB: Final = 120.0  # also those to stop


def doctor_command(
    results_root: str | None = None, *, is_quick: bool = False, console: Console | None = None, is_json: bool = False
) -> int:
    """Print each check when it is known; return 0 if this machine is fit for a run, else 8.

    ``is_quick`` starts no session. ``is_json`` prints one document at the end, and the checks on standard error.
    Nothing is left behind, and no check takes longer than its limit.
    """
    console, found = console or standard_console(is_error=is_json), list[Check]()

    def tell(what: str) -> None:
        console.print(Text(f"...    {what}", style="dim"), soft_wrap=True)

    for check in machine_checks.checks(results_root, tell):
        _print(console, check)
        found.append(check)
    faults = [check.name for check in found if not check.ok]
    why_untried = "" if faults else _why_untried(is_quick=is_quick)
    if not faults and not why_untried:
        for check in _session_checks(tell):
            _print(console, check)
            found.append(check)
        faults = [check.name for check in found if not check.ok]
    conclusion = f"This machine is fit for a run.{why_untried}"
    if set(faults) == {PYSPARK}:
        conclusion = "This machine is fit for nights without Spark, and for no others."
    elif faults:
        conclusion = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}: a run would fail here."
    console.print(Text(f"\n{conclusion}", style="bold red" if faults else "bold green"))
    if is_json:
        write_out(json_text({"is_fit": not faults, "checks": [asdict(check) for check in found]}))
    return ExitCode.ENVIRONMENT if faults else ExitCode.DONE


def _print(console: Console, check: Check) -> None:
    """Print a check, which reaches a pipe at once: the console flushes each line."""
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(width=5)
    line.add_column(width=_NAME_WIDTH)
    line.add_column(overflow="fold")
    verdict = Text("ok", style="green") if check.ok else Text("FAULT", style="bold red")
    line.add_row(verdict, Text(check.name), Text(check.found))
    if not check.ok and check.fix:
        line.add_row("", Text("to fix it", style="bold"), Text(check.fix))
    console.print(line)


def _why_untried(*, is_quick: bool) -> str:
    """Return why no session is started: nobody wants one, or it would fetch jars; empty if one is."""
    if is_quick:
        return " No session was started; leave out --quick to try one."
    is_there = any((find_spark_home() / "jars").glob("delta-spark*.jar")) or cached_jars(_jars_folder())
    return "" if is_there else " No session was started: it would fetch the Delta jars, as the first run on Spark does."


def _jars_folder() -> Path:
    return cache_dir(makes=False) / FOLDER


def _session_checks(tell: Callable[[str], None]) -> Iterator[Check]:
    """Yield the checks of a session that starts as that of a run, with a cache that is removed again."""
    from rankeval_spark.spark.session import build_session, session_checks  # noqa: PLC0415 - imports pyspark

    jars, run, sessions = cached_jars(_jars_folder()), partial(within, tell=tell), list["SparkSession"]()

    def start() -> Check:
        sessions.append(build_session("rankeval doctor", settings={"spark.driver.memory": "1g"}, jars=jars))
        return Check("session", ok=True, found=f"Spark {sessions[0].version} on {sessions[0].conf.get('spark.master')}")

    before = os.environ.get(CACHE_VARIABLE)
    with temporary_folder() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            outcome = run(start, "a session of Spark", seconds=SECONDS_TO_START)
            yield outcome
            if outcome.ok:
                for name, check in session_checks.of_session(sessions[0]):
                    yield run(check, name, seconds=SECONDS_OF_A_JOB)
        finally:
            if sessions:
                within(partial(_stop, sessions[0]), "the end of the session", tell=tell, seconds=SECONDS_OF_A_JOB)
            os.environ.pop(CACHE_VARIABLE, None) if before is None else os.environ.update({CACHE_VARIABLE: before})


def _stop(spark: SparkSession) -> Check:
    spark.stop()
    return Check("end of the session", ok=True, found="stopped")

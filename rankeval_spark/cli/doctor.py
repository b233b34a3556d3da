"""``rankeval doctor``: check this machine, and print the fix of each fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from rankeval_spark.allowed_folders import temporary_folder
from rankeval_spark.cli.terminal import console as standard_console, json_text, write_out
from rankeval_spark.errors import ExitCode
from rankeval_spark.spark.session import machine_checks
from rankeval_spark.spark.session.jars import FOLDER, cached_jars
from rankeval_spark.spark.session.machine_checks import PYSPARK, Check, run_within
from rankeval_spark.spark.session.settings import CACHE_VARIABLE, cache_dir, find_spark_home

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from rich.console import Console

SECONDS_TO_START: Final = 120.0
SECONDS_OF_A_JOB: Final = 120.0  # also those to stop


def doctor_command(
    results_root: str | None = None, *, is_quick: bool = False, console: Console | None = None, is_json: bool = False
) -> int:
    """Print each check when it is known; return 0 if this machine is fit for a run, else 8.

    ``is_quick`` starts no session, nor does a machine on which that would fetch jars. ``is_json`` prints one document
    at the end, and the checks on standard error. Nothing is left behind, and no check takes longer than its limit.
    """
    out, found = console or standard_console(is_error=is_json), list[Check]()

    def tell(what: str) -> None:
        out.print(Text(f"...    {what}", style="dim"), soft_wrap=True)

    def run(checks: Iterator[Check]) -> list[str]:
        """Print each check, which reaches a pipe at once: the console flushes each line; return the faults."""
        for check in checks:
            line = Table.grid(padding=(0, 2, 0, 0))
            for width in (5, 23):
                line.add_column(width=width)
            line.add_column(overflow="fold")
            verdict = Text("ok", style="green") if check.ok else Text("FAULT", style="bold red")
            line.add_row(verdict, Text(check.name), Text(check.found))
            if not check.ok and check.fix:
                line.add_row("", Text("to fix it", style="bold"), Text(check.fix))
            out.print(line)
            found.append(check)
        return [check.name for check in found if not check.ok]

    faults = run(iter(machine_checks.check_machine(results_root, tell)))
    conclusion = "This machine is fit for a run."
    if not faults and is_quick:
        conclusion += " No session was started; leave out --quick to try one."
    elif not faults:
        jars = cached_jars(cache_dir(makes=False) / FOLDER)
        if jars or any((find_spark_home() / "jars").glob("delta-spark*.jar")):
            faults = run(_session_checks(jars, tell))
        else:
            conclusion += " No session was started: it would fetch the Delta jars, as the first run on Spark does."
    if set(faults) == {PYSPARK}:
        conclusion = "This machine is fit for nights without Spark, and for no others."
    elif faults:
        conclusion = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}: a run would fail here."
    out.print(Text(f"\n{conclusion}", style="bold red" if faults else "bold green"))
    if is_json:
        write_out(json_text({"is_fit": not faults, "checks": [asdict(check) for check in found]}))
    return ExitCode.ENVIRONMENT if faults else ExitCode.DONE


def _session_checks(jars: Sequence[Path] | None, tell: Callable[[str], None]) -> Iterator[Check]:
    """Yield the checks of a session that starts as that of a run, with a cache that is removed again."""
    from rankeval_spark.spark.session import build_session  # noqa: PLC0415 - imports pyspark

    run, sessions = partial(run_within, tell=tell), list["SparkSession"]()

    def start() -> Check:
        sessions.append(build_session("rankeval doctor", settings={"spark.driver.memory": "1g"}, jars=jars))
        return Check("session", ok=True, found=f"Spark {sessions[0].version} on {sessions[0].conf.get('spark.master')}")

    def stop() -> Check:
        sessions[0].stop()
        return Check("end of the session", ok=True, found="stopped")

    before = os.environ.get(CACHE_VARIABLE)
    with temporary_folder() as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            outcome = run(start, "a session of Spark", seconds=SECONDS_TO_START)
            yield outcome
            if outcome.ok:
                for name, check in machine_checks.session_checks(sessions[0]):
                    yield run(check, name, seconds=SECONDS_OF_A_JOB)
        finally:
            if sessions:
                run(stop, "the end of the session", seconds=SECONDS_OF_A_JOB)
            os.environ.pop(CACHE_VARIABLE, None) if before is None else os.environ.update({CACHE_VARIABLE: before})

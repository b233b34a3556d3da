"""``rankeval doctor``: check this machine, and print the fix of each fault."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankeval_spark.errors import ExitCode, FaultsError
from rankeval_spark.spark.session import machine_checks
from rankeval_spark.spark.session.machine_checks import PYSPARK, Check

_NAME_WIDTH = 23


def doctor_command(results_root: str | None = None, *, is_quick: bool = False, console: Console | None = None) -> int:
    """Print each check; return 0 if this machine is fit for a run, else 8. ``is_quick`` starts no session."""
    console = console or Console()
    faults = list[str]()
    for check in _all_checks(results_root, is_quick=is_quick):
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=5)
        line.add_column(width=_NAME_WIDTH)
        line.add_column(overflow="fold")
        verdict = Text("ok", style="green") if check.ok else Text("FAULT", style="bold red")
        line.add_row(verdict, Text(check.name), Text(check.found))
        if not check.ok and check.fix:
            line.add_row("", Text("to fix it", style="bold"), Text(check.fix))
        console.print(line)
        faults += [] if check.ok else [check.name]
    untried = " No session was started; leave out --quick to try one." if is_quick else ""
    conclusion = f"This machine is fit for a run.{untried}"
    if set(faults) == {PYSPARK}:
        conclusion = "This machine is fit for nights without Spark, and for no others."
    elif faults:
        conclusion = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}: a run would fail here."
    console.print(Text(f"\n{conclusion}", style="bold red" if faults else "bold green"))
    return ExitCode.ENVIRONMENT if faults else ExitCode.DONE


def _all_checks(results_root: str | None, *, is_quick: bool) -> Iterator[Check]:
    """Yield the checks of the machine, then those of a session, started as by a run, if the machine can start one."""
    is_fit = True
    for check in machine_checks.checks(results_root):
        is_fit &= check.ok
        yield check
    if is_quick or not is_fit:
        return
    from rankeval_spark.spark.session import build_session  # noqa: PLC0415 - as above
    from rankeval_spark.spark.session.session_checks import probe  # noqa: PLC0415 - imports pyspark

    try:
        spark = build_session("rankeval doctor", settings={"spark.driver.memory": "1g"})
    except FaultsError as error:
        fault = error.faults[0]
        yield Check(fault.where, ok=False, found=fault.found, fix=fault.fix)
        return
    try:
        yield from probe(spark)
    finally:
        spark.stop()

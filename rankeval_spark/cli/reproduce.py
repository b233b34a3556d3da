"""``rankeval reproduce``: run a published night again and compare the results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Final

import typer
from rich.markup import escape

from rankeval_spark import __version__
from rankeval_spark.apps.published import reproduction as again
from rankeval_spark.cli.shared_options import start
from rankeval_spark.cli.tables import headed
from rankeval_spark.cli.terminal import console, progress
from rankeval_spark.config import load_config
from rankeval_spark.config.spark_settings import is_reference
from rankeval_spark.errors import REDACTED
from rankeval_spark.results.readers import is_native

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from rankeval_spark.apps.published.reproduction import RecordedRun, TableComparison

DIFFERENT: Final = 7
"""Exit code if the rerun differs from the published run."""

MAX_COLUMNS: Final = 5


def reproduce_command(root: str, run_id: str, path: Path | None, scratch: str | None) -> None:
    """Run a published run again, show the comparison, and exit with 7 if the results differ."""
    given = load_config(path).spark if path else None
    options = {"master": given.master, "settings": given.resolved_settings()} if given else {}
    reading = None if is_native(root) else start("rankeval reproduce", **options)
    run = again.find_run(reading, root, run_id)  # before Spark starts, where this process can
    spark = reading or start("rankeval reproduce", **options)
    if given is None:  # the recorded settings that a running session still accepts; secrets were never recorded
        for key, value in run.night.config.spark.settings.items():
            if value != REDACTED and not is_reference(value) and spark.conf.isModifiable(key):
                spark.conf.set(key, value)
    with progress(f"{run.night.evaluation} {run.night.evaluation_date} again") as listener:
        found = again.reproduce_run(spark, root, run, scratch=scratch, progress=listener)
    out = console()
    for line in _heading(run):
        out.print(line, markup=False, soft_wrap=True)
    out.print(_inputs(found.inputs))
    out.print(_tables(found.tables))
    for line in (*_details(found.tables), *_verdict(found)):
        out.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(0 if found.is_equal else DIFFERENT)


def _heading(run: RecordedRun) -> list[str]:
    published_at = run.night.row["recorded_at"].astimezone(UTC)  # collected in the zone of this machine
    lines = [f"run {run.run_id} of {run.night}, published {published_at:%Y-%m-%d %H:%M:%S} UTC"]
    if run.successor:
        lines += [f"run {run.successor} replaced its rows since; they are read at the versions that it published"]
    if run.is_foreign:
        lines += [f"it ran with rankeval-spark {run.night.row['code_version']}; this is {__version__}"]
    return lines


def _inputs(inputs: Sequence[again.InputVersions]) -> Table:
    table = headed("input", "format", "version", "rows then", "rows now", "read again")
    for one in inputs:
        then, now = ("-" if n is None else f"{n:,}" for n in one.n_rows)
        version = "-" if one.version is None else str(one.version)
        table.add_row(one.name, one.format, version, then, now, escape(_read_again(one)))
    return table


def _read_again(one: again.InputVersions) -> str:
    parts = ["the version that the run read" if one.version is not None else "has no versions: what is there now"]
    then, now = one.n_rows
    if None not in (then, now) and then != now:
        parts.append("other rows than then")
    before, after = (set((text or "").split(", ")) for text in one.columns)
    if None not in one.columns and before != after:
        parts.append(f"other columns: {', '.join(sorted(before ^ after))}")
    return "; ".join(parts)


def _tables(tables: Sequence[TableComparison]) -> Table:
    shown = headed("table", "rows then", "outcome", "missing", "extra", "differing", "rounded")
    for one in tables:
        outcome, style = ("equal", "green") if one.is_equal else ("different", "red")
        numbers = (f"{n:,}" for n in (one.n_missing, one.n_extra, one.n_differing, one.n_rounded))
        shown.add_row(one.table, f"{one.n_recorded:,}", f"[{style}]{outcome}[/{style}]", *numbers)
    return shown


def _details(tables: Sequence[TableComparison]) -> list[str]:
    lines = []
    for one in tables:
        if one.n_gone:
            lines.append(f"{one.table}: {one.n_gone:,} rows of the run are no longer there, and were not compared")
        for column, n_rows, distance in one.columns[:MAX_COLUMNS]:
            by = "" if distance is None else f", by at most {distance:.3g}"
            lines.append(f"{one.table}: {column} differs in {n_rows:,} rows{by}")
        if len(one.columns) > MAX_COLUMNS:
            lines.append(f"{one.table}: and {len(one.columns) - MAX_COLUMNS} more columns")
        lines += [f"{one.table}: for example {example}" for example in one.examples]
    return lines


def _verdict(found: again.Reproduction) -> list[str]:
    lines = [f"not compared: {what}" for what in found.left_out]
    if found.is_equal:
        is_exact = not any(table.n_rounded for table in found.tables)
        return [*lines, "equal" if is_exact else "equal, but for the rounding of sums"]
    names = ", ".join(table.table for table in found.tables if not table.is_equal)
    changed = [one.name for one in found.inputs if one.is_changed]
    because = f"; other inputs than then: {', '.join(changed)}" if changed else ""
    return [*lines, f"different: {names}{because}"]

"""``rankeval maintain``: bring a results root into order and say what was done."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rankeval_spark.apps.maintenance import Maintained, MaintenanceOptions, maintain_root as bring_into_order
from rankeval_spark.cli.display.terminal import console, progress
from rankeval_spark.cli.sessions import new_session
from rankeval_spark.spark.session.on_demand import on_demand


def maintain_command(root: str, options: MaintenanceOptions, *, one_run_per_root: bool) -> None:
    """Do what the options name and print a line of each step."""
    spark = on_demand(partial(new_session, "rankeval maintain"))
    with progress("maintain") as listener:
        done = bring_into_order(spark, root, options, one_run_per_root=one_run_per_root, progress=listener)
    out = console()
    for line in report_lines(done, options):
        out.print(line, markup=False, soft_wrap=True)


def report_lines(done: Maintained, options: MaintenanceOptions) -> Iterator[str]:
    """Say in sentences what was done."""
    for file in done.given_up:
        yield f"runs: events of {file} given up; dates that are no longer published have to be run again"
    if done.staging:
        kept = f"; {len(done.staging.kept)} of live runs kept" if done.staging.kept else ""
        yield f"staging: {len(done.staging.removed)} folders removed{kept}"
    yield from _deletions(done, options)
    merged = {table: files for table, files in done.compacted.items() if files.n_before}
    shown = ", ".join(f"{table} {files.n_before} -> {files.n_after}" for table, files in merged.items())
    yield f"small files merged: {shown or 'none'}"
    yield _unneeded(done, options)


def _deletions(done: Maintained, options: MaintenanceOptions) -> Iterator[str]:
    if done.deleted:
        nights = done.deleted.nights
        days = f" ({nights[0]} to {nights[-1]})" if nights else ""
        before = f" before {done.deleted.before}" if done.deleted.before else ""
        yield f"lists and user_metrics of dates{before} deleted: {len(nights)} nights{days}"
    if options.erase_user is not None and not any(done.erased.values()):
        yield f"no row of this user was found in {', '.join(done.erased)}: is the id right?"
    elif options.erase_user is not None:
        rows = ", ".join(f"{table} {n:,}" for table, n in done.erased.items())
        yield f"one user erased, rows: {rows}; means are as they were"
        yield (
            "older versions of the tables hold the user until their retention is over (30 days, unless you changed it) "
            "and rankeval maintain --vacuum has run; rows that still come with an input are published again"
        )


def _unneeded(done: Maintained, options: MaintenanceOptions) -> str:
    shown = ", ".join(f"{table} {n:,}" for table, n in done.unneeded.items() if n)
    if not shown:
        return "files that no version within the retention needs: none"
    if options.vacuum:
        return f"files that no version within the retention needs, deleted: {shown}"
    return f"files that no version within the retention needs: {shown}; --vacuum deletes them"

"""``rankeval demo``: data, models, three nights, their report and what to try next."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import allowed_folders, columns as C, schemas
from rankeval_spark.apps import gates
from rankeval_spark.apps.history.published_runs import published_nights
from rankeval_spark.apps.progress import Steps
from rankeval_spark.apps.published.report import report_of, write_atomically
from rankeval_spark.apps.published.rescoring import unchanged_dates
from rankeval_spark.cli.commands.published.show_results import (
    ANY_SLICE,
    RowSelection,
    comparison_rows_of,
    selected_rows,
)
from rankeval_spark.cli.commands.run_dates import run_one
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.terminal import console, progress
from rankeval_spark.config import Gate, load_config
from rankeval_spark.demo import TRAINING, prepare
from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.report.page import require_extra
from rankeval_spark.results import results_of
from rankeval_spark.spark.session.builder import build_session
from rankeval_spark.spark.session.on_demand import on_demand

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night import NightResult
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.demo import DemoLogs

SHOWN_K: Final = 10
PRIMARY: Final = "nDCG"
N_SLICES: Final = 8

STRICTER: Final = Gate(measure="nDCG@10", least_gain=1, relative=True)
"""Twice as good as the baseline: a rule to see fail; it does not count."""


def demo_command(workspace: Path, config_path: Path) -> None:
    """Prepare the logs, evaluate every date, and show the newest night."""
    out, started = console(), time.perf_counter()
    config = load_config(config_path)
    allowed_folders.require_allowed(("--workspace", str(workspace)), ("results.root", config.results.location))
    # Only to train: the nights are computed in this process.
    settings = {**TRAINING, **config.spark.resolved_settings()}
    options: dict[str, Any] = {"master": config.spark.master, "settings": settings, "is_small": True}
    spark = on_demand(partial(build_session, "rankeval demo", **options))  # the line of progress shows that it starts
    logs = _prepared(spark, workspace)
    out.print(f"data: {logs.source_name}; each date holds out the next 10 interactions of every user (rolling cut)")
    root, newest = config.results.location, max(logs.dates).isoformat()
    nights = [run_one(spark, config, day) for day in _to_evaluate(spark, config, logs)]
    results = results_of(spark, root)
    rows = selected_rows(results, RowSelection(newest, config.evaluation, (), (), (ANY_SLICE,), (SHOWN_K,)))
    everyone = [row for row in rows if row[C.SLICE] == C.ALL_USERS]
    users = max(row["n_users"] for row in everyone)
    out.print()
    title = f"{newest}: models x measures at k = {SHOWN_K}, {users:,} users, 95 % intervals"
    out.print(tables.leaderboard(everyone, title, width=out.width))
    out.print()
    compared = comparison_rows_of(results, RowSelection(newest, config.evaluation, (), (), (), (SHOWN_K,)))
    title = f"{newest}: models against the baseline on the same users"
    out.print(tables.comparisons(compared, title, width=out.width))
    out.print()
    _print_slices(rows, everyone)
    out.print()
    _print_gates(spark, config, nights[-1])
    _print_caveats(logs)
    _write_report(spark, config, max(logs.dates), workspace / "report.html")
    _print_next(root, newest, time.perf_counter() - started)


def _prepared(spark: SparkSession, workspace: Path) -> DemoLogs:
    """Fetch the data and train the models, and show how far that is."""
    with progress("demo") as listener, Steps(listener).step("prepare"):
        return prepare(spark, workspace, listener.say)


def _to_evaluate(spark: SparkSession, config: EvaluationConfig, logs: DemoLogs) -> list[date]:
    """Name the dates to evaluate: the newest, and those that were not published from these logs and this config."""
    earlier = sorted(unchanged_dates(spark, config, logs.dates) & set(logs.dates[:-1])) if logs.was_reused else []
    if earlier:
        console().print(f"  kept, published from equal logs and config: {', '.join(map(str, earlier))}", markup=False)
    return [day for day in logs.dates if day not in earlier]


def _print_slices(rows: Sequence[Mapping[str, Any]], everyone: Sequence[Mapping[str, Any]]) -> None:
    whole = max((row for row in everyone if row[C.MEASURE] == PRIMARY), key=lambda row: row[C.VALUE])
    own = [row for row in rows if (row[C.MODEL_ID], row[C.MEASURE]) == (whole[C.MODEL_ID], PRIMARY)]
    large = [row for row in own if row[C.SLICE] != C.ALL_USERS and not row["is_small"]]
    most = sorted(large, key=lambda row: -abs(row[C.VALUE] - whole[C.VALUE]))[:N_SLICES]
    title = f"slices of {whole[C.MODEL_ID]} whose {PRIMARY}@{SHOWN_K} differs most from {whole[C.VALUE]:.4f}"
    console().print(tables.slices(most, whole, title))


def _print_gates(spark: SparkSession, config: EvaluationConfig, night: NightResult) -> None:
    """Show what the rules say of the newest night, and what one would have said that asks for more."""
    out = console()
    out.print(tables.gates(night.gates))
    said = "it may ship" if not night.is_blocked else "it may not ship, and rankeval run ends with exit code 6"
    out.print(f"all rules together: {said}", markup=False)
    stricter, root = config.model_copy(update={"gates": (STRICTER,)}), config.results.location
    (published,) = published_nights(spark, root, evaluation=night.evaluation, dates=[night.evaluation_date])
    rows = gates.judge_published(stricter, results_of(spark, root), published)
    verb = "would have kept it back" if gates.failed(rows) else "would have let it ship too"
    out.print(f"\na rule that asks for more, {STRICTER}, {verb}:", markup=False, soft_wrap=True)
    out.print(tables.gates(rows, title=None))


def _print_caveats(logs: DemoLogs) -> None:
    out = console()
    out.print()
    for line in logs.caveats:
        out.print(f"[dim]note: {line}[/dim]")


def _write_report(spark: SparkSession, config: EvaluationConfig, day: date, path: Path) -> None:
    """Write the report of the newest night next to the results, where the extra for it is installed."""
    out, started = console(), time.perf_counter()
    try:
        require_extra()
    except EnvironmentFaultError as missing:
        out.print(f"\nno report: {'; '.join(map(str, missing.faults))}", markup=False, soft_wrap=True)
        return
    write_atomically(report_of(spark, config.results.location, evaluation=config.evaluation, day=day), path)
    seconds = time.perf_counter() - started
    out.print(f"\nreport: {path} ({seconds:.1f} s), open it in a browser", markup=False, soft_wrap=True)


def _print_next(root: str, day: str, seconds: float) -> None:
    out = console()
    out.print()
    names = ", ".join(schema.name for schema in (schemas.RUNS, *schemas.PUBLISHED))
    out.print(f"tables in {root}: {names} ({seconds:.0f} s)", markup=False)
    out.print("try next:")
    for command in next_commands(root, day):
        out.print(f"  .venv/bin/{command}", markup=False, soft_wrap=True)


def next_commands(root: str, day: str) -> tuple[str, ...]:
    """Write the commands that a user may try on the published tables of the demo."""
    folder = shlex.quote(root)
    return (
        f"rankeval show {folder} --comparisons --slice activity --measure nDCG --k 10",
        f"rankeval compare {folder} --against previous --measures nDCG --k 10",
        f"rankeval report {folder} --out report.html --date {day}",
        f"rankeval score {folder} --measures \"nDCG(dcg='jk2')@10\" --date {day}",
        # The rules of conf/demo.yaml need cutoff 10.
        f"rankeval run conf/demo.yaml --date {day} --set cutoffs=[5,10] --dry-run",
    )

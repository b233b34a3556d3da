"""``rankeval demo``: data, models, three nights, their report and what to try next."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark import allowed_folders, columns as C, demo, schemas
from rankeval_spark.apps.progress import Steps
from rankeval_spark.apps.published.report import report_of
from rankeval_spark.apps.published.rescoring import unchanged_dates
from rankeval_spark.cli import tables
from rankeval_spark.cli.run import run_one, session_of_nights, verdict_in_words
from rankeval_spark.cli.shared_options import write_atomically
from rankeval_spark.cli.show import Row, RowSelection, comparison_rows_of, selected_rows
from rankeval_spark.cli.terminal import console, progress
from rankeval_spark.config import load_config
from rankeval_spark.demo import open_bandit, prepare
from rankeval_spark.demo.movielens import DataUnavailableError
from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.report.page import require_extra
from rankeval_spark.results import results_of
from rankeval_spark.spark.session import cache_dir

if TYPE_CHECKING:
    from rankeval_spark.config import EvaluationConfig

CONFIG: Final = Path(demo.__file__).with_name("demo.yaml")  # copied into the workspace
SHOWN_K: Final = 10
SHOWN: Final = ("nDCG", "AP", "P", "R", "Success", "RR")  # measures of the tables; the others are variants of these


def demo_command(workspace: Path) -> None:
    """Prepare the config and the logs, evaluate every date, and show the newest night."""
    out, started = console(), time.perf_counter()
    allowed_folders.require_allowed(("--workspace", str(workspace)))
    config_path = workspace / CONFIG.name
    if not config_path.exists():  # one that was changed is kept
        workspace.mkdir(parents=True, exist_ok=True)
        write_atomically(CONFIG.read_text(encoding="utf-8"), config_path, "--workspace")
    config = load_config(config_path)
    spark = session_of_nights(config)
    with progress("demo") as listener, Steps(listener).step("prepare"):
        logs = prepare(workspace, listener.say)
    out.print(f"data: {logs.source_name}; each date holds out the next 10 interactions of every user (rolling cut)")
    root, newest = config.results.location, max(logs.dates).isoformat()
    earlier = sorted(unchanged_dates(spark, config, logs.dates) & set(logs.dates[:-1])) if logs.was_reused else []
    if earlier:
        out.print(f"  kept, published from equal logs and config: {', '.join(map(str, earlier))}", markup=False)
    nights = [run_one(spark, config, day) for day in logs.dates if day not in earlier]
    results = results_of(root)
    every = RowSelection(newest, config.evaluation, ks=(SHOWN_K,))
    rows = selected_rows(results, every)
    users, shown = max(row["n_users"] for row in rows), without_variants(rows)
    n_shown, n_measures = (len({row[C.MEASURE] for row in some}) for some in (shown, rows))
    out.print()
    title = f"{newest}: {n_shown} of {n_measures} measures at k = {SHOWN_K}, {users:,} users, 95 % intervals"
    out.print(tables.leaderboard(shown, title, width=out.width))
    out.print()
    compared = without_variants(comparison_rows_of(results, every))
    title = f"{newest}: models against the baseline on the same users"
    out.print(tables.comparisons(compared, title, width=out.width))
    out.print()
    if gates := nights[-1].gates:  # `rankeval gate` has a sentence for each case
        out.print(tables.rules(gates))
        out.print(verdict_in_words(nights[-1], config), markup=False, soft_wrap=True)
    out.print()
    for line in logs.caveats:
        out.print(f"[dim]note: {line}[/dim]")
    print_impressions(cache_dir())
    _write_report(config, max(logs.dates), workspace / "report.html")
    out.print()
    names = ", ".join(schema.name for schema in (schemas.RUNS, *schemas.PUBLISHED))
    out.print(f"tables in {root}: {names} ({time.perf_counter() - started:.0f} s)", markup=False)
    out.print("try next:")
    prefix = ".venv/bin/" if Path(".venv/bin/rankeval").exists() else ""  # of a clone, where it is not on the PATH
    for command in next_commands(root, newest, str(config_path)):
        out.print(f"  {prefix}{command}", markup=False, soft_wrap=True)


def without_variants(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with measures of a first look, or all if a config has none of these."""
    return [row for row in rows if row[C.MEASURE] in SHOWN] or list(rows)


def print_impressions(cache: Path) -> None:
    """Print the value of one policy estimated from impressions of another, or a line if the data is missing."""
    out = console()
    out.print()
    try:
        found = open_bandit.estimate(open_bandit.load(cache))
    except DataUnavailableError as missing:
        out.print(f"no impressions: {missing}", markup=False, soft_wrap=True)
        return
    title = f"{open_bandit.SOURCE_NAME}: one policy from the log of another, 95 % intervals"
    table = tables.new_table("policy", "from", "clicks per 1,000 impressions", title=title)
    for row in found.rows:
        value, low, high = (f"{1000 * rate:.2f}" for rate in (row.value, row.low, row.high))
        table.add_row(row.policy, row.by, f"{value} [{low}, {high}]")
    out.print(table)
    n_random, n_needed = f"{found.n_impressions:,}", f"{found.n_effective:,.0f}"
    out.print(
        f"[dim]note: {n_random} random impressions say as much of Thompson sampling as {n_needed} of its own[/dim]"
    )
    weight = f"the mean weight {found.mean_weight:.3f}, with 1 expected"
    out.print(f"[dim]note: IPS is {found.relative_value:.3f} times the click rate of the random policy, {weight}[/dim]")


def _write_report(config: EvaluationConfig, day: date, path: Path) -> None:
    """Write the report of the newest night, if the extra for it is installed."""
    out, started = console(), time.perf_counter()
    try:
        require_extra()
    except EnvironmentFaultError as missing:
        out.print(f"\nno report: {'; '.join(map(str, missing.faults))}", markup=False, soft_wrap=True)
        return
    write_atomically(report_of(config.results.location, evaluation=config.evaluation, day=day), path, "--out")
    seconds = time.perf_counter() - started
    out.print(f"\nreport: {path} ({seconds:.1f} s), open it in a browser", markup=False, soft_wrap=True)


def next_commands(root: str, day: str, config_path: str) -> tuple[str, ...]:
    """Return commands to try on the tables of the demo."""
    folder, config = shlex.quote(root), shlex.quote(config_path)
    return (
        f"rankeval show {folder} --k 10",
        f"rankeval gate {folder}",
        f"rankeval show {folder} --comparisons --slice activity --measure nDCG --k 10",
        f"rankeval compare {folder} --against previous --measure nDCG --k 10",
        f"rankeval report {folder} --out report.html --date {day}",
        f"rankeval score {folder} --measure \"nDCG(dcg='jk2')@10\" --date {day}",
        f"rankeval run {config} --date {day} --set cutoffs=[5,10] --dry-run",  # the rules need cutoff 10
    )

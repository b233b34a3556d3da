"""``rankeval run`` and ``backfill``: evaluate dates and show the outcome."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.markup import escape

from rankeval_spark import columns as C
from rankeval_spark.apps.gates import failed
from rankeval_spark.apps.nightly import alerts, backfill
from rankeval_spark.apps.nightly.look_ahead import LookAhead, wants_spark
from rankeval_spark.apps.nightly.metrics_file import metrics_text
from rankeval_spark.apps.nightly.night import NightResult, PreparedNight, planned_inputs, prepare_night, run_night
from rankeval_spark.apps.nightly.night_plan import NightPlan, evaluation_name
from rankeval_spark.apps.published.comparison import compare_two_best
from rankeval_spark.apps.published_runs import published_dates, published_nights
from rankeval_spark.cli import tables
from rankeval_spark.cli.shared_options import config_and_dates, new_session, require_file, write_atomically
from rankeval_spark.cli.terminal import (
    console,
    headline,
    is_quiet,
    json_text,
    progress,
    say_done,
    say_note,
    say_warning,
    write_out,
)
from rankeval_spark.errors import ConfigError, ExitCode
from rankeval_spark.results.journal import PUBLISHED
from rankeval_spark.spark.session import on_demand

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.config import EvaluationConfig

METRICS_FILE: Final = "--metrics-file"
SCHEMA: Final = "results.schema"


@dataclass(frozen=True)
class Listeners:
    """Receivers of a date's outcome: alerts, and a file of metrics."""

    evaluation: str
    results: str
    receivers: Sequence[alerts.Receiver]
    metrics_file: Path | None

    @classmethod
    def from_config(cls, config: EvaluationConfig, evaluation: str, metrics_file: Path | None) -> Listeners:
        """Build those of a config, with a warning about each receiver that cannot be told; ConfigError for a file."""
        if metrics_file is not None:
            require_file(metrics_file, METRICS_FILE, example="night.prom")
        receivers, faults = alerts.find_receivers(config)
        for fault in faults:
            say_warning(fault)
        return cls(evaluation, config.results.location, receivers, metrics_file)

    def to_document(self, outcome: backfill.DateOutcome) -> dict[str, Any]:
        """Return what became of a date, for programs; the keys are the same whatever became of it."""
        result = outcome.result
        status = "KEPT" if outcome.kept is not None else "FAILED" if result is None else PUBLISHED
        why = outcome.kept if result is None else result.reason
        rules = [] if result is None else [{name: row[name] for name in tables.GATE_FIELDS} for row in result.gates]
        return {
            C.EVALUATION: self.evaluation,
            C.EVALUATION_DATE: outcome.evaluation_date,
            C.RUN_ID: None if result is None else result.run_id,
            "status": status,
            "exit_code": int(outcome.exit_code),
            "reason": headline(outcome.error) if outcome.error else why,
            "seconds": outcome.seconds,
            "stages": {} if result is None else result.seconds,
            "n_rows": {} if result is None else result.n_rows,
            "warnings": [] if result is None else result.warnings,
            "gates": rules,
            "events": alerts.find_events(outcome),
            "results": self.results,
        }

    def tell(self, outcome: backfill.DateOutcome) -> None:
        """Write the metrics of a date, and send its alerts; what goes wrong with that is a warning."""
        if outcome.kept is not None:
            return
        if self.metrics_file is not None:
            try:
                write_atomically(metrics_text(outcome, self.evaluation), self.metrics_file, METRICS_FILE)
            except ConfigError as error:
                say_warning(str(error.faults[0]))
        verdict = json.loads(json_text(self.to_document(outcome)))
        for fault in alerts.tell(self.receivers, verdict):
            say_warning(fault)


def run_command(
    path: Path,
    day: str,
    overrides: Sequence[str],
    *,
    sample_share: float,
    is_dry: bool,
    metrics_file: Path | None,
    is_json: bool,
) -> None:
    """Evaluate one date, or show what that would read and compute."""
    config, (evaluation_date,) = config_and_dates(path, overrides, [("--date", day)])
    spark, schema = session_of_nights(config), config.results.schema
    config = at_schema(spark, config)
    if is_dry:
        LookAhead(config, evaluation_date).look_at_rows().require()  # all that a run is refused for, at once
        _show_plan(spark, config, evaluation_date, sample_share, is_json=is_json)
        return
    listeners = Listeners.from_config(config, evaluation_name(config, sample_share), metrics_file)
    started = time.perf_counter()
    try:
        result = run_one(spark, config, evaluation_date, sample_share=sample_share)
    except (Exception, KeyboardInterrupt) as error:
        seconds = time.perf_counter() - started
        listeners.tell(backfill.DateOutcome(evaluation_date, error=error, seconds=seconds))
        raise
    outcome = backfill.DateOutcome(evaluation_date, result, seconds=time.perf_counter() - started)
    listeners.tell(outcome)
    _register(spark, config, schema)
    if is_json:
        write_out(json_text(listeners.to_document(outcome), indent=None))
    else:
        show_result(result, config)
    if result.is_blocked:
        raise typer.Exit(ExitCode.GATE_FAILED)


def backfill_command(  # noqa: PLR0913 - an option each
    path: Path,
    overrides: Sequence[str],
    first: str | None,
    last: str | None,
    days: Sequence[str],
    *,
    sample_share: float,
    only_missing: bool,
    metrics_file: Path | None,
    is_json: bool,
) -> None:
    """Evaluate dates in turn, show the outcome of each, and exit with the code of the first that failed."""
    ends = [(where, text) for where, text in (("--from", first), ("--to", last)) if text]
    config, read = config_and_dates(path, overrides, [*ends, *(("--date", day) for day in days)])
    of_range = dict(zip((where for where, _ in ends), read, strict=False))
    dates = backfill.list_dates(of_range.get("--from"), of_range.get("--to"), read[len(ends) :])
    spark, schema = session_of_nights(config), config.results.schema
    config = at_schema(spark, config)
    name = evaluation_name(config, sample_share)
    listeners = Listeners.from_config(config, name, metrics_file)
    kept = published_dates(config, name) if only_missing else {}
    outcomes: list[backfill.DateOutcome] = []
    out, before = console(is_error=True), None

    def prepare(day: date) -> PreparedNight:
        """Evaluate one date and show its progress, while the one before it is published."""
        nonlocal before
        with progress(f"{config.evaluation} {day.isoformat()}", out) as listener:
            plan = NightPlan.of(config, day, sample_share=sample_share)
            before = prepare_night(spark, plan, progress=listener, publishing_first=before)
        return before

    try:
        for outcome in backfill.backfill_dates(dates, prepare, kept=kept):
            outcomes.append(outcome)
            listeners.tell(outcome)
        if any(outcome.result for outcome in outcomes):
            _register(spark, config, schema)
    finally:  # who stops it in the middle wants to know how far it came
        if is_json:
            write_out(json_text([listeners.to_document(outcome) for outcome in outcomes], indent=None))
        fresh = [outcome for outcome in outcomes if outcome.kept is None]
        notable = [outcome for outcome in fresh if outcome.exit_code or _describe_outcome(outcome)[2]]
        if not is_json and (notable or len(outcomes) < len(dates) or not is_quiet()):
            _show_summary(outcomes, n_dates=len(dates))
    raise typer.Exit(backfill.exit_code(outcomes))


def session_of_nights(config: EvaluationConfig) -> SparkSession:
    """Return the session of nights, which is started when one needs Spark and nothing is wrong with its inputs."""
    name = f"rankeval {config.evaluation}"
    options: dict[str, Any] = {"master": config.spark.master, "settings": config.spark.resolved_settings()}
    return on_demand(partial(new_session, name, **options), why=wants_spark(config))


def at_schema(spark: SparkSession, config: EvaluationConfig) -> EvaluationConfig:
    """Return a config with its root; where it names a schema instead, Spark says where that is, and has no other table.

    ConfigError where the location of the schema cannot be a root, or a table of it is of another place.
    """
    schema = config.results.schema
    if schema is None:
        return config
    from rankeval_spark.results import catalog  # noqa: PLC0415 - imports pyspark

    root = catalog.root_of(spark, schema, SCHEMA)
    catalog.registered_names(spark, root, schema, SCHEMA)
    return config.model_copy(update={"results": config.results.at(root)})


def _register(spark: SparkSession, config: EvaluationConfig, schema: str | None) -> None:
    """Register what was published at a schema in it."""
    if schema is not None:
        from rankeval_spark.results import catalog  # noqa: PLC0415 - imports pyspark

        made = catalog.register_tables(spark, config.results.location, schema, SCHEMA)
        new = ", ".join(name for name, is_new in made.items() if is_new)
        say_note(f"registered in {schema}: {new or 'nothing new'}")


def run_one(
    spark: SparkSession, config: EvaluationConfig, evaluation_date: date, *, sample_share: float = 1.0
) -> NightResult:
    """Evaluate one date and show its progress."""
    with progress(f"{config.evaluation} {evaluation_date.isoformat()}") as listener:
        return run_night(spark, config, evaluation_date, sample_share=sample_share, progress=listener)


def show_result(result: NightResult, config: EvaluationConfig) -> None:
    """Print what was published, where, and the warnings of the checks."""
    out = console()
    for warning in result.warnings:
        out.print(f"[yellow]warning[/yellow] {escape(warning)}", soft_wrap=True)
    if result.gates and (result.is_blocked or not is_quiet() or not tables.is_decided(result.gates)):
        out.print(tables.gates(result.gates))
        out.print(verdict_in_words(result, config), markup=False, soft_wrap=True)
    rows = ", ".join(f"{table} {n:,}" for table, n in result.n_rows.items())
    root = config.results.location
    say_done(f"published {result.evaluation} {result.evaluation_date}, run {result.run_id}: {rows} rows")
    if result.reason:
        out.print(f"the date is empty: {result.reason}", markup=False, soft_wrap=True)
    say_done(f"results in {root}; look at them with: rankeval show {shlex.quote(root)}")


def verdict_in_words(result: NightResult, config: EvaluationConfig) -> str:
    """Return the verdict of all rules, and which model may ship, or leads, against the next best one."""
    requested = [(measure.label, measure.k) for measure in config.measure_set.measures]
    baseline = config.comparisons.baseline if config.comparisons else None
    root, days = config.results.location, [result.evaluation_date]

    def compare(*of_all: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - the measure and rows
        (night,) = published_nights(root, evaluation=result.evaluation, dates=days)
        return compare_two_best(root, night, *of_all)

    given: dict[str, Any] = {"requested": requested, "baseline": baseline, "compare": compare}
    winner = tables.winner_sentence(result.gates, result.means, result.pairs, **given)
    return f"{tables.gates_sentence(result.gates)} {winner}".strip()


def _show_summary(outcomes: Sequence[backfill.DateOutcome], *, n_dates: int) -> None:
    """Print a table of the dates and how many were published, failed or kept."""
    table, out = tables.new_table("date", "status", "seconds", "why"), console()
    for outcome in outcomes:
        status, style, why = _describe_outcome(outcome)
        seconds = "-" if outcome.kept else f"{outcome.seconds:.1f}"
        table.add_row(outcome.evaluation_date.isoformat(), f"[{style}]{status}[/{style}]", seconds, escape(why))
    out.print(table)
    counts = {
        "published": sum(outcome.result is not None for outcome in outcomes),
        "failed": sum(outcome.error is not None for outcome in outcomes),
        "kept": sum(outcome.kept is not None for outcome in outcomes),
        "not reached": n_dates - len(outcomes),
    }
    out.print(", ".join(f"{n} {name}" for name, n in counts.items() if n))


def _describe_outcome(outcome: backfill.DateOutcome) -> tuple[str, str, str]:
    """Return the outcome of a date, its colour, and the reason, empty if there is nothing to look at."""
    if outcome.kept is not None:
        return "kept", "dim", outcome.kept
    if outcome.result is None:
        return (
            f"failed, code {outcome.exit_code}",
            "red",
            " ".join(headline(outcome.error).split()) if outcome.error else "",
        )
    undecided = (
        ("no rule could be judged",) if outcome.result.gates and not tables.is_decided(outcome.result.gates) else ()
    )
    why = "; ".join(filter(None, (outcome.result.reason, *undecided, *outcome.result.warnings)))
    if outcome.result.is_blocked:
        rules = "; ".join(row["explanation"] for row in failed(outcome.result.gates))
        return f"published, code {outcome.exit_code}", "yellow", "; ".join(filter(None, (rules, why)))
    return "published empty" if outcome.result.reason else "published", "green", why


def _show_plan(
    spark: SparkSession, config: EvaluationConfig, evaluation_date: date, sample_share: float, *, is_json: bool
) -> None:
    """Print what a night would read, compute and publish."""
    plan = NightPlan.of(config, evaluation_date, sample_share=sample_share)
    inputs, cost = planned_inputs(spark, plan)
    if is_json:
        names = ("name", "location", "format", "version", "n_rows", "n_files")
        values = ((read.name, read.location, read.format, read.version, *counts) for read, *counts in inputs)
        asked = config.measure_set
        document = {
            C.EVALUATION: plan.evaluation,
            C.EVALUATION_DATE: evaluation_date,
            "results": config.results.location,
            "inputs": [dict(zip(names, cells, strict=True)) for cells in values],
            "measures": asked.labels,
            "cutoffs": asked.ks,
            "slices": config.slices,
            "cost": str(cost),
        }
        write_out(json_text(document, indent=None))
        return
    table = tables.new_table("input", "location", "format", "version", "files", "rows", title="would read")
    for read, n_rows, n_files in inputs:
        numbers = ("-" if value is None else f"{value:,}" for value in (read.version, n_files, n_rows))
        table.add_row(read.name, escape(read.location), read.format, *numbers)
    out = console()
    out.print(table)
    asked = config.measure_set
    cutoffs = ", ".join(str(k) if k else "whole list" for k in asked.ks)
    for line in (
        f"would compute {len(asked.measures)} values a list: {', '.join(asked.labels)}; at {cutoffs}",
        f"cost: {cost}",
        f"slices: {', '.join('*'.join(names) for names in config.slices) or 'none'}, and everyone",
        f"would publish {plan.evaluation}, {evaluation_date} to {config.results.location}; nothing was changed",
    ):
        out.print(line, markup=False, soft_wrap=True)

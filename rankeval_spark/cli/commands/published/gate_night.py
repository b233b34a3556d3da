"""``rankeval gate``: published results against rules, without any work on the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import typer

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps import gates
from rankeval_spark.apps.history import night_changes
from rankeval_spark.apps.history.published_runs import PastNight, chosen_nights, dates_after, earlier_nights
from rankeval_spark.apps.nightly.backfill import GATE_FAILED
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.terminal import console, say_note, write_out
from rankeval_spark.cli.sessions import session_for
from rankeval_spark.config import load_config, parse_date
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.results import results_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rankeval_spark.config import EvaluationConfig

COLUMNS: Final = tuple(name for name in schemas.GATES.field_names() if name != C.RUN_ID)

_ADD_RULES: Final = "add them, or give others by --config"


def gate_command(root: str, day: str | None, evaluation: str | None, path: Path | None, *, is_json: bool) -> None:
    """Judge a published night by its own rules, or by those of another config, and show what comes of it."""
    given = load_config(path) if path else None
    wanted = parse_date(day, where="--date") if day else None
    spark = session_for(root, "gate")
    rows: list[dict[str, Any]] = []
    without_rules: list[PastNight] = []
    for night in chosen_nights(spark, root, evaluation=evaluation, day=wanted):
        if night.is_empty:
            say_note(f"{night}: nothing to judge, {night.row['reason']}")
            continue
        if wanted is None and (without_means := dates_after(spark, root, night)):
            days = ", ".join(map(str, without_means))
            say_note(f"{night}: judged as the newest night with means; nothing was measured on {days}")
        config = given or night.config
        if not config.gates:
            without_rules.append(night)
            continue
        judged = _judged(spark, root, night, config)
        rows += [{C.EVALUATION: night.evaluation, C.EVALUATION_DATE: night.evaluation_date, **row} for row in judged]
        if is_json and not tables.is_decided(judged):
            say_note(f"{night}: {tables.gates_in_a_line(judged)}")
        if not is_json:
            out = console()
            out.print(tables.gates(judged, str(night)))
            out.print(tables.gates_in_a_line(judged), markup=False, soft_wrap=True)
    if without_rules and not rows:
        faults = (Fault(str(night), "no rule", "gates in the config", _ADD_RULES) for night in without_rules)
        raise ConfigError(*faults)
    for night in without_rules:
        say_note(f"{night}: not judged, its config has no rule; {_ADD_RULES}")
    if is_json:
        write_out(tables.to_json(rows, COLUMNS))
    raise typer.Exit(GATE_FAILED if gates.failed(rows) else 0)


def _judged(spark: SparkSession | None, root: str, night: PastNight, config: EvaluationConfig) -> list[dict[str, Any]]:
    results = results_of(spark, root)
    previous = None
    if night_changes.rules_of(config):
        earlier = earlier_nights(spark, root, night, at_most=1)
        previous = night_changes.since_previous(results, config, night_changes.NightSide.of(results, night), earlier)
        for fault in previous.damage if previous else ():
            say_note(str(fault))
    return gates.judge_published(config, results, night, previous)

"""Sections on the health of a night, the definitions of its measures, and the provenance of its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.config.recorded_definitions import recorded_definitions
from rankeval_spark.measures import with_cutoff
from rankeval_spark.measures.names import measure_of
from rankeval_spark.report import defaults, wording
from rankeval_spark.report.figures.users import level_of
from rankeval_spark.report.page_parts import Block, Cell, Section, TableView, Term, Tone
from rankeval_spark.report.tables import all_users_rows, rows_of

if TYPE_CHECKING:
    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_charts import Drawer

_COUNTS: Final = {
    "n_users": "in the mean",
    "n_undefined": "undefined",
    "n_missing": "without a list",
    "n_zero_relevant": "nothing relevant",
    "n_extra_users": "without judgement",
}
"""What is counted of each mean, and how the page names it."""

_TONES: Final[Mapping[str, Tone]] = {"error": "bad", "warn": "open", "ok": "good"}
_WORST_FIRST: Final = {"error": 0, "warn": 1, "ok": 2}


def health_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Show what was found in the inputs, and how many users are behind the means."""
    id_, title = "checks", "Checks and health"
    tables = [_checks(night)] if night.checks else []
    tables += [_health(night, night.first)] if night.first else []
    if not tables:
        return Section(id_, title, hint="No checks: nothing of this night was measured.")
    warned = [row for row in night.checks if row["verdict"] != "ok"]
    lead = f"{wording.count(len(night.checks), 'check')} of the inputs, {len(warned) or 'none'} of them to look at."
    return Section(id_, title, lead, [Block(tables=tables)])


def _checks(night: Night) -> TableView:
    """Lay out the checks, those to look at first, then those that counted something."""

    def place(row: Mapping[str, Any]) -> tuple[int, bool, str, str]:
        return (_WORST_FIRST.get(row["verdict"], 0), not row["count"], row["input"], row["check"])

    rows = [
        [
            Cell(row["verdict"], float(_WORST_FIRST.get(row["verdict"], 0)), tone=_TONES.get(row["verdict"], "open")),
            row["input"],
            row["check"].replace("_", " "),
            Cell(wording.count(row["count"]), row["count"]),
            Cell(wording.percent(row["share"]), row["share"]),
            Cell(wording.percent(row["threshold"]), row["threshold"]),
            ", ".join(row["sample_keys"]),
        ]
        for row in sorted(night.checks, key=place)
    ]
    numbers = ("count", "share", "threshold")
    headings = ["verdict", "input", "check", *numbers, "for example"]
    return TableView.of("checks-table", "Checks of the inputs", headings, rows, numbers=numbers)


def _health(night: Night, measure: MeasureKey) -> TableView:
    """Lay out who is in the mean of the measure that is looked at first."""
    rows = [
        [
            row[C.MODEL_ID],
            *(Cell(wording.count(row[name]), row[name]) for name in _COUNTS),
            Cell(wording.percent(row["tie_share"]), row["tie_share"]),
        ]
        for row in rows_of(all_users_rows(night.metrics), measure=measure[0], k=measure[1])
    ]
    numbers = (*_COUNTS.values(), "lists with ties")
    return TableView.of("health", f"Users behind {with_cutoff(*measure)}", ["model", *numbers], rows, numbers=numbers)


def definitions_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Define every measure that is shown; the levels of a curve once."""
    id_, title = "definitions", "Definitions"
    recorded = {label: str(definition) for (label, _), definition in recorded_definitions(night.run).items()}
    labels = list(dict.fromkeys([*(label for label, _ in night.requested), *recorded]))
    if not labels:
        return Section(id_, title, hint="No measures were recorded for this run.")
    levels = [label for label in labels if level_of(label) is not None]
    terms = [_term(label, recorded.get(label), len(levels)) for label in labels if label not in levels[1:]]
    lead = "Names are those of the tables, without the cutoff. What is recorded is every option and policy of this run."
    return Section(id_, title, lead, [Block(terms=terms)])


def _term(label: str, recorded: str | None, n_levels: int) -> Term:
    recorded_as = [f"Recorded: {recorded}."] if recorded else []
    measure = measure_of(label)
    if measure is None:
        return Term(label, ["This version does not know the measure.", *recorded_as])
    definition, entry = measure.entry.definition, measure.entry
    facts = [f"Range {entry.range}", f"undefined: {definition.undefined}", f"source: {definition.source}"]
    facts += [] if measure.better == "higher" else [f"{measure.better} is better"]
    is_level = n_levels > 1 and level_of(label) is not None
    name = f"{defaults.CURVE} at {n_levels} levels of recall" if is_level else label
    return Term(name, [entry.summary, f"{'; '.join(facts)}.", *recorded_as], definition.formula)


def provenance_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Say what the numbers were made from."""
    run = night.run
    versions = [f"{name} {version}" for name, version in sorted((run["table_versions"] or {}).items())]
    terms = {
        "run": run[C.RUN_ID],
        "recorded": f"{run['recorded_at']:%Y-%m-%d %H:%M:%S} UTC",
        "version": f"rankeval-spark {run['code_version']}",
        "config": f"SHA-256 {run['config_hash']}",
        "sample": f"{wording.percent(run['sample_share'])} of the users",
        "time": _time(run["timings"] or {}),
        "table versions": ", ".join(versions) or "none",
    }
    inputs = [
        [
            one["name"],
            one["location"],
            one["format"],
            Cell("" if one["version"] is None else str(one["version"]), one["version"]),
            Cell(wording.count(one["n_rows"]), one["n_rows"]),
        ]
        for one in run["inputs"] or ()
    ]
    headings, numbers = ["input", "location", "format", "version", "rows"], ("version", "rows")
    tables = [TableView.of("inputs", "Inputs", headings, inputs, numbers=numbers)] if inputs else []
    config = json.dumps(night.config, indent=2, ensure_ascii=False, sort_keys=True) if night.config else ""
    blocks = [
        Block(terms=[Term(name, [text]) for name, text in terms.items()]),
        Block(tables=tables),
        *([Block("Configuration", code=config)] if config else []),
    ]
    lead = "What the numbers were made from: the same inputs, config and version give them again."
    return Section("provenance", "Provenance", lead, blocks)


def _time(seconds: Mapping[str, float]) -> str:
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
    return f"{sum(seconds.values()):.1f} s: {stages}" if seconds else "not recorded"

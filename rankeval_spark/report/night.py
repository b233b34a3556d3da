"""The night of a report: its run, measures and models, and the events of earlier nights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.recorded_definitions import RecordedDefinition, recorded_definitions
from rankeval_spark.errors import ConfigError, Fault, InputError, nearest
from rankeval_spark.report import defaults, wording
from rankeval_spark.report.figures.means import Marks
from rankeval_spark.report.tables import PAIRED, ReportTables, Row, all_users_rows, distinct, keep, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.report.defaults import MeasureKey

PUBLISHED: Final = "PUBLISHED"
FAILED: Final = "FAILED"
MAX_HEADLINES: Final = 6  # measures that are drawn; the tables hold all of them
MAX_NIGHTS: Final = 60  # of a history


class Night:
    """One night of one evaluation, published or failed: its rows, and what the page shows of them."""

    def __init__(
        self, tables: ReportTables, *, evaluation: str | None, day: date | None, baseline: str | None = None
    ) -> None:
        """Find the night, as :func:`chosen_run` does; ConfigError if nothing was compared with the baseline."""
        self.tables = tables
        self.run: Row = chosen_run(tables.runs, evaluation=evaluation, day=day)
        self.evaluation: str = self.run[C.EVALUATION]
        self.day: date = self.run[C.EVALUATION_DATE]
        self.is_published = bool(self.run["status"] == PUBLISHED)
        self.config = _config_of(self.run)  # empty if it cannot be read

        self.metrics = self._own(tables.metrics)
        self.group_metrics = self._own(tables.group_metrics)
        self.comparisons = keep(self._own(tables.comparisons), test=PAIRED)
        self.user_metrics = self._own(tables.user_metrics)
        self.gates = rows_of(self._own(tables.gates))
        self.checks = rows_of(self._own(tables.checks))

        all_nights = keep(tables.metrics, **{C.EVALUATION: self.evaluation, C.SLICE: C.ALL_USERS})
        days = [day for (day,) in distinct(all_nights, C.EVALUATION_DATE) if day <= self.day][-MAX_NIGHTS:]
        self.history = keep(all_nights, **{C.EVALUATION_DATE: days})  # means of all users up to this night
        self.n_nights = len(days)
        runs = newest_runs(tables.runs, self.evaluation)
        self._nights = {day: run for day, run in runs.items() if day <= self.day}
        events = rows_of(tables.runs, status=FAILED, evaluation=self.evaluation)
        self.failures = {  # nights up to this one without a published run, with the reason
            row[C.EVALUATION_DATE]: wording.failure_of(row)
            for row in sorted(events, key=lambda row: row["recorded_at"])
            if row[C.EVALUATION_DATE] <= self.day and row[C.EVALUATION_DATE] not in self._nights
        }

        self.known = defaults.measures_of(all_users_rows(self.metrics))
        asked = [(one["measure"], one["k"]) for one in self.run["measures"] or ()]
        self.requested = list(dict.fromkeys([*(one for one in asked if one in self.known), *self.known]))
        of_gates = [(row[C.MEASURE], row[C.K]) for row in sorted(self.gates, key=lambda row: row["gate"])]
        judged = next((one for one in of_gates if one in self.known), None)
        # The headline measure: that of the first gate, or the first one requested; None without means.
        self.first = judged or defaults.headline_measure(self.known, self.requested)
        measures, most = (self.known, self.requested), MAX_HEADLINES
        self.headlines = defaults.headlines(*measures, first=self.first, at_most=most) if self.first else []
        with_models = self.metrics if self.metrics.num_rows else self.history
        self.models = [str(name) for (name,) in distinct(with_models, C.MODEL_ID)]
        self.baseline = self._baseline(baseline)

    def _own(self, table: pa.Table) -> pa.Table:
        """Return the rows of this night, none if it failed."""
        if not self.is_published:
            return table.slice(0, 0)
        return keep(table, **{C.EVALUATION: self.evaluation, C.EVALUATION_DATE: self.day})

    def _baseline(self, wanted: str | None) -> str | None:
        """Return the wanted baseline, or that of the config, or the first one that models were compared with."""
        names = [str(name) for (name,) in distinct(self.comparisons, C.BASELINE_MODEL_ID)]
        if wanted is not None and wanted not in names:
            expected = f"one of those compared with: {', '.join(names)}" if names else "comparisons, but there are none"
            fix = nearest(wanted, names) or "set comparisons.baseline and run the night again"
            raise ConfigError(Fault("--baseline", repr(wanted), expected, fix))
        configured = (self.config.get("comparisons") or {}).get("baseline")
        return wanted or (configured if configured in names else next(iter(names), None))

    def marks(self, measure: MeasureKey) -> Marks:
        """Return the events in the history of a measure: bounds of gates, changed definitions, failed nights.

        The table ``gates`` holds the judged rows. Only the night's config tells bounds on values from those on gains.
        """
        wanted = {C.EVALUATION: self.evaluation, C.MEASURE: measure[0], C.K: measure[1], C.SLICE: C.ALL_USERS}
        judged = {(row[C.EVALUATION_DATE], row["gate"]) for row in rows_of(keep(self.tables.gates, **wanted))}
        bounds = []
        for day, number in sorted(judged):
            rules = _config_of(self._nights.get(day, {})).get("gates") or []
            rule = rules[number - 1] if number <= len(rules) else {}
            models = f" ({', '.join(rule['models'])})" if rule.get("models") else ""
            for key, words in (("at_least", "at least"), ("at_most", "at most")):
                bound = rule.get(key)
                if bound is not None:
                    text, name = f"{words} {bound:g}{models}", f"{number} {key}"
                    bounds.append({"date": day.isoformat(), "bound": float(bound), "text": text, "rule": name})
        return Marks(bounds, redefined_nights(self._nights, measure), self.failures)


def newest_runs(runs: pa.Table, evaluation: str) -> dict[date, Row]:
    """Find the newest published run of each night of an evaluation, oldest night first."""
    events = sorted(rows_of(runs, status=PUBLISHED, evaluation=evaluation), key=lambda row: row["recorded_at"])
    newest = {row[C.EVALUATION_DATE]: row for row in events}
    return dict(sorted(newest.items()))


def redefined_nights(nights: Mapping[date, Row], measure: MeasureKey) -> dict[date, str]:
    """Return the nights since which a measure is defined otherwise, with the change; ``nights`` as of newest_runs."""
    found: dict[date, str] = {}
    before: RecordedDefinition | None = None
    for day, run in nights.items():
        definition = recorded_definitions(run).get(measure)
        if definition is not None:
            if before is not None and definition != before:
                changes = (("was", before.without(definition)), ("is", definition.without(before)))
                found[day] = "; ".join(f"{verb} {wording.listed(what)}" for verb, what in changes if what)
            before = definition
    return found


def chosen_run(runs: pa.Table, *, evaluation: str | None, day: date | None) -> dict[str, Any]:
    """Find the last event of a night in ``runs``: PUBLISHED, or FAILED if nothing was published.

    Without a date the newest night, see :func:`defaults.newest_nights`, or the newest failure if none was published.
    Raises InputError if there is no such night, ConfigError if there are several evaluations and none is named.
    """
    events = rows_of(runs, status=(PUBLISHED, FAILED))
    name = _evaluation(events, evaluation)
    own = sorted((row for row in events if row[C.EVALUATION] == name), key=lambda row: row["recorded_at"])
    published = [row for row in own if row["status"] == PUBLISHED]
    if day is None:
        has_means = {  # whether a run published means
            (name, row[C.EVALUATION_DATE]): bool(published) and schemas.METRICS.name in dict(row["n_rows"] or ())
            for row in published or own
        }
        day = defaults.newest_nights(has_means, name)[name]
    of_day = [row for row in own if row[C.EVALUATION_DATE] == day]
    if not of_day:
        known = sorted({row[C.EVALUATION_DATE] for row in own})
        expected = f"a night from {known[0]} to {known[-1]}"
        closest = min(known, key=lambda one: (abs(one - day), one))
        raise InputError(Fault("--date", f"no night of {name} on {day}", expected, f"the nearest is {closest}"))
    return ([row for row in of_day if row["status"] == PUBLISHED] or of_day)[-1]


def _config_of(run: Row) -> Mapping[str, Any]:
    try:
        found = json.loads(run.get("config") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _evaluation(events: Sequence[Row], wanted: str | None) -> str:
    names = sorted({row[C.EVALUATION] for row in events})
    if not names:
        raise InputError(Fault("results", "no run that ended", "at least one", "run an evaluation first"))
    if wanted is not None:
        if wanted not in names:
            raise InputError(Fault("--evaluation", repr(wanted), f"one of: {', '.join(names)}", nearest(wanted, names)))
        return wanted
    if len(chosen := defaults.chosen_evaluations(names)) > 1:
        raise ConfigError(Fault("--evaluation", "none", f"one of: {', '.join(names)}", "name one"))
    return str(chosen[0])

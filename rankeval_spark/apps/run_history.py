"""The nights before a run: whether as much is there as then, whether means drifted, and what changed since the last."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.gates import Previous
from rankeval_spark.apps.published_runs import PastNight, earlier_nights, read_means, read_verdicts, run_with_means
from rankeval_spark.columns import MIN_NIGHTS
from rankeval_spark.config.check_thresholds import MIN_COUNTED
from rankeval_spark.config.slicing import ReportedSlices
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.measures import Measure, MeasureSet, with_cutoff
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount
from rankeval_spark.result_rows.metric_rows import SUPPORT, SupportKey, find_unsupported, support_key
from rankeval_spark.result_rows.night_change_rows import NightChanges
from rankeval_spark.results import Results
from rankeval_spark.results.table_scans import DamagedResultsError, to_rows
from rankeval_spark.statistics import intervals
from rankeval_spark.statistics.night_differences import expected_band, has_drifted
from rankeval_spark.statistics.paired_tests import TOO_LITTLE_SUPPORT

if TYPE_CHECKING:
    from rankeval_spark.apps.published_runs import Definitions
    from rankeval_spark.config import EvaluationConfig, Gate
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.results import RunRecord, StagedRun
    from rankeval_spark.results.run_record import NightKey


Numbers: TypeAlias = Mapping[str, Any]
"""A row of ``metrics``."""

ReadNights: TypeAlias = Callable[[str, str, Sequence[PastNight]], list[dict[str, Any]]]
"""Reads rows of an evaluation's nights in a results root."""

LEFT_OUT: Final = "an earlier night is left out"
"""Start of a warning about damaged results."""

MAX_SHOWN: Final = 3
"""Models or means that a check names: of means, those that are farthest outside first."""


@dataclass(frozen=True)
class RunHistory:
    """The nights that were published before a run; looked up once, when the first question is asked."""

    config: EvaluationConfig
    facts: RunRecord
    is_alone: bool = False  # take the run for the first of its evaluation, whatever was published
    published_in: str = ""  # root of the published nights, where it is not that of the config
    wait: Callable[[], None] | None = None  # called before they are looked up: one of them may be about to be published
    warnings: list[str] = field(default_factory=list)  # about those left out, whose files are missing or damaged

    def check_volume(self, counts: Mapping[str, int]) -> list[CheckCount]:
        """Compare the rows of the inputs with those of the nights before; no fact where these are too few."""
        return to_volume_facts(counts, self.facts, self._nights_within(self.config.checks.volume.window_days))

    def check_means(self, metrics: pa.Table) -> list[CheckCount]:
        """Count the means of a run that left the band of the nights before, and models that are absent or shrank.

        No fact where these nights are too few; means that were defined otherwise then make no band.
        """
        within = self._nights_within(self.config.checks.drift.window_days)
        band = within if len(within) >= MIN_NIGHTS else []
        last = last_alike(self.facts, self._nights)
        rows, whole = self._read_whole(read_means, [*band, *([last] if last and last not in band else [])])
        band = [night for night in band if night in whole]
        tonight = metrics.filter(pc.field(C.SLICE) == C.ALL_USERS).to_pylist()
        facts: list[CheckCount] = []
        if len(band) >= MIN_NIGHTS:
            alike = alike_rows(rows, self.facts.definitions, band)
            drifted = to_drift_fact(tonight, alike, links={fact.measure: fact.link for fact in self.facts.measures})
            facts += [] if drifted is None else [drifted]
        if last is not None and last in whole:
            before = [row for row in rows if row[C.EVALUATION_DATE] == last.evaluation_date]
            facts += to_model_facts(self.facts, tonight, before, last)
        return facts

    def _read_whole(self, read: ReadNights, nights: list[PastNight]) -> tuple[list[dict[str, Any]], list[PastNight]]:
        """Read rows of nights; return them and the nights that are whole, with a warning of the others."""
        rows, whole, faults = read_whole(read, self.root, self.facts.evaluation, nights)
        self.warnings.extend(f"{LEFT_OUT}: {fault}" for fault in faults)
        return rows, whole

    def verdicts(self) -> list[dict[str, Any]]:
        """Return what sequential rules said on earlier nights: rows of ``gates``."""
        rows, whole = self._read_whole(read_verdicts, self.newest(longest_horizon(self.config) - 1))
        return alike_rows(rows, self.facts.definitions, whole)

    def newest(self, n_nights: int) -> list[PastNight]:
        """Return the newest nights, oldest first; at most as many as any key of the config asks for."""
        return self._nights[-n_nights:] if n_nights else []

    def previous(self, run: StagedRun) -> Previous | None:
        """Compare the users of a run with those of the last night, as far as rules ask for it."""
        if not previous_night_rules(self.config) or schemas.USER_METRICS.name not in run.n_rows:
            return None
        users = run.staging.scan(schemas.USER_METRICS.name)
        metrics, slices = run.rows.get(schemas.METRICS.name), segments_by_slice(self.config)
        unsupported = () if metrics is None else find_unsupported(metrics)
        tonight = NightSide(self.facts.definitions, slices, users, self.config.policies.unit, unsupported)
        found = compare_with_previous(Results(self.root), self.config, tonight, self._nights)
        self.warnings.extend(f"{LEFT_OUT}: {fault}" for fault in (found.damage if found else ()))
        return found

    def require_no_means(self, reason: str) -> None:
        """Refuse to replace the published means of this night by none."""
        if not self.is_alone:
            require_no_means(self.root, self.facts.night, reason)

    @cached_property
    def _nights(self) -> list[PastNight]:
        """As many as any question looks at, oldest first."""
        if self.is_alone:
            return []
        if self.wait is not None:
            self.wait()
        checks = self.config.checks
        pooled = self.config.comparisons.nights if self.config.comparisons else 1
        days = max(checks.drift.window_days, checks.volume.window_days, longest_horizon(self.config), pooled)
        return earlier_nights(self.root, self.facts, at_most=days, is_lenient=False)

    def _nights_within(self, days: int) -> list[PastNight]:
        first = self.facts.evaluation_date - timedelta(days=days)
        return [night for night in self._nights if night.evaluation_date >= first]

    @property
    def root(self) -> str:
        """Root of the published nights."""
        return self.published_in or self.config.results.location


def read_whole(
    read: ReadNights, root: str, evaluation: str, nights: list[PastNight]
) -> tuple[list[dict[str, Any]], list[PastNight], Sequence[Fault]]:
    """Read rows of nights; return them, the nights that are whole, and what is missing or damaged of the others."""
    try:
        return read(root, evaluation, nights), nights, ()
    except DamagedResultsError as error:
        whole = [night for night in nights if (night.evaluation, night.evaluation_date) not in error.nights]
        if len(whole) == len(nights):
            raise
        return read(root, evaluation, whole), whole, error.faults


def alike_rows(rows: Iterable[Numbers], definitions: Definitions, nights: Sequence[PastNight]) -> list[Any]:
    """Return the rows of some nights whose measure was defined then as in ``definitions``."""
    then = {night.evaluation_date: night.definitions for night in nights}
    keys = ((row, (row[C.MEASURE], row[C.K])) for row in rows)
    return [row for row, key in keys if then.get(row[C.EVALUATION_DATE], {}).get(key) == definitions.get(key)]


def longest_horizon(config: EvaluationConfig) -> int:
    """Return over how many nights the sequential rules hold, 1 without such a rule."""
    return max((gate.horizon for gate in config.gates if gate.sequential), default=1)


def require_no_means(root: str, night: NightKey, reason: str) -> None:
    """Refuse to replace the published means of a night by none; ``reason`` says why there is nothing to measure."""
    run_id = run_with_means(root, night)
    if run_id is not None:
        expected = f"rows as those that run {run_id} measured, whose results stay published"
        raise InputError(Fault(str(night), reason, expected, "run the date again when they are back"))


_NOT_ROWS: Final = ("version", "timestamp", "ranks_from", "late_data_grace", "sampled_candidates")
"""Keys of an input that do not say which table, and which of its rows, are read."""


def to_volume_facts(counts: Mapping[str, int], facts: RunRecord, nights: Sequence[PastNight]) -> list[CheckCount]:
    """Compare the row count of each input with its median on earlier nights, if enough have rows.

    Only nights count whose config reads the input alike, pinned versions aside, and of the log the same models. A
    sample is an evaluation of its own, and dates without rows are left out. ``count`` of the ``total`` rows, of
    the night with more, are the difference.
    """
    asked, facts_of_inputs = json.loads(facts.config), []
    for name, n_rows in counts.items():
        alike = (night for night in nights if _reads_alike(asked, night, name, with_models=True))
        past = [night.n_input_rows[name] for night in alike]
        if len(past) >= MIN_COUNTED:
            usual = round(median(past))
            off = abs(n_rows - usual)
            words = f"{n_rows:,} rows, {usual:,} by the median of {len(past)} nights"
            facts_of_inputs.append(CheckCount(name, check_rows.VOLUME, off, max(n_rows, usual), [words] if off else []))
    return facts_of_inputs


def last_alike(facts: RunRecord, nights: Sequence[PastNight]) -> PastNight | None:
    """Return the newest night whose config reads the log alike, whichever models it asks for."""
    asked = json.loads(facts.config)
    alike = (night for night in reversed(nights) if _reads_alike(asked, night, check_rows.RECOMMENDATIONS))
    return next(alike, None)


def to_model_facts(
    facts: RunRecord, tonight: Sequence[Numbers], before: Sequence[Numbers], last: PastNight
) -> list[CheckCount]:
    """Count the models that had lists on the ``last`` night and have none, and users that others lost."""
    asked = json.loads(facts.config)
    had, wanted = users_with_list(before, last.recorded_config), asked.get("models")
    then = {model: n for model, n in had.items() if n and (wanted is None or model in wanted)}
    if not then:
        return []
    now = users_with_list(tonight, asked)
    absent = sorted(model for model in then if not now.get(model))
    gone = CheckCount(check_rows.RECOMMENDATIONS, check_rows.ABSENT_MODELS, len(absent), len(then), absent[:MAX_SHOWN])
    # Of those that lost users the one that lost most, by its share: another model must not hide it.
    lost = {model: max(0, n - now[model]) for model, n in then.items() if now.get(model)}
    worst = max(lost, key=lambda model: (lost[model] / then[model], model), default="")
    n_lost, n_then = lost.get(worst, 0), then.get(worst, 0)
    words = f"{worst}: {now.get(worst, 0):,} users with a list, {n_then:,} on {last.evaluation_date}"
    fewer = CheckCount(check_rows.RECOMMENDATIONS, check_rows.FEWER_USERS, n_lost, n_then, [words] if n_lost else [])
    return [gone, fewer]


def users_with_list(rows: Sequence[Numbers], config: Mapping[str, Any]) -> dict[str, int]:
    """Count the users with a list of each model, from the counts next to its means; no model without a mean.

    The population of a mean holds judged users without a list (``n_missing``) or not, as the policies say, and never
    those without a judgement (``n_extra_users``), but where it is everyone with a list.
    """
    policies = config.get("policies", {})
    population, missing = policies.get("population", "truth"), policies.get("missing", "zero")
    has_missing = population in {"truth", "judged"} and missing == "zero"
    return {
        row[C.MODEL_ID]: row["n_users"]
        + row["n_undefined"]
        + (0 if population == "run" else row["n_extra_users"])
        - (row["n_missing"] if has_missing else 0)
        for row in rows
        # NULL of a measure of all lists together and of groups of items, and in results of an older version
        if None not in (row["n_undefined"], row["n_missing"], row["n_extra_users"])
    }


def _reads_alike(asked: Mapping[str, Any], night: PastNight, name: str, *, with_models: bool = False) -> bool:
    """Return True if a night read the same rows of an input; with models, the same models of the log too."""
    if name not in night.n_input_rows:
        return False
    then = night.completed_config
    if with_models and name == check_rows.RECOMMENDATIONS:
        named, named_then = (config.get("models") for config in (asked, then))
        if (named is None) != (named_then is None) or sorted(named or ()) != sorted(named_then or ()):
            return False
    sections = [config["inputs"].get(name) or {} for config in (asked, then)]
    now, before = (
        {key: value for key, value in section.items() if value and key not in _NOT_ROWS} for section in sections
    )
    return bool(now == before)


def to_drift_fact(
    tonight: Sequence[Numbers], earlier: Sequence[Numbers], *, links: Mapping[str, str] = MappingProxyType({})
) -> CheckCount | None:
    """Count the means that left their band; None where no mean has a value and a band, so that nothing is checked.

    ``tonight`` and ``earlier`` are rows of ``metrics`` of everyone, these of any number of dates; ``links`` is what is
    averaged, by measure, where not the values themselves: the ``std_error`` of GMAP is that of logarithms. ``count`` of
    the ``total`` means that have a value and a band are outside; ``sample_keys`` name a few of them.
    """
    keys = [_key(row) for row in tonight]
    days = sorted({row[C.EVALUATION_DATE] for row in earlier})
    places = {key: index for index, key in enumerate(keys)}, {day: index for index, day in enumerate(days)}
    past, errors = np.full((2, len(keys), len(days)), np.nan)
    for row in earlier:
        if _key(row) in places[0]:
            place = places[0][_key(row)], places[1][row[C.EVALUATION_DATE]]
            value, error = (np.array([row[name]], dtype=np.float64) for name in (C.VALUE, "std_error"))  # NULL is NaN
            link = links.get(row[C.MEASURE], "identity")
            past[place], errors[place] = value[0], intervals.to_published_error(link, value, error)[0]
    values = np.array([row[C.VALUE] for row in tonight], dtype=np.float64)
    ages = np.array([(tonight[0][C.EVALUATION_DATE] - day).days for day in days], dtype=np.int64) if tonight else None
    band = expected_band(past, errors, ages)
    total = int((~np.isnan(values) & ~np.isnan(band.low)).sum())
    if total == 0:
        return None
    words = []
    outside = np.flatnonzero(has_drifted(values, band))
    off = np.abs(values - band.centre)[outside] / np.maximum((band.high - band.low)[outside], np.finfo(float).tiny)
    for far in outside[np.argsort(-off, kind="stable")][:MAX_SHOWN].tolist():  # the farthest in units of the band
        model, measure, k = keys[far]
        expected = f"{band.low[far]:.4g} to {band.high[far]:.4g} by {int(band.n_nights[far])} nights"
        expected += " and their weekdays" if band.knows_weekday[far] else ""
        words.append(f"{model} {with_cutoff(measure, k)}: {values[far]:.4g}, expected {expected}")
    return CheckCount(schemas.METRICS.name, check_rows.DRIFT, len(outside), total, words)


def _key(row: Numbers) -> tuple[str, str, int]:
    return row[C.MODEL_ID], row[C.MEASURE], row[C.K]


@dataclass(frozen=True)
class NightSide:
    """One of two nights."""

    definitions: Definitions  # what it computed, by measure and cutoff
    slices: Mapping[str, tuple[str, ...]]  # segments of each of its slices, by the name of the slice
    user_metrics: Any  # its rows of this table; of both nights on one host
    unit: Unit  # of what its means were taken; on nights that define a measure alike, of the same
    unsupported: Collection[SupportKey] = ()  # its means with too little support for a verdict

    @classmethod
    def of(cls, results: Results[Any], night: PastNight, *, models: Sequence[str] = ()) -> NightSide:
        """Read a published night; of some models, where any are named."""
        of_models: dict[str, Any] = {C.MODEL_ID: list(models)} if models else {}
        of_night = {"date": night.evaluation_date, "evaluation": night.evaluation, **of_models}
        users, config = results.scan(schemas.USER_METRICS.name, **of_night), night.config
        unsupported: Collection[SupportKey] = ()
        if night.measures.weighing:
            unsupported = find_unsupported(results.arrow(schemas.METRICS.name, columns=SUPPORT, **of_night))
        return cls(night.definitions, segments_by_slice(config), users, config.policies.unit, unsupported)

    def has_same_slice(self, name: str, other: NightSide) -> bool:
        """Return True if a slice was made of the same segments on both nights."""
        return name in self.slices and self.slices[name] == other.slices.get(name)


def segments_by_slice(config: EvaluationConfig) -> dict[str, tuple[str, ...]]:
    """Return the segments of each slice, everyone included, by its name."""
    return {C.ALL_USERS: (), **{C.CROSSING.join(names): tuple(names) for names in config.slices}}


def changes_between(
    now: NightSide, before: NightSide, config: EvaluationConfig, *, measures: Iterable[Measure], slices: Iterable[str]
) -> list[dict[str, Any]]:
    """Compare each model with itself: rows of :mod:`rankeval_spark.result_rows.night_change_rows`.

    Left out are measures that are no mean or were defined otherwise then, and slices that one of the
    nights does not have. ``slices`` are names; ``config`` says which are small, and the confidence of the intervals.
    """
    alike = {key for key, definition in now.definitions.items() if definition == before.definitions.get(key)}
    same = [measure for measure in measures if (measure.label, measure.k) in alike and measure.is_mean_of_users]
    made = [now.slices[name] for name in dict.fromkeys(slices) if now.has_same_slice(name, before)]
    if not same or not made:
        return []
    reported = ReportedSlices(made, config.slicing.min_slice_size, config.intervals.confidence)
    changes = NightChanges.from_unit(MeasureSet.of(same), reported, now.unit)
    from rankeval_spark.sums.published import compare_users  # noqa: PLC0415 - imports the engine

    found = to_rows(compare_users(now.user_metrics, before.user_metrics, changes))
    unsupported, untested = {*now.unsupported, *before.unsupported}, dict.fromkeys(("p_value", "p_less", "p_greater"))
    return [
        {**row, **untested, "reason": TOO_LITTLE_SUPPORT} if unsupported and support_key(row) in unsupported else row
        for row in found
    ]


def previous_night_rules(config: EvaluationConfig) -> list[Gate]:
    """Return the rules that compare a night with the one before it."""
    return [gate for gate in config.gates if gate.needs_previous]


def compare_with_previous(
    results: Results[Any], config: EvaluationConfig, now: NightSide, earlier: Sequence[PastNight]
) -> Previous | None:
    """Compare a night with the last of the earlier ones by what the rules are about; None without any."""
    rules = previous_night_rules(config)
    if not rules or not earlier:
        return None
    night = earlier[-1]
    gone = results.deleted(date=night.evaluation_date, evaluation=night.evaluation)
    if schemas.USER_METRICS.name in gone.get((night.evaluation, night.evaluation_date), ()):
        return Previous(night.evaluation_date, (), has_users=False)
    measures, slices = [gate.parse_measure(config.preset) for gate in rules], [gate.slice for gate in rules]
    try:
        rows = changes_between(now, NightSide.of(results, night), config, measures=measures, slices=slices)
    except DamagedResultsError as error:
        if (night.evaluation, night.evaluation_date) not in error.nights:
            raise
        return Previous(night.evaluation_date, (), damage=error.faults)
    return Previous(night.evaluation_date, rows)

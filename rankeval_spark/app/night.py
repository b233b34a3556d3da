"""One night: read, check, compute once into staging, audit, publish."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import __version__, columns as C, pipeline, schemas
from rankeval_spark.app import gates, quarantine
from rankeval_spark.app.before import Before
from rankeval_spark.app.cost import cost_of
from rankeval_spark.app.failures import told, translated
from rankeval_spark.app.inputs import (
    can_be_seen,
    column_facts,
    computed_facts,
    exposures_of,
    inputs_of,
    list_facts,
    row_facts,
    seen_inputs,
    with_model_names,
    without_facts,
)
from rankeval_spark.app.progress import Progress, Silent, Steps
from rankeval_spark.app.staging import cached, stage_results, stage_users
from rankeval_spark.config import Threshold, check_roots, least_cost
from rankeval_spark.config.request import Request
from rankeval_spark.engine.unusable import EXPECTED, FIX
from rankeval_spark.errors import ChecksFailedError, Fault, InputError, interruption, nearest, visible
from rankeval_spark.measures.groups import OF_GROUP, rule_of
from rankeval_spark.result_rows import check_rows
from rankeval_spark.results import InputFact, MeasureFact, Rehearsal, ResultsStore, RunFacts, StagedRun
from rankeval_spark.sources import Sources, is_wholly_empty, read_all
from rankeval_spark.stages import check, flags
from rankeval_spark.stages.frames import with_columns

if TYPE_CHECKING:
    from rankeval_spark.app.inputs import SeenInputs
    from rankeval_spark.config import EvaluationConfig, Policies
    from rankeval_spark.measures import Measure, MeasureSet
    from rankeval_spark.pipeline import Inputs
    from rankeval_spark.result_rows.check_rows import Fact

_MODELS_SHOWN: Final = 20


def _columns_of(schema: schemas.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema.fields if field.name not in C.RUN_KEY)


GATE_SCHEMA: Final = _columns_of(schemas.GATES)

_OF_CATALOGUE: Final[Mapping[str, tuple[str, str]]] = {
    check_rows.DUPLICATES: ("each item once", "keep one row an item in the catalogue"),
    check_rows.VECTOR_LENGTHS: ("vectors of one length", "give each item a vector of one length"),
}
"""Of checks of the catalogue of which none is tolerated: what is expected, and the fix."""

IDS: Final = (C.MODEL_ID, C.USER_ID, C.LIST_ID)


@dataclass(frozen=True)
class NightResult:
    """What came of a night that was published.

    Attributes
    ----------
    evaluation : str
        Name under which it was published; a sample of the users has a name of its own.
    reason : str or None
        Why nothing was measured: the date has no rows.
    warnings : tuple of str
        Checks that exceeded their warning threshold.
    gates : tuple of mapping
        Rows of ``gates``: what each rule says.
    """

    evaluation: str
    evaluation_date: date
    run_id: str
    n_rows: dict[str, int]
    seconds: dict[str, float]
    reason: str | None = None
    warnings: tuple[str, ...] = field(default_factory=tuple)
    gates: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)

    @property
    def is_blocked(self) -> bool:
        """Whether a rule says that a model may not ship."""
        return bool(gates.failed(self.gates))


def request_of(config: EvaluationConfig, evaluation_date: date) -> Request:
    """Take from the config what is asked of the pipeline, for one date."""
    return Request(
        config.measure_set(),
        config.policies,
        config.models,
        config.slices,
        config.min_slice_size,
        config.confidence,
        evaluation_date,
        config.comparisons,
        draws=config.intervals.draws,
        bands=config.bands,
        counts_seen=config.checks.seen_in_train != Threshold() and config.policies.seen_in_train == "keep",
        max_rows_per_user=config.max_rows_per_user,
    )


def evaluation_name(config: EvaluationConfig, sample_share: float) -> str:
    """Name the evaluation; a sample is an evaluation of its own, so that it can never replace the whole."""
    return config.evaluation if sample_share >= 1 else f"{config.evaluation}.sample-{sample_share:g}"


def run_night(
    spark: SparkSession,
    config: EvaluationConfig,
    evaluation_date: date,
    *,
    sample_share: float = 1.0,
    progress: Progress | None = None,
) -> NightResult:
    """Evaluate one date and publish its results, or leave the tables as they were.

    Raises
    ------
    ChecksFailedError
        A check failed; FAILED is recorded in ``runs`` and nothing else changed.
    InputError
        An input is missing, unreadable or wholly empty; likewise.
    ResultsBusyError
        Another run holds this evaluation and date.
    ConfigError
        A path lies outside the folders that the environment allows.
    """
    check_roots(config, evaluation_date)
    least_cost(config).require_at_most(config.results.most_rows)
    steps = Steps(progress or Silent())
    request = request_of(config, evaluation_date)
    facts = RunFacts(
        evaluation_name(config, sample_share),
        evaluation_date,
        new_run_id(),
        config=config.public_json(),
        config_hash=config.config_hash,
        code_version=__version__,
        sample_share=sample_share,
        measures=measure_facts(request.measures, request.policies),
    )
    results = config.results
    with told():
        store = ResultsStore.open(spark, results.location, one_run_per_root=results.one_run_per_root)
        with store.run_lock(
            facts.evaluation,
            evaluation_date,
            facts.run_id,
            on_busy=results.on_busy,
            wait_seconds=results.wait_seconds,
        ):
            night = _Night(spark, config, request, store.start(facts), steps)
            return night.run()


def rehearse_night(
    spark: SparkSession, config: EvaluationConfig, request: Request, rehearsal: Rehearsal, *, progress: Progress | None
) -> NightResult:
    """Compute a night as :func:`run_night` does, and publish nothing.

    The nights before it are not asked, so there is none of the checks that do (:data:`check_rows.OF_NIGHTS`), and rules
    against the previous night are not judged.

    Raises
    ------
    ChecksFailedError, InputError
        As :func:`run_night`.
    """
    return _Night(spark, config, request, rehearsal, Steps(progress or Silent()), is_alone=True).run()


def new_run_id() -> str:
    """Make an id that sorts by time and that no other run has."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def measure_facts(measures: MeasureSet, policies: Policies) -> tuple[MeasureFact, ...]:
    """Describe every measure for ``runs`` and for the audit.

    Its definition holds all options and policies, and how its item group is drawn.
    """
    rules = ", ".join(f"{name}={value}" for name, value in policies.model_dump().items())
    return tuple(_measure_fact(measure, rules, policies.unit) for measure in measures.measures)


def _measure_fact(measure: Measure, rules: str, unit: str) -> MeasureFact:
    low, high = measure.entry.definition.bounds
    column = measure.column if measure.has_user_values else None
    of_group = "" if measure.group is None else f"{OF_GROUP}{rule_of(measure.group)}"
    return MeasureFact(
        measure.label,
        measure.k,
        column,
        f"{measure.definition}; {rules}{of_group}",
        low,
        high,
        measure.weight_column,
        measure.link,
        unit,
    )


@dataclass
class _Night:
    """The steps of one night; what they share."""

    spark: SparkSession
    config: EvaluationConfig
    request: Request
    recorded: StagedRun
    steps: Steps
    is_alone: bool = False
    sources: Sources | None = None
    facts: list[Fact] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    judged: list[dict[str, Any]] = field(default_factory=list)
    gates: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def before(self) -> Before:
        """The nights before this one."""
        return Before(self.spark, self.config, self.recorded.facts, self.is_alone)

    def run(self) -> NightResult:
        try:
            reason = self._compute()
            with self.steps.step("audit"):
                self.recorded.audit()
            with self.steps.step("publish"):
                self.recorded.publish(inputs=self._input_facts(), timings=self.steps.seconds, reason=reason)
        except KeyboardInterrupt as stopped:
            self._record_failure(stopped)
            raise
        except Exception as error:
            wish = interruption(error)
            if wish is not None:
                self._record_failure(wish)
                raise wish from error
            raise self._failed(error) from error
        facts = self.recorded.facts
        return NightResult(
            facts.evaluation,
            facts.evaluation_date,
            facts.run_id,
            self.recorded.n_rows,
            self.steps.seconds,
            reason,
            tuple(self._warnings()),
            tuple(self.gates),
        )

    def _compute(self) -> str | None:
        """Fill the staging area; return why there is nothing to measure, if so.

        The log is read once: its rows are checked while they are evaluated, and what is staged is published only if
        all checks pass.
        """
        facts = self.recorded.facts
        with self.steps.step("read"):
            self.sources = read_all(self.spark, self.config, facts.evaluation_date)
            inputs = inputs_of(self.sources, self.request, sample_share=facts.sample_share)
            inputs = with_model_names(inputs, self.request)
            cost = cost_of(self.config, inputs)
            self.steps.listener.say(str(cost))
            cost.require_at_most(self.config.results.most_rows)
        with ExitStack() as kept:
            try:
                scored, seen = self._score(inputs, kept)
            except Exception as error:
                if interruption(error) is not None:
                    raise
                self._check(inputs, None)  # what is wrong with the inputs says more than what failed for it
                raise
            reason = self._check(inputs, seen)
            if reason is None:
                self._measure(inputs, scored)
            else:
                self.recorded.discard()
        self.recorded.stage(schemas.CHECKS.name, self.spark.createDataFrame(self.judged, check.VERDICT_TYPES))
        return reason

    def _score(self, inputs: Inputs, kept: ExitStack) -> tuple[DataFrame, SeenInputs | None]:
        """Stage the lists, where they are published, and the rows of users; return them, and what the log has."""
        has_facts, seen = can_be_seen(self.request), None
        if self.config.results.lists:
            lists = pipeline.to_lists(inputs, request=self.request, has_facts=has_facts)
            with self.steps.step("match") as step:
                lists = kept.enter_context(cached(with_text_ids(lists))) if has_facts else with_text_ids(lists)
                staged = self.recorded.stage(schemas.LISTS.name, with_all_columns(without_facts(lists)))
                step.n_rows = self.recorded.n_rows[schemas.LISTS.name]
            seen = seen_inputs(lists) if has_facts else None
            if pipeline.are_lists_enough(inputs, self.request):
                scored = pipeline.to_scored_lists(staged, request=self.request, has_one_list=inputs.has_one_list)
                scored = kept.enter_context(cached(scored))
                stage_users(self.recorded, scored, steps=self.steps)
                return scored, seen
        # Facts of items are not published: where a measure reads them, the log is ranked once more.
        counts_rows = has_facts and seen is None
        planned = pipeline.to_scored(inputs, request=self.request, are_kept=True, has_facts=counts_rows)
        computed = kept.enter_context(cached(with_text_ids(planned)))
        scored = without_facts(computed)
        stage_users(self.recorded, scored, steps=self.steps)
        return scored, seen_inputs(computed) if counts_rows else seen

    def _check(self, inputs: Inputs, seen: SeenInputs | None) -> str | None:
        """Count what can be seen in the rows, and refuse them where a check says so; return why there are none."""
        with self.steps.step("check") as step:
            self._count(inputs, seen)
            step.n_rows = sum(fact.count for fact in self.facts if fact.check == check_rows.ROWS)
            reason = self._why_empty()
            if reason is not None:  # to join with nothing says nothing
                self.facts = [fact for fact in self.facts if fact.check != check_rows.UNMATCHED_ITEMS]
            self._quarantine()
            self._refuse(*self._unusable())
        return reason

    def _count(self, inputs: Inputs, seen: SeenInputs | None) -> None:
        """Count what can be seen in the rows; how many the segments have is for `runs` alone."""
        segments = self._sources.segments
        of_segments = [check.to_segment_facts(segments.frame)] if segments else []
        facts = computed_facts(*row_facts(inputs, self.request, seen), *of_segments)
        self.counts = {fact.input: fact.count for fact in facts if fact.check == check_rows.ROWS}
        self.facts = [fact for fact in facts if (fact.input, fact.check) != (check_rows.SEGMENTS, check_rows.ROWS)]
        self.facts += [*column_facts(self._sources), *self.before.volume(self.counts)]

    def _quarantine(self) -> None:
        """Keep what cannot be used before anything is refused for it."""
        rows = None
        if self.config.results.quarantine and quarantine.is_needed(self.facts):
            rows = quarantine.to_rows(self._sources, self.request, sample_share=self.recorded.facts.sample_share)
        self.recorded.quarantine(rows)

    def _measure(self, inputs: Inputs, scored: DataFrame) -> None:
        """Look at the lists, and stage what follows from the rows of users."""
        self.facts += computed_facts(list_facts(scored, self.request))
        exposures = exposures_of(inputs, self.request)
        frames = pipeline.Frames(scored, self.request, inputs.has_one_list, exposures)
        stage_results(self.recorded, frames, steps=self.steps)
        metrics = self.recorded.staged(schemas.METRICS.name)
        with self.steps.step("drift"):
            self.facts += [] if metrics is None else self.before.of_means(metrics)
        self._refuse()
        self._judge()

    def _judge(self) -> None:
        """Hold what is staged against the rules of the config; the results are published whatever comes of it."""
        if not self.config.gates:
            return
        with self.steps.step("gate") as step:
            names = (schemas.METRICS.name, schemas.GROUP_METRICS.name, schemas.COMPARISONS.name)
            metrics, group_metrics, comparisons = map(self.recorded.staged, names)
            users = self.recorded.staged(schemas.USER_METRICS.name)
            previous = None if users is None else self.before.previous(users)
            self.gates = gates.judge(self.config, metrics, group_metrics, comparisons, previous)
            self.recorded.stage(schemas.GATES.name, self.spark.createDataFrame(self.gates, GATE_SCHEMA))
            step.n_rows = len(self.gates)

    def _refuse(self, *unusable_inputs: Fault) -> None:
        """Stop where a check says so, or an input cannot be used."""
        self.judged = check_rows.to_rows(self.facts, self.config.checks).to_pylist()
        failed = [row for row in self.judged if row["verdict"] == "error"]
        if failed or unusable_inputs:
            kept = self.recorded.quarantine_path if self.config.results.quarantine else ""
            of_checks = (self._without_lists(row) or _check_fault(row, kept) for row in failed)
            raise ChecksFailedError(*unusable_inputs, *of_checks)

    def _unusable(self) -> list[Fault]:
        """Find inputs that have rows and none that can be used, whatever the thresholds of the checks are."""
        faults = []
        for name, n_rows in self.counts.items():
            found = {fact.check: fact.count for fact in self.facts if fact.input == name and fact.count}
            reasons = {reason: found[reason] for reason in flags.UNUSABLE if reason in found}
            if n_rows and sum(reasons.values()) == n_rows:
                counted = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
                text = f"{n_rows} rows and none that can be used ({counted})"
                faults.append(Fault(f"inputs.{name}", text, EXPECTED[name], FIX))
        return faults

    def _without_lists(self, row: Mapping[str, Any]) -> Fault | None:
        """Say that a model has no list at all, and which ones have: its name may be misspelt."""
        if row["check"] != check_rows.MISSING_USERS or row["share"] < 1:
            return None
        (model,) = row["sample_keys"]
        log = self._sources.recommendations.frame
        names = [one[0] for one in log.select(C.MODEL_ID).distinct().orderBy(C.MODEL_ID).limit(_MODELS_SHOWN).collect()]
        of_log = ", ".join(visible(str(name)) for name in names)
        found = (
            f"no list of {visible(model)} for any of {row['count']:,} judged users; the log of this date has {of_log}"
        )
        hint = nearest(model, map(str, names)) if model not in names else ""
        fix = "; ".join(filter(None, (hint, f"mend the input or models, or raise checks.{row['check']}.error")))
        return Fault(f"{row['input']}, {row['check']}", found, f"at most {row['threshold']:.2%} without one", fix)

    def _why_empty(self) -> str | None:
        """Say which input has no rows for the date; an input without any row at all is an error."""
        sources = self._sources
        empty = [one for one in (sources.recommendations, sources.held_out) if self.counts.get(one.name) == 0]
        others = [one for one in (sources.segments, sources.train, sources.items) if one]
        uncounted = [one for one in others if not self.counts.get(one.name)]
        wholly = [source for source in (*empty, *uncounted) if is_wholly_empty(source)]
        if wholly:
            fix = "is the path right, and did the job that writes it run?"
            raise InputError(*(Fault(f"inputs.{one.name}", f"no row in {one.location}", "rows", fix) for one in wholly))
        if not empty:
            return None
        day = self.recorded.facts.evaluation_date.isoformat()
        return f"no rows for {day} in {' and '.join(one.name for one in empty)}{self._narrowed()}"

    def _narrowed(self) -> str:
        """Say what the rows were narrowed down to: a reader must not take a small sample for a missing log."""
        share, models = self.recorded.facts.sample_share, self.request.models
        limits = [f"models {', '.join(models)}"] if models else []
        limits += [f"{share:.4g} of the users"] if share < 1 else []
        return f" (looked for: {'; '.join(limits)})" if limits else ""

    @property
    def _sources(self) -> Sources:
        if self.sources is None:
            message = "the inputs are read first"
            raise RuntimeError(message)
        return self.sources

    def _input_facts(self) -> Sequence[InputFact]:
        sources = self.sources.all() if self.sources else ()
        return [
            InputFact(one.name, one.location, one.format, one.version, self.counts.get(one.name), one.table_columns)
            for one in sources
        ]

    def _warnings(self) -> Sequence[str]:
        warned = [row for row in self.judged if row["verdict"] == "warn"]
        return [f"{row['input']}, {row['check']}: {_counted(row)}" for row in warned]

    def _failed(self, error: Exception) -> Exception:
        """Record the failure with its stage and cause; return the cause as it is told to people."""
        sources = self.sources.all() if self.sources else ()
        cause = translated(error, {source.name: source.location for source in sources})
        self._record_failure(cause)
        return cause

    def _record_failure(self, cause: BaseException) -> None:
        checks = [fault.where for fault in cause.faults] if isinstance(cause, ChecksFailedError) else ()
        self.recorded.fail(
            self.steps.current,
            cause,
            failed_checks=checks,
            inputs=self._input_facts(),
            timings=self.steps.seconds,
        )


def with_text_ids(frame: DataFrame) -> DataFrame:
    """Turn ids into text, as all published tables hold them."""
    return frame.withColumns({name: F.col(name).cast("string") for name in IDS if name in frame.columns})


def with_all_columns(lists: DataFrame) -> DataFrame:
    """Add the columns of ``schemas.LISTS`` that no measure of the run needs, as NULL."""
    absent = [field for field in schemas.LISTS.fields if field.name not in (*lists.columns, *C.RUN_KEY)]
    return with_columns(lists, {field.name: F.lit(None).cast(field.type) for field in absent})


def _check_fault(row: Mapping[str, Any], quarantined: str) -> Fault:
    """Say what was refused, and where its rows are kept, if they are."""
    expected = f"at most {row['threshold']:.2%}"
    kept = f", whose rows are in {quarantined}" if quarantined and row["check"] in flags.REFUSALS else ""
    fix = f"mend the input{kept}, or raise checks.{row['check']}.error"
    if row["check"] == flags.ZERO_RANKS:
        expected, fix = "ranks that count from 1", f"write ranks_from: 0 in inputs.{row['input']}, or {fix}"
    if row["input"] == check_rows.ITEMS and row["check"] in _OF_CATALOGUE:
        expected, fix = _OF_CATALOGUE[row["check"]]
    if row["check"] in check_rows.OF_NIGHTS:
        fix = f"find out what changed; if the change is meant, raise checks.{row['check']}.error"
    return Fault(f"{row['input']}, {row['check']}", _counted(row), expected, fix)


def _counted(row: Mapping[str, Any]) -> str:
    """Write how often a check met its case, with a few of the keys concerned."""
    examples = f", for example {'; '.join(map(visible, row['sample_keys']))}" if row["sample_keys"] else ""
    return f"{row['count']:,} ({row['share']:.2%}){examples}"

"""One night: read, check, compute once into staging, audit, publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps import gates
from rankeval_spark.apps.covariates import adjust_by_covariates
from rankeval_spark.apps.error_translation import translated_errors
from rankeval_spark.apps.nightly.look_ahead import LookAhead
from rankeval_spark.apps.nightly.night_host import ProcessHost
from rankeval_spark.apps.nightly.night_plan import (
    NightPlan,
    empty_reason,
    new_run_id,
    record_failure,
    record_failures,
    stage_results,
)
from rankeval_spark.apps.pooled_nights import pool_nights
from rankeval_spark.apps.progress import Progress, Steps
from rankeval_spark.apps.run_history import RunHistory
from rankeval_spark.config.check_thresholds import OPEN_FIX, OVER
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.checks import EXPECTED, FAULTS, UNUSABLE, ZERO_RANK_EXPECTED, ZERO_RANKS, fix_of
from rankeval_spark.engine.facts import ONCE_EXPECTED, ONCE_FIX, ONE_LENGTH_EXPECTED, ONE_LENGTH_FIX
from rankeval_spark.errors import (
    ChecksFailedError,
    Fault,
    FaultsError,
    InputError,
    OpenWindowsError,
    interruption,
    nearest,
    visible,
)
from rankeval_spark.inputs.arrow.file_inputs import open_inputs
from rankeval_spark.inputs.input_files import ForSparkError, no_row_fault
from rankeval_spark.refusals import refuse_unknown_baseline
from rankeval_spark.result_rows import check_rows
from rankeval_spark.result_rows.check_rows import CheckCount
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.results import InputRecord, Rehearsal, ResultsStore
from rankeval_spark.spark.session import is_on_demand, why_wanted
from rankeval_spark.spark.version import UnsupportedSparkError, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_host import NightHost, ReadInput
    from rankeval_spark.config import Cost, EvaluationConfig
    from rankeval_spark.results import StagedRun

_MODELS_SHOWN: Final = 20
_OF_CATALOGUE: Final = {  # expected, and the fix, of the checks of the catalogue that tolerate no case
    check_rows.DUPLICATES: (ONCE_EXPECTED, ONCE_FIX),
    check_rows.VECTOR_LENGTHS: (f"vectors of {ONE_LENGTH_EXPECTED}", ONE_LENGTH_FIX),
}
MAX_COLUMNS: Final = 3  # columns that a check names
CheckRow: TypeAlias = Mapping[str, Any]  # A row of `schemas.CHECKS`


@dataclass(frozen=True)
class NightResult:
    """Result of a night that was published."""

    evaluation: str  # name under which it was published; a sample of the users has a name of its own
    evaluation_date: date
    run_id: str
    n_rows: dict[str, int]
    seconds: dict[str, float]
    reason: str | None = None  # why nothing was measured: the date has no rows
    warnings: tuple[str, ...] = ()  # checks that exceeded their warning threshold
    gates: tuple[Mapping[str, Any], ...] = ()  # rows of ``gates``: what each rule says
    checks: tuple[CheckRow, ...] = ()  # rows of ``checks``
    means: tuple[Mapping[str, Any], ...] = ()  # rows of ``metrics`` over all users
    pairs: tuple[Mapping[str, Any], ...] = ()  # rows of ``comparisons`` over all users that verdicts follow from

    @property
    def is_blocked(self) -> bool:
        """True if a rule says that a model may not ship."""
        return bool(gates.failed(self.gates))


def run_night(
    spark: SparkSession,
    config: EvaluationConfig,
    evaluation_date: date,
    *,
    sample_share: float = 1.0,
    progress: Progress | None = None,
) -> NightResult:
    """Evaluate one date and publish its results, or leave the tables as they were.

    ``spark`` is a session with Delta. One of :func:`spark.session.on_demand` is not used, and so not started,
    where this process can read the inputs and compute the night.

    Raises ChecksFailedError if a check failed (FAILED is recorded in ``runs`` and nothing else changed); InputError if
    an input is missing, unreadable or wholly empty, or has no rows of a date that was published with means;
    ResultsBusyError if another run has this evaluation and date; ConfigError if a path lies outside the folders that
    the environment allows.
    """
    plan = NightPlan.of(config, evaluation_date, sample_share=sample_share)
    return prepare_night(spark, plan, progress=progress).publish()


def prepare_night(
    spark: SparkSession,
    plan: NightPlan,
    *,
    progress: Progress | None = None,
    publishing_first: PreparedNight | None = None,
) -> PreparedNight:
    """Run all of :func:`run_night` but the publish; what needs published nights waits for ``publishing_first``."""
    facts, results = plan.run(new_run_id()), plan.config.results
    with translated_errors(), ExitStack() as locks:
        store = ResultsStore.open(results.location, one_run_per_root=results.one_run_per_root)
        of_run = facts.evaluation, facts.evaluation_date, facts.run_id
        locks.enter_context(store.run_lock(*of_run, on_busy=results.on_busy, wait_seconds=results.wait_seconds))
        before = publishing_first
        recorded = store.start(facts, publishing=() if before is None else (before.recorded.facts.run_id,))
        history = RunHistory(plan.config, facts, wait=None if before is None else before.wait)
        try:
            host = choose_host(spark, plan, progress)
        except FaultsError as error:
            recorded.fail("read", error)
            raise
        night = PreparedNight(recorded, Steps(progress or Progress()), plan, host, history)
        night.compute()
        night.locks = locks.pop_all()
        return night


def spark_host(spark: SparkSession, plan: NightPlan, *, why: str = "", listener: Progress | None = None) -> NightHost:
    """Return the host of a night on Spark; UnsupportedSparkError, which says ``why`` it is needed, if it cannot run."""
    require_spark(why)
    if is_on_demand(spark):
        (listener or Progress()).begin("starting Spark")
        _ = spark.version  # start it here, so that its failure is not taken for one of an input
    from rankeval_spark.apps.nightly.host_on_spark import SparkHost  # noqa: PLC0415 - imports pyspark

    return SparkHost(spark, plan)


def choose_host(spark: SparkSession, plan: NightPlan, listener: Progress | None = None) -> NightHost:
    """Choose this process where it can compute a night, unless a session was started on purpose; else Spark."""
    if not is_on_demand(spark):
        return spark_host(spark, plan)
    why = why_wanted(spark)
    if why is None:
        try:
            inputs = open_inputs(plan.config, plan.request, plan.evaluation_date)
            of_quarantine = partial(spark_host, spark, why="results.quarantine, whose rows Spark writes")
            return ProcessHost(plan, inputs, of_quarantine)
        except ForSparkError as reason:
            why = str(reason)
    ahead = LookAhead(plan.config, plan.evaluation_date)
    ahead.require()
    try:
        return spark_host(spark, plan, why=why, listener=listener)
    except UnsupportedSparkError:
        ahead.look_at_rows().require()
        raise


def rehearse_night(
    spark: SparkSession, plan: NightPlan, rehearsal: Rehearsal, *, root: str, progress: Progress | None
) -> NightResult:
    """Compute a night as :func:`run_night` does, and publish nothing; checks and rules do without earlier nights."""
    history = RunHistory(plan.config, rehearsal.facts, is_alone=True, published_in=root)
    night = PreparedNight(rehearsal, Steps(progress or Progress()), plan, spark_host(spark, plan), history)
    night.compute()
    return night.publish()


@dataclass
class PreparedNight:
    """A night that is computed, staged and audited, and holds its locks: it ends once, by any thread."""

    recorded: StagedRun  # where its tables are staged, and who records what becomes of it
    steps: Steps
    plan: NightPlan
    runner: NightHost  # reads its inputs and computes its tables
    history: RunHistory
    locks: ExitStack = field(default_factory=ExitStack)
    is_over: Event = field(default_factory=Event)
    reason: str | None = None  # why nothing was measured
    facts: list[CheckCount] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    checks: pa.Table | None = None
    gates: list[dict[str, Any]] = field(default_factory=list)

    def compute(self) -> None:
        """Stage the tables and audit them, and let go of the rows."""
        with record_failures(self.recorded, self.steps, self._inputs):
            with self.runner:
                self.reason = self._stage_tables()
            with self.steps.step("audit"):
                self.recorded.audit()

    def publish(self) -> NightResult:
        """Publish what was staged, and give the locks back."""
        recorded, steps, facts = self.recorded, self.steps, self.recorded.facts
        try:
            with translated_errors(), self.locks:
                with record_failures(recorded, steps, self._inputs), steps.step("publish"):
                    recorded.publish(inputs=self._inputs(), timings=steps.seconds, reason=self.reason)
                of_checks = [_describe_warning(row) for row in self._rows_with_verdict("warn")]
                means, pairs = (
                    () if table is None else table.filter(pc.field(C.SLICE) == C.ALL_USERS).to_pylist()
                    for table in map(recorded.rows.get, (schemas.METRICS.name, schemas.COMPARISONS.name))
                )
                return NightResult(
                    facts.evaluation,
                    facts.evaluation_date,
                    facts.run_id,
                    recorded.n_rows,
                    steps.seconds,
                    self.reason,
                    (*of_checks, *self.history.warnings),
                    tuple(self.gates),
                    () if self.checks is None else tuple(self.checks.to_pylist()),
                    tuple(means),
                    tuple(row for row in pairs if row["test"] in C.DECIDING),
                )
        finally:
            self.is_over.set()

    def abandon(self, cause: BaseException) -> None:
        """Record that it failed for ``cause`` instead, and give the locks back."""
        try:
            with self.locks:
                record_failure(self.recorded, self.steps, self._inputs(), cause)
        finally:
            self.is_over.set()

    def wait(self) -> None:
        """Wait until it is published, or is not because that failed."""
        self.is_over.wait()

    def _inputs(self) -> Sequence[InputRecord]:
        return [
            InputRecord(
                read.name, read.location, read.format, read.version, self.counts.get(read.name), read.table_columns
            )
            for read in self.runner.inputs
        ]

    def _stage_tables(self) -> str | None:
        """Fill the staging area; return why there is nothing to measure, if so.

        The log is read once: its rows are checked while they are evaluated, and what is staged is published only if
        all checks pass.
        """
        with self.steps.step("read"):
            cost = self.runner.read()
            self.steps.listener.say(str(cost))
            cost.require_at_most(self.plan.config.results.most_rows)
            refuse_unknown_baseline(self.plan.request, self.runner.host.models, where="comparisons.baseline")
        try:
            self.runner.stage_users(self.recorded, self.steps)
        except Exception as error:
            if interruption(error) is not None:
                raise
            self._check_inputs()  # what is wrong with the inputs says more than what failed for it
            raise
        reason = self._check_inputs()
        if reason is None:
            self._stage_measures()
        else:  # nothing is measured, unless lists of named models are missing, or means were published before
            if self.plan.request.models is not None:
                self.facts += [fact for fact in self.runner.list_facts() if fact.check == check_rows.MISSING_USERS]
                self._refuse_failed_checks()
            self.history.require_no_means(reason)
            self.recorded.discard()
        self.recorded.stage(schemas.CHECKS.name, self._judge_checks())
        return reason

    def _check_inputs(self) -> str | None:
        """Count what the rows show, and refuse them where a check says so; return why there is nothing, if so."""
        with self.steps.step("check") as step:
            facts = self.runner.input_facts()
            self.counts = {fact.input: fact.count for fact in facts if fact.check == check_rows.ROWS}
            # How many the segments have is for `runs` alone.
            self.facts = [fact for fact in facts if (fact.input, fact.check) != (check_rows.SEGMENTS, check_rows.ROWS)]
            for read in self.runner.inputs:  # a column that nothing reads is harmless, and may be one that is misspelt
                counts = len(read.unread), read.n_columns, read.unread[:MAX_COLUMNS]
                self.facts.append(CheckCount(read.name, check_rows.EXTRA_COLUMNS, *counts))
            n_candidates = self.plan.config.inputs.recommendations.sampled_candidates
            if n_candidates is not None:  # which readers of the results cannot see
                words = f"lists rank {n_candidates:,} sampled candidates: "
                words += "no value or order of models holds for the whole catalogue"
                self.facts.append(CheckCount(check_rows.RECOMMENDATIONS, check_rows.SAMPLED_CANDIDATES, 1, 1, [words]))
            self.facts += self.history.check_volume(self.counts)
            step.n_rows = sum(fact.count for fact in self.facts if fact.check == check_rows.ROWS)
            reason = self._why_empty()
            if reason is not None:  # to join with nothing says nothing
                of_both = (check_rows.UNMATCHED_ITEMS, row_kinds.UNMATCHED_LISTS)
                self.facts = [fact for fact in self.facts if fact.check not in of_both]
            # What cannot be used is kept before anything is refused for it.
            has_refused = any(fact.count and fact.check in FAULTS for fact in self.facts)
            is_needed = self.plan.config.results.quarantine and has_refused
            self.recorded.quarantine(self.runner.write_refused if is_needed else None)
            self._refuse_failed_checks(*self._find_unusable_inputs())
        return reason

    def _stage_measures(self) -> None:
        """Look at the lists, and stage what follows from the rows of users."""
        runner = self.runner
        self.facts += runner.list_facts()
        request, comparisons = self.plan.request, runner.comparisons
        if comparisons is not None and request.comparisons is not None:
            are_judged = any(fact.check == row_kinds.UNMATCHED_LISTS for fact in self.facts)
            if request.comparisons.covariate is not None:
                with self.steps.step("adjust") as step:
                    if self.history.wait is not None:  # the earlier night may be about to be published
                        self.history.wait()
                    of_run = (self.history.root, self.recorded, request, comparisons)
                    comparisons, warnings = adjust_by_covariates(*of_run, has_judged_lists=are_judged)
                    self.history.warnings.extend(warnings)
                    step.n_rows = comparisons.num_rows
            if request.comparisons.nights > 1:
                with self.steps.step("pool") as step:
                    of_night = self.recorded, request, runner.metrics
                    pooled = pool_nights(self.history, *of_night, has_judged_lists=are_judged)
                    step.n_rows = 0 if pooled is None else pooled.num_rows
                comparisons = comparisons if pooled is None else pa.concat_tables([comparisons, pooled])
        stage_results(self.recorded, runner.metrics, comparisons, request, steps=self.steps)
        if (examples := runner.examples) is not None:
            self.recorded.stage(schemas.EXAMPLES.name, examples)
        metrics = self.recorded.rows.get(schemas.METRICS.name)
        with self.steps.step("drift"):
            self.facts += [] if metrics is None else self.history.check_means(metrics)
        self._refuse_failed_checks()
        if self.plan.config.gates:  # whatever the rules say, the results are published
            with self.steps.step("gate") as step:
                previous = self.history.previous(self.recorded)
                self.gates = gates.judge_staged(self.plan.config, self.recorded, previous, self.history.verdicts())
                rows = pa.Table.from_pylist(self.gates, schema=arrow_schema(schemas.GATES))
                self.recorded.stage(schemas.GATES.name, rows)
                step.n_rows = len(self.gates)

    def _judge_checks(self) -> pa.Table:
        expected = self.plan.request.policies.expected_findings
        return check_rows.to_check_rows(self.facts, self.plan.config.checks, expected=expected)

    def _refuse_failed_checks(self, *unusable_inputs: Fault) -> None:
        """Stop where a check says so, or an input cannot be used."""
        self.checks = self._judge_checks()
        failed = self._rows_with_verdict("error")
        if failed or unusable_inputs:
            is_early = not unusable_inputs and {row["check"] for row in failed} == {check_rows.OPEN_WINDOWS}
            raise (OpenWindowsError if is_early else ChecksFailedError)(
                *unusable_inputs, *map(self._check_fault, failed)
            )

    def _rows_with_verdict(self, verdict: str) -> list[CheckRow]:
        """Return the rows of the checks with a verdict."""
        if self.checks is None:
            return []
        rows: list[CheckRow] = self.checks.filter(pc.field("verdict") == verdict).to_pylist()
        return rows

    def _find_unusable_inputs(self) -> list[Fault]:
        """Find inputs that have rows and none that can be used, whatever the thresholds of the checks are."""
        faults = []
        for name, n_rows in self.counts.items():
            found = {fact.check: fact.count for fact in self.facts if fact.input == name and fact.count}
            reasons = {reason: found[reason] for reason in UNUSABLE if reason in found}
            if n_rows and sum(reasons.values()) == n_rows:
                counted = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
                text = f"{n_rows} rows and none that can be used ({counted})"
                faults.append(Fault(f"inputs.{name}", text, EXPECTED[name], fix_of(reasons)))
        return faults

    def _check_fault(self, row: CheckRow) -> Fault:
        """Return the fault of a check that refuses the night."""
        check, where, expected = row["check"], f"{row['input']}, {row['check']}", f"at most {row['threshold']:.2%}"
        is_kept = self.plan.config.results.quarantine and check in FAULTS
        kept = f", whose rows are in {self.recorded.quarantine_path}" if is_kept else ""
        fix = f"fix the input{kept}, or raise checks.{check}.error"
        if check == check_rows.OPEN_WINDOWS:  # the night ran before all of its events could be there
            ends = [key for fact in self.facts if fact.check == check_rows.EVENTS_END for key in fact.sample_keys]
            found = f"{row['count']:,} lists ({row['share']:.2%}) whose attribution window was not over; "
            return Fault(where, found + "".join(ends), OVER, OPEN_FIX)
        if check == check_rows.MISSING_USERS and row["share"] >= 1:  # the name is misspelt, or the log is lost
            (model,) = row["sample_keys"]
            names = self.runner.models(at_most=_MODELS_SHOWN)
            missing = [model] if names else self.plan.request.models or [model]
            listed, of_log = (", ".join(visible(str(name)) for name in each) for each in (missing, names))
            found = f"no list of {listed} for any of {row['count']:,} judged users; the log of this date has "
            found += of_log or " of ".join(filter(None, ("no row", self._share)))
            hint = nearest(model, map(str, names)) if model not in names else ""
            fix = "; ".join(filter(None, (hint, f"fix the input or models, or raise checks.{check}.error")))
            return Fault(where, found, f"{expected} without one", fix)
        if check == ZERO_RANKS:
            expected = ZERO_RANK_EXPECTED
            fix = f"write ranks_from: 0 in inputs.{check_rows.RECOMMENDATIONS}, or {fix}"
        if check in check_rows.OF_WEIGHTS:
            expected = check_rows.OF_WEIGHTS[check]
        if row["input"] == check_rows.ITEMS and check in _OF_CATALOGUE:
            expected, fix = _OF_CATALOGUE[check]
        if check in check_rows.ADVICE:
            fix = f"{fix}; {check_rows.ADVICE[check]}"
        if check in check_rows.OF_NIGHTS:
            fix = f"find out what changed; if the change is meant, raise checks.{check}.error"
        return Fault(where, _describe_count(row), expected, fix)

    def _why_empty(self) -> str | None:
        """Return which input has no rows for the date; an input without any row at all is an error."""
        needed = (check_rows.RECOMMENDATIONS, check_rows.HELD_OUT)
        empty = [read for read in self.runner.inputs if read.name in needed and self.counts.get(read.name) == 0]
        others = [read for read in self.runner.inputs if read.name not in needed and not self.counts.get(read.name)]
        wholly = [read for read in (*empty, *others) if self.runner.has_no_row(read.name)]
        if wholly:
            raise InputError(*(no_row_fault(read.name, read.location) for read in wholly))
        if not empty:
            return None
        # A reader must not take a small sample for a missing log.
        models = self.plan.request.models
        limits = "; ".join(filter(None, [f"models {', '.join(models)}" if models else "", self._share]))
        reason = empty_reason(self.plan.evaluation_date, [read.name for read in empty])
        return f"{reason} (looked for: {limits})" if limits else reason

    @property
    def _share(self) -> str:
        """The share of a sample of the users in words; empty where it is no sample."""
        return f"{self.plan.sample_share:.4g} of the users" if self.plan.sample_share < 1 else ""


def _describe_warning(row: CheckRow) -> str:
    """Return the line about a check that warns."""
    advice = f"; {check_rows.ADVICE[row['check']]}" if row["check"] in check_rows.ADVICE else ""
    return f"{row['input']}, {row['check']}: {_describe_count(row)}{advice}"


def _describe_count(row: CheckRow) -> str:
    """Write how often a check met its case, with a few of the keys concerned."""
    examples = f", for example {'; '.join(map(visible, row['sample_keys']))}" if row["sample_keys"] else ""
    return f"{row['count']:,} ({row['share']:.2%}){examples}"


def planned_inputs(spark: SparkSession, plan: NightPlan) -> tuple[list[tuple[ReadInput, int | None, int | None]], Cost]:
    """Open every input, and return its rows and files, where they are cheap to count, and the cost of the night.

    Raises ConfigError if the night has more rows than it may, or the baseline is no model of the log.
    """
    with choose_host(spark, plan) as runner:
        cost = runner.read()
        cost.require_at_most(plan.config.results.most_rows)
        refuse_unknown_baseline(plan.request, runner.host.models, where="comparisons.baseline")
        sizes = [  # of formats with statistics or footers
            runner.look_up_size(read.name)
            if read.format in ("delta", "parquet") and plan.sample_share >= 1
            else (None, None)
            for read in runner.inputs
        ]
        return [(read, *size) for read, size in zip(runner.inputs, sizes, strict=True)], cost

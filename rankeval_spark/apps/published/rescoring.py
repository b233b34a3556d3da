"""Published lists of past dates, scored with measures that were not computed then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import __version__, columns as C, schemas
from rankeval_spark.apps.covariates import adjust_by_covariates
from rankeval_spark.apps.nightly.night import NightResult
from rankeval_spark.apps.nightly.night_plan import (
    has_judged_lists,
    new_run_id,
    plan_again,
    record_failures,
    stage_results,
)
from rankeval_spark.apps.progress import Progress, Steps
from rankeval_spark.apps.published_runs import PastNight, published_nights
from rankeval_spark.config.presets import measure_gap_faults
from rankeval_spark.config.request import request_of
from rankeval_spark.config.requested_measures import judgement_faults, tie_faults
from rankeval_spark.engine.planning import build_outputs
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InputError
from rankeval_spark.inputs.arrow.file_inputs import open_inputs
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.results import InputRecord, Results, ResultsStore, results_of
from rankeval_spark.results.published_results import DELETED, FIX
from rankeval_spark.sums import sums
from rankeval_spark.sums.published import PublishedLists

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import StagedRun


def past_nights(
    root: str,
    *,
    evaluation: str | None = None,
    dates: Sequence[date] = (),
    needs: frozenset[str] = frozenset(),
) -> list[PastNight]:
    """List the published nights that can be scored again, with the facts ``needs``; InputError for all others."""
    nights = published_nights(root, evaluation=evaluation, dates=dates)
    measured = [night for night in nights if not night.is_empty]
    fix = "set results.lists: true and run the date again, or choose others with --date and --evaluation"
    without = [night for night in measured if not night.has_lists]
    faults = [Fault(str(night), "no published lists", "the lists of the night", fix) for night in without]
    deletions = results_of(root).deleted(evaluation=evaluation)
    without_lists = {key for key, tables in deletions.items() if schemas.LISTS.name in tables}
    deleted = [
        night for night in nights if (night.evaluation, night.evaluation_date) in without_lists and night not in without
    ]
    if deleted:  # most nights of a year: one sentence for all
        where = str(deleted[0]) if len(deleted) == 1 else f"{len(deleted)} nights, {deleted[0]} to {deleted[-1]}"
        fix = f"{FIX}, or choose others with --date"
        faults.append(Fault(where, f"no lists: {DELETED}", "the lists of the night", fix))
    fix = "run the date again with such a measure in its config"
    faults = faults or [  # a night has the facts that its own measures needed
        Fault(str(night), f"lists without {fact}", f"{fact}, which a requested measure reads", fix)
        for night in measured
        for fact in sorted((needs - night.measures.needs) & {C.HIT_SCORES})
    ]
    if faults:
        raise InputError(*faults)
    return nights


def unchanged_dates(spark: SparkSession, config: EvaluationConfig, dates: Sequence[date]) -> set[date]:
    """Find dates that a run would publish again just as they are: same config, code, and versions of all inputs."""
    try:
        inputs: Sequence[Any] = open_inputs(config, request_of(config, max(dates)), max(dates))
    except ForSparkError:
        from rankeval_spark.inputs.spark.reading import read_all  # noqa: PLC0415 - imports pyspark

        inputs = read_all(spark, config, max(dates)).all()
    versions = {each.name: each.version for each in inputs}
    if None in versions.values():
        return set()
    try:
        nights = past_nights(config.results.location, evaluation=config.evaluation)
    except FaultsError:  # nothing was published there yet
        return set()
    expected = (config.config_hash, __version__, versions)
    unchanged = {night.evaluation_date for night in nights if night.read == expected and not night.was_scored_again}
    return unchanged & set(dates)


def score_night(root: str, night: PastNight, measures: MeasureSet, *, progress: Progress | None = None) -> NightResult:
    """Score the published lists of a night with its own measures and some more, and publish the whole again.

    Inputs are not read; lists, segments and policies are those of the night. Its values do not change.

    Raises InputError as :func:`past_nights`: what is scored is what is published once the night is ours, and another
    run may have replaced what ``night`` was read from.
    """
    steps, run_id = Steps(progress or Progress()), new_run_id()
    one_run_per_root = night.config.results.one_run_per_root
    store = ResultsStore.open(root, create=False, one_run_per_root=one_run_per_root)
    with store.run_lock(night.evaluation, night.evaluation_date, run_id):
        store.finish_pending(run_id)
        dates = [night.evaluation_date]
        (now,) = past_nights(root, evaluation=night.evaluation, dates=dates, needs=measures.needs)
        if now.is_empty:
            raise InputError(Fault(f"{now}", f"no rows ({now.row['reason']})", "the lists of the night"))
        plan = plan_scoring(now, measures)
        run = store.start(plan.run(run_id))
        inputs = [InputRecord(**each, columns=now.input_columns.get(each["name"])) for each in now.row["inputs"]]
        with record_failures(run, steps, lambda: inputs):
            results = results_of(root)
            found = _stage_users(run, steps, now, plan.request, results)
            _stage_rest(root, run, steps, now, plan.request, results, found)
            with steps.step("audit"):
                run.audit()
            with steps.step("publish"):
                reason = f"scored again, after run {now.row[C.RUN_ID]}"
                run.publish(inputs=inputs, timings=steps.seconds, reason=reason)
    return NightResult(now.evaluation, now.evaluation_date, run_id, run.n_rows, steps.seconds)


def _stage_rest(
    root: str,
    run: StagedRun,
    steps: Steps,
    night: PastNight,
    request: Request,
    results: Results[Any],
    found: Mapping[str, pa.Table],
) -> None:
    """Stage what follows from the sums that were found; what does not follow from them stays as it was."""
    of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
    tables = [schemas.METRICS.name, schemas.GATES.name, schemas.CHECKS.name]
    metrics, *others = (results.arrow(name, **of_night).drop_columns(list(C.RUN_KEY)) for name in tables)
    labels = [each.label for each in request.measure_set.exposures]  # of all lists together
    schema = arrow_schema(schemas.METRICS)
    stay = metrics.filter(pc.is_in(metrics[C.MEASURE], pa.array(labels, pa.string()))).select(schema.names)
    means = [found[sums.METRICS]] if sums.METRICS in found else []
    compared = found.get(sums.COMPARISONS)
    if compared is not None:  # nights before it are not read again, but for one that is a covariate
        are_judged, of_run = has_judged_lists(results, night), (root, run, request, compared)
        compared, _ = adjust_by_covariates(*of_run, has_judged_lists=are_judged)
        pooled = results.arrow(schemas.COMPARISONS.name, **of_night, test=C.POOLED)
        compared = pa.concat_tables([compared, pooled.select(compared.column_names).cast(compared.schema)])
    stage_results(run, pa.concat_tables([stay.cast(schema), *means]), compared, request, steps=steps)
    if schemas.EXAMPLES.name in night.row["n_rows"]:
        tables.append(schemas.EXAMPLES.name)
        others.append(results.arrow(schemas.EXAMPLES.name, **of_night).drop_columns(list(C.RUN_KEY)))
    for name, rows in zip(tables[1:], others, strict=True):  # what is not staged would have no rows afterwards
        run.stage(name, rows)


def _plan_sums(
    request: Request, night: PastNight, results: Results[Any], *, has_one_list: bool
) -> tuple[PublishedLists, sums.ListTotals]:
    """Plan what is made of the lists: rows of users, means and comparisons."""
    are_judged = has_judged_lists(results, night)
    outputs = build_outputs(request, averages_lists=not has_one_list, has_judged_lists=are_judged)
    lists = PublishedLists(outputs, tuple(request.segments))
    return lists, sums.ListTotals(lists, sums.result_sums(request, outputs), tables=(sums.USER_ROWS,))


def _stage_users(
    run: StagedRun, steps: Steps, night: PastNight, request: Request, results: Results[Any]
) -> Mapping[str, pa.Table]:
    """Stage lists and rows of users, some users at a time; return the sums."""
    lists = results.scan(schemas.LISTS.name, date=night.evaluation_date, evaluation=night.evaluation)
    with steps.step("match") as step:
        with run.staged_in_parts(schemas.LISTS.name) as staged:
            for batch in lists.to_batches():
                staged.add(pa.Table.from_batches([batch]).drop_columns(list(C.RUN_KEY)))
        step.n_rows = run.n_rows[schemas.LISTS.name]
    has_one_list = lists.filter(pc.field(C.LIST_ID) != C.ONE_LIST).count_rows() == 0
    source, totals = _plan_sums(request, night, results, has_one_list=has_one_list)
    partials = []
    with steps.step("score") as step:
        with run.staged_in_parts(schemas.USER_METRICS.name) as staged:
            for name, rows in totals.add(lists.to_batches(columns=source.columns)):
                if name == sums.USER_ROWS:
                    staged.add(pa.Table.from_batches([rows]))
                else:
                    partials.append((name, rows))
        step.n_rows = run.n_rows[schemas.USER_METRICS.name]
    return sums.finish_sums(totals.sums, partials)


def plan_scoring(night: PastNight, measures: MeasureSet) -> NightPlan:
    """Plan a night with its own measures and some more.

    Raises ConfigError for measures that do not go with the policies of the night, or are of all lists together;
    InputError for measures that need more than the published lists.
    """
    if measures.exposures:  # published lists have the judged items, and do not tell which items were recommended
        names, fix = ", ".join(map(str, measures.exposures)), "add them to the config and run the date again"
        raise ConfigError(Fault("--measure", names, "measures that the published lists are enough for", fix))
    config = night.config
    plan = plan_again(night, config, MeasureSet.of((*night.measures.measures, *measures.measures)))
    policies, both = plan.request.policies, plan.request.measure_set
    faults = [*tie_faults(measures, policies.ties), *judgement_faults(measures, policies)]
    faults += measure_gap_faults(measures, policies, config.preset)
    if faults:
        raise ConfigError(*(replace(fault, where="--measure") for fault in faults))
    requiring, of_catalogue = both.requiring(), [each.label for each in both.per_list if each.needs_catalogue]
    if of_catalogue:
        requiring["items or train"] = of_catalogue
    if requiring:
        labels = dict.fromkeys(label for each in requiring.values() for label in each)
        found = f"{', '.join(labels)}, which need {', '.join(requiring)}"
        raise InputError(Fault(str(night), found, "measures of the published lists", "run the date again with them"))
    return plan

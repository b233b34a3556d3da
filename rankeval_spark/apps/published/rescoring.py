"""Score published lists of past dates with measures that were not computed then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from rankeval_spark import __version__, columns as C, schemas
from rankeval_spark.apps.nightly.night import NightResult
from rankeval_spark.apps.nightly.night_plan import new_run_id
from rankeval_spark.apps.progress import Progress, Steps
from rankeval_spark.apps.published.recorded_plan import plan_again
from rankeval_spark.apps.published.rescored_night import RescoredHere, RescoredNight
from rankeval_spark.apps.published_runs import PastNight, published_nights
from rankeval_spark.config.cross_checks import judgement_faults, tie_faults
from rankeval_spark.config.presets import measure_gap_faults
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InputError
from rankeval_spark.inputs.arrow.file_inputs import open_inputs
from rankeval_spark.inputs.arrow.files import ForSparkError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results, ResultsStore, results_of
from rankeval_spark.results.published_results import DELETED, FIX
from rankeval_spark.results.readers import is_native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night_plan import NightPlan
    from rankeval_spark.config import EvaluationConfig


def past_nights(
    spark: SparkSession | None,
    root: str,
    *,
    evaluation: str | None = None,
    dates: Sequence[date] = (),
    needs: frozenset[str] = frozenset(),
) -> list[PastNight]:
    """List the published nights that can be scored again; ``needs`` are the facts that their lists must hold.

    Raises
    ------
    InputError
        As :func:`published_nights`, and if one of the nights is without its lists or those facts.
    """
    nights = published_nights(spark, root, evaluation=evaluation, dates=dates)
    _refuse_without_lists(nights, results_of(spark, root).deleted(evaluation=evaluation))
    _refuse_without_facts(nights, needs)
    return nights


def unchanged_dates(spark: SparkSession, config: EvaluationConfig, dates: Sequence[date]) -> set[date]:
    """Find the dates that a run would publish again just as they are: same config, same code, same input versions.

    Only versioned inputs are known to be the same; with others, no date is.
    """
    versions = _versions(spark, config, max(dates))
    if None in versions.values():
        return set()
    try:
        nights = past_nights(spark, config.results.location, evaluation=config.evaluation)
    except FaultsError:  # nothing was published there yet
        return set()
    expected = (config.config_hash, __version__, versions)
    return {night.evaluation_date for night in nights if night.read == expected and not night.was_scored_again} & set(
        dates
    )


def _versions(spark: SparkSession, config: EvaluationConfig, day: date) -> dict[str, int | None]:
    """Look up the versions of the inputs, in this process where it can."""
    try:
        inputs: Sequence[Any] = open_inputs(config, request_of(config, day), day)
    except ForSparkError:
        from rankeval_spark.inputs.spark import read_all  # noqa: PLC0415 - imports pyspark

        inputs = read_all(spark, config, day).all()
    return {one.name: one.version for one in inputs}


def score_night(
    spark: SparkSession, root: str, night: PastNight, measures: MeasureSet, *, progress: Progress | None = None
) -> NightResult:
    """Score the published lists of a night with its own measures and some more, and publish the whole again.

    Inputs are not read; lists, segments and policies are those of the night. Its values do not change.

    Raises
    ------
    InputError
        As :func:`past_nights`: what is scored is what is published once the night is ours, and another run may have
        replaced what ``night`` was read from.
    """
    steps = Steps(progress or Progress())
    run_id = new_run_id()
    one_run_per_root = night.config.results.one_run_per_root
    store = ResultsStore.open(spark, root, create=False, one_run_per_root=one_run_per_root)
    with store.run_lock(night.evaluation, night.evaluation_date, run_id):
        store.finish_pending(run_id)
        now = _as_it_is_now(spark, root, night, measures)
        plan = plan_scoring(now, measures)
        run = store.start(plan.run(run_id))
        scoring = _rescored(spark, root)(run, steps, now, plan.request)
        scoring.compute()
        scoring.publish_staged()
    return NightResult(now.evaluation, now.evaluation_date, run_id, run.n_rows, steps.seconds)


def _rescored(spark: SparkSession, root: str) -> Callable[..., RescoredNight]:
    """Choose who scores the lists: this process where it reads and writes the root, else Spark."""
    if is_native(root):
        return partial(RescoredHere, results=Results(root))
    from rankeval_spark.apps.published.rescored_on_spark import RescoredOnSpark  # noqa: PLC0415 - imports pyspark

    return partial(RescoredOnSpark, results=Results(spark, root))


def _as_it_is_now(spark: SparkSession, root: str, night: PastNight, measures: MeasureSet) -> PastNight:
    dates = [night.evaluation_date]
    (now,) = past_nights(spark, root, evaluation=night.evaluation, dates=dates, needs=measures.needs)
    if now.is_empty:
        raise InputError(Fault(f"{now}", f"no rows ({now.row['reason']})", "the lists of the night"))
    return now


def plan_scoring(night: PastNight, measures: MeasureSet) -> NightPlan:
    """Plan a night with its own measures and some more.

    Raises
    ------
    ConfigError
        Measures that do not go with the policies of the night, or of all lists together.
    InputError
        Measures that need more than the published lists.
    """
    _refuse_exposures(measures)
    config = night.config
    plan = plan_again(night, config, MeasureSet.of((*night.measures.measures, *measures.measures)))
    policies = plan.request.policies
    faults = [*tie_faults(measures, policies.ties), *judgement_faults(measures, policies)]
    faults += measure_gap_faults(measures, policies, config.preset)
    if faults:
        raise ConfigError(*(replace(fault, where="--measure") for fault in faults))
    _refuse_inputs(night, plan.request.measures)
    return plan


def _refuse_without_lists(nights: Sequence[PastNight], deleted: Mapping[tuple[str, date], frozenset[str]]) -> None:
    """Refuse all at once, before the first of them is scored."""
    without = [night for night in nights if not night.is_empty and not night.has_lists]
    fix = "set results.lists: true and run the date again, or choose others with --date and --evaluation"
    faults = [Fault(str(night), "no published lists", "the lists of the night", fix) for night in without]
    gone = [
        night
        for night in nights
        if schemas.LISTS.name in deleted.get((night.evaluation, night.evaluation_date), ()) and night not in without
    ]
    if gone:  # most nights of a year: one sentence for all
        where = str(gone[0]) if len(gone) == 1 else f"{len(gone)} nights, {gone[0]} to {gone[-1]}"
        faults.append(
            Fault(where, f"no lists: {DELETED}", "the lists of the night", f"{FIX}, or choose others with --date")
        )
    if faults:
        raise InputError(*faults)


def _refuse_without_facts(nights: Sequence[PastNight], needs: frozenset[str]) -> None:
    """Refuse likewise; a night holds what its own measures needed."""
    fix = "run the date again with such a measure in its config"
    faults = [
        Fault(str(night), f"lists without {fact}", f"{fact}, which a measure asked for reads", fix)
        for night in nights
        if not night.is_empty
        for fact in sorted((needs - night.measures.needs) & {C.HIT_SCORES})
    ]
    if faults:
        raise InputError(*faults)


def _refuse_exposures(measures: MeasureSet) -> None:
    """Refuse what published lists cannot tell: they hold the judged items, not which items were recommended."""
    fix = "add them to the config and run the date again"
    names = ", ".join(map(str, measures.exposures))
    if names:
        raise ConfigError(Fault("--measure", names, "measures that the published lists are enough for", fix))


def _refuse_inputs(night: PastNight, measures: MeasureSet) -> None:
    """Refuse measures that read more than the published lists hold."""
    requiring = measures.requiring()
    of_catalogue = [one.label for one in measures.per_list if one.needs_catalogue]
    if of_catalogue:
        requiring["items or train"] = of_catalogue
    if requiring:
        labels = dict.fromkeys(label for each in requiring.values() for label in each)
        found = f"{', '.join(labels)}, which need {', '.join(requiring)}"
        raise InputError(Fault(str(night), found, "measures of the published lists", "run the date again with them"))

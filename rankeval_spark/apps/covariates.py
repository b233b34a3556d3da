"""Earlier values of the users of an A/B test as covariates: ``comparisons.covariate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.errors import ConfigError, Fault, InputError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results
from rankeval_spark.results.table_scans import DamagedResultsError
from rankeval_spark.statistics.paired_tests import MIN_SHARE

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure
    from rankeval_spark.results import StagedRun

_PAIR: Final = (C.BASELINE_MODEL_ID, C.MODEL_ID)
_COUNTS: Final = ("n_with_baseline", "n_with_model", "n_with_both")


def adjust_by_covariates(
    root: str, run: StagedRun, request: Request, comparisons: pa.Table, *, has_judged_lists: bool
) -> tuple[pa.Table, list[str]]:
    """Compare the models of an A/B test by what the users' values on an earlier night do not explain.

    ``comparisons`` are rows of the run, whose rows of users are staged. Returned are all of them, changed where the
    test is ``unpaired``, and warnings of what is compared without covariates: measures that were defined otherwise
    then. Raises ConfigError if the A/B test ran on that night already.
    """
    asked = request.comparisons
    if asked is None or asked.covariate is None:
        return comparisons, []
    where, results, facts = f"comparisons.covariate: {asked.covariate}", Results(root), run.facts
    without = "; models are compared without covariates"
    try:
        (night,) = published_nights(root, evaluation=facts.evaluation, dates=[asked.covariate])
    except InputError:
        return comparisons, [f"{where} has no published night{without}"]
    of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
    gone = results.deleted(**of_night).get((night.evaluation, night.evaluation_date), ())
    if night.is_empty or schemas.USER_METRICS.name in gone or schemas.USER_METRICS.name not in run.n_rows:
        return comparisons, [f"{where} has no rows of users, or this night publishes none{without}"]
    _refuse_night_of_the_test(night, results, request)
    alike = {key for key, definition in facts.definitions.items() if definition == night.definitions.get(key)}
    columns = request.measure_set.comparable
    measures = [
        each for each in request.measure_set.measures if (each.label, each.k) in alike and each.column in columns
    ]
    warnings = [
        f"{where} has no {each} of the same definition{without}"
        for each in request.measure_set.measures
        if each.column in columns and each not in measures
    ]
    if not measures:
        return comparisons, warnings
    try:
        nights = [run.staging.scan(schemas.USER_METRICS.name), results.scan(schemas.USER_METRICS.name, **of_night)]
        return _adjust(nights, request, measures, comparisons, has_judged_lists=has_judged_lists), warnings
    except DamagedResultsError as error:
        if (night.evaluation, night.evaluation_date) not in error.nights:
            raise
        return comparisons, [f"{where} is damaged{without}: {fault}" for fault in error.faults]


def _refuse_night_of_the_test(night: PastNight, results: Results[Any], request: Request) -> None:
    """Refuse a night on which two of the models were split already: its config says so, or they shared no users."""
    arms = (request.comparisons.split if request.comparisons else None) or {}
    both = sorted(arms.keys() & ((night.recorded_config.get("comparisons") or {}).get("split") or {}).keys())
    columns, day = [*_PAIR, C.SLICE, *_COUNTS], night.evaluation_date
    compared = results.arrow(schemas.COMPARISONS.name, date=day, evaluation=night.evaluation, columns=columns)
    for row in compared.filter(pc.field(C.SLICE) == C.ALL_USERS).to_pylist():
        pair, (n_baseline, n_model, n_both) = sorted(row[name] for name in _PAIR), (row[name] for name in _COUNTS)
        if arms.keys() >= set(pair) and None not in (n_baseline, n_model, n_both):
            both = pair if MIN_SHARE * n_both < min(n_baseline, n_model) else both
    if both[1:]:
        found = f"{night.evaluation_date}, on which {' and '.join(both)} had different users already"
        fix = "name a night before the A/B test, or remove it"
        raise ConfigError(Fault("comparisons.covariate", found, "a night before the A/B test", fix))


def _adjust(
    nights: list[Any],  # rows of users of this night and of the earlier one
    request: Request,
    measures: list[Measure],
    comparisons: pa.Table,
    *,
    has_judged_lists: bool,
) -> pa.Table:
    """Add up the users of both nights, a bucket of whole users at a time, and replace the rows of the A/B test."""
    from rankeval_spark.engine.planning import build_outputs  # noqa: PLC0415 - imports the engine
    from rankeval_spark.result_rows.comparison_rows import build_comparison_rows  # noqa: PLC0415 - as above
    from rankeval_spark.sums.published import CovariateDifferences, UserTotals, sum_users  # noqa: PLC0415 - as above
    from rankeval_spark.sums.sums import COMPARISONS  # noqa: PLC0415 - as above

    of_measures = request.copy_with(measure_set=MeasureSet.of(measures), primary=request.primary)
    outputs = build_outputs(of_measures, averages_lists=True, has_judged_lists=has_judged_lists)
    sums = {COMPARISONS: CovariateDifferences(of_measures, outputs)}
    totals = UserTotals(of_measures.measure_set, sums, tuple(request.segments), request.policies.unit, n_nights=2)
    adjusted = sum_users(nights, totals).get(COMPARISONS)
    rows = build_comparison_rows(request, weights=outputs.denominators)
    return comparisons if adjusted is None else rows.with_covariates(comparisons, adjusted)

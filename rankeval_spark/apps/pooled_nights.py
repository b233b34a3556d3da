"""Models compared over the last nights: the rows of ``comparisons`` that ``comparisons.nights`` asks for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.published_runs import read_means
from rankeval_spark.apps.run_history import LEFT_OUT
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results
from rankeval_spark.results.table_scans import DamagedResultsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.apps.run_history import RunHistory
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import RunRecord, StagedRun

_PAIR: Final = (C.BASELINE_MODEL_ID, C.MODEL_ID)


def pool_nights(
    history: RunHistory, run: StagedRun, request: Request, metrics: pa.Table, *, has_judged_lists: bool
) -> pa.Table | None:
    """Compare the models of a run over its night and those before it; None where nothing is pooled.

    ``metrics`` are the rows of the run, whose rows of users are staged. Returned are rows of ``schemas.COMPARISONS``
    without the key of the run: all users, and measures that are means over users. A night counts for a measure that was
    defined alike then, and for two models that both had values. ``history`` gets a warning of what is left out.
    """
    asked, facts = request.comparisons, history.facts
    if asked is None or asked.nights == 1 or schemas.USER_METRICS.name not in run.n_rows:
        return None
    if asked.split:
        history.warnings.append("comparisons.nights: models of comparisons.split have no users in common to be pooled")
        return None
    results, earlier = Results(history.config.results.location), history.newest(asked.nights - 1)
    days = [night.evaluation_date for night in earlier]
    gone = results.deleted(date=days, evaluation=facts.evaluation) if days else {}
    for night in [*earlier]:
        if schemas.USER_METRICS.name in gone.get((night.evaluation, night.evaluation_date), ()):
            history.warnings.append(f"{LEFT_OUT}: {night}, whose users rankeval maintain deleted")
            earlier.remove(night)
    if not request.pooled_measures:
        history.warnings.extend(request.comparison_notes)
        return None
    keys = {key for night in earlier for key, then in night.definitions.items() if then == facts.definitions.get(key)}
    measures = [each for each in request.pooled_measures if (each.label, each.k) in keys]
    if not measures:
        none_alike = "comparisons.nights: no measure is defined as on a night before, so none is pooled"
        history.warnings.extend([none_alike] if earlier else [])
        return None
    pooled = request.copy_with(
        measure_set=MeasureSet.of(measures),
        primary=request.primary,
        slices=[],
        comparisons=asked.model_copy(update={"tests": ("t",)}),
    )
    while earlier:
        try:
            of_nights = [
                results.scan(schemas.USER_METRICS.name, date=night.evaluation_date, evaluation=night.evaluation)
                for night in earlier
            ]
            means = read_means(history.config.results.location, facts.evaluation, earlier)
            there = pc.field(C.MODEL_ID).isin(metrics[C.MODEL_ID].unique())  # a model of earlier nights is not compared
            of_nights = [each.filter(there) for each in of_nights]
            tonight = run.staging.scan(schemas.USER_METRICS.name)
            rows = _compare([tonight, *of_nights], earlier, facts, pooled, metrics, has_judged_lists=has_judged_lists)
            return _with_nights(rows, [*metrics.to_pylist(), *means], earlier, facts)
        except DamagedResultsError as error:
            whole = [night for night in earlier if (night.evaluation, night.evaluation_date) not in error.nights]
            if len(whole) == len(earlier):
                raise
            history.warnings.extend(f"{LEFT_OUT}: {fault}" for fault in error.faults)
            earlier = whole
    return None


def _compare(
    users: Sequence[Any],  # rows of users of this night and of the earlier ones
    earlier: Sequence[PastNight],
    facts: RunRecord,
    request: Request,
    metrics: pa.Table,
    *,
    has_judged_lists: bool,
) -> pa.Table:
    """Add up the users of all nights, a bucket of whole users at a time."""
    from rankeval_spark.engine.planning import build_outputs  # noqa: PLC0415 - imports the engine
    from rankeval_spark.sums.published import PooledDifferences, UserTotals, sum_users  # noqa: PLC0415 - as above
    from rankeval_spark.sums.sums import COMPARISONS  # noqa: PLC0415 - as above

    outputs = build_outputs(request, averages_lists=True, has_judged_lists=has_judged_lists)
    differences = PooledDifferences(request, outputs, metrics)
    totals = UserTotals(request.measure_set, {COMPARISONS: differences}, n_nights=len(users))
    measures, now = request.measure_set.measures, facts.definitions
    without = {
        place: {
            each.column
            for each in measures
            if night.definitions.get((each.label, each.k), now[each.label, each.k]) != now[each.label, each.k]
        }
        for place, night in enumerate(earlier, 1)
    }
    return sum_users(users, totals, without=without)[COMPARISONS]


def _with_nights(
    rows: pa.Table, means: Sequence[Mapping[str, Any]], earlier: Sequence[PastNight], facts: RunRecord
) -> pa.Table:
    """Set on how many nights both models of each row have values of the measure as it is defined now."""
    definitions, now = {night.evaluation_date: night.definitions for night in earlier}, facts.definitions
    days: dict[tuple[str, str, int], set[date]] = defaultdict(set)
    for row in means:
        key, day = (row[C.MEASURE], row[C.K]), row.get(C.EVALUATION_DATE, facts.evaluation_date)
        if row[C.SLICE] == C.ALL_USERS and row["n_users"] and definitions.get(day, now).get(key) == now.get(key):
            days[row[C.MODEL_ID], *key].add(day)
    pairs = ([(row[name], row[C.MEASURE], row[C.K]) for name in _PAIR] for row in rows.to_pylist())
    found = [len(days[first] & days[second]) for first, second in pairs]
    column = rows.schema.get_field_index("nights")
    return rows.set_column(column, rows.schema.field(column), pa.array(found, pa.int32()))

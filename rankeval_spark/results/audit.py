"""The audit between staging and publishing: keys, numbers, and agreement between the tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault
from rankeval_spark.results.staged_rows import Key, Summary
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.results.run_record import MeasureRecord
    from rankeval_spark.results.staged_rows import StagedRows, Summaries
    from rankeval_spark.schemas import Schema

TOLERANCE: Final = 1e-9
"""Largest relative difference between a mean as published and as recomputed: room for the order of summation."""


def failed_checks(checks: pa.Table) -> list[Fault]:
    """Return faults of the checks whose verdict is error."""
    faults = []
    for row in checks.filter(pc.field("verdict") == "error").to_pylist():
        fix = f"for example {', '.join(row['sample_keys'][:3])}" if row["sample_keys"] else ""
        found, expected = f"{row['count']} ({row['share']})", f"a share of at most {row['threshold']}"
        faults.append(Fault(f"input {row['input']}, check {row['check']}", found, expected, fix))
    return faults


def refused_rows(staged: Mapping[str, StagedRows], schemas: Sequence[Schema]) -> list[Fault]:
    """Return faults of staged rows that the published tables would not take."""
    return [fault for schema in schemas if schema.name in staged for fault in staged[schema.name].refused(schema)]


def user_metrics(rows: StagedRows, metrics: pa.Table | None, measures: Sequence[MeasureRecord]) -> list[Fault]:
    """Return faults: values that are not finite or out of range, and means that differ from the per-user rows.

    One pass over ``user_metrics``; a second where a user has several lists, whose value is the mean over them (of means
    over lists, to count the users).
    """
    owners = {measure.column: measure for measure in measures if measure.column is not None}
    if not owners:
        return []
    weights = {column: measure.weight for column, measure in owners.items()}
    lists = rows.summaries(weights)
    faults = _bad_values(lists, owners)
    if faults or metrics is None:
        return faults
    users = rows.summaries(weights, over_users=True) if rows.has_several_lists() else lists
    columns = [C.MODEL_ID, C.MEASURE, C.K, C.VALUE, "n_users", C.N_LISTS]
    of_all_users = metrics.filter(pc.field(C.SLICE) == C.ALL_USERS).select(columns)
    return _untied(lists, users, of_all_users.to_pylist(), measures)


def exposures(metrics: pa.Table, measures: Sequence[MeasureRecord]) -> list[Fault]:
    """Return faults of measures over all lists: values that are not finite or out of range."""
    owners = {measure.measure: measure for measure in measures if measure.column is None}
    if not owners:
        return []
    key = (C.MODEL_ID, C.MEASURE, C.K)
    own = metrics.filter(pc.field(C.MEASURE).isin(list(owners))).group_by(list(key), use_threads=False)
    rows = own.aggregate([(C.VALUE, "min"), (C.VALUE, "max"), (C.VALUE, "sum")]).to_pylist()
    found = []
    for row in rows:
        measure = owners[row[C.MEASURE]]
        total = row[f"{C.VALUE}_sum"]
        has_nan = total is not None and math.isnan(total)  # which Arrow leaves out of the lowest and the highest
        low, high = (math.nan if has_nan else row[f"{C.VALUE}_{end}"] for end in ("min", "max"))
        where = f"table metrics, model {row[C.MODEL_ID]}, {row[C.MEASURE]} at k = {row[C.K]}"
        found += _range_faults(where, low, high, measure)
    return found


def _bad_values(summaries: Summaries, owners: Mapping[str, MeasureRecord]) -> list[Fault]:
    return [
        fault
        for (model, k), of_columns in summaries.items()
        for column, measure in owners.items()
        for fault in _range_faults(
            f"table user_metrics, model {model}, {measure.measure} at k = {k}",
            of_columns[column].low,
            of_columns[column].high,
            measure,
        )
    ]


def _range_faults(where: str, low: float | None, high: float | None, measure: MeasureRecord) -> list[Fault]:
    """Return the fault if values are not finite or outside their measure's range."""
    least = -math.inf if measure.low is None else measure.low
    most = math.inf if measure.high is None else measure.high
    if low is None or high is None:
        return []
    if math.isfinite(low) and math.isfinite(high) and low >= least - TOLERANCE and high <= most + TOLERANCE:
        return []
    expected = f"finite values from {least:g} to {most:g}, NULL where undefined"
    return [Fault(where, f"values from {low} to {high}", expected)]


def _untied(
    lists: Summaries, users: Summaries, published: Sequence[Mapping[str, Any]], measures: Sequence[MeasureRecord]
) -> list[Fault]:
    """Return faults of published means that differ from the summaries of lists and users."""
    facts = {measure.measure: measure for measure in measures}
    without_columns = {measure.measure for measure in measures if measure.column is None}
    faults = []
    for row in (row for row in published if row[C.MEASURE] not in without_columns):
        fact, key = facts.get(row[C.MEASURE]), (row[C.MODEL_ID], row[C.K])
        of_lists, of_users = (_mean_and_n(each, key, fact) for each in (lists, users))
        mean = of_lists[0] if fact is not None and fact.unit == "list" else of_users[0]
        counts = (of_users[1], of_lists[1])
        if counts != (row["n_users"], row[C.N_LISTS]) or not _agree(mean, row[C.VALUE]):
            where = f"table metrics, model {row[C.MODEL_ID]}, {row[C.MEASURE]} at k = {row[C.K]}, slice all"
            found = f"{row[C.VALUE]} over {_counted(row['n_users'], row[C.N_LISTS])}"
            faults.append(Fault(where, found, f"{mean} over {_counted(*counts)}, the mean of user_metrics"))
    return faults


def _counted(n_users: int, n_lists: int | None) -> str:
    """Return the number of users, and of lists if they differ."""
    return f"{n_users} users" if n_lists == n_users else f"{n_users} users with {n_lists} lists"


def _mean_and_n(summaries: Summaries, key: Key, fact: MeasureRecord | None) -> tuple[float | None, int]:
    """Return a mean as it is published, and its number of users."""
    if fact is None or fact.column is None:
        return None, 0
    found = summaries.get(key, {}).get(fact.column, Summary())
    value = None if found.mean is None else float(intervals.published(fact.link, np.array(found.mean)))
    return value, found.n


def _agree(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

"""What is looked at between staging and publishing: keys, numbers, and whether the tables agree with one another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault
from rankeval_spark.results import tables
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    from pyspark.sql import Column, Row

    from rankeval_spark.results.facts import MeasureFact
    from rankeval_spark.schemas import Schema

TOLERANCE: Final = 1e-9
"""Largest relative difference between a mean as published and as recomputed: room for the order of summation."""

MOST_SUSPECTS: Final = 100

_MEAN, _N, _LOW, _HIGH = "mean", "n", "low", "high"


def failed_checks(checks: DataFrame) -> list[Fault]:
    """Name the checks whose verdict is error."""
    rows = checks.where(F.col("verdict") == "error").collect()
    return [
        Fault(
            f"input {row['input']}, check {row['check']}",
            f"{row['count']} ({row['share']})",
            f"a share of at most {row['threshold']}",
            f"for example {', '.join(row['sample_keys'][:3])}" if row["sample_keys"] else "",
        )
        for row in rows
    ]


def refused_rows(frames: Mapping[str, DataFrame], schemas: Sequence[Schema]) -> list[Fault]:
    """Keys that occur more than once in their table, and rows that break a constraint of it.

    Hashes of the keys are counted first, in one job for all tables: eight bytes a row cross the network, and the
    keys themselves only where two hashes agree. The tables would refuse the rows by themselves, but when the run has
    announced its publish: then nobody could ever finish it.
    """
    hashes = [
        frames[schema.name].select(F.lit(schema.name).alias("_table"), _hash(schema), _broken(schema))
        for schema in schemas
    ]
    if not hashes:
        return []
    counts = reduce(DataFrame.unionAll, hashes).groupBy("_table", "_hash")
    counted = counts.agg(F.count("*").alias("_count"), F.max("_broken").alias("_broken"))
    suspects = counted.where((F.col("_count") > 1) | F.col("_broken").isNotNull()).take(MOST_SUSPECTS)
    faults = []
    for schema in schemas:
        own = [row for row in suspects if row["_table"] == schema.name]
        faults += _broken_among(frames[schema.name], schema, [row for row in own if row["_broken"] is not None])
        repeated = [row["_hash"] for row in own if row["_count"] > 1]
        faults += _duplicates_among(frames[schema.name], schema, repeated) if repeated else []
    return faults


def _broken(schema: Schema) -> Column:
    """Name the first constraint of its table that a row breaks; NULL where it breaks none.

    Arrays and maps are not looked at: to know that they are there, all of them would have to be read.
    """
    plain = [
        field.name
        for field in schema.fields
        if not field.nullable and "<" not in field.type and field.name not in C.RUN_KEY
    ]
    rules = {f"{name} IS NOT NULL": F.col(name).isNotNull() for name in plain}
    rules |= {rule: F.expr(rule) for rule in tables.CONSTRAINTS.get(schema.name, {}).values()}
    whens = (F.when(~F.coalesce(holds, F.lit(False)), F.lit(rule)) for rule, holds in rules.items())
    return F.coalesce(F.lit(None).cast("string"), *whens).alias("_broken")


def _broken_among(frame: DataFrame, schema: Schema, suspects: Sequence[Row]) -> list[Fault]:
    if not suspects:
        return []
    example = frame.where(_hash(schema) == suspects[0]["_hash"]).select(*_key(schema)).head()
    where = ", ".join(f"{name}={example[name]!r}" for name in _key(schema)) if example else "a row"
    return [Fault(f"table {schema.name}", where, f"rows with {suspects[0]['_broken']}")]


def _duplicates_among(frame: DataFrame, schema: Schema, suspects: Sequence[int]) -> list[Fault]:
    doubles = _repeated(frame.where(_hash(schema).isin(*suspects)), _key(schema)).take(3)
    found = "; ".join(", ".join(f"{name}={row[name]!r}" for name in _key(schema)) for row in doubles)
    return [Fault(f"table {schema.name}", f"several rows for {found}", "one row a key")] if doubles else []


def _key(schema: Schema) -> list[str]:
    return [name for name in schema.key if name not in C.RUN_KEY]  # constant within a run


def _hash(schema: Schema) -> Column:
    return F.xxhash64(*_key(schema)).alias("_hash")


def _repeated(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    return frame.groupBy(*key).agg(F.count("*").alias("_count")).where(F.col("_count") > 1)


def user_metrics(frame: DataFrame, metrics: DataFrame | None, measures: Sequence[MeasureFact]) -> list[Fault]:
    """Values that are not finite or out of range, and means in ``metrics`` that the per-user rows do not have.

    One pass over ``user_metrics``; a second where a user has several lists, whose value is the mean over them (of means
    over lists, to count the users).
    """
    owners = {measure.column: measure for measure in measures if measure.column is not None}
    if not owners:
        return []
    weights = {column: measure.weight for column, measure in owners.items()}
    rows = frame.groupBy(C.MODEL_ID, C.K).agg(*_summaries(weights), _has_several_lists()).collect()
    faults = _bad_values(rows, owners)
    if faults or metrics is None:
        return faults
    lists = users = _by_mean(rows)
    if any(row["_several"] for row in rows):
        per_user = frame.groupBy(C.MODEL_ID, C.K, C.USER_ID).agg(*_over_lists(weights))
        users = _by_mean(per_user.groupBy(C.MODEL_ID, C.K).agg(*_summaries(weights)).collect())
    return _untied(lists, users, _of_all_users(metrics), measures)


def _has_several_lists() -> Column:
    return F.max(F.col(C.LIST_ID) != F.lit(C.ONE_LIST)).alias("_several")


def _summaries(weights: Mapping[str, str | None]) -> list[Column]:
    """Summarise every column; ``weights`` has those of the denominators."""
    functions = {_N: F.count, _LOW: F.min, _HIGH: F.max}
    return [
        *(_mean(column, weight).alias(f"{column}.{_MEAN}") for column, weight in weights.items()),
        *(function(column).alias(f"{column}.{name}") for column in weights for name, function in functions.items()),
    ]


def _mean(column: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(column)
    return F.try_divide(F.sum(F.col(column) * F.col(weight)), F.sum(weight))


def _over_lists(weights: Mapping[str, str | None]) -> list[Column]:
    """Average the lists of a user: numerators and denominators, where these are summed."""
    values = (F.coalesce(_mean(column, weight), F.avg(column)).alias(column) for column, weight in weights.items())
    return [*values, *(F.avg(weight).alias(weight) for weight in weights.values() if weight is not None)]


def exposures(metrics: DataFrame, measures: Sequence[MeasureFact]) -> list[Fault]:
    """Values of measures of all lists together that are not finite or out of range; no per-user row has them."""
    owners = {measure.measure: measure for measure in measures if measure.column is None}
    if not owners:
        return []
    low, high = F.min(C.VALUE).alias(_LOW), F.max(C.VALUE).alias(_HIGH)
    rows = metrics.where(F.col(C.MEASURE).isin(*owners)).groupBy(C.MODEL_ID, C.MEASURE, C.K).agg(low, high).collect()
    return [
        _bad_value(f"table metrics, model {row[C.MODEL_ID]}, {row[C.MEASURE]} at k = {row[C.K]}", row, "", measure)
        for row in rows
        if not _is_in_range(row[_LOW], row[_HIGH], measure := owners[row[C.MEASURE]])
    ]


def _bad_values(rows: Sequence[Row], owners: Mapping[str, MeasureFact]) -> list[Fault]:
    return [
        _bad_value(
            f"table user_metrics, model {row[C.MODEL_ID]}, {measure.measure} at k = {row[C.K]}",
            row,
            f"{column}.",
            measure,
        )
        for row in rows
        for column, measure in owners.items()
        if not _is_in_range(row[f"{column}.{_LOW}"], row[f"{column}.{_HIGH}"], measure)
    ]


def _bad_value(where: str, row: Row, prefix: str, measure: MeasureFact) -> Fault:
    return Fault(
        where,
        f"values from {row[f'{prefix}{_LOW}']} to {row[f'{prefix}{_HIGH}']}",
        f"finite values from {_bound(measure.low, '-inf')} to {_bound(measure.high, 'inf')}, NULL where undefined",
    )


def _bound(bound: float | None, otherwise: str) -> str:
    return otherwise if bound is None else f"{bound:g}"


def _is_in_range(low: float | None, high: float | None, measure: MeasureFact) -> bool:
    if low is None or high is None:
        return True
    # Spark sorts NaN above everything: a NaN anywhere is the largest value.
    is_finite = math.isfinite(low) and math.isfinite(high)
    is_above = measure.low is None or low >= measure.low - TOLERANCE
    is_below = measure.high is None or high <= measure.high + TOLERANCE
    return is_finite and is_above and is_below


def _of_all_users(metrics: DataFrame) -> list[Row]:
    everyone = metrics.where(F.col(C.SLICE) == C.ALL_USERS)
    return everyone.select(C.MODEL_ID, C.MEASURE, C.K, C.VALUE, "n_users", C.N_LISTS).collect()


def _by_mean(rows: Sequence[Row]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row[C.MODEL_ID], row[C.K]): row.asDict() for row in rows}


def _untied(
    lists: Mapping[tuple[str, int], Mapping[str, Any]],
    users: Mapping[tuple[str, int], Mapping[str, Any]],
    published: Sequence[Row],
    measures: Sequence[MeasureFact],
) -> list[Fault]:
    """Name the published means that the summaries of lists and of users, by model and cutoff, do not have."""
    facts = {measure.measure: measure for measure in measures}
    without_columns = {measure.measure for measure in measures if measure.column is None}
    faults = []
    for row in (row for row in published if row[C.MEASURE] not in without_columns):
        fact = facts.get(row[C.MEASURE])
        of_lists, of_users = (_mean_and_n(each.get((row[C.MODEL_ID], row[C.K]), {}), fact) for each in (lists, users))
        mean = of_lists[0] if fact is not None and fact.unit == "list" else of_users[0]
        counts = (of_users[1], of_lists[1])
        if counts != (row["n_users"], row[C.N_LISTS]) or not _agree(mean, row[C.VALUE]):
            faults.append(
                Fault(
                    f"table metrics, model {row[C.MODEL_ID]}, {row[C.MEASURE]} at k = {row[C.K]}, slice all",
                    f"{row[C.VALUE]} over {_counted(row['n_users'], row[C.N_LISTS])}",
                    f"{mean} over {_counted(*counts)}, the mean of user_metrics",
                )
            )
    return faults


def _counted(n_users: int, n_lists: int | None) -> str:
    """Write users, and their lists where these are not as many."""
    return f"{n_users} users" if n_lists == n_users else f"{n_users} users with {n_lists} lists"


def _mean_and_n(summary: Mapping[str, object], fact: MeasureFact | None) -> tuple[float | None, int]:
    """Return what is published of a mean, and its users."""
    if fact is None:
        return None, 0
    mean, n = summary.get(f"{fact.column}.{_MEAN}"), summary.get(f"{fact.column}.{_N}", 0)
    value = float(intervals.published(fact.link, np.array(mean))) if isinstance(mean, float) else None
    return value, n if isinstance(n, int) else 0


def _agree(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

"""Usable rows of the inputs: which rows fail a check, how they are dropped, and how they are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, assert_never

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.inputs import COMPARE
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.checks import (
    FAULTS,
    UNUSABLE,
    AllOf,
    AnyOf,
    Compared,
    Marked,
    Missing,
    NotFinite,
    NotFiniteVector,
    Same,
    Since,
)
from rankeval_spark.engine.failures import input_words
from rankeval_spark.inputs.input_columns import SAMPLE_BUCKETS

if TYPE_CHECKING:
    from rankeval_spark.engine.checks import Condition, RowChecks


def has_keys(keys: tuple[str, ...]) -> Column:
    """Return True if no key column is NULL."""
    return reduce(and_, (F.col(key).isNotNull() for key in keys))


def is_finite_vector(vector: Column) -> Column:
    """Return True if no number of a vector is NULL, NaN or infinite; NULL where there is no vector.

    Without a function for each number, which Spark calls 1 microsecond at a time. An array with NULL contains a value,
    or it is unknown whether it does; and NaN is above infinity.
    """
    has_all = F.coalesce(~F.array_contains(vector, F.lit(float("nan"))), F.lit(False))
    is_within = (F.array_max(vector) < float("inf")) & (F.array_min(vector) > float("-inf"))
    return F.when(vector.isNotNull(), has_all & F.coalesce(is_within, F.lit(True)))


def keep_models(recommendations: DataFrame, *, names: Sequence[str] | None) -> DataFrame:
    """Keep the rows of the named models, and those without a model, which are counted; all where none are named."""
    if names is None:
        return recommendations
    return recommendations.where(F.col(C.MODEL_ID).isin(*names) | F.col(C.MODEL_ID).isNull())


def user_hash() -> Column:
    """Hash a user's id, as text in UTF-8 whatever its type: the user's draws and group depend on it alone."""
    return F.xxhash64(F.col(C.USER_ID).cast("string"))


def keep_sample(frame: DataFrame, *, share: float) -> DataFrame:
    """Keep a share of the users, chosen by a hash of the id: the same ones in every input and run."""
    if share >= 1:
        return frame
    bucket = F.pmod(user_hash(), F.lit(SAMPLE_BUCKETS))
    return frame.where(bucket < round(share * SAMPLE_BUCKETS))


def raise_input_error(name: str, what: Column, *, expected: str, fix: str) -> Column:
    """Fail the job, when it runs, because no policy can use an input."""
    before, after = input_words(name, expected=expected, fix=fix)
    return F.raise_error(F.concat(F.lit(before), what, F.lit(after)))


def quote_key(key: Column) -> Column:
    """Write a key into a message, on one line."""
    return F.concat(F.lit("'"), F.regexp_replace(key.cast("string"), r"\s", " "), F.lit("'"))


def to_condition(condition: Condition) -> Column:
    """Return a condition of rows as an expression; never NULL."""
    match condition:
        case AnyOf(parts) | AllOf(parts):
            how, none = (and_, F.lit(True)) if isinstance(condition, AllOf) else (or_, F.lit(False))
            found = reduce(how, map(to_condition, parts)) if parts else none
        case Missing(name):
            found = F.col(name).isNull()
        case NotFinite(name):
            value = F.col(name).cast("double")
            found = value.isNull() | F.isnan(value) | (F.abs(value) == F.lit(float("inf")))
        case Compared(name, op, value):
            found = COMPARE[op](F.col(name), value)
        case Since(name, micros):
            found = F.unix_micros(name) >= micros
        case Same(first, second):
            found = F.col(first) == F.col(second)
        case NotFiniteVector(name):
            found = ~is_finite_vector(F.col(name))
        case Marked(name):
            found = F.col(name)
        case _:
            assert_never(condition)
    return F.coalesce(found, F.lit(False))


def failure_flags(checks: RowChecks) -> dict[str, Column]:
    """Return which rows do not pass each check, as :meth:`RowChecks.flag_failures` says it of rows in memory."""
    found: dict[str, Column] = {}
    is_left = F.lit(True)
    for check in checks.checks:
        found[check.name] = is_left & to_condition(check.is_bad)
        if check.drops:
            is_left = is_left & ~to_condition(check.is_bad)
    return found


def keep_usable(frame: DataFrame, checks: RowChecks) -> DataFrame:
    """Drop the rows that do not pass a check that leaves rows out; one that refuses fails the job when it runs."""
    flags = failure_flags(checks)
    is_kept = ~reduce(or_, (flags[check.name] for check in checks.checks if check.drops))
    for check in checks.checks:
        if check.refuse is not None:
            failure = F.raise_error(F.lit(check.refusal)).cast("boolean")
            is_kept = F.when(flags[check.name], failure).otherwise(is_kept)
    return frame.where(is_kept)


def to_refused(frame: DataFrame, checks: RowChecks, *, row: str) -> DataFrame:
    """Return ``input``, ``check`` and the column ``row`` of each row and check that it fails; intended cases aside."""
    flags = failure_flags(checks).items()
    refused = [F.when(flag, F.lit(check)) for check, flag in flags if check in FAULTS]
    return frame.select(
        F.lit(checks.input).alias("input"),
        F.explode(F.array_compact(F.array(*refused))).alias("check"),
        F.col(row).alias("row"),
    )


def to_row_counts(inputs: Iterable[tuple[DataFrame, RowChecks]]) -> DataFrame:
    """Look whether inputs have a row that can be used: one row, :data:`row_kinds.COUNTS`.

    An input is read up to its first usable row. Why rows are unusable is counted in the first
    :data:`row_kinds.MAX_COUNTED` alone, because to count all would cost as much as to move them.
    """
    parts = []
    for frame, checks in inputs:
        failed = F.coalesce(
            *(F.when(flag, F.lit(check)) for check, flag in failure_flags(checks).items() if check in UNUSABLE)
        )
        first = frame.limit(row_kinds.MAX_COUNTED).where(failed.isNotNull())
        for part in (frame.where(failed.isNull()).limit(1), first):
            parts.append(part.select(F.lit(checks.input).alias("input"), failed.alias("check")))
    counts = reduce(DataFrame.union, parts).groupBy("input", "check").agg(F.count("*").alias("count"))
    return counts.agg(F.collect_list(F.struct("input", "check", "count")).alias(row_kinds.COUNTS))

"""Count the rows that cannot be used, for a caller who has no checks before the lists are made.

Plans only: the workers refuse an input of nothing else when a result is used. A night counts the same in its checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.checks import ZERO_RANK, ZERO_RANK_EXPECTED, ZERO_RANK_FIX
from rankeval_spark.spark.rows.usable_rows import input_failure


def or_fail_at_zero_rank(recommendations: DataFrame, *, has_zero_rank: Column) -> DataFrame:
    """Fail the job at a rank of 0 that orders a list, see :func:`usable_rows.has_zero_rank`; else nothing changes."""
    failure = input_failure(
        row_kinds.NAMES[row_kinds.LOG], F.lit(ZERO_RANK), expected=ZERO_RANK_EXPECTED, fix=ZERO_RANK_FIX
    )
    return recommendations.where(F.when(has_zero_rank, failure.cast("boolean")).otherwise(True))


def with_kind(frame: DataFrame, *, kind: int, rules: Mapping[str, Column]) -> DataFrame:
    """Give each row a number in :data:`row_kinds.KIND`: ``kind``, or the check that makes it unusable.

    Unusable rows are counted by the workers. Each gets a random user id, so that they spread over partitions.

    Parameters
    ----------
    rules : mapping
        Conditions that rows do not pass, by check; those of :data:`row_kinds.UNUSABLE_KINDS` are looked at.
    """
    number = F.lit(kind)
    for place, (of, check) in enumerate(row_kinds.UNUSABLE_KINDS):
        if of == kind and check in rules:
            number = F.when(rules[check], F.lit(row_kinds.FIRST_UNUSABLE + place)).otherwise(number)
    spread_user = F.xxhash64(*frame.columns).cast(frame.schema[C.USER_ID].dataType)
    return frame.withColumn(row_kinds.KIND, number.cast("tinyint")).withColumn(
        C.USER_ID, F.when(F.col(row_kinds.KIND) < row_kinds.FIRST_UNUSABLE, F.col(C.USER_ID)).otherwise(spread_user)
    )


def to_row_counts(inputs: Mapping[str, tuple[DataFrame, Mapping[str, Column]]]) -> DataFrame:
    """Look whether inputs have a row that can be used: one row, :data:`row_kinds.COUNTS`.

    An input is read up to its first usable row. Why rows are unusable is counted in the first
    :data:`row_kinds.MOST_COUNTED` alone, because to count all would cost as much as to move them.

    Parameters
    ----------
    inputs : mapping
        Frame and conditions that rows do not pass, by name of the input.
    """
    parts = (
        part.select(F.lit(name).alias("input"), _failed(rules).alias("check"))
        for name, (frame, rules) in inputs.items()
        for part in (frame.where(_failed(rules).isNull()).limit(1), _first_unusable(frame, rules))
    )
    counts = reduce(DataFrame.union, parts).groupBy("input", "check").agg(F.count("*").alias("count"))
    return counts.agg(F.collect_list(F.struct("input", "check", "count")).alias(row_kinds.COUNTS))


def _first_unusable(frame: DataFrame, rules: Mapping[str, Column]) -> DataFrame:
    return frame.limit(row_kinds.MOST_COUNTED).where(_failed(rules).isNotNull())


def _failed(rules: Mapping[str, Column]) -> Column:
    """Name the check that makes a row unusable; NULL for one that can be used."""
    flagged = [F.when(flag, F.lit(check)) for check, flag in rules.items() if check in row_kinds.UNUSABLE]
    return F.coalesce(*flagged)

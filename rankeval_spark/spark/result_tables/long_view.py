"""The long view of per-user values: a row per measure, as in the aggregate tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C

RequestedValue: TypeAlias = tuple[str, str, int]
"""Label, column in ``user_metrics`` and cutoff of a measure."""


def to_user_values(user_metrics: DataFrame, *, requested: Iterable[RequestedValue]) -> DataFrame:
    """Make one row per requested (list, measure, k); ``value`` is NULL where it is undefined."""
    before = [name for name in user_metrics.columns if name in C.RUN_KEY]
    values = F.array(*(_value(*one) for one in requested))
    return (
        user_metrics.select(*before, *C.LIST_KEY, C.K, F.explode(values).alias("_value"))
        .where(F.col(C.K) == F.col("_value.k"))
        .select(
            *before, *C.LIST_KEY, F.col("_value.measure").alias(C.MEASURE), C.K, F.col("_value.value").alias(C.VALUE)
        )
    )


def _value(label: str, column: str, k: int) -> Column:
    return F.struct(F.lit(label).alias(C.MEASURE), F.lit(k).alias(C.K), F.col(column).alias(C.VALUE))

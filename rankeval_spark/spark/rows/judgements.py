"""One judgement per (user, item), as the checks count them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C

N_COPIES: Final = "_n_copies"
"""Rows of the held-out table that a judgement has."""


def to_judgements(held_out: DataFrame, *, duplicates: str) -> DataFrame:
    """Make one row per (user, item) with its gain and :data:`N_COPIES`, partitioned by user.

    Parameters
    ----------
    held_out : DataFrame
        Usable rows of ``schemas.HELD_OUT``.
    duplicates : {"max", "sum", "last"}
        Gain of a pair that occurs twice: the largest, the sum, or that of the newest ``interacted_at`` (the largest of
        several; a NULL is the oldest).
    """
    when = [C.INTERACTED_AT] if duplicates == "last" else []
    return (
        held_out.select(C.USER_ID, C.ITEM_ID, C.GAIN, *when)
        .repartition(C.USER_ID)
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg(
            _gain(duplicates).alias(C.GAIN),
            F.count("*").cast("int").alias(N_COPIES),
        )
    )


def _gain(duplicates: str) -> Column:
    if duplicates == "last":
        return F.max(F.struct(C.INTERACTED_AT, C.GAIN))[C.GAIN]
    return _sum(C.GAIN) if duplicates == "sum" else F.max(C.GAIN)


def _sum(name: str) -> Column:
    # In ascending order: added up as they come, the same numbers give another last bit on another partitioning.
    return F.aggregate(F.array_sort(F.collect_list(name)), F.lit(0.0), lambda total, number: total + number)

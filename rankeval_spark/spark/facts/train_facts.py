"""Facts of the training data that take joins or windows of their own."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import required_facts as N


def with_quantiles(counts: DataFrame, *, users: str) -> DataFrame:
    """Add ``item_quantile``: the rank by the column ``users``, ascending, equal items sharing its mean, over all items.

    As the levels of popularity, the different counts are what is sorted in one place, not the items.
    """
    below = Window.orderBy(users).rowsBetween(Window.unboundedPreceding, -1)
    everything = Window.orderBy(users).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    size = F.col("_n_equal")
    mean_rank = F.coalesce(F.sum(size).over(below), F.lit(0)) + (size + 1) / 2
    quantiles = (
        counts.groupBy(users)
        .agg(F.count("*").alias("_n_equal"))
        .select(users, (mean_rank / F.sum(size).over(everything)).alias(N.ITEM_QUANTILE))
    )
    return counts.join(quantiles, on=[users], how="inner")


def familiarity_of_pairs(wanted: DataFrame, *, pairs: DataFrame, similarities: DataFrame) -> DataFrame:
    """Make one row per (user, recommended item): its mean similarity to the items that the user has.

    Only users of the training data have rows; an item that has no user in common with any of theirs has 0.

    Parameters
    ----------
    wanted : DataFrame
        One row per (user, recommended item).
    pairs : DataFrame
        One row per (user, item) of the training data.
    similarities : DataFrame
        One row per pair of items with a user in common, in the order of their ids: ``_low``, ``_high``, ``similarity``.
    """
    own = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_own"))
    beside_own = wanted.join(own, on=[C.USER_ID], how="inner").select(
        *(C.USER_ID, C.ITEM_ID),
        F.least(C.ITEM_ID, "_own").alias("_low"),
        F.greatest(C.ITEM_ID, "_own").alias("_high"),
    )
    return (
        beside_own.join(similarities, on=["_low", "_high"], how="left")
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg((_in_order(F.collect_list("similarity")) / F.count("*")).alias(N.ITEM_FAMILIARITY))
    )


def _in_order(values: Column) -> Column:
    """Add fractions up in ascending order: as they come, the last bit would depend on the order of the rows."""
    return F.aggregate(F.array_sort(values), F.lit(0.0), lambda total, value: total + value)

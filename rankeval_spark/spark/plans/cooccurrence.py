"""Items that have users in common: the cosine of two items is (users of both) / sqrt(users of one * of the other).

Co-occurrences are counted separately and meet the items of the lists in joins, so that nothing is collected.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.facts import N_USERS, require_input
from rankeval_spark.engine.ranked_lists import ITEMS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.plans.item_facts import FactFrames, to_counts, to_user_items


def to_pairs(lists: DataFrame, *, sources: FactFrames, depth: int) -> DataFrame:
    """Return one row per list with the pairs of its items that have users in common.

    The struct array ``_pairs`` holds ranks and the cosine of the co-occurrence in the training data. Co-occurrences are
    counted separately and meet the pairs of the lists in a join, so that nothing is collected or broadcast on purpose.

    `lists`: rows of ``MovedRows.to_item_lists``. `depth`: last rank that is read; 0 for all of them.
    """
    key: list[str] = [name for name in C.LIST_KEY if name in lists.columns]
    one, other = F.col("_one"), F.col("_other")
    later = F.filter(_down_to(depth), lambda item: item[C.RANK] > one[C.RANK])
    pairs = lists.select(*key, ITEMS, F.explode(_down_to(depth)).alias("_one")).select(
        *key, "_one", F.explode(later).alias("_other")
    )
    in_lists = pairs.select(
        *key,
        one[C.RANK].alias("earlier"),
        other[C.RANK].alias("later"),
        # In the order of the ids, as co-occurrences are counted: whichever of the two is ahead.
        F.least(one[C.ITEM_ID], other[C.ITEM_ID]).alias("_low"),
        F.greatest(one[C.ITEM_ID], other[C.ITEM_ID]).alias("_high"),
    )
    similar = in_lists.join(_to_similarities(require_input(sources.train)), on=["_low", "_high"], how="inner")
    pair = F.struct("later", "earlier", "similarity")
    return similar.groupBy(*key).agg(F.array_sort(F.collect_list(pair)).alias(C.PAIRS))


def _down_to(depth: int) -> Column:
    """Return the items of a list down to a rank; all of them where it is 0."""
    return F.filter(ITEMS, lambda item: item[C.RANK] <= depth) if depth else F.col(ITEMS)


def to_familiarity(lists: DataFrame, *, sources: FactFrames, depth: int) -> DataFrame:
    """Return one row per (user, recommended item) with its mean similarity to the items that the user has in `train`.

    Only users of the training data have rows; an item that has no user in common with any of theirs has 0.

    `lists, depth`: as for :func:`to_pairs`.
    """
    train = require_input(sources.train)
    wanted = lists.select(C.USER_ID, F.explode(_down_to(depth)).alias("_item"))
    own = to_user_items(train).select(C.USER_ID, F.col(C.ITEM_ID).alias("_own"))
    with_own = wanted.select(C.USER_ID, f"_item.{C.ITEM_ID}").distinct().join(own, on=[C.USER_ID], how="inner")
    pairs = with_own.select(
        *(C.USER_ID, C.ITEM_ID),
        F.least(C.ITEM_ID, "_own").alias("_low"),
        F.greatest(C.ITEM_ID, "_own").alias("_high"),
    )
    return (
        pairs.join(_to_similarities(train), on=["_low", "_high"], how="left")
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg((_in_order(F.collect_list("similarity")) / F.count("*")).alias(N.ITEM_FAMILIARITY))
    )


def _to_similarities(train: DataFrame) -> DataFrame:
    """Return one row per pair of items with a user in common: (users of both) / sqrt(U(low) U(high))."""
    pairs, counts = to_user_items(train), to_counts(train)
    low = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_low"))
    high = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_high"))
    together = (
        low.join(high, on=[C.USER_ID], how="inner")
        .where(F.col("_low") <= F.col("_high"))
        .groupBy("_low", "_high")
        .agg(F.count("*").alias("_n_together"))
    )
    of_low = counts.select(F.col(C.ITEM_ID).alias("_low"), F.col(N_USERS).alias("_of_low"))
    of_high = counts.select(F.col(C.ITEM_ID).alias("_high"), F.col(N_USERS).alias("_of_high"))
    cosine = F.col("_n_together") / F.sqrt(F.col("_of_low") * F.col("_of_high"))
    return (
        together.join(of_low, on=["_low"], how="inner")
        .join(of_high, on=["_high"], how="inner")
        .select("_low", "_high", cosine.alias("similarity"))
    )


def _in_order(values: Column) -> Column:
    """Add fractions up in ascending order: as they come, the last bit would depend on the order of the rows."""
    return F.aggregate(F.array_sort(values), F.lit(0.0), lambda total, value: total + value)

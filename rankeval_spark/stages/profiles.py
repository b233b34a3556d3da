"""What is known of users, one row each: of the items that they have in the training data, and of their judged ones."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import needs as N


def to_popularity(pairs: DataFrame, *, counts: DataFrame, interactions: str) -> DataFrame:
    """Make one row per user: the mean of the column ``interactions`` of ``counts`` over the items that the user has."""
    popularity = counts.select(C.ITEM_ID, F.col(interactions).alias("_popularity"))
    return (
        pairs.select(C.USER_ID, C.ITEM_ID)
        .join(popularity, on=[C.ITEM_ID], how="inner")
        .groupBy(C.USER_ID)
        .agg(F.avg("_popularity").alias(N.PROFILE_INTERACTIONS))
    )


def to_categories(pairs: DataFrame) -> DataFrame:
    """Count the items of each user by category and by how many categories they have.

    Counts instead of shares, because sums of fractions would depend on the order of the rows.
    """
    labels = pairs.select(
        C.USER_ID, F.explode(N.ITEM_CATEGORIES).alias("category"), F.size(N.ITEM_CATEGORIES).alias("n_categories")
    )
    counts = labels.groupBy(C.USER_ID, "category", "n_categories").agg(F.count("*").alias("n_items"))
    label = F.struct("category", "n_categories", "n_items")
    return counts.groupBy(C.USER_ID).agg(F.array_sort(F.collect_list(label)).alias(N.PROFILE_CATEGORIES))


def to_judged_categories(judgements: DataFrame, *, catalogue: DataFrame) -> DataFrame:
    """Collect the judged items of each user that have a category, the highest ids first."""
    known = judgements.join(catalogue.where(F.size(N.ITEM_CATEGORIES) > 0), on=[C.ITEM_ID], how="inner")
    judged = F.struct(C.ITEM_ID, F.col(C.GAIN).alias("gain"), F.col(N.ITEM_CATEGORIES).alias("categories"))
    ordered = F.sort_array(F.collect_list(judged), asc=False)
    in_order = F.transform(
        ordered, lambda one: F.struct(one["gain"].alias("gain"), one["categories"].alias("categories"))
    )
    return known.groupBy(C.USER_ID).agg(in_order.alias(N.JUDGED_CATEGORIES))


def to_vectors(pairs: DataFrame) -> DataFrame:
    """Average the unit vectors of each user's items, added up in the order of the items."""
    vector = F.col(N.ITEM_VECTORS)
    length = F.sqrt(F.aggregate(vector, F.lit(0.0), lambda total, x: total + x * x))
    unit = F.transform(vector, lambda x: x / F.col("_length"))
    known = pairs.withColumn("_length", length).where(F.col("_length") > 0)
    per_user = known.groupBy(C.USER_ID).agg(
        F.array_sort(F.collect_list(F.struct(C.ITEM_ID, unit.alias("unit")))).alias("_all")
    )
    units = F.col("_all.unit")
    total = F.aggregate(
        F.slice(units, 2, F.size(units)), F.element_at(units, 1), lambda sums, one: F.zip_with(sums, one, _add)
    )
    mean = F.transform(total, lambda x: x / F.size("_all"))
    return per_user.select(C.USER_ID, mean.alias(N.PROFILE_VECTORS))


def _add(left: Column, right: Column) -> Column:
    return left + right

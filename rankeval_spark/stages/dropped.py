"""Leave recommended items out before lists are ranked: those that the user has seen, those that nobody knows."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.clean import ITEM_KEYS, TRAIN_KEYS, has_keys


def drop_seen(items: DataFrame, *, train: DataFrame) -> DataFrame:
    """Drop the rows whose (user, item) is in the training data, however often it stands there.

    The training data are partitioned by user, as the rows are already: only they are moved, and in the exchange that
    measures of seen items read too. No anti join: Spark pushes it below the repartition of the rows by user, for which
    they would be moved twice.
    """
    pairs = train.select(*TRAIN_KEYS).where(has_keys(TRAIN_KEYS)).repartition(C.USER_ID).distinct()
    marked = items.join(pairs.withColumn("_is_seen", F.lit(True)), on=list(TRAIN_KEYS), how="left")
    return marked.where(F.col("_is_seen").isNull()).drop("_is_seen")


def keep_known(recommendations: DataFrame, *, catalogue: DataFrame, is_small: bool) -> DataFrame:
    """Keep the rows whose item the catalogue has, however often it stands there.

    Parameters
    ----------
    catalogue : DataFrame
        A frame whose ``item_id`` are all items.
    is_small : bool
        Whether it is known to fit into the memory of every task. It is then sent there, and no row is moved to its
        item; how another one is joined is left to Spark.
    """
    known = catalogue.select(*ITEM_KEYS).where(has_keys(ITEM_KEYS))
    return recommendations.join(F.broadcast(known) if is_small else known.distinct(), on=[C.ITEM_ID], how="left_semi")

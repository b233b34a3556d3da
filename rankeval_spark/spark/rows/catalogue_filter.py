"""Leave items out of the log that the catalogue does not have."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.spark.rows.usable_rows import ITEM_KEYS, has_keys


def keep_known(recommendations: DataFrame, *, catalogue: DataFrame, is_small: bool) -> DataFrame:
    """Keep the rows whose item the catalogue has, however often it occurs there.

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

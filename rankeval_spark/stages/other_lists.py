"""Put the lists of other models beside each list, for measures that compare the two."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window, functions as F

from rankeval_spark import columns as C


def with_other_lists(hits: DataFrame, *, models: Mapping[str, Column]) -> DataFrame:
    """Add the struct ``_other_lists``: by its name, the list of each model for the same user; NULL where it gave none.

    So it is for the lists of that model too: beside themselves they have nothing to say, and a comparison with it as
    the baseline would take wholly equal lists for a finding.
    Rows are neither added nor lost. All lists of a user are in one place, so a window over them needs no exchange; and
    no row per item is sorted by its item, as another window or a join would need: the two lists meet in Python, item by
    item (docs/decisions/0020).

    Parameters
    ----------
    hits : DataFrame
        One row per list, with the facts of its items; of several lists of a user those of one ``list_id`` are compared.
    models : mapping of str to Column
        What ``model_id`` is in the rows of each model.
    """
    key = [name for name in (C.USER_ID, C.LIST_ID) if name in hits.columns]
    same_user = Window.partitionBy(*key).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    items = F.col(C.ITEM_FACTS)
    own = F.struct(
        F.col(C.N_RECOMMENDED).alias("length"),
        items[C.RANK].alias("ranks"),
        items[C.ITEM_ID].alias("items"),
    )
    lists = {
        name: F.first(F.when(F.col(C.MODEL_ID) == model, own), ignorenulls=True).over(same_user)
        for name, model in models.items()
    }
    others = [F.when(F.col(C.MODEL_ID) != models[name], one).alias(name) for name, one in lists.items()]
    return hits.withColumn(C.OTHER_LISTS, F.struct(*others))

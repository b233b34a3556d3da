"""Quality of the lists themselves: too few items, repeated ones, and those that the user has already."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.definition import ANY_ORDER_OF_TIES, Aggregation, Cutoff, Definition
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Meaning

_NO_LIST: Final = "the user has no list"


@Definition(
    name="SufficientReco",
    formula="1[m >= k]",
    undefined=_NO_LIST,
    source="RecTools SufficientReco",
    cutoff=Cutoff("required"),
    aggregation=Aggregation(without_relevant=math.nan),
    ties=ANY_ORDER_OF_TIES,
    group=False,
)
def sufficient_recommendations(
    cut: CutLists,
    *,
    kind: Annotated[
        Literal["full", "share"], Meaning("Whether all places are filled, 1 or 0; the share of those that are.")
    ] = "full",
) -> FloatMatrix:
    """Whether the list has an item at each of the first k places.

    ``1[m >= k]``, whose mean is the share of lists that are long enough, or ``m / k``: in [0, 1]. NaN without a list.

    >>> sufficient_recommendations(Lists.of([Ranking([None, None])]).cut([2, 3]))
    array([[1., 0.]])
    """
    filled = cut.n_items / cut.k
    return np.where(cut.n_recommended > 0, np.floor(filled) if kind == "full" else filled, np.nan)


@Definition(
    name="NotInTrain",
    formula="(1 / m) |{i <= m : the user does not have item i in train}|",
    undefined=_NO_LIST,
    source="RecTools; shared task hygiene: a list should not repeat what its user has",
    needs=(required_facts.ITEM_SEEN,),
)
def not_in_train(cut: CutLists) -> FloatMatrix:
    """Share of the recommended items that their user does not have in the training data.

    ``(1 / m) |{i <= m : (user, i) not in train}|``: in [0, 1]; 1 for a user who is not in the training data. NaN
    without a list.

    >>> not_in_train(Lists.of([Ranking([None, None], items=[Item(), Item(is_seen=True)])]).cut([1, 2]))
    array([[1. , 0.5]])
    """
    n_seen = cut.sum_items(cut.lists.known_items.values[required_facts.ITEM_SEEN])
    return quotient(cut.n_items - n_seen, cut.n_items)


@Definition(
    name="UnrepeatedReco",
    formula="m / sum_{i<=m} copies(i)",
    undefined=_NO_LIST,
    source="RecTools UnrepeatedReco",
    needs=(required_facts.ITEM_COPIES,),
)
def unrepeated_recommendations(
    cut: CutLists,
    *,
    kind: Annotated[
        Literal["share", "full"], Meaning("The share; 1 where none of the items is repeated and 0 otherwise.")
    ] = "share",
) -> FloatMatrix:
    """Share of the rows of a list that are left when each item counts once: 1 where none is repeated.

    ``m / sum_{i<=m} copies(i)``, copies(i) being the rows of the log with item i in this list: in (0, 1]; 0 or 1 with
    ``kind='full'``. NaN without a list.

    >>> items = [Item(copies=3), Item()]
    >>> unrepeated_recommendations(Lists.of([Ranking([None, None], items=items)]).cut([1, 2])).round(4)
    array([[0.3333, 0.5   ]])
    """
    n_rows = cut.sum_items(cut.lists.known_items.values[required_facts.ITEM_COPIES])
    share = quotient(cut.n_items, n_rows)
    return share if kind == "share" else np.where(np.isnan(share), np.nan, (n_rows == cut.n_items).astype(np.float64))

"""What is wrong with the lists themselves: too few items, the same ones again, and those that the user has already."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Item
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.registry import Cutoff, Definition

_NO_LIST = "the user has no list"
_TWO = Ranking([None, 1], items=(Item(is_seen=True), Item()))
_NONE = Ranking([], missed=[1])
_REPEATED = Ranking([None, 1, None], items=(Item(), Item(copies=3), Item(copies=2)))


@Definition(
    name="SufficientReco",
    takes_group=False,
    formula="1[m >= k]",
    bounds=(0, 1),
    undefined=_NO_LIST,
    source="RecTools SufficientReco",
    cutoff=Cutoff("required"),
    bounded_by_gains=True,
    goldens=(
        Golden("SufficientReco@2", (_TWO,), ("1",)),
        Golden("SufficientReco@3", (_TWO, _NONE), ("0", UNDEFINED), mean="0", note="a list that is too short"),
        Golden("SufficientReco(kind='share')@3", (_TWO,), ("2/3",), note="the places that are filled"),
    ),
    without_relevant=lambda **_: math.nan,
)
def sufficient_recommendations(cut: CutLists, *, kind: Literal["full", "share"] = "full") -> FloatMatrix:
    """Whether the list has an item at each of the first k places.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    kind : {"full", "share"}
        Whether all places are filled, 1 or 0; the share of those that are.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]. NaN without a list: users without one are counted with every measure.

    Notes
    -----
    ``1[m >= k]``, whose mean is the share of lists that are long enough; or ``m / k``.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> sufficient_recommendations(Lists.of([Ranking([None, None])]).cut([2, 3]))
    array([[1., 0.]])
    """
    filled = cut.n_items / cut.k
    return np.where(cut.n_recommended > 0, np.floor(filled) if kind == "full" else filled, np.nan)


@Definition(
    name="NotInTrain",
    takes_group=False,
    formula="(1 / m) |{i <= m : the user does not have item i in train}|",
    bounds=(0, 1),
    undefined=_NO_LIST,
    source="RecTools; shared task hygiene: a list should not repeat what its user has",
    goldens=(
        Golden("NotInTrain@1", (_TWO, _NONE), ("0", UNDEFINED), mean="0"),
        Golden("NotInTrain@2", (_TWO,), ("1/2",)),
    ),
    needs=(needs.ITEM_SEEN,),
    without_relevant=lambda **_: math.nan,
)
def not_in_train(cut: CutLists) -> FloatMatrix:
    """Share of the recommended items that their user does not have in the training data.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 1 for a user who is not in the training data. NaN without a list.

    Notes
    -----
    ``(1 / m) |{i <= m : (user, i) not in train}|``.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> not_in_train(Lists.of([Ranking([None, None], items=[Item(), Item(is_seen=True)])]).cut([1, 2]))
    array([[1. , 0.5]])
    """
    n_seen = cut.sum_items(cut.lists.known_items.values[needs.ITEM_SEEN])
    return quotient(cut.n_items - n_seen, cut.n_items)


@Definition(
    name="UnrepeatedReco",
    takes_group=False,
    formula="m / sum_{i<=m} copies(i)",
    bounds=(0, 1),
    undefined=_NO_LIST,
    source="RecTools UnrepeatedReco",
    goldens=(
        Golden("UnrepeatedReco@1", (_REPEATED, _NONE), ("1", UNDEFINED), mean="1"),
        Golden(
            "UnrepeatedReco", (_REPEATED,), ("3 / (1 + 3 + 2)",), note="three of the six rows of the log are needed"
        ),
        Golden("UnrepeatedReco(kind='full')", (_TWO, _REPEATED), ("1", "0"), mean="1/2"),
    ),
    needs=(needs.ITEM_COPIES,),
    without_relevant=lambda **_: math.nan,
)
def unrepeated_recommendations(cut: CutLists, *, kind: Literal["share", "full"] = "share") -> FloatMatrix:
    """Share of the rows of a list that are left when each item counts once: 1 where none is repeated.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    kind : {"share", "full"}
        The share; or 1 where none of the items is repeated and 0 otherwise.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In (0, 1]; 0 or 1 with ``kind='full'``. NaN without a list.

    Notes
    -----
    ``m / sum_{i<=m} copies(i)``, copies(i) being the rows of the log with item i in this list. The ranks are those
    without repeated items, as of every other measure, so that a list of which repetitions take many places shows at a
    small k too; RecTools cuts the rows of the log at k instead, which is the same for the whole list. With the policy
    ``duplicates='keep'`` rows are not counted, and the value is 1.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(copies=3), Item()]
    >>> unrepeated_recommendations(Lists.of([Ranking([None, None], items=items)]).cut([1, 2])).round(4)
    array([[0.3333, 0.5   ]])
    """
    n_rows = cut.sum_items(cut.lists.known_items.values[needs.ITEM_COPIES])
    share = quotient(cut.n_items, n_rows)
    return share if kind == "share" else np.where(np.isnan(share), np.nan, (n_rows == cut.n_items).astype(np.float64))

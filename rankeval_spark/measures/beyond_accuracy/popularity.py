"""Popularity of the recommended items in the training data, also compared with what their users have."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, Ratio, quotient
from rankeval_spark.measures.definition import NEVER_FILLED, Aggregation, Definition
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Meaning

NO_LIST: Final = "the user has no list"
_LONG_TAIL: Final = "Abdollahpouri et al. (2019), Managing popularity bias in recommender systems"
_SCALES: Final = {"C": required_facts.TOTAL_INTERACTIONS, "max": required_facts.MOST_INTERACTIONS}

popularity = partial(Definition, undefined=NO_LIST, better="neither", aggregation=NEVER_FILLED)


@popularity(
    name="ARP",
    formula="(1 / m) sum_{i<=m} c(i)",
    bounds=(0, math.inf),
    undefined="the user has no list; unseen='drop' leaves no item; norm other than 'none' and train is empty",
    source="Yin et al. (2012), Challenging the long tail recommendation; norm='C' RecTools, norm='max' Evidently",
    aliases={"AvgRecPopularity": {}},
    needs=lambda norm, **_: (required_facts.ITEM_INTERACTIONS, *([_SCALES[norm]] if norm in _SCALES else [])),
)
def average_popularity(
    cut: CutLists,
    *,
    norm: Annotated[
        Literal["none", "C", "max"],
        Meaning("What a count is divided by: nothing; all interactions C; those of the most popular item."),
    ] = "none",
    unseen: Annotated[
        Literal["zero", "drop"],
        Meaning("What an item without interactions counts: 0; nothing, and the others of the first k count."),
    ] = "zero",
) -> FloatMatrix:
    """Mean popularity of the recommended items: their interactions in the training data.

    ``(1 / m) sum_{i<=m} c(i)``: in interactions, or in [0, 1] with a norm. NaN without a list.

    >>> items = [Item(interactions=8), Item(interactions=2)]
    >>> average_popularity(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[8., 5.]])
    """
    facts = cut.lists.known_items
    counts = facts.values[required_facts.ITEM_INTERACTIONS]
    n_items = cut.n_items if unseen == "zero" else cut.sum_items((counts > 0).astype(np.float64))
    scale = facts.totals[_SCALES[norm]][:, None] if norm in _SCALES else np.ones((1, 1))
    return quotient(cut.sum_items(counts), n_items * scale)


@popularity(
    name="APLT",
    formula="(1 / m) |{i <= m : item i is of the long tail}|",
    source=_LONG_TAIL,
    needs=(required_facts.ITEM_TAIL,),
)
def long_tail_share(cut: CutLists) -> FloatMatrix:
    """Share of the recommended items that belong to the long tail.

    ``(1 / m) |{i <= m : item i is of the long tail}|``: in [0, 1]. NaN without a list.

    >>> items = [Item(is_tail=False), Item(is_tail=True)]
    >>> long_tail_share(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[0. , 0.5]])
    """
    return mean_over_items(cut, required_facts.ITEM_TAIL)


@popularity(
    name="ACLT",
    formula="|{i <= m : item i is of the long tail}|",
    bounds=(0, math.inf),
    source=_LONG_TAIL,
    needs=(required_facts.ITEM_TAIL,),
)
def long_tail_count(cut: CutLists) -> FloatMatrix:
    """Count the recommended items that belong to the long tail.

    ``|{i <= m : item i is of the long tail}|``: at least 0, at most m. NaN without a list.

    >>> items = [Item(is_tail=False), Item(is_tail=True)]
    >>> long_tail_count(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[0., 1.]])
    """
    return np.where(
        cut.n_recommended > 0, cut.sum_items(cut.lists.known_items.values[required_facts.ITEM_TAIL]), np.nan
    )


@Definition(
    name="PopLift",
    formula="(GAP_L - GAP_P) / GAP_P; GAP_L and GAP_P the means over users of (1 / m) sum_{i<=m} c(i) and of the mean "
    "of c(i) over the distinct items of the user in train",
    bounds=(-1, math.inf),
    undefined="the user has no list or nothing in train, and is in neither mean",
    source="Abdollahpouri et al. (2020), The connection between popularity bias, calibration, and fairness in "
    "recommendation",
    needs=(required_facts.ITEM_INTERACTIONS, required_facts.PROFILE_INTERACTIONS),
    aggregation=Aggregation(default="micro", without_relevant=math.nan),
    better="neither",
)
def popularity_lift(cut: CutLists) -> Ratio:
    """How much more popular the recommended items are than those that their users have; 0 is unbiased.

    ``(GAP_L - GAP_P) / GAP_P``: at least -1; 0.5 where the list is by half more popular than the profile. NaN without a
    list or a profile.

    >>> one = Ranking([None], items=[Item(interactions=6)], background=Background(profile_interactions=4))
    >>> popularity_lift(Lists.of([one]).cut([1])).values
    array([[0.5]])
    """
    of_list = mean_over_items(cut, required_facts.ITEM_INTERACTIONS)
    of_profile = cut.lists.known_items.known_profile_interactions[:, None]
    return Ratio(of_list - of_profile, of_profile, where=of_profile != 0)


@popularity(
    name="MeanPopRank",
    formula="(1 / m) sum_{i<=m} q(i); q(i) the rank of item i by U(i) in train, the least popular first, over |T|",
    source="LensKit MeanPopRank; Ekstrand & Mahant (2017), Sturgeon and the cool kids",
    needs=(required_facts.ITEM_QUANTILE,),
)
def mean_popularity_rank(cut: CutLists) -> FloatMatrix:
    """Mean rank of the recommended items by popularity, as a share: 1 for the most popular item.

    ``(1 / m) sum_{i<=m} q(i)``: in [0, 1]; an item that is not in `train` has 0. NaN without a list.

    >>> items = [Item(quantile=1), Item(quantile=0.5)]
    >>> mean_popularity_rank(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[1.  , 0.75]])
    """
    return mean_over_items(cut, required_facts.ITEM_QUANTILE)


def mean_over_items(cut: CutLists, fact: str) -> FloatMatrix:
    """Mean of a fact over the recommended items at ranks 1..k; NaN without one."""
    return quotient(cut.sum_items(cut.lists.known_items.values[fact]), cut.n_items)

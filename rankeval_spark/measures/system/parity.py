"""Parity of popular and rare items, or of a category, over all lists together."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatVector, quotient
from rankeval_spark.measures.definition import NOT_BOUNDED_BY_GAINS, Definition
from rankeval_spark.measures.exposure import Rates
from rankeval_spark.measures.options import Category, Level

_SOURCE: Final = "Zhu, Wang & Caverlee (2020), Measuring and mitigating item under-recommendation bias; Elliot"
_UNEVEN: Final = math.sqrt(2)  # all but one of three rates are 0: the standard deviation is sqrt(2) times the mean


@Definition(
    name="PopREO",
    formula="sd_g(p_g) / mean_g(p_g); p_g = relevant items of group g that are recommended / relevant items of group g",
    bounds=(0, _UNEVEN),
    undefined="a group has no relevant item, or no relevant item is recommended",
    source=_SOURCE,
    needs=(required_facts.GROUP_RELEVANT,),
    ties=NOT_BOUNDED_BY_GAINS,
    better="lower",
)
def equal_opportunity(rates: Rates, *, rel: Level = 1) -> FloatVector:  # noqa: ARG001 - judgements are counted at it
    """Spread of recall over groups of popular and rare items; 0 where all groups are found equally well.

    ``sd_g(p_g) / mean_g(p_g)``: in [0, sqrt(2)], the standard deviation of the population of three rates over their
    mean. NaN where a group has no relevant item, and where none is recommended.

    >>> offered = Offered(("a c",), ("a", "b", "c"), relevant=("a b c",))
    >>> equal_opportunity(Rates.of([offered], need="group_relevant")).round(4)
    array([0.7071])
    """
    return _variation(rates)


@Definition(
    name="PopRSP",
    formula="sd_g(p_g) / mean_g(p_g); p_g = recommended items of group g / items of group g that could be",
    bounds=(0, _UNEVEN),
    undefined="a group has no item that can be recommended, or no list holds an item of the catalogue",
    source=_SOURCE,
    needs=(required_facts.GROUP_AVAILABLE,),
    needs_catalogue=True,
    better="lower",
)
def statistical_parity(rates: Rates) -> FloatVector:
    """Spread of exposure over groups of popular and rare items; 0 where an item of each is shown equally often.

    ``sd_g(p_g) / mean_g(p_g)``: in [0, sqrt(2)], the standard deviation of the population of three rates over their
    mean. NaN where a group has no item that can be recommended, and where no list holds an item of the catalogue.

    >>> statistical_parity(Rates.of([Offered(("a b c",), ("a", "b", "c"))], need="group_available"))
    array([0.])
    """
    return _variation(rates)


@Definition(
    name="BiasDisparity",
    formula="B_rec / B_train - 1; B = share of items that are of the category / the category's share of the catalogue",
    bounds=(-1, math.inf),
    undefined="no user with a list has an item of the category in train",
    source="Tsintzou, Pitoura & Tsaparas (2018), Bias disparity in recommendation systems",
    needs=(required_facts.CATEGORY_SHARES,),
    better="neither",
)
def bias_disparity(rates: Rates, *, category: Category) -> FloatVector:  # noqa: ARG001 - items are counted of it
    """How much more of a category users are recommended than they have in the training data, relatively.

    ``B_rec / B_train - 1``: in [-1, inf), 0 where the category has the share of the lists that it has of the users'
    items, 1 where it has twice that, -1 where it is never recommended. NaN where no user with a list has an item of it.

    >>> one = Preferred(("a b",), "a", own=("a b c d",))
    >>> bias_disparity(Rates.of([one], need="category_shares"), category="Drama")
    array([1.])
    """
    shares = quotient(rates.taken, rates.possible)
    return quotient(shares[:, 0], shares[:, 1]) - 1


def _variation(rates: Rates) -> FloatVector:
    """sd_g(p_g) / mean_g(p_g) of the rates p_g of the groups."""
    shares = quotient(rates.taken, rates.possible)
    mean = shares.mean(axis=1)
    spread: FloatVector = shares.std(axis=1) / np.where(mean > 0, mean, np.nan)
    return spread

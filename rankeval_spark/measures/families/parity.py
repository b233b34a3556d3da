"""Measures of all lists together: whether popular and rare items, or those of a category, get their due."""

from __future__ import annotations

import math

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatVector, quotient
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.options import Category, Level  # noqa: TC001 - the registry reads annotations at run time
from rankeval_spark.measures.rates import Offered, Preferred, Rates
from rankeval_spark.measures.registry import Definition

_SOURCE = "Zhu, Wang & Caverlee (2020), Measuring and mitigating item under-recommendation bias; Elliot"
_UNEVEN = math.sqrt(2)
"""All but one of three rates are 0: the standard deviation is sqrt(2) times the mean."""

_GROUPS = ("a", "b c", "d e f")
_HITS = Offered(("a b", "a d"), _GROUPS, relevant=("a b e", "a c d"))
_OWN = Offered(("a b", "b d"), _GROUPS, relevant=("a b d", "b d"), own=("", "b"))
_NO_TAIL = Offered(("a b",), _GROUPS, relevant=("a b",))
_NO_HIT = Offered(("x y",), _GROUPS, relevant=("a b d",))


@Definition(
    name="PopREO",
    kind="parity",
    interval="jackknife",
    formula="sd_g(p_g) / mean_g(p_g); p_g = relevant items of group g that are recommended / relevant items of group g",
    bounds=(0, _UNEVEN),
    undefined="a group has no relevant item, or no relevant item is recommended",
    source=_SOURCE,
    bounded_by_gains=False,
    goldens=(
        Golden(
            "PopREO@2",
            (),
            ("sqrt(((1 - 2/3)**2 + (1/2 - 2/3)**2 + (1/2 - 2/3)**2) / 3) / (2/3)",),
            shown=(_HITS,),
            note="of head, middle and tail 2 of 2, 1 of 2 and 1 of 2 are found",
        ),
        Golden(
            "PopREO@1",
            (),
            ("sqrt(2)", UNDEFINED, UNDEFINED),
            shown=(_OWN, _NO_TAIL, _NO_HIT),
            note="only the head is found",
        ),
        Golden(
            "PopREO",
            (),
            ("sqrt(((1/2 - 5/6)**2 + 2 * (1 - 5/6)**2) / 3) / (5/6)",),
            shown=(_OWN._replace(lists=("a b d", "b d"), relevant=("a b d", "a b")),),
            note="what a user has in train counts on neither side",
        ),
    ),
    needs=(needs.GROUP_RELEVANT,),
)
def equal_opportunity(rates: Rates, *, rel: Level = 1) -> FloatVector:  # noqa: ARG001 - judgements are counted at it
    """Spread of recall over groups of popular and rare items; 0 where all groups are found equally well.

    Parameters
    ----------
    rates : Rates
        Relevant items, found and all, by group.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_groups,)
        In [0, sqrt(2)]: standard deviation of the population of three rates over their mean. NaN where a group has no
        relevant item, and where none is recommended.

    Notes
    -----
    ``sd_g(p_g) / mean_g(p_g)`` with ``p_g = sum_u |{i <= m : r_i = 1, i in g}| / sum_u |relevant items of u in g|``,
    sums over the lists of all users with one. As in the paper an item that the user has in `train` counts on neither
    side. The groups: the head are the fewest, most popular items that hold at least 20 % of the interactions in
    `train`; head and middle the fewest that hold 80 %; the tail all others, those that are not in `train` too, as of
    APLT; ties by item id. Elliot compares two groups.

    Examples
    --------
    >>> offered = Offered(("a c",), ("a", "b", "c"), relevant=("a b c",))
    >>> equal_opportunity(Rates.of([offered], need="group_relevant")).round(4)
    array([0.7071])
    """
    return _variation(rates)


@Definition(
    name="PopRSP",
    kind="parity",
    interval="jackknife",
    formula="sd_g(p_g) / mean_g(p_g); p_g = recommended items of group g / items of group g that could be",
    bounds=(0, _UNEVEN),
    undefined="a group has no item that can be recommended, or no list holds an item of the catalogue",
    source=_SOURCE,
    goldens=(
        Golden(
            "PopRSP@2",
            (),
            ("sqrt(((1 - 17/36)**2 + (1/4 - 17/36)**2 + (1/6 - 17/36)**2) / 3) / (17/36)",),
            shown=(_HITS,),
            note="2 of 2, 1 of 4 and 1 of 6",
        ),
        Golden(
            "PopRSP",
            (),
            ("sqrt(((1/2 - 1/3)**2 + (1/3 - 1/3)**2 + (1/6 - 1/3)**2) / 3) / (1/3)", UNDEFINED),
            shown=(_OWN, _NO_HIT),
            note="b, which the second user has, is not there for him",
        ),
    ),
    needs=(needs.GROUP_AVAILABLE,),
    needs_catalogue=lambda **_: True,
)
def statistical_parity(rates: Rates) -> FloatVector:
    """Spread of exposure over groups of popular and rare items; 0 where an item of each is shown equally often.

    Parameters
    ----------
    rates : Rates
        Items that could be recommended, and that are, by group.

    Returns
    -------
    float64, shape (n_groups,)
        In [0, sqrt(2)]: standard deviation of the population of three rates over their mean. NaN where a group has no
        item that can be recommended, and where no list holds an item of the catalogue.

    Notes
    -----
    ``sd_g(p_g) / mean_g(p_g)`` with ``p_g = sum_u |{i <= m : i in g}| / sum_u |items of T in g that u does not have in
    train|``, sums over the lists of all users with one, T being the catalogue as of CatalogCoverage and the groups
    those of PopREO. As in the paper an item that the user has in `train` could not be recommended; where a list holds
    it nevertheless it counts on neither side, nor does an item outside of T.

    Examples
    --------
    >>> statistical_parity(Rates.of([Offered(("a b c",), ("a", "b", "c"))], need="group_available"))
    array([0.])
    """
    return _variation(rates)


_TASTES = Preferred(("a b", "a c"), "a b", own=("a c", "b c d"))
_LIKED_BY_NOBODY = _TASTES._replace(own=("c", "d"))


@Definition(
    name="BiasDisparity",
    kind="parity",
    interval="jackknife",
    formula="B_rec / B_train - 1; B = share of items that are of the category / the category's share of the catalogue",
    bounds=(-1, math.inf),
    undefined="no user with a list has an item of the category in train",
    source="Tsintzou, Pitoura & Tsaparas (2018), Bias disparity in recommendation systems",
    goldens=(
        Golden(
            "BiasDisparity(category='Drama')@2",
            (),
            ("(3/4) / (2/5) - 1", UNDEFINED),
            shown=(_TASTES, _LIKED_BY_NOBODY),
            note="of 4 places 3 go to the category, of 5 items in train 2 are of it",
        ),
        Golden(
            "BiasDisparity(category='Drama')@1",
            (),
            ("-1", "(1/2) / (1/2) - 1"),
            shown=(
                _TASTES._replace(category="b"),
                Preferred(("a", "b", ""), "a", own=("a b", "", "a")),
            ),
            note="never shown; as much as in train, where a user without a list does not count",
        ),
    ),
    needs=(needs.CATEGORY_SHARES,),
)
def bias_disparity(rates: Rates, *, category: Category) -> FloatVector:  # noqa: ARG001 - items are counted of it
    """How much more of a category users are recommended than they have in the training data, relatively.

    Parameters
    ----------
    rates : Rates
        Items of the category, and all, among the recommended ones and in the training data.
    category : str
        Category of items, in the case in which the catalogue writes it. An item of several categories belongs to each
        of them as a whole; one without categories, or that the catalogue does not have, to none.

    Returns
    -------
    float64, shape (n_groups,)
        In [-1, inf): 0 where the category has the share of the lists that it has of the users' items, 1 where it has
        twice that, -1 where it is never recommended. NaN where no user with a list has an item of it in `train`.

    Notes
    -----
    ``B_rec / B_train - 1`` with ``B = (items of the category / all items) / (the category's share of the catalogue)``:
    over the recommended items at ranks 1..m of all users together, and over the distinct items that the same users, all
    with a list, have in `train`. The share of the catalogue is on both sides and cancels. The paper compares groups of
    users: those are the slices.

    Examples
    --------
    >>> one = Preferred(("a b",), "a", own=("a b c d",))
    >>> bias_disparity(Rates.of([one], need="category_shares"), category="Drama")
    array([1.])
    """
    shares = quotient(rates.taken, rates.possible)
    return quotient(shares[:, 0], shares[:, 1]) - 1


def _variation(rates: Rates) -> FloatVector:
    """Divide the standard deviation of the rates of the groups by their mean."""
    shares = quotient(rates.taken, rates.possible)
    mean = shares.mean(axis=1)
    spread: FloatVector = shares.std(axis=1) / np.where(mean > 0, mean, np.nan)
    return spread

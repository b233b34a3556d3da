"""Measures of all lists together: whether popular and rare items have the same chance of being recommended."""

from __future__ import annotations

import math

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatVector, quotient
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.rates import Offered, Rates
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


def _variation(rates: Rates) -> FloatVector:
    """Divide the standard deviation of the rates of the groups by their mean."""
    shares = quotient(rates.taken, rates.possible)
    mean = shares.mean(axis=1)
    spread: FloatVector = shares.std(axis=1) / np.where(mean > 0, mean, np.nan)
    return spread

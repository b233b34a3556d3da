"""How far the recommended items are more popular than what their users have, or than other items."""

from __future__ import annotations

import math
from typing import Final

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Background, Item
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.registry import Definition

_NO_LIST = "the user has no list"
_POPULAR, _RARE = Item(interactions=8, quantile=1), Item(interactions=2, quantile=1 / 4)
_LIKES_POPULAR, _LIKES_RARE = Background(profile_interactions=10), Background(profile_interactions=2)
_LOWER = Ranking([None, 1], items=(_POPULAR, _RARE), background=_LIKES_POPULAR)
_HIGHER = Ranking([None, None], items=(_POPULAR, _RARE), background=_LIKES_RARE)
_UNSEEN = Ranking([None, None], items=(_RARE, Item()), background=_LIKES_RARE)
_STRANGER = Ranking([None], items=(_POPULAR,))
_NONE = Ranking([], missed=[1], background=_LIKES_RARE)


def lift_parts(cut: CutLists) -> tuple[FloatMatrix, FloatMatrix]:
    """Mean popularity of the list less that of the profile, and that of the profile."""
    facts = cut.lists.known_items
    of_profile = facts.known_profile_interactions[:, None]
    of_list = quotient(cut.sum_items(facts.values[needs.ITEM_INTERACTIONS]), cut.n_items)
    return of_list - of_profile, of_profile


@Definition(
    name="PopLift",
    takes_group=False,
    formula="(GAP_L - GAP_P) / GAP_P; GAP_L and GAP_P the means over users of (1 / m) sum_{i<=m} c(i) and of the mean "
    "of c(i) over the distinct items of the user in train",
    bounds=(-1, math.inf),
    undefined="the user has no list or nothing in train, and is in neither mean",
    source="Abdollahpouri et al. (2020), The connection between popularity bias, calibration, and fairness in "
    "recommendation",
    goldens=(
        Golden(
            "PopLift@1",
            (_LOWER, _HIGHER),
            ("(8 - 10) / 10", "(8 - 2) / 2"),
            mean="((8 + 8) / 2 - (10 + 2) / 2) / ((10 + 2) / 2)",
            note="the mean of the lists against the mean of the profiles",
        ),
        Golden("PopLift(agg='macro')@1", (_LOWER, _HIGHER), ("-1/5", "3"), mean="(-1/5 + 3) / 2"),
        Golden("PopLift", (_UNSEEN,), ("(1 - 2) / 2",), note="an item that is not in the training data has 0"),
        Golden("PopLift", (_HIGHER, _STRANGER, _NONE), ("(5 - 2) / 2", UNDEFINED, UNDEFINED), mean="(5 - 2) / 2"),
    ),
    needs=(needs.ITEM_INTERACTIONS, needs.PROFILE_INTERACTIONS),
    parts=lift_parts,
    agg="micro",
    without_relevant=lambda **_: math.nan,
)
def popularity_lift(cut: CutLists) -> FloatMatrix:
    """How much more popular the recommended items are than those that their users have; 0 is unbiased.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        At least -1; 0.5 where the list is by half more popular than the profile. NaN without a list or a profile.

    Notes
    -----
    ``(GAP_L - GAP_P) / GAP_P``: means over the users of the mean popularity c(i), the interactions in `train`, of items
    1..m and of the distinct items that the user has in `train`. It is a ratio of two means, not a mean of ratios
    (``agg='macro'``), in which users of rare items would outweigh all others; hence the interval by the delta method.

    Examples
    --------
    A list of popularity 6 for a user whose items have 4:

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(interactions=6)], background=Background(profile_interactions=4))
    >>> popularity_lift(Lists.of([one]).cut([1]))
    array([[0.5]])
    """
    return quotient(*lift_parts(cut))


_PLACES: Final = Ranking([None, 1, None], items=(_POPULAR, _RARE, Item()))


@Definition(
    name="MeanPopRank",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} q(i); q(i) the rank of item i by U(i) in train, the least popular first, over |T|",
    bounds=(0, 1),
    undefined=_NO_LIST,
    source="LensKit MeanPopRank; Ekstrand & Mahant (2017), Sturgeon and the cool kids",
    goldens=(
        Golden("MeanPopRank@2", (_PLACES,), ("(1 + 1/4) / 2",)),
        Golden("MeanPopRank", (_PLACES, _NONE), ("(1 + 1/4 + 0) / 3", UNDEFINED), mean="5/12"),
    ),
    needs=(needs.ITEM_QUANTILE,),
    without_relevant=lambda **_: math.nan,
)
def mean_popularity_rank(cut: CutLists) -> FloatMatrix:
    """Mean rank of the recommended items by popularity, as a share: 1 for the most popular item.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; an item that is not in `train` has 0. NaN without a list.

    Notes
    -----
    ``(1 / m) sum_{i<=m} q(i)``. The items in `train` are ranked by the number U(i) of their users, from 1 for the least
    popular one; items of equally many users share the mean of their ranks; q(i) is the rank over the number of items.
    Unlike the popularity c(i) of ARP it does not depend on how far a few items are above all others.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(quantile=1), Item(quantile=0.5)]
    >>> mean_popularity_rank(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[1.  , 0.75]])
    """
    return quotient(cut.sum_items(cut.lists.known_items.values[needs.ITEM_QUANTILE]), cut.n_items)

"""How popular, or how novel, the recommended items are in the training data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Background, Item
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Definition, Rule

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

_NO_LIST = "the user has no list"
_NO_DATA = "the user has no list, or train is empty"
_NO_SEEN_ITEM = "the user has no list, train is empty, or unseen='drop' leaves no item"
_VARGAS = "Vargas & Castells (2011), Rank and relevance in novelty and diversity metrics"

_TRAIN = Background(interactions=16, most_interactions=8, least_interactions=2, users=8)
_ITEMS = (
    Item(interactions=8, users=4, is_tail=False),
    Item(interactions=2, users=2),
    Item(),
)
_THREE = Ranking([None, 1, None], items=_ITEMS, background=_TRAIN)
"""A popular item, a relevant one of the long tail, and one that is not in the training data."""
_UNSEEN = Ranking([None], items=(Item(),), background=_TRAIN)
_NONE = Ranking([], missed=[1], background=_TRAIN)

REL_IS_FOR_RELEVANCE: Final = Rule(
    "rel only with relevance='on'", lambda options: options["rel"] != 1 and options["relevance"] != "on"
)


def _never(**_: object) -> float:
    """Leave a user without a value undefined under any population: no list is no list of unpopular items."""
    return math.nan


@Definition(
    name="ARP",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} c(i)",
    bounds=(0, math.inf),
    undefined="the user has no list; unseen='drop' leaves no item; norm other than 'none' and train is empty",
    source="Yin et al. (2012), Challenging the long tail recommendation; norm='C' RecTools, norm='max' Evidently",
    aliases={"AvgRecPopularity": {}},
    goldens=(
        Golden("ARP@2", (_THREE,), ("(8 + 2) / 2",)),
        Golden("ARP", (_THREE,), ("(8 + 2 + 0) / 3",), note="an item that is not in the training data has 0"),
        Golden("ARP(norm='C')@2", (_THREE,), ("(8/16 + 2/16) / 2",)),
        Golden("ARP(norm='max',unseen='drop')", (_THREE,), ("(8/8 + 2/8) / 2",)),
        Golden("ARP", (_UNSEEN, _NONE), ("0", UNDEFINED), mean="0"),
        Golden("ARP(unseen='drop')", (_UNSEEN,), (UNDEFINED,), note="no item is left"),
    ),
    needs=(needs.ITEM_INTERACTIONS,),
    needs_with=lambda *, norm, **_: {
        "none": (),
        "C": (needs.TOTAL_INTERACTIONS,),
        "max": (needs.MOST_INTERACTIONS,),
    }[norm],
    without_relevant=_never,
)
def average_popularity(
    cut: CutLists, *, norm: Literal["none", "C", "max"] = "none", unseen: Literal["zero", "drop"] = "zero"
) -> FloatMatrix:
    """Mean popularity of the recommended items: their interactions in the training data.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    norm : {"none", "C", "max"}
        What a count is divided by: nothing; all interactions C; those of the most popular item.
    unseen : {"zero", "drop"}
        What an item without interactions counts: 0; nothing, as if it were not in the list.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In interactions, or in [0, 1] with a norm. NaN without a list.

    Notes
    -----
    ``(1 / m) sum_{i<=m} c(i)``, c(i) being the interactions of item i in `train`, repeated ones among them.

    Examples
    --------
    Items with 8 and 2 interactions:

    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(interactions=8), Item(interactions=2)]
    >>> average_popularity(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[8., 5.]])
    """
    counts = cut.lists.known_items.values[needs.ITEM_INTERACTIONS]
    n_items = cut.n_items if unseen == "zero" else cut.sum_items((counts > 0).astype(np.float64))
    scales = {"C": needs.TOTAL_INTERACTIONS, "max": needs.MOST_INTERACTIONS}
    scale = _total(cut, scales[norm]) if norm != "none" else np.ones((1, 1))
    return quotient(cut.sum_items(counts), n_items * scale)


@Definition(
    name="MIUF",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} -log2(U(i) / |U|)",
    bounds=(0, math.inf),
    undefined=_NO_SEEN_ITEM,
    source="Zhou et al. (2010), Solving the apparent diversity-accuracy dilemma; RecTools ('one'), Evidently ('drop')",
    aliases={"Novelty": {}},
    goldens=(
        Golden("MIUF@2", (_THREE,), ("(log2(8/4) + log2(8/2)) / 2",)),
        Golden("MIUF", (_THREE,), ("(1 + 2 + log2(8)) / 3",), note="an unseen item is taken as if one user had it"),
        Golden("MIUF(unseen='drop')", (_THREE, _UNSEEN), ("(1 + 2) / 2", UNDEFINED)),
        Golden("MIUF", (_NONE,), (UNDEFINED,)),
    ),
    needs=(needs.ITEM_USERS, needs.TOTAL_USERS),
    without_relevant=_never,
)
def mean_inverse_user_frequency(cut: CutLists, *, unseen: Literal["one", "drop"] = "one") -> FloatMatrix:
    """Mean novelty of the recommended items: how few users had them in the training data, in bits.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    unseen : {"one", "drop"}
        What is made of an item that no user had: as if one had it; as if it were not in the list.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        At least 0, at most log2 |U|. NaN without a list.

    Notes
    -----
    ``(1 / m) sum_{i<=m} -log2(U(i) / |U|)``, U(i) being the users who have item i in `train`, |U| all users there.

    Examples
    --------
    One item that a quarter of 8 users had:

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(users=2)], background=Background(users=8))
    >>> mean_inverse_user_frequency(Lists.of([one]).cut([1]))
    array([[2.]])
    """
    users = cut.lists.known_items.values[needs.ITEM_USERS]
    bits = _bits(cut, users, needs.TOTAL_USERS)
    if unseen == "one":
        return _where_trained(cut, quotient(cut.sum_items(bits), cut.n_items), needs.TOTAL_USERS)
    is_seen = (users > 0).astype(np.float64)
    return quotient(cut.sum_items(bits * is_seen), cut.sum_items(is_seen))


@Definition(
    name="SelfInfo",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} -log2(max(c(i), 1) / C)",
    bounds=(0, math.inf),
    undefined=_NO_DATA,
    source="Zhou et al. (2010), Solving the apparent diversity-accuracy dilemma, by events",
    goldens=(
        Golden("SelfInfo@2", (_THREE,), ("(log2(16/8) + log2(16/2)) / 2",)),
        Golden("SelfInfo", (_THREE,), ("(1 + 3 + log2(16)) / 3",), note="an unseen item counts as one event"),
        Golden("SelfInfo", (_NONE,), (UNDEFINED,)),
    ),
    needs=(needs.ITEM_INTERACTIONS, needs.TOTAL_INTERACTIONS),
    without_relevant=_never,
)
def self_information(cut: CutLists) -> FloatMatrix:
    """Mean surprise of the recommended items: how rare an interaction with them was in the training data, in bits.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        At least 0, at most log2 C. NaN without a list.

    Notes
    -----
    ``(1 / m) sum_{i<=m} -log2(max(c(i), 1) / C)``, c(i) being the interactions of item i in `train`, C all of them.

    Examples
    --------
    One item with 2 of 16 interactions:

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(interactions=2)], background=Background(interactions=16))
    >>> self_information(Lists.of([one]).cut([1]))
    array([[3.]])
    """
    bits = _bits(cut, cut.lists.known_items.values[needs.ITEM_INTERACTIONS], needs.TOTAL_INTERACTIONS)
    return _where_trained(cut, quotient(cut.sum_items(bits), cut.n_items), needs.TOTAL_INTERACTIONS)


@Definition(
    name="EPC",
    takes_group=False,
    formula="sum_{i<=m} D(i) r_i (1 - U(i) / |U|) / sum_{i<=m} D(i), D(i) = 1 / log2(i + 1)",
    bounds=(0, 1),
    undefined=_NO_DATA,
    source=_VARGAS,
    bounded_by_gains=lambda relevance, **_: relevance == "off",
    goldens=(
        Golden("EPC@2", (_THREE,), ("(1 - 2/8) / log2(3) / (1 + 1/log2(3))",)),
        Golden(
            "EPC(relevance='off')@2",
            (_THREE,),
            ("((1 - 4/8) + (1 - 2/8) / log2(3)) / (1 + 1/log2(3))",),
            note="all items",
        ),
        Golden("EPC(relevance='off')", (_UNSEEN, _NONE), ("1", UNDEFINED), note="nobody knows an unseen item"),
    ),
    rules=(REL_IS_FOR_RELEVANCE,),
    needs=(needs.ITEM_USERS, needs.TOTAL_USERS),
    without_relevant=_never,
)
def expected_popularity_complement(
    cut: CutLists, *, rel: Level = 1, relevance: Literal["on", "off"] = "on"
) -> FloatMatrix:
    """How many users do not know a recommended item, the first places counting most.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.
    relevance : {"on", "off"}
        Which items count: those that are relevant; all.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]. NaN without a list; 0, not NaN, for a list without a relevant item.

    Notes
    -----
    ``sum_{i<=m} D(i) w_i (1 - U(i) / |U|) / sum_{i<=m} D(i)`` with ``D(i) = 1 / log2(i + 1)``, and w_i = r_i or 1. The
    divisor runs over all places, relevant or not.

    Examples
    --------
    One relevant item that a quarter of 8 users had:

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([1], items=[Item(users=2)], background=Background(users=8))
    >>> expected_popularity_complement(Lists.of([one]).cut([1]))
    array([[0.75]])
    """
    facts = cut.lists.known_items
    totals = np.maximum(facts.totals[needs.TOTAL_USERS], 1)[facts.item_list]
    unknown_to = 1 - facts.values[needs.ITEM_USERS] / totals
    return _where_trained(cut, _discounted_mean(cut, unknown_to, rel, relevance), needs.TOTAL_USERS)


@Definition(
    name="EFD",
    takes_group=False,
    formula="sum_{i<=m} D(i) r_i -log2(c(i) / C) / sum_{i<=m} D(i), D(i) = 1 / log2(i + 1)",
    bounds=(0, math.inf),
    undefined=_NO_DATA,
    source=f"{_VARGAS}; an unseen item as in Elliot",
    bounded_by_gains=lambda relevance, **_: relevance == "off",
    goldens=(
        Golden("EFD@2", (_THREE,), ("log2(16/2) / log2(3) / (1 + 1/log2(3))",)),
        Golden("EFD(relevance='off')@2", (_THREE,), ("(1 + 3 / log2(3)) / (1 + 1/log2(3))",), note="all items"),
        Golden("EFD(relevance='off')", (_UNSEEN,), ("3",), note="an unseen item counts as the rarest one"),
        Golden("EFD", (_NONE,), (UNDEFINED,)),
    ),
    rules=(REL_IS_FOR_RELEVANCE,),
    needs=(needs.ITEM_INTERACTIONS, needs.TOTAL_INTERACTIONS, needs.LEAST_INTERACTIONS),
    without_relevant=_never,
)
def expected_free_discovery(cut: CutLists, *, rel: Level = 1, relevance: Literal["on", "off"] = "on") -> FloatMatrix:
    """How rare an interaction with a recommended item was, in bits, the first places counting most.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.
    relevance : {"on", "off"}
        Which items count: those that are relevant; all.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        At least 0, at most log2 C. NaN without a list; 0, not NaN, for a list without a relevant item.

    Notes
    -----
    ``sum_{i<=m} D(i) w_i -log2(c(i) / C) / sum_{i<=m} D(i)`` with ``D(i) = 1 / log2(i + 1)``, and w_i = r_i or 1. An
    item that is not in `train` counts as the rarest one that is.

    Examples
    --------
    One relevant item with 2 of 16 interactions:

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> background = Background(interactions=16, least_interactions=1)
    >>> expected_free_discovery(
    ...     Lists.of([Ranking([1], items=[Item(interactions=2)], background=background)]).cut([1])
    ... )
    array([[3.]])
    """
    facts = cut.lists.known_items
    counts, least = facts.values[needs.ITEM_INTERACTIONS], facts.totals[needs.LEAST_INTERACTIONS][facts.item_list]
    bits = _bits(cut, np.where(counts > 0, counts, least), needs.TOTAL_INTERACTIONS)
    return _where_trained(cut, _discounted_mean(cut, bits, rel, relevance), needs.TOTAL_INTERACTIONS)


@Definition(
    name="APLT",
    takes_group=False,
    formula="(1 / m) |{i <= m : item i is of the long tail}|",
    bounds=(0, 1),
    undefined=_NO_LIST,
    source="Abdollahpouri et al. (2019), Managing popularity bias in recommender systems",
    goldens=(
        Golden("APLT@2", (_THREE,), ("1/2",)),
        Golden("APLT", (_THREE,), ("2/3",), note="an item that is not in the training data is of the long tail"),
        Golden("APLT@1", (_NONE,), (UNDEFINED,)),
    ),
    needs=(needs.ITEM_TAIL,),
    without_relevant=_never,
)
def long_tail_share(cut: CutLists) -> FloatMatrix:
    """Share of the recommended items that belong to the long tail.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]. NaN without a list.

    Notes
    -----
    ``(1 / m) |{i <= m : item i is of the long tail}|``. The head are the fewest, most popular items that hold at least
    80 % of the interactions in `train`, of equally popular ones those with the lower ids; all other items, those that
    are not in `train` too, are the long tail.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(is_tail=False), Item(is_tail=True)]
    >>> long_tail_share(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[0. , 0.5]])
    """
    return quotient(cut.sum_items(cut.lists.known_items.values[needs.ITEM_TAIL]), cut.n_items)


@Definition(
    name="ACLT",
    takes_group=False,
    formula="|{i <= m : item i is of the long tail}|",
    bounds=(0, math.inf),
    undefined=_NO_LIST,
    source="Abdollahpouri et al. (2019), Managing popularity bias in recommender systems",
    goldens=(
        Golden("ACLT@2", (_THREE,), ("1",)),
        Golden("ACLT", (_THREE, _NONE), ("2", UNDEFINED), mean="2"),
    ),
    needs=(needs.ITEM_TAIL,),
    without_relevant=_never,
)
def long_tail_count(cut: CutLists) -> FloatMatrix:
    """Count the recommended items that belong to the long tail.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        At least 0, at most m. NaN without a list.

    Notes
    -----
    ``|{i <= m : item i is of the long tail}|``; which items that are, APLT says.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(is_tail=False), Item(is_tail=True)]
    >>> long_tail_count(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[0., 1.]])
    """
    return np.where(cut.n_recommended > 0, cut.sum_items(cut.lists.known_items.values[needs.ITEM_TAIL]), np.nan)


def _total(cut: CutLists, name: str) -> FloatMatrix:
    return cut.lists.known_items.totals[name][:, None]


def _bits(cut: CutLists, counts: FloatVector, total: str) -> FloatVector:
    """Surprise of each item, an item that was never seen taken as seen once; 0 where nothing was seen at all."""
    facts = cut.lists.known_items
    totals = facts.totals[total][facts.item_list]
    bits: FloatVector = np.log2(np.maximum(totals, 1)) - np.log2(np.maximum(counts, 1))
    return bits


def _where_trained(cut: CutLists, values: FloatMatrix, total: str) -> FloatMatrix:
    return np.where(_total(cut, total) > 0, values, np.nan)


def _discounted_mean(cut: CutLists, values: FloatVector, rel: float, relevance: str) -> FloatMatrix:
    discounts = 1 / np.log2(cut.lists.known_items.item_rank + 1)
    counted = cut.lists.relevant_items(rel) if relevance == "on" else np.ones(len(values))
    return quotient(cut.sum_items(discounts * counted * values), cut.sum_items(discounts))

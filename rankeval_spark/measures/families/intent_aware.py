"""How well the top of a list covers the categories of what is relevant, each further item of one counting less."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, max_by_list, positions, quotient, sum_by_list
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Background, Item
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above, Below, Level
from rankeval_spark.measures.registry import Cutoff, Definition

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector, IntVector

_ALPHA: Final = 0.5
_UNDEFINED = "the user has no list, or no relevant judged item with a category"
_NEEDS = (needs.ITEM_CATEGORIES, needs.JUDGED_CATEGORIES)

_AB, _A, _C = Item(categories=("a", "b")), Item(categories=("a",)), Item(categories=("c",))
_JUDGED = Background(judged=((1, ("a",)), (1, ("a", "b")), (1, ("c",))))
_REPEATING = Ranking([1, 1, None], missed=[1], items=(_A, _AB, _C), background=_JUDGED)
"""Two relevant items of category a, the second of b too; c, which is relevant, is not found."""
_BEST = Ranking([1, 1, 1], items=(_AB, _C, _A), background=_JUDGED)
_IRRELEVANT = Ranking([0], items=(_A,), background=Background(judged=((0, ("a",)),)))
_NONE = Ranking([], missed=[1], background=_JUDGED)
_ONE_CATEGORY = Ranking([1], items=(_A,), background=Background(judged=((1, ("a",)),)))

Redundancy = Annotated[float, Above(0), Below(1)]


def alpha_ndcg_parts(cut: CutLists, *, rel: Level = 1, alpha: Redundancy = _ALPHA) -> tuple[FloatMatrix, FloatMatrix]:
    """Discounted gain of new categories of relevant items, and that of an ideal list."""
    gains, owner = _gains_of_lists(cut, rel, alpha)
    found = cut.sum_items(gains / np.log2(cut.lists.known_items.item_rank[owner] + 1), of=owner)
    return found, cut.once(("ideal of categories", rel, alpha), lambda: _ideal(cut, rel, alpha))


def intent_aware_err_parts(
    cut: CutLists, *, rel: Level = 1, alpha: Redundancy = _ALPHA
) -> tuple[FloatMatrix, FloatMatrix]:
    """Sum expected reciprocal ranks over all categories, of the list and of one whose items are of every category."""
    gains, owner = _gains_of_lists(cut, rel, alpha)
    found = cut.sum_items(gains / cut.lists.known_items.item_rank[owner], of=owner)
    item, code = _relevant_labels(cut, rel)
    wanted = np.unique(cut.lists.known_items.known_judged.owner[item] * _n_codes(cut) + code)
    n_wanted = np.bincount(wanted // _n_codes(cut), minlength=cut.lists.n_lists)[:, None]
    ranks = np.arange(1, int(cut.k.max(initial=1, where=np.isfinite(cut.k))) + 1)
    running = np.append(np.cumsum((1 - alpha) ** (ranks - 1) / ranks), np.nan)  # the whole list has no k
    best = running[np.where(np.isfinite(cut.k), cut.k, len(running)).astype(np.int64) - 1]
    return found, n_wanted * best


@Definition(
    name="alpha_nDCG",
    takes_group=False,
    formula="sum_{i<=m} G(i) / log2(i + 1) over the same sum of the ideal order; G(i) = sum over the categories c of "
    "item i of r_i (1 - alpha)^(relevant items of c above i)",
    bounds=(0, math.e / (math.e - 1)),
    undefined=_UNDEFINED,
    source="Clarke et al. (2008), Novelty and diversity in information retrieval evaluation; ndeval",
    bounded_by_gains=False,
    parts=alpha_ndcg_parts,
    goldens=(
        Golden(
            "alpha_nDCG@1", (_REPEATING,), ("1/2",), note="a is one of two categories that an item could have covered"
        ),
        Golden("alpha_nDCG@2", (_REPEATING,), ("(1 + (1/2 + 1) / log2(3)) / (2 + 1 / log2(3))",)),
        Golden("alpha_nDCG(alpha=0.75)@2", (_REPEATING,), ("(1 + (1/4 + 1) / log2(3)) / (2 + 1 / log2(3))",)),
        Golden(
            "alpha_nDCG(agg='micro')@1",
            (_REPEATING, _ONE_CATEGORY),
            ("1/2", "1"),
            mean="(1 + 1) / (2 + 1)",
            note="new categories of all users, of those that an item could have covered",
        ),
        Golden("alpha_nDCG", (_BEST, _IRRELEVANT, _NONE), ("1", UNDEFINED, UNDEFINED), mean="1"),
    ),
    needs=_NEEDS,
    without_relevant=lambda **_: math.nan,
)
def alpha_ndcg(cut: CutLists, *, rel: Level = 1, alpha: Redundancy = _ALPHA) -> FloatMatrix:
    """Discounted gain of new categories of relevant items, over that of an ideal list.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.
    alpha : float
        How much less each further relevant item of a category is worth.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        1 for the ideal list; at most e / (e - 1), because that is not always the best one. NaN without a list, and for
        a user without a relevant judged item that has a category.

    Notes
    -----
    ``sum_{i<=m} G(i) / log2(i + 1)`` with ``G(i) = sum_c (1 - alpha)^(relevant items with c above i)`` over the
    categories c of item i, 0 for an item that is not relevant. The subtopics of ndeval are the categories of the
    catalogue; an item is relevant to all of its categories or to none. The ideal list takes of all relevant judged
    items one by one that with the greatest G, of equal ones that with the higher id, as ndeval does; to find the best
    list is NP-hard.

    Examples
    --------
    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> items = [Item(categories=("a",)), Item(categories=("a",))]
    >>> background = Background(judged=((1, ("a",)), (1, ("a",)), (1, ("b",))))
    >>> alpha_ndcg(Lists.of([Ranking([1, 1], [1], items=items, background=background)]).cut([1, 2])).round(4)
    array([[1.    , 0.8066]])
    """
    found, ideal = alpha_ndcg_parts(cut, rel=rel, alpha=alpha)
    return np.where(cut.n_recommended > 0, quotient(found, ideal), np.nan)


@Definition(
    name="ERR_IA",
    takes_group=False,
    formula="sum_{i<=m} G(i) / i over sum_{i<=k} S (1 - alpha)^(i-1) / i; G as of alpha_nDCG, S the categories of "
    "relevant judged items",
    bounds=(0, 1),
    undefined=_UNDEFINED,
    source="Chapelle et al. (2011), Intent-based diversification of web search results; ndeval",
    cutoff=Cutoff("required"),
    bounded_by_gains=False,
    parts=intent_aware_err_parts,
    goldens=(
        Golden("ERR_IA@1", (_REPEATING,), ("1 / 3",), note="a, of a, b and c"),
        Golden("ERR_IA@2", (_REPEATING, _NONE), ("(1 + (1/2 + 1) / 2) / (3 + 3 * 1/2 / 2)", UNDEFINED)),
        Golden("ERR_IA(alpha=0.75)@2", (_REPEATING,), ("(1 + (1/4 + 1) / 2) / (3 + 3 * 1/4 / 2)",)),
        Golden("ERR_IA(agg='micro')@1", (_REPEATING, _ONE_CATEGORY), ("1/3", "1"), mean="(1 + 1) / (3 + 1)"),
        Golden("ERR_IA@1", (_IRRELEVANT,), (UNDEFINED,)),
    ),
    needs=_NEEDS,
    without_relevant=lambda **_: math.nan,
)
def intent_aware_err(cut: CutLists, *, rel: Level = 1, alpha: Redundancy = _ALPHA) -> FloatMatrix:
    """Divide the expected reciprocal rank over all categories by that of a list whose items all are of every category.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.
    alpha : float
        How much less each further relevant item of a category is worth.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]. NaN without a list, and for a user without a relevant judged item that has a category.

    Notes
    -----
    ``sum_{i<=m} G(i) / i`` over ``sum_{i<=k} S (1 - alpha)^(i-1) / i`` with G as of alpha_nDCG and S the distinct
    categories of the user's relevant judged items: no list of the items at hand need reach 1. ndeval forgets to divide
    at k = 1.

    Examples
    --------
    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([1], [1], items=[Item(categories=("a",))], background=Background(judged=((1, "a"), (1, "b"))))
    >>> intent_aware_err(Lists.of([one]).cut([1]))
    array([[0.5]])
    """
    found, possible = intent_aware_err_parts(cut, rel=rel, alpha=alpha)
    return np.where(cut.n_recommended > 0, quotient(found, possible), np.nan)


def _n_codes(cut: CutLists) -> int:
    return max(cut.lists.known_items.n_categories, 1)


def _gains_of_lists(cut: CutLists, rel: float, alpha: float) -> tuple[FloatVector, IntVector]:
    """Gain of each category of each relevant item in the lists, and the item it belongs to."""
    facts = cut.lists.known_items
    labels = facts.known_categories
    chosen = np.flatnonzero(cut.lists.relevant_items(rel)[labels.owner])
    key = facts.item_list[labels.owner[chosen]] * _n_codes(cut) + labels.code[chosen]
    order = np.argsort(key, kind="stable")  # items with a category of a list, the upper ones first
    group = np.unique(key[order], return_inverse=True)[1]
    n_above = positions(group, n_lists=int(group.max(initial=-1)) + 1) - 1
    gains: FloatVector = (1 - alpha) ** n_above.astype(np.float64)
    return gains, labels.owner[chosen][order]


def _relevant_labels(cut: CutLists, rel: float) -> tuple[IntVector, IntVector]:
    """Judged item and category, for those that are relevant."""
    judged = cut.lists.known_items.known_judged
    is_relevant = judged.gain[judged.labels.owner] >= rel
    return judged.labels.owner[is_relevant], judged.labels.code[is_relevant]


def _ideal(cut: CutLists, rel: float, alpha: float) -> FloatMatrix:
    """Fill the ideal lists of all users at once, a place at a time."""
    judged, n_lists = cut.lists.known_items.known_judged, cut.lists.n_lists
    item, code = _relevant_labels(cut, rel)
    cell = np.unique(judged.owner[item] * _n_codes(cut) + code, return_inverse=True)[1]
    worth = np.ones(int(cell.max(initial=-1)) + 1)  # of a further item, by (list, category)
    is_left = np.zeros(len(judged.owner), dtype=np.bool_)
    is_left[item] = True
    deepest = cut.k.max(initial=0)
    totals = np.zeros((n_lists, cut.k.size))
    rank = 1
    while is_left.any() and rank <= deepest:
        gains = sum_by_list(item, worth[cell], n_lists=len(judged.owner))
        best = _best_of_each(judged.owner, np.where(is_left, gains, 0), n_lists=n_lists)
        totals[judged.owner[best]] += (gains[best] / np.log2(rank + 1))[:, None] * (rank <= cut.k)
        is_left[best] = False
        worth[cell[np.isin(item, best)]] *= 1 - alpha
        rank += 1
    return totals


def _best_of_each(owner: IntVector, gains: FloatVector, *, n_lists: int) -> IntVector:
    """Find the item with the greatest gain of each list that has one above 0, of equal ones the first."""
    is_best = (gains > 0) & (gains == max_by_list(owner, gains, n_lists=n_lists)[owner])
    best = np.flatnonzero(is_best)
    return best[np.unique(owner[best], return_index=True)[1]]

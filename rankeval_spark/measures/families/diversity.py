"""How different the recommended items of one list are from each other."""

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
from rankeval_spark.measures.pairwise import aware_diversity, categories_in_common, features_in_common, similarity_of
from rankeval_spark.measures.registry import Definition

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

_FEWER_THAN_TWO = (
    "fewer than two items at ranks 1..k, or one of which nothing is known (unknown='drop': fewer than two known items)"
)
_VARGAS = "Smyth & McClave (2001), Similarity vs. diversity; Vargas & Castells (2011)"
_NEED: Final = {
    "vector": (needs.ITEM_VECTORS,),
    "jaccard": (needs.ITEM_CATEGORIES,),
    "cooccurrence": (needs.ITEM_PAIRS, needs.ITEM_USERS),
    "hamming": (needs.ITEM_VECTORS,),
}

_X, _Y, _OPPOSITE = Item(vector=(2, 0)), Item(vector=(0, 1)), Item(vector=(-1, 0))
_AB, _BC, _C = Item(categories=("a", "b")), Item(categories=("b", "c")), Item(categories=("c",))
_VECTORS = Ranking([None, 1, None], items=(_X, _Y, _OPPOSITE))
_SETS = Ranking([None, 1, None], items=(_AB, _BC, _C))
_TOGETHER = Ranking(
    [None, 1, None],
    items=(Item(users=4), Item(users=1), Item(users=4)),
    background=Background(pairs=((1, 2, 1 / 2), (1, 3, 3 / 4))),
)
"""The first item and the second have 1 user in common, the first and the third 3."""
_GAP = Ranking([None, 1, None], items=(_X, Item(vector=(0, 0)), _Y))
"""The second item has a vector without a direction."""
_SET_GAP = Ranking([None, 1, None], items=(_AB, Item(), _BC))
_ONE = Ranking([None], items=(_X,))
_FLAGS = Ranking([None] * 3, items=(Item(vector=(1, 0, 1, 0)), Item(vector=(1, 1, 1, 0)), Item(vector=(0, 0, 0, 0))))
_RELEVANT = Ranking([1, None, 1], items=(_X, _Y, _OPPOSITE))

_PROFILE = Background(categories=5, profile=(("a", 1, 1), ("c", 1, 3)))
_COVERING = Ranking([None, 1, None], items=(_AB, _BC, _C), background=_PROFILE)


def _never(**_: object) -> float:
    """Leave a user without a value undefined under any population."""
    return math.nan


@Definition(
    name="ILD",
    takes_group=False,
    formula="1 - (2 / (m (m - 1))) sum_{i<j<=m} sim(i, j)",
    bounds=(0, 2),
    undefined=_FEWER_THAN_TWO,
    source=f"{_VARGAS}, Rank and relevance in novelty and diversity metrics",
    bounded_by_gains=lambda rel, **_: rel is None,
    goldens=(
        Golden("ILD@2", (_VECTORS,), ("1",), note="at right angles"),
        Golden("ILD", (_VECTORS,), ("(1 + 2 + 1) / 3",), note="ranks 1 and 3 point in opposite directions"),
        Golden("ILD(sim='jaccard')@2", (_SETS,), ("1 - 1/3",)),
        Golden("ILD(sim='jaccard')", (_SETS,), ("((1 - 1/3) + 1 + (1 - 1/2)) / 3",)),
        Golden("ILD(sim='cooccurrence')@2", (_TOGETHER,), ("1 - 1 / sqrt(4 * 1)",)),
        Golden("ILD(sim='cooccurrence')", (_TOGETHER,), ("1 - (1/2 + 3/4 + 0) / 3",)),
        Golden("ILD(sim='hamming')@2", (_FLAGS,), ("1/4",), note="one of four flags differs"),
        Golden("ILD(sim='hamming')", (_FLAGS,), ("(1/4 + 2/4 + 3/4) / 3",), note="zeros are numbers like others"),
        Golden("ILD", (_GAP, _ONE), (UNDEFINED, UNDEFINED), note="no direction; no pair"),
        Golden("ILD(unknown='drop')", (_GAP,), ("1",)),
        Golden("ILD(sim='jaccard')", (_SET_GAP,), (UNDEFINED,), note="an item without categories is not known"),
        Golden(
            "ILD(discount='log2')",
            (_VECTORS,),
            (
                "((1 + 1/log2(3) * 2) / (1 + 1/log2(3)) + 1/log2(3) * (1 + 1) / 2 + 1/2 * (2 + 1) / 2)"
                " / (1 + 1/log2(3) + 1/2)",
            ),
            note="to the first item the second counts 1, the third 1 / log2(3); to the third both count 1",
        ),
        Golden("ILD(rel=1)", (_RELEVANT,), ("(2 + 2) / 3",), note="ranks 1 and 3 are relevant"),
        Golden("ILD(rel=1,discount='log2')", (_RELEVANT,), ("(2 + 1/2 * 2) / (1 + 1/log2(3) + 1/2)",)),
        Golden("ILD(rel=1)", (_VECTORS, _ONE), ("0", UNDEFINED), note="one relevant item makes no pair"),
    ),
    needs_with=lambda *, sim, **_: _NEED[sim],
    without_relevant=_never,
)
def intra_list_diversity(
    cut: CutLists,
    *,
    rel: Level | None = None,
    discount: Literal["none", "log2"] = "none",
    sim: Literal["vector", "jaccard", "cooccurrence", "hamming"] = "vector",
    unknown: Literal["null", "drop"] = "null",
) -> FloatMatrix:
    """Mean distance between the recommended items of a list, over all pairs.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float, optional
        Gain from which on an item is relevant; items that are not then add nothing. Left out, all items count.
    discount : {"none", "log2"}
        What a place counts: all the same; D(i) = 1 / log2(i + 1), and of two items the more the closer the second one
        follows the first.
    sim : {"vector", "jaccard", "cooccurrence", "hamming"}
        What makes two items similar: the cosine of their vectors; the share of their categories that they have in
        common; the users in `train` that they have in common, over the root of U(i) U(j); the share of equal numbers
        in their vectors, as of flags.
    unknown : {"null", "drop"}
        What an item without categories or users, without a vector, or with one of zeros (``hamming`` knows it) does:
        the list has no value; it counts as if it were not in the list.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 2], and in [0, 1] where no cosine is negative. NaN with fewer than two items.

    Notes
    -----
    ``(2 / (m (m - 1))) sum_{i<j<=m} (1 - sim(i, j))``. Cosines of all pairs come from the sum s of the unit vectors,
    ``(|s|^2 - m) / 2``, so that the work grows with k and not with its square. The distance of ``hamming`` is that of
    Hamming over the length of the vectors; RecTools counts the numbers that differ and does not divide.

    With ``rel`` or ``discount`` it is ``sum_i D(i) r_i d(i) / sum_i D(i)``, i in 1..m. Here d(i) is the mean distance
    to the other items, ``sum_{j != i} D(max(1, j - i)) r_j (1 - sim(i, j)) / sum_{j != i} D(max(1, j - i)) r_j``;
    it is 0 where that has no term; r_i = 1 without ``rel``, D = 1 without ``discount``. The outer divisor runs over all
    places, relevant or not, as of EPC.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(vector=(1, 0)), Item(vector=(0, 1)), Item(vector=(1, 0))]
    >>> intra_list_diversity(Lists.of([Ranking([None] * 3, items=items)]).cut([2, 3])).round(4)
    array([[1.    , 0.6667]])
    """
    diversity = 1 - _mean_similarity(cut, sim, unknown)
    if rel is None and discount == "none":
        return diversity
    known = _is_known(cut, sim)
    counted = known if rel is None else known * cut.lists.relevant_items(rel)
    similarity = cut.once(("similarity of pairs", sim), lambda: similarity_of(cut.lists.known_items, sim))
    aware = aware_diversity(cut, similarity, counted=counted, known=known, log2=discount == "log2")
    return np.where(np.isnan(diversity), np.nan, np.clip(aware, 0, 2))


@Definition(
    name="ILS",
    takes_group=False,
    formula="(2 / (m (m - 1))) sum_{i<j<=m} sim(i, j)",
    bounds=(-1, 1),
    undefined=_FEWER_THAN_TWO,
    source="Ziegler et al. (2005), Improving recommendation lists through topic diversification",
    goldens=(
        Golden("ILS@2", (_VECTORS,), ("0",)),
        Golden("ILS", (_VECTORS,), ("(0 - 1 + 0) / 3",)),
        Golden("ILS(sim='jaccard')", (_SETS,), ("(1/3 + 0 + 1/2) / 3",)),
        Golden("ILS(sim='cooccurrence')", (_TOGETHER,), ("(1/2 + 3/4 + 0) / 3",)),
        Golden("ILS(sim='hamming')", (_FLAGS,), ("(3/4 + 2/4 + 1/4) / 3",)),
        Golden("ILS", (_GAP,), (UNDEFINED,)),
        Golden("ILS(unknown='drop')", (_GAP,), ("0",)),
    ),
    needs_with=lambda *, sim, **_: _NEED[sim],
    without_relevant=_never,
)
def intra_list_similarity(
    cut: CutLists,
    *,
    sim: Literal["vector", "jaccard", "cooccurrence", "hamming"] = "vector",
    unknown: Literal["null", "drop"] = "null",
) -> FloatMatrix:
    """Mean similarity of the recommended items of a list, over all pairs.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    sim : {"vector", "jaccard", "cooccurrence", "hamming"}
        As for ILD.
    unknown : {"null", "drop"}
        As for ILD.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [-1, 1]. NaN with fewer than two items.

    Notes
    -----
    ``(2 / (m (m - 1))) sum_{i<j<=m} sim(i, j)`` = 1 - ILD.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(categories=("a", "b")), Item(categories=("b",))]
    >>> intra_list_similarity(Lists.of([Ranking([None] * 2, items=items)]).cut([2]), sim="jaccard")
    array([[0.5]])
    """
    return _mean_similarity(cut, sim, unknown)


@Definition(
    name="SRecall",
    takes_group=False,
    formula="|categories of items 1..m that the user's profile has| / |categories of the profile|",
    bounds=(0, 1),
    undefined="the user has no list; no categorised item in train (of='all': there are no categories)",
    source="Zhai et al. (2003), Beyond independent relevance: subtopic recall",
    aliases={"StRecall": {}},
    goldens=(
        Golden("SRecall@1", (_COVERING,), ("1/2",)),
        Golden("SRecall@2", (_COVERING,), ("2/2",)),
        Golden("SRecall(of='all')@2", (_COVERING,), ("3/5",)),
        Golden("SRecall@2", (_SETS,), (UNDEFINED,), note="a user without a profile"),
    ),
    needs=(needs.ITEM_CATEGORIES,),
    needs_with=lambda *, of, **_: {"user": (needs.PROFILE_CATEGORIES,), "all": (needs.TOTAL_CATEGORIES,)}[of],
    without_relevant=_never,
)
def subtopic_recall(cut: CutLists, *, of: Literal["user", "all"] = "user") -> FloatMatrix:
    """Share of categories that the recommended items cover.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    of : {"user", "all"}
        Which categories: those of the items that the user has in the training data; those of the whole catalogue.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; an item without categories covers none. NaN without a list.

    Notes
    -----
    ``|union of the categories of items 1..m, in T| / |T|``, T being the requested categories.

    Examples
    --------
    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> items, background = [Item(categories=("a",)), Item(categories=("b",))], Background(categories=4)
    >>> batch = Lists.of([Ranking([None] * 2, items=items, background=background)])
    >>> subtopic_recall(batch.cut([1, 2]), of="all")
    array([[0.25, 0.5 ]])
    """
    facts = cut.lists.known_items
    labels = facts.known_categories
    # The first item of its list with a category: items are in the order of (list, rank).
    key = facts.item_list[labels.owner] * facts.n_categories + labels.code
    covered, first = np.unique(key, return_index=True)
    counted = np.ones(len(covered))
    if of == "all":
        n_wanted = facts.totals[needs.TOTAL_CATEGORIES][:, None]
    else:
        profile = facts.known_profile
        counted = np.isin(covered, profile.owner * facts.n_categories + profile.code).astype(np.float64)
        distinct = np.unique(profile.owner * facts.n_categories + profile.code)
        owners = distinct // max(facts.n_categories, 1)
        n_wanted = np.bincount(owners, minlength=cut.lists.n_lists)[:, None].astype(np.float64)
    shares = quotient(cut.sum_items(counted, of=labels.owner[first]), n_wanted)
    return np.where(cut.n_recommended > 0, shares, np.nan)


def _mean_similarity(cut: CutLists, sim: str, unknown: str) -> FloatMatrix:
    facts = cut.lists.known_items

    def compute() -> tuple[FloatMatrix, FloatMatrix]:
        n_known = cut.sum_items(_is_known(cut, sim))
        if sim == "vector":
            return _sum_of_cosines(cut), n_known
        if sim == "jaccard":
            _, later, shares = categories_in_common(facts)
            return cut.sum_items(shares, of=later), n_known
        if sim == "hamming":
            items, shares = features_in_common(facts)
            return cut.sum_items(shares, of=items), n_known
        return cut.sum_items(facts.known_pairs.similarity, of=facts.known_pairs.later), n_known

    total, n_known = cut.once(("similarity", sim), compute)
    mean = np.clip(quotient(total, n_known * (n_known - 1) / 2), -1, 1)
    return (
        mean if unknown == "drop" else np.where(n_known == cut.sum_items(np.ones(len(facts.item_list))), mean, np.nan)
    )


def _is_known(cut: CutLists, sim: str) -> FloatVector:
    """Return 1 for each item whose similarities are known, 0 for the others."""
    facts = cut.lists.known_items
    if sim == "vector":
        return facts.has_vector.astype(np.float64)
    if sim == "hamming":
        return facts.has_numbers.astype(np.float64)
    if sim == "jaccard":
        return facts.has_categories.astype(np.float64)
    return (facts.values[needs.ITEM_USERS] > 0).astype(np.float64)


def _sum_of_cosines(cut: CutLists) -> FloatMatrix:
    """Sum the cosines of all pairs: half of what the squared sum has beyond the squares."""
    vectors = cut.lists.known_items.unit_vectors
    squares = cut.sum_items((vectors * vectors).sum(axis=1))
    of_sum = np.zeros_like(squares)
    for feature in vectors.T:
        of_sum += cut.sum_items(feature) ** 2
    return (of_sum - squares) / 2

"""Recommendations that the user could not have expected, and those among them that are relevant."""

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
from rankeval_spark.measures.registry import Cutoff, Definition, Rule

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.items import ItemFacts

_TRAIN = Background(profile_vector=(0.5, 0.5), catalogue=8)
"""The user has two items, (1, 0) and (0, 1)."""
_X, _OPPOSITE, _NO_VECTOR = Item(vector=(2, 0)), Item(vector=(-3, 0)), Item()
_CONTENT = Ranking([None, 1], items=(_X, _OPPOSITE), background=_TRAIN)
_CONTENT_GAP = Ranking([1, None], items=(_X, _NO_VECTOR), background=_TRAIN)
_TOGETHER = Ranking([None, 1], items=(Item(users=4, familiarity=1 / 2), Item(users=1, familiarity=0)))
"""The first item is often had together with the two of the user, the second never."""
_TOGETHER_GAP = Ranking([1, None], items=(Item(users=4, familiarity=1 / 2), Item(familiarity=0)))
"""No user has the second item."""
_POPULAR = Item(level=1, place=1)
_RARE = Item(level=4, place=4)
_POP = Ranking([1, 1, 1, None], items=(_RARE, _POPULAR, Item(), Item()), background=_TRAIN)
_NO_PROFILE = Ranking([1], items=(_X,))
_NONE = Ranking([], missed=[1], background=_TRAIN)

_CONTENT_NEEDS: Final = {
    "vector": (needs.ITEM_VECTORS, needs.PROFILE_VECTORS),
    "cooccurrence": (needs.ITEM_FAMILIARITY, needs.ITEM_USERS),
}
_NEEDS: Final = {
    "pop": (needs.ITEM_LEVEL, needs.CATALOGUE_ITEMS),
    "ge": (needs.ITEM_PLACE,),
}


@Definition(
    name="Unexpectedness",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} (1 - mean over j in train(u) of sim(i, j))",
    bounds=(0, 2),
    undefined="the user has no list, or no vector (sim='cooccurrence': no item) in train; an item has no vector (no "
    "user), with unknown='drop' all items",
    source="Zhang et al. (2012), Auralist; Microsoft recommenders",
    goldens=(
        Golden("Unexpectedness@1", (_CONTENT,), ("1 - 1/2",)),
        Golden("Unexpectedness", (_CONTENT, _NO_PROFILE, _NONE), ("(1/2 + 3/2) / 2", UNDEFINED, UNDEFINED)),
        Golden("Unexpectedness", (_CONTENT_GAP,), (UNDEFINED,)),
        Golden("Unexpectedness(unknown='drop')", (_CONTENT_GAP,), ("1/2",)),
        Golden("Unexpectedness(sim='cooccurrence')", (_TOGETHER,), ("((1 - 1/2) + 1) / 2",)),
        Golden("Unexpectedness(sim='cooccurrence')", (_TOGETHER_GAP, _NO_PROFILE), (UNDEFINED, UNDEFINED)),
        Golden("Unexpectedness(sim='cooccurrence',unknown='drop')", (_TOGETHER_GAP,), ("1/2",)),
    ),
    needs_with=lambda *, sim, **_: _CONTENT_NEEDS[sim],
    without_relevant=lambda **_: math.nan,
)
def unexpectedness(
    cut: CutLists, *, sim: Literal["vector", "cooccurrence"] = "vector", unknown: Literal["null", "drop"] = "null"
) -> FloatMatrix:
    """Mean distance of the recommended items from what their user has in the training data.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    sim : {"vector", "cooccurrence"}
        What makes two items similar: the cosine of their vectors; the users in `train` that they have in common, over
        the root of U(i) U(j), which is 1 for an item that the user has himself.
    unknown : {"null", "drop"}
        What an item without a vector, or without users, does: the list has no value; it counts as if it were not in
        the list.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 2], and in [0, 1] with ``sim='cooccurrence'``. NaN without a list, for a user without items in `train`
        and, with ``sim='vector'``, for one of whose items none has a vector.

    Notes
    -----
    ``(1 / m) sum_{i<=m} (1 - mean_j sim(i, j))`` over the distinct items j that the user has in `train`; with
    ``sim='vector'`` over those that have a vector. The mean cosine of vectors is the unit vector of i times the mean of
    the unit vectors of all j, so that no pair is looked at; co-occurrences are counted of pairs that occur.

    Examples
    --------
    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(vector=(1, 0))], background=Background(profile_vector=(0.5, 0.5)))
    >>> unexpectedness(Lists.of([one]).cut([1]))
    array([[0.5]])
    """
    return _mean_distance(cut, np.ones(len(cut.lists.known_items.item_list)), sim, unknown)


@Definition(
    name="Serendipity",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} r_i (1 - mean over j in train(u) of sim(i, j))",
    bounds=(0, 2),
    undefined="the user has no list; with kind='pop' the catalogue is empty, with kind='content' as Unexpectedness",
    source="Zhang et al. (2012), Auralist; kind='pop' RecTools; kind='ge' Ge et al. (2010), Beyond accuracy",
    cutoff=Cutoff("optional").but("required", kind="ge"),
    bounded_by_gains=False,
    goldens=(
        Golden("Serendipity@1", (_CONTENT,), ("0",), note="unexpected, but not relevant"),
        Golden("Serendipity@2", (_CONTENT,), ("(0 + 3/2) / 2",)),
        Golden("Serendipity", (_CONTENT_GAP, _NO_PROFILE), (UNDEFINED, UNDEFINED)),
        Golden("Serendipity(unknown='drop')", (_CONTENT_GAP,), ("1/2",)),
        Golden("Serendipity(sim='cooccurrence')", (_TOGETHER,), ("(0 + 1) / 2",)),
        Golden(
            "Serendipity(kind='pop')@3",
            (_POP,),
            ("((8/8 - 5/8) + 0 + 6/8) / 3",),
            note="of 8 items of the catalogue; the second item ranks no higher than its popularity",
        ),
        Golden("Serendipity(kind='ge')@3", (_POP, _NONE), ("2/3", UNDEFINED), note="one is among the 3 most popular"),
        Golden("Serendipity(kind='ge')@4", (_POP,), ("1/4",), note="two are among the 4 most popular"),
    ),
    rules=(
        Rule(
            "unknown only with kind='content'",
            lambda options: options["unknown"] != "null" and options["kind"] != "content",
        ),
        Rule(
            "sim only with kind='content'", lambda options: options["sim"] != "vector" and options["kind"] != "content"
        ),
    ),
    needs_with=lambda *, kind, sim, **_: _CONTENT_NEEDS[sim] if kind == "content" else _NEEDS[kind],
    without_relevant=lambda **_: math.nan,
)
def serendipity(
    cut: CutLists,
    *,
    rel: Level = 1,
    kind: Literal["content", "pop", "ge"] = "content",
    sim: Literal["vector", "cooccurrence"] = "vector",
    unknown: Literal["null", "drop"] = "null",
) -> FloatMatrix:
    """How much of the list is relevant and yet not what the user had to expect.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.
    kind : {"content", "pop", "ge"}
        What makes an item unexpected: its distance from what the user has in the training data, as in Unexpectedness;
        how much higher it is in the list than among the popular items; that it is not among the k most popular.
    sim : {"vector", "cooccurrence"}
        For ``kind='content'``, as in Unexpectedness.
    unknown : {"null", "drop"}
        For ``kind='content'``, as in Unexpectedness.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 2]; in [0, 1] for the other kinds. NaN without a list; 0, not NaN, for a list without a relevant item.

    Notes
    -----
    content: ``(1 / m) sum_{i<=m} r_i (1 - mean_j sim(i, j))``.

    pop: ``(1 / m) sum_{i<=m} r_i max(p_u(i) - p_pop(i), 0)`` with ``p = (N + 1 - rank) / N``. N are the items of the
    catalogue (`items` or, without that input, `train`). The rank of p_pop is the dense one by c(i), the interactions in
    `train`; p_pop = 0 for items that are not in `train`.

    ge: ``(1 / m) |{i <= m : r_i = 1, i not among the k most popular items of train}|``, ties by the item's id.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(place=1), Item(place=7)]
    >>> serendipity(Lists.of([Ranking([1, 1], items=items)]).cut([2]), kind="ge")
    array([[0.5]])
    """
    facts = cut.lists.known_items
    is_relevant = cut.lists.relevant_items(rel)
    if kind == "content":
        return _mean_distance(cut, is_relevant, sim, unknown)
    if kind == "ge":
        # Counted at each cutoff separately: the larger k, the more items are among the k most popular.
        place = facts.values[needs.ITEM_PLACE]
        counts = [cut.sum_items(is_relevant * (place > k))[:, column] for column, k in enumerate(cut.k[0])]
        return quotient(np.stack(counts, axis=1), cut.n_items)
    n_items, level = facts.totals[needs.CATALOGUE_ITEMS], facts.values[needs.ITEM_LEVEL]
    size, is_trained = np.maximum(n_items, 1)[facts.item_list], np.isfinite(level)
    at_rank = 1 - (facts.item_rank - 1) / size
    popularity = np.where(is_trained, 1 - (np.where(is_trained, level, 1) - 1) / size, 0.0)
    surprise = np.maximum(at_rank - popularity, 0)
    return np.where(n_items[:, None] > 0, quotient(cut.sum_items(is_relevant * surprise), cut.n_items), np.nan)


def _mean_distance(cut: CutLists, counted: FloatVector, sim: str, unknown: str) -> FloatMatrix:
    """Sum the distance of the items that count from the profile of their user, over the number of known items."""
    facts = cut.lists.known_items
    similarity = _to_profile(facts) if sim == "vector" else facts.values[needs.ITEM_FAMILIARITY]
    has_item = facts.has_vector if sim == "vector" else facts.values[needs.ITEM_USERS] > 0
    is_known = has_item & ~np.isnan(similarity)  # NaN for every item of a user without a profile
    n_known = cut.sum_items(is_known.astype(np.float64))
    distances = np.where(is_known, 1 - similarity, 0.0)
    mean = np.clip(quotient(cut.sum_items(counted * distances), n_known), 0, 2)
    return mean if unknown == "drop" else np.where(n_known == cut.n_items, mean, np.nan)


def _to_profile(facts: ItemFacts) -> FloatVector:
    """Mean cosine of each item to those of its user; NaN where they have none with a vector."""
    profiles = facts.known_profile_vectors
    has_profile = np.isfinite(profiles).all(axis=1) & (profiles.shape[1] > 0)
    towards = np.where(has_profile[:, None], profiles, 0.0)[facts.item_list]
    n_shared = min(towards.shape[1], facts.unit_vectors.shape[1])  # 0 where a batch knows no vector at all
    cosines: FloatVector = (facts.unit_vectors[:, :n_shared] * towards[:, :n_shared]).sum(axis=1)
    return np.where(has_profile[facts.item_list], cosines, np.nan)

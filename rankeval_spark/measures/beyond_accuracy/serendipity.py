"""Recommendations that the user could not have expected, and those among them that are relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.definition import NOT_BOUNDED_BY_GAINS, Cutoff, Definition, only_with
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Meaning
from rankeval_spark.measures.shared_options import Level, Unknown

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.measures.kernel_inputs.item_facts import ItemFacts

ProfileSim: TypeAlias = Annotated[
    Literal["vector", "cooccurrence"],
    Meaning(
        "What makes an item similar to those of the user: the cosine of their vectors; the users in `train` that they "
        "have in common, over the root of U(i) U(j), which is 1 for an item that the user has."
    ),
]

_CONTENT_NEEDS: Final = {
    "vector": (required_facts.ITEM_VECTORS, required_facts.PROFILE_VECTORS),
    "cooccurrence": (required_facts.ITEM_FAMILIARITY, required_facts.ITEM_USERS),
}
_NEEDS: Final = {
    "pop": (required_facts.ITEM_LEVEL, required_facts.CATALOGUE_ITEMS),
    "ge": (required_facts.ITEM_PLACE,),
}


@Definition(
    name="Unexpectedness",
    formula="(1 / m) sum_{i<=m} (1 - mean over j in train(u) of sim(i, j))",
    bounds=(0, 2),
    undefined="the user has no list, or no vector (sim='cooccurrence': no item) in train; an item has no vector (no "
    "user), with unknown='drop' all items",
    source="Zhang et al. (2012), Auralist; Microsoft recommenders",
    needs=lambda sim, **_: _CONTENT_NEEDS[sim],
)
def unexpectedness(cut: CutLists, *, sim: ProfileSim = "vector", unknown: Unknown = "null") -> FloatMatrix:
    """Mean distance of the recommended items from what their user has in the training data.

    ``(1 / m) sum_{i<=m} (1 - mean_j sim(i, j))``: in [0, 2], and in [0, 1] with ``sim='cooccurrence'``. NaN without a
    list, and for a user without items in `train` or, with ``sim='vector'``, without one that has a vector.

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> one = Ranking([None], items=[Item(vector=(1, 0))], background=Background(profile_vector=(0.5, 0.5)))
    >>> unexpectedness(Lists.of([one]).cut([1]))
    array([[0.5]])
    """
    return _mean_distance(cut, np.ones(len(cut.lists.known_items.item_list)), sim, unknown)


@Definition(
    name="Serendipity",
    formula="(1 / m) sum_{i<=m} r_i (1 - mean over j in train(u) of sim(i, j))",
    bounds=(0, 2),
    undefined="the user has no list; with kind='pop' the catalogue is empty, with kind='content' as Unexpectedness",
    source="Zhang et al. (2012), Auralist; kind='pop' RecTools; kind='ge' Ge et al. (2010), Beyond accuracy",
    cutoff=Cutoff("optional").but("required", kind="ge"),
    rules=(only_with("unknown", "null", "kind", "content"), only_with("sim", "vector", "kind", "content")),
    needs=lambda kind, sim, **_: _CONTENT_NEEDS[sim] if kind == "content" else _NEEDS[kind],
    ties=NOT_BOUNDED_BY_GAINS,
)
def serendipity(
    cut: CutLists,
    *,
    rel: Level = 1,
    kind: Annotated[
        Literal["content", "pop", "ge"],
        Meaning(
            "What makes an item unexpected: its distance from what the user has in the training data, as in "
            "Unexpectedness; how much higher it is in the list than among the popular items; that it is not among the "
            "k most popular."
        ),
    ] = "content",
    sim: ProfileSim = "vector",
    unknown: Unknown = "null",
) -> FloatMatrix:
    """How much of the list is relevant and yet not what the user had to expect.

    ``(1 / m) sum_{i<=m} r_i (1 - mean_j sim(i, j))``: in [0, 2]; in [0, 1] for the other kinds. NaN without a list; 0,
    not NaN, for a list without a relevant item.

    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> items = [Item(place=1), Item(place=7)]
    >>> serendipity(Lists.of([Ranking([1, 1], items=items)]).cut([2]), kind="ge")
    array([[0.5]])
    """
    is_relevant = cut.lists.relevant_items(rel)
    if kind == "content":
        return _mean_distance(cut, is_relevant, sim, unknown)
    return _less_popular(cut, is_relevant) if kind == "pop" else _not_most_popular(cut, is_relevant)


def _not_most_popular(cut: CutLists, is_relevant: FloatVector) -> FloatMatrix:
    """(1 / m) |{i <= m : r_i = 1, i not among the k most popular items of train}|."""
    # Counted at each cutoff separately: the larger k, the more items are among the k most popular.
    place = cut.lists.known_items.values[required_facts.ITEM_PLACE]
    counts = [cut.sum_items(is_relevant * (place > k))[:, column] for column, k in enumerate(cut.k[0])]
    return quotient(np.stack(counts, axis=1), cut.n_items)


def _less_popular(cut: CutLists, is_relevant: FloatVector) -> FloatMatrix:
    """(1 / m) sum r_i max(p_u(i) - p_pop(i), 0), p being (N + 1 - rank) / N, 0 for an item that is not in train."""
    facts = cut.lists.known_items
    n_items, level = facts.totals[required_facts.CATALOGUE_ITEMS], facts.values[required_facts.ITEM_LEVEL]
    size, is_trained = np.maximum(n_items, 1)[facts.item_list], np.isfinite(level)
    at_rank = 1 - (facts.item_rank - 1) / size
    popularity = np.where(is_trained, 1 - (np.where(is_trained, level, 1) - 1) / size, 0.0)
    surprise = np.maximum(at_rank - popularity, 0)
    return np.where(n_items[:, None] > 0, quotient(cut.sum_items(is_relevant * surprise), cut.n_items), np.nan)


def _mean_distance(cut: CutLists, counted: FloatVector, sim: str, unknown: str) -> FloatMatrix:
    """Sum the distance of the items that count from the profile of their user, over the number of known items."""
    facts = cut.lists.known_items
    similarity = _to_profile(facts) if sim == "vector" else facts.values[required_facts.ITEM_FAMILIARITY]
    has_item = facts.has_vector if sim == "vector" else facts.values[required_facts.ITEM_USERS] > 0
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

"""Similarity of pairs of recommended items, and the diversity of a list in which places and relevance count."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import positions, ratio, running_count_by_list, sum_by_list

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector
    from rankeval_spark.measures.kernel_inputs.item_facts import ItemFacts
    from rankeval_spark.measures.kernel_inputs.lists import CutLists

Similarity: TypeAlias = "Callable[[IntVector, IntVector], FloatVector]"
"""Similarity of items by their positions in the batch: the earlier ones and the later ones of as many pairs."""


def similarity_of(facts: ItemFacts, sim: str) -> Similarity:
    """Return the function that computes how similar two items of a list are; ``sim`` is the option of ILD."""
    if sim == "vector":
        vectors = facts.unit_vectors
        return lambda earlier, later: (vectors[earlier] * vectors[later]).sum(axis=1)
    if sim == "hamming":
        features = facts.known_vectors
        width = max(features.shape[1], 1)
        return lambda earlier, later: (features[earlier] == features[later]).sum(axis=1) / width
    if sim == "jaccard":
        return _looked_up(*categories_in_common(facts), n_items=len(facts.item_list))
    pairs = facts.known_pairs
    return _looked_up(pairs.earlier, pairs.later, pairs.similarity, n_items=len(facts.item_list))


def _looked_up(earlier: IntVector, later: IntVector, similarity: FloatVector, *, n_items: int) -> Similarity:
    """Look a similarity up among the pairs that have one; 0 for all others."""
    order = np.lexsort((later, earlier))
    keys = earlier[order] * n_items + later[order]
    known = np.append(similarity[order], 0.0)

    def look_up(first: IntVector, second: IntVector) -> FloatVector:
        sought = first * n_items + second
        place = np.searchsorted(keys, sought)
        is_there = np.append(keys, -1)[place] == sought
        return np.where(is_there, known[place], 0.0)

    return look_up


def categories_in_common(facts: ItemFacts) -> tuple[IntVector, IntVector, FloatVector]:
    """Find the pairs of a list with a category in common: the earlier item, the later one, and the share of both."""
    n_items = max(len(facts.item_list), 1)
    earlier, later = _pairs_by_category(facts)
    pairs, in_common = np.unique(earlier * n_items + later, return_counts=True)
    first, second = pairs // n_items, pairs % n_items
    sizes = np.bincount(facts.known_categories.owner, minlength=n_items)
    return first, second, in_common / (sizes[first] + sizes[second] - in_common)


def features_in_common(facts: ItemFacts) -> tuple[IntVector, FloatVector]:
    """Count, for each item with a vector, the numbers it has in common with all items above it in its list together.

    Returns the positions of these items in the batch and, as a share of the numbers of a vector, the sum over the items
    above each. No pair of items is looked at.
    """
    items = np.flatnonzero(facts.has_numbers)
    features = facts.known_vectors[items]
    in_common = np.zeros(len(items))
    for feature in features.T:
        values, code = np.unique(feature, return_inverse=True)
        key = facts.item_list[items] * len(values) + code
        order = np.argsort(key, kind="stable")
        _, block = np.unique(key[order], return_inverse=True)
        in_common[order] += positions(block, n_lists=int(block.max(initial=-1)) + 1) - 1
    return items, in_common / max(features.shape[1], 1)


def _pairs_by_category(facts: ItemFacts) -> tuple[IntVector, IntVector]:
    """Pair up the items of each (list, category), the earlier one first; once for each category in common."""
    labels = facts.known_categories
    key = facts.item_list[labels.owner] * facts.n_categories + labels.code
    order = np.lexsort((labels.owner, key))
    key, owner = key[order], labels.owner[order]
    earlier, later = [owner[:0]], [owner[:0]]
    step = 1
    while (is_same := key[step:] == key[:-step]).any():
        earlier.append(owner[:-step][is_same])
        later.append(owner[step:][is_same])
        step += 1
    return np.concatenate(earlier), np.concatenate(later)


def aware_diversity(
    cut: CutLists, similarity: Similarity, *, counted: FloatVector, known: FloatVector, log2: bool
) -> FloatMatrix:
    """sum_i D(i) r_i d(i) / sum_i D(i), d(i) the mean distance to the other items: diversity where places count.

    ``counted`` is r_i: 1 for a known item that is relevant, or where all are; ``known`` is 1 for every known item. D(i)
    is 1 / log2(i + 1) or, without ``log2``, 1. Known items alone have ranks: what is not known leaves no gap. A list
    without a pair of items that count has 0.
    """
    facts, n_lists = cut.lists.known_items, cut.lists.n_lists
    rank = facts.item_rank - running_count_by_list(1 - known, facts.item_list, n_lists=n_lists)

    def value_at(k: float) -> FloatVector:
        kept = np.flatnonzero((known > 0) & (facts.item_rank <= k))
        owner, place = facts.item_list[kept], _discount(rank[kept], log2=log2)

        def alike(earlier: IntVector, later: IntVector) -> FloatVector:
            return similarity(kept[earlier], kept[later])

        distance = _mean_distances(owner, rank[kept], alike, counted[kept], log2=log2)
        total = sum_by_list(owner, place * counted[kept] * distance, n_lists=n_lists)
        return ratio(total, sum_by_list(owner, place, n_lists=n_lists))

    return np.stack([value_at(k) for k in cut.k[0]], axis=1)


def _mean_distances(
    owner: IntVector, rank: FloatVector, similarity: Similarity, counted: FloatVector, *, log2: bool
) -> FloatVector:
    """Mean distance of each item to the others of its list that count, those next below it counting most.

    Items are compared with those one place below, two places below and so on: no list is looked at alone, and no more
    pairs are held than there are items.
    """
    total, weight = np.zeros(len(owner)), np.zeros(len(owner))
    step = 1
    while (is_same := owner[step:] == owner[:-step]).any():
        earlier = np.flatnonzero(is_same)
        later = earlier + step
        distance = 1 - similarity(earlier, later)
        # The item itself counts nothing here; the item above it is as near as the next one below.
        for one, other, gap in ((earlier, later, rank[later] - rank[earlier]), (later, earlier, np.ones(1))):
            worth = _discount(gap, log2=log2) * counted[other]
            total[one] += worth * distance
            weight[one] += worth
        step += 1
    return ratio(total, weight)


def _discount(rank: FloatVector, *, log2: bool) -> FloatVector:
    return 1 / np.log2(rank + 1) if log2 else np.ones(len(rank))

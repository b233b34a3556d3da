"""Differences between the recommended items of one list, and between the lists of two models."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import (
    FloatMatrix,
    FloatVector,
    IntVector,
    divide_or_nan,
    divide_or_zero,
    nan_unless,
    positions_in_list,
    prefix_sums,
    running_count_by_list,
    sum_by_list,
)
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.lists import CutLists, memoised
from rankeval_spark.measures.options import Level, OtherModel, Persistence, Unknown

if TYPE_CHECKING:
    from rankeval_spark.measures.item_facts import ItemFacts


Sim: TypeAlias = Annotated[
    Literal["vector", "jaccard", "cooccurrence", "hamming"],
    "What makes two items similar: the cosine of their vectors; the share of their categories that they have in "
    "common; the users in `train` that they have in common, over the root of U(i) U(j); the share of equal numbers "
    "in their vectors, as of flags. A vector of zeros is known to 'hamming' alone.",
]

_FEWER_THAN_TWO: Final = (
    "fewer than two items at ranks 1..k, or an item without known facts (unknown='drop': fewer than two known items)"
)
_VARGAS: Final = "Smyth & McClave (2001), Similarity vs. diversity; Vargas & Castells (2011)"
_NEEDS: Final = {
    "vector": (N.ITEM_VECTORS,),
    "jaccard": (N.ITEM_CATEGORIES,),
    "cooccurrence": (N.ITEM_PAIRS, N.ITEM_USERS),
    "hamming": (N.ITEM_VECTORS,),
}


@Definition(
    name="ILD",
    words="diversity, intra-list diversity, intra-list distance, dissimilarity within a list, average pairwise "
    "distance",
    aliases={"IntraListDistance": {}},
    formula="1 - (2 / (m (m - 1))) sum_{i<j<=m} sim(i, j)",
    bounds=(0, 2),
    undefined=_FEWER_THAN_TWO,
    source=f"{_VARGAS}, Rank and relevance in novelty and diversity metrics",
    needs=lambda sim, **_: _NEEDS[sim],
    is_bounded_by_gains=lambda rel, **_: rel is None,
)
def intra_list_diversity(
    cut: CutLists,
    *,
    rel: Annotated[
        Level | None,
        "Lowest gain of a relevant item; other items then add nothing. Left out, all items count.",
    ] = None,
    discount: Annotated[
        Literal["none", "log2"],
        "What a place counts: all the same; D(i) = 1 / log2(i + 1), and of two items the more the closer the "
        "second one follows the first.",
    ] = "none",
    sim: Sim = "vector",
    unknown: Unknown = "null",
) -> FloatMatrix:
    """Mean distance between the recommended items of a list, over all pairs.

    In [0, 1] where no cosine is negative.

    >>> items = [Item(vector=(1, 0)), Item(vector=(0, 1)), Item(vector=(1, 0))]
    >>> intra_list_diversity(Lists.of([Ranking([None] * 3, items=items)]).cut([2, 3])).round(4)
    array([[1.    , 0.6667]])
    """
    diversity = 1 - _mean_similarity(cut, sim, unknown)
    if rel is None and discount == "none":
        return diversity
    known = _known_item_flags(cut, sim)
    counted = known if rel is None else known * cut.lists.relevant_items(rel)
    similarity = cut.once(("similarity of pairs", sim), lambda: _similarity_function(cut.lists.known_items, sim))
    aware = _rank_aware_diversity(cut, similarity, counted=counted, known=known, log2=discount == "log2")
    return nan_unless(np.clip(aware, 0, 2), ~np.isnan(diversity))


@Definition(
    name="ILS",
    words="intra-list similarity, similarity within a list",
    aliases={"IntraListSimilarity": {}},
    formula="(2 / (m (m - 1))) sum_{i<j<=m} sim(i, j)",
    bounds=(-1, 1),
    undefined=_FEWER_THAN_TWO,
    source="Ziegler et al. (2005), Improving recommendation lists through topic diversification",
    needs=lambda sim, **_: _NEEDS[sim],
    better="lower",
    without_relevant=math.nan,
)
def intra_list_similarity(cut: CutLists, *, sim: Sim = "vector", unknown: Unknown = "null") -> FloatMatrix:
    """Mean similarity of the recommended items of a list, over all pairs.

    It is 1 - ILD.

    >>> items = [Item(categories=("a", "b")), Item(categories=("b",))]
    >>> intra_list_similarity(Lists.of([Ranking([None] * 2, items=items)]).cut([2]), sim="jaccard")
    array([[0.5]])
    """
    return _mean_similarity(cut, sim, unknown)


@Definition(
    name="SRecall",
    words="subtopic recall, category coverage, genre coverage, topic coverage",
    aliases={"StRecall": {}, "SubtopicRecall": {}},
    formula="|categories of items 1..m that the user's profile has| / |categories of the profile|",
    undefined="the user has no list; no categorised item in train (of='all': there are no categories)",
    source="Zhai et al. (2003), Beyond independent relevance: subtopic recall",
    needs=lambda of, **_: (N.ITEM_CATEGORIES, N.PROFILE_CATEGORIES if of == "user" else N.TOTAL_CATEGORIES),
)
def subtopic_recall(
    cut: CutLists,
    *,
    of: Annotated[
        Literal["user", "all"],
        "Which categories: those of the items that the user has in the training data; all of the catalogue.",
    ] = "user",
) -> FloatMatrix:
    """Share of categories that the recommended items cover.

    An item without categories covers none.

    >>> items, background = [Item(categories=("a",)), Item(categories=("b",))], Background(categories=4)
    >>> batch = Lists.of([Ranking([None] * 2, items=items, background=background)])
    >>> subtopic_recall(batch.cut([1, 2]), of="all")
    array([[0.25, 0.5 ]])
    """
    facts = cut.lists.known_items
    labels = facts.known_categories
    # The first item of its list with a category: items are in the order of (list, rank).
    covered, first = np.unique(facts.item_list[labels.owner] * facts.n_codes + labels.code, return_index=True)
    if of == "all":
        counted, n_wanted = np.ones(len(covered)), facts.totals[N.TOTAL_CATEGORIES][:, None]
    else:
        wanted = np.unique(facts.known_profile.owner * facts.n_codes + facts.known_profile.code)
        counted = np.isin(covered, wanted).astype(np.float64)
        owners = wanted // facts.n_codes
        n_wanted = np.bincount(owners, minlength=cut.lists.n_lists)[:, None].astype(np.float64)
    shares = divide_or_nan(cut.sum_items(counted, of=labels.owner[first]), n_wanted)
    return np.where(cut.n_recommended > 0, shares, np.nan)


def _mean_similarity(cut: CutLists, sim: str, unknown: str) -> FloatMatrix:
    """Mean over the pairs of known items; with ``null`` NaN where the list has an item that is not known."""
    facts = cut.lists.known_items

    def sum_of_pairs() -> FloatMatrix:
        if sim == "vector":  # (|s|^2 - sum |v_i|^2) / 2, s being the sum of the unit vectors v_i
            squares = cut.sum_items((facts.unit_vectors * facts.unit_vectors).sum(axis=1))
            of_sum = np.zeros_like(squares)
            for feature in facts.unit_vectors.T:
                of_sum += cut.sum_items(feature) ** 2
            return (of_sum - squares) / 2
        if sim == "hamming":
            items, shares = _sum_hamming_shares(facts)
            return cut.sum_items(shares, of=items)
        _, later, similarity = _similar_pairs(facts, sim)
        return cut.sum_items(similarity, of=later)

    total, n_known = cut.once(("similarity", sim), lambda: (sum_of_pairs(), cut.sum_items(_known_item_flags(cut, sim))))
    mean = np.clip(divide_or_nan(total, n_known * (n_known - 1) / 2), -1, 1)
    return mean if unknown == "drop" else nan_unless(mean, n_known == cut.n_items)


def _known_item_flags(cut: CutLists, sim: str) -> FloatVector:
    """Return 1 for each item whose similarities are known, 0 for the others."""
    facts = cut.lists.known_items
    if sim == "vector":
        return facts.has_vector.astype(np.float64)
    if sim == "hamming":
        return facts.has_numbers.astype(np.float64)
    if sim == "jaccard":
        return (np.bincount(facts.known_categories.owner, minlength=len(facts.item_list)) > 0).astype(np.float64)
    return (facts.values[N.ITEM_USERS] > 0).astype(np.float64)


# Similarity of items by their positions in the batch: the earlier ones and the later ones of as many pairs
Similarity: TypeAlias = "Callable[[IntVector, IntVector], FloatVector]"


def _similarity_function(facts: ItemFacts, sim: str) -> Similarity:
    """Return the function that computes how similar two items of a list are; ``sim`` is the option of ILD."""
    if sim == "vector":
        vectors = facts.unit_vectors
        return lambda earlier, later: (vectors[earlier] * vectors[later]).sum(axis=1)
    if sim == "hamming":
        features = facts.known_vectors
        width = max(features.shape[1], 1)
        return lambda earlier, later: (features[earlier] == features[later]).sum(axis=1) / width
    earlier, later, similarity = _similar_pairs(facts, sim)
    n_items, order = len(facts.item_list), np.lexsort((later, earlier))
    keys, known = earlier[order] * n_items + later[order], np.append(similarity[order], 0.0)

    def look_up(first: IntVector, second: IntVector) -> FloatVector:  # 0 for pairs without a similarity
        sought = first * n_items + second
        place = np.searchsorted(keys, sought)
        is_there = np.append(keys, -1)[place] == sought
        return np.where(is_there, known[place], 0.0)

    return look_up


def _similar_pairs(facts: ItemFacts, sim: str) -> tuple[IntVector, IntVector, FloatVector]:
    """Find the pairs of a list that co-occur, or with ``jaccard`` share a category: earlier, later item, similarity.

    The similarity of a pair that shares a category is its Jaccard index: shared categories / categories of either item.
    """
    if sim == "cooccurrence":
        return facts.known_pairs.earlier, facts.known_pairs.later, facts.known_pairs.similarity
    labels, n_items = facts.known_categories, max(len(facts.item_list), 1)
    key = facts.item_list[labels.owner] * facts.n_codes + labels.code
    order = np.lexsort((labels.owner, key))
    earlier, later = _pairs_within_runs(key[order])
    owner = labels.owner[order]
    pairs, in_common = np.unique(owner[earlier] * n_items + owner[later], return_counts=True)
    first, second = pairs // n_items, pairs % n_items
    sizes = np.bincount(labels.owner, minlength=n_items)
    return first, second, in_common / (sizes[first] + sizes[second] - in_common)


def _pairs_within_runs(key: IntVector) -> tuple[IntVector, IntVector]:
    """Find all pairs of positions with the same key, which is sorted: neighbours, then those two apart, and so on."""
    earlier, later = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    step = 1
    while (is_same := key[step:] == key[:-step]).any():
        first = np.flatnonzero(is_same)
        earlier.append(first)
        later.append(first + step)
        step += 1
    return np.concatenate(earlier), np.concatenate(later)


def _sum_hamming_shares(facts: ItemFacts) -> tuple[IntVector, FloatVector]:
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
        in_common[order] += positions_in_list(block, n_lists=int(block.max(initial=-1)) + 1) - 1
    return items, in_common / max(features.shape[1], 1)


def _rank_aware_diversity(
    cut: CutLists,
    similarity: Similarity,
    *,
    counted: FloatVector,  # (n_items,) r_i: 1 for a known item that is relevant, or where all are
    known: FloatVector,  # (n_items,) 1 for every known item
    log2: bool,  # whether D(i) is 1 / log2(i + 1) instead of 1
) -> FloatMatrix:
    """sum_i D(i) r_i d(i) / sum_i D(i), d(i) the mean distance to the other items: diversity where places count.

    Known items alone have ranks: what is not known leaves no gap. A list without a pair of items that count has 0.
    """
    facts, n_lists = cut.lists.known_items, cut.lists.n_lists
    rank = facts.item_rank - running_count_by_list(1 - known, facts.item_list, n_lists=n_lists)
    values = np.zeros((n_lists, cut.k.size))
    for column, k in enumerate(cut.k[0]):
        kept = np.flatnonzero((known > 0) & (facts.item_rank <= k))
        owner, ranks, counts = facts.item_list[kept], rank[kept], counted[kept]  # (n_kept,)
        # Distances of each item to the others that count, those next below it counting most. Items are compared with
        # those one place below, two places below and so on: no more pairs are held than there are items.
        total, weight = np.zeros(len(owner)), np.zeros(len(owner))
        step = 1
        while (is_same := owner[step:] == owner[:-step]).any():
            earlier = np.flatnonzero(is_same)
            later = earlier + step
            distance = 1 - similarity(kept[earlier], kept[later])
            # The item itself counts nothing here; the item above it is as near as the next one below.
            for item, other, gap in ((earlier, later, ranks[later] - ranks[earlier]), (later, earlier, np.ones(1))):
                worth = _discount(gap, log2) * counts[other]
                total[item] += worth * distance
                weight[item] += worth
            step += 1
        discounts = _discount(ranks, log2)
        diversity = sum_by_list(owner, discounts * counts * divide_or_zero(total, weight), n_lists=n_lists)
        values[:, column] = divide_or_zero(diversity, sum_by_list(owner, discounts, n_lists=n_lists))
    return values


def _discount(ranks: FloatVector, log2: bool) -> FloatVector:
    """D(i) of each rank: 1 / log2(i + 1), or 1."""
    return 1 / np.log2(ranks + 1) if log2 else np.ones(len(ranks))


_NO_TWO_LISTS: Final = "the user has no list of one of the two models, or they are one model"
_ABOUT: Final = "; B is the list of the named model for the same user"

agreement = partial(
    Definition, undefined=_NO_TWO_LISTS, needs=(N.OTHER_LISTS,), better="neither", without_relevant=math.nan
)


@agreement(
    name="Overlap",
    words="intersection of two lists, churn between models, stability of lists, overlap at k",
    aliases={"Intersection": {"denom": "len"}},
    formula=f"|L_k and B_k| / k{_ABOUT}",
    undefined=f"{_NO_TWO_LISTS}; denom='len' and 'min': no item at ranks 1..k",
    source="share of a page of k places; denom='len' RecTools Intersection; denom='min' Szymkiewicz-Simpson",
    cutoff=Cutoff("required").but("optional", denom="len").but("optional", denom="min"),
)
def overlap(
    cut: CutLists,
    *,
    model: OtherModel,
    denom: Annotated[
        Literal["k", "len", "min"],
        "What the common items are divided by: k; the items of the list; those of the shorter of the two lists.",
    ] = "k",
) -> FloatMatrix:
    """Share of the first k places that the list and that of another model have in common.

    min(k, n) / k for equal lists, 1 with another ``denom``. Here a b c is compared with b d:

    >>> batch = Lists.of([Ranking([None] * 3, background=Background(others=[("popular", (2, None))]))])
    >>> overlap(batch.cut([1, 2]), model="popular")
    array([[0. , 0.5]])
    """
    if denom == "k":
        return nan_unless(_count_shared(cut, model) / cut.k, _shorter_length(cut, model) > 0)
    n_others = cut.n_items_of_other(cut.lists.shared_with(model))
    n_items = cut.n_items if denom == "len" else np.minimum(cut.n_items, n_others)
    return divide_or_nan(_count_shared(cut, model), np.where(_shorter_length(cut, model) > 0, n_items, 0))


@agreement(
    name="Jaccard",
    words="Jaccard index, Jaccard similarity, Jaccard distance, intersection over union",
    aliases={"JaccardIndex": {}, "JaccardSimilarity": {}},
    formula=f"|L_k and B_k| / |L_k or B_k|{_ABOUT}",
    source="Jaccard (1901)",
)
def jaccard(cut: CutLists, *, model: OtherModel) -> FloatMatrix:
    """Share of the items in either list, the model's own and another's, that both show.

    1 for equal lists. Of a b c and b d, one in three is common at the first two places:

    >>> batch = Lists.of([Ranking([None] * 3, background=Background(others=[("popular", (2, None))]))])
    >>> jaccard(batch.cut([2, 3]), model="popular").round(4)
    array([[0.3333, 0.25  ]])
    """
    n_shared, n_others = _count_shared(cut, model), cut.n_items_of_other(cut.lists.shared_with(model))
    n_either = np.where(_shorter_length(cut, model) > 0, cut.n_items + n_others - n_shared, 0)
    return divide_or_nan(n_shared, n_either)


@agreement(
    name="RBO",
    words="rank-biased overlap",
    aliases={"RankBiasedOverlap": {}},
    formula=f"(1 - p) sum_{{d>=1}} p^(d-1) |L_d and B_d| / d, extrapolated beyond k and the ends of the lists{_ABOUT}",
    source="Webber, Moffat & Zobel (2010), A similarity measure for indefinite rankings, equation 32; LensKit RBO",
    always_printed=("p",),
)
def rank_biased_overlap(cut: CutLists, *, model: OtherModel, p: Persistence = 0.9) -> FloatMatrix:
    """Mean overlap with the list of another model, of a user who looks one place further with probability p.

    1 for equal lists. Of a b and b a half of the weight lies below rank 1:

    >>> batch = Lists.of([Ranking([None] * 2, background=Background(others=[("popular", (2, 1))]))])
    >>> rank_biased_overlap(batch.cut([1, 2]), model="popular", p=0.5)
    array([[0. , 0.5]])
    """
    shared, shorter = cut.lists.shared_with(model), _shorter_length(cut, model)
    longer = np.maximum(cut.depth, np.minimum(cut.k, shared.length[:, None]))
    short, long = (np.maximum(length, 1).astype(np.int64) for length in (shorter, longer))
    depths = np.arange(1, long.max(initial=1) + 1)
    powers, shares = prefix_sums(p**depths), prefix_sums(p**depths / depths)
    is_in_short = shared.depth <= np.minimum(cut.lists.n_recommended, shared.length)[shared.owner]
    in_short, n_shared = cut.sum_shared(shared, is_in_short.astype(np.float64)), _count_shared(cut, model)
    agreed = n_shared * shares[long] - cut.sum_shared(shared, shares[np.minimum(shared.depth, len(depths)) - 1])
    unseen = in_short * ((powers[long] - powers[short]) / short - (shares[long] - shares[short]))
    beyond = ((n_shared - in_short) / long + in_short / short) * p**long
    return nan_unless(np.clip((1 - p) / p * (agreed + unseen) + beyond, 0, 1), shorter > 0)


@memoised
def _count_shared(cut: CutLists, model: str) -> FloatMatrix:
    """Count the items that both lists hold at ranks <= k."""
    shared = cut.lists.shared_with(model)
    return cut.sum_shared(shared, np.ones(len(shared.depth)))


def _shorter_length(cut: CutLists, model: str) -> FloatMatrix:
    """Length of the shorter list of the two, cut at k; 0 where one model gave none."""
    return np.minimum(cut.depth, cut.lists.shared_with(model).length[:, None])

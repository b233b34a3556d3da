"""Novelty of the recommended items, and their popularity: known to few, not to be expected, published lately."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, Ratio, divide_or_nan, median_by_list
from rankeval_spark.measures.definition import Cutoff, Definition, only_with
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Above, Level, Unknown

CountedItems: TypeAlias = Annotated[Literal["on", "off"], "Which items count: those that are relevant; all."]

_NO_DATA: Final = "the user has no list, or train is empty"
_ZHOU: Final = "Zhou et al. (2010), Solving the apparent diversity-accuracy dilemma"
_VARGAS: Final = "Vargas & Castells (2011), Rank and relevance in novelty and diversity metrics"
_REL_IS_FOR_RELEVANCE: Final = only_with("rel", 1, "relevance", "on")


@Definition(
    name="MIUF",
    words="novelty, mean inverse user frequency, inverse user frequency",
    aliases={"Novelty": {}, "MeanInvUserFreq": {}, "MeanInverseUserFrequency": {}},
    formula="(1 / m) sum_{i<=m} -log2(U(i) / |U|)",
    bounds=(0, math.inf),
    undefined="the user has no list, train is empty, or unseen='drop' leaves no item",
    source=f"{_ZHOU}; RecTools ('one'), Evidently ('drop')",
    needs=(N.ITEM_USERS, N.TOTAL_USERS),
)
def mean_inverse_user_frequency(
    cut: CutLists,
    *,
    unseen: Annotated[
        Literal["one", "drop"],
        "What an item that no user had counts: as if one had it; nothing, and the others of the first k count.",
    ] = "one",
) -> FloatMatrix:
    """Mean novelty of the recommended items: how few users had them in the training data, in bits.

    At most log2 |U|.

    >>> one = Ranking([None], items=[Item(users=2)], background=Background(users=8))
    >>> mean_inverse_user_frequency(Lists.of([one]).cut([1]))
    array([[2.]])
    """
    users = cut.lists.known_items.values[N.ITEM_USERS]
    bits = _bits_of_surprise(cut, users, N.TOTAL_USERS)
    if unseen == "one":
        return _nan_without_training(cut, divide_or_nan(cut.sum_items(bits), cut.n_items), N.TOTAL_USERS)
    is_seen = (users > 0).astype(np.float64)
    return divide_or_nan(cut.sum_items(bits * is_seen), cut.sum_items(is_seen))


@Definition(
    name="SelfInfo",
    words="self-information, mean self-information, surprise, historical item novelty",
    aliases={"SelfInformation": {}, "MeanSelfInformation": {}},
    formula="(1 / m) sum_{i<=m} -log2(max(c(i), 1) / C)",
    bounds=(0, math.inf),
    undefined=_NO_DATA,
    source=f"{_ZHOU}, by events",
    needs=(N.ITEM_INTERACTIONS, N.TOTAL_INTERACTIONS),
)
def self_information(cut: CutLists) -> FloatMatrix:
    """Mean surprise of the recommended items: how rare an interaction with them was in the training data, in bits.

    At most log2 C.

    >>> one = Ranking([None], items=[Item(interactions=2)], background=Background(interactions=16))
    >>> self_information(Lists.of([one]).cut([1]))
    array([[3.]])
    """
    bits = _bits_of_surprise(cut, cut.lists.known_items.values[N.ITEM_INTERACTIONS], N.TOTAL_INTERACTIONS)
    return _nan_without_training(cut, divide_or_nan(cut.sum_items(bits), cut.n_items), N.TOTAL_INTERACTIONS)


@Definition(
    name="EPC",
    words="expected popularity complement",
    aliases={"ExpectedPopularityComplement": {}},
    formula="sum_{i<=m} D(i) r_i (1 - U(i) / |U|) / sum_{i<=m} D(i), D(i) = 1 / log2(i + 1)",
    undefined=_NO_DATA,
    source=_VARGAS,
    rules=(_REL_IS_FOR_RELEVANCE,),
    needs=(N.ITEM_USERS, N.TOTAL_USERS),
    is_bounded_by_gains=lambda relevance, **_: relevance == "off",
)
def expected_popularity_complement(cut: CutLists, *, rel: Level = 1, relevance: CountedItems = "on") -> FloatMatrix:
    """Mean share of users without the recommended item; the first ranks count most.

    0, not NaN, for a list without a relevant item; with ``relevance='off'`` all items count.

    >>> one = Ranking([1], items=[Item(users=2)], background=Background(users=8))
    >>> expected_popularity_complement(Lists.of([one]).cut([1]))
    array([[0.75]])
    """
    facts = cut.lists.known_items
    totals = np.maximum(facts.totals[N.TOTAL_USERS], 1)[facts.item_list]
    unknown_to = 1 - facts.values[N.ITEM_USERS] / totals
    return _nan_without_training(cut, _discounted_mean(cut, unknown_to, rel, relevance), N.TOTAL_USERS)


@Definition(
    name="EFD",
    words="expected free discovery",
    aliases={"ExpectedFreeDiscovery": {}},
    formula="sum_{i<=m} D(i) r_i -log2(c(i) / C) / sum_{i<=m} D(i), D(i) = 1 / log2(i + 1)",
    bounds=(0, math.inf),
    undefined=_NO_DATA,
    source=f"{_VARGAS}; an unseen item as in Elliot",
    rules=(_REL_IS_FOR_RELEVANCE,),
    needs=(N.ITEM_INTERACTIONS, N.TOTAL_INTERACTIONS, N.LEAST_INTERACTIONS),
    is_bounded_by_gains=lambda relevance, **_: relevance == "off",
)
def expected_free_discovery(cut: CutLists, *, rel: Level = 1, relevance: CountedItems = "on") -> FloatMatrix:
    """Mean rarity of an interaction with the recommended item, in bits; the first ranks count most.

    At most log2 C; 0, not NaN, for a list without a relevant item; with ``relevance='off'`` all items count.

    >>> background = Background(interactions=16, least_interactions=1)
    >>> one = Ranking([1], items=[Item(interactions=2)], background=background)
    >>> expected_free_discovery(Lists.of([one]).cut([1]))
    array([[3.]])
    """
    facts = cut.lists.known_items
    counts, least = (facts.values[N.ITEM_INTERACTIONS], facts.totals[N.LEAST_INTERACTIONS][facts.item_list])
    bits = _bits_of_surprise(cut, np.where(counts > 0, counts, least), N.TOTAL_INTERACTIONS)
    return _nan_without_training(cut, _discounted_mean(cut, bits, rel, relevance), N.TOTAL_INTERACTIONS)


def _bits_of_surprise(cut: CutLists, counts: FloatVector, total: str) -> FloatVector:
    """-log2(count / total) of each item, a count of 0 taken as 1; 0 where nothing was seen at all."""
    facts = cut.lists.known_items
    totals = facts.totals[total][facts.item_list]
    return np.log2(np.maximum(totals, 1)) - np.log2(np.maximum(counts, 1))


def _nan_without_training(cut: CutLists, values: FloatMatrix, total: str) -> FloatMatrix:
    """Keep the values; NaN where ``total``, a count of the training data, is 0."""
    return np.where(cut.lists.known_items.totals[total][:, None] > 0, values, np.nan)


def _discounted_mean(cut: CutLists, values: FloatVector, rel: float, relevance: str) -> FloatMatrix:
    """Sum D(i) w_i x_i / sum D(i), D(i) = 1 / log2(i + 1)."""
    discounts = 1 / np.log2(cut.lists.known_items.item_rank + 1)
    counted = cut.lists.relevant_items(rel) if relevance == "on" else np.ones(len(values))
    return divide_or_nan(cut.sum_items(counted * values, discount=discounts), cut.sum_items(discounts))


ProfileSim: TypeAlias = Annotated[
    Literal["vector", "cooccurrence"],
    "What makes an item similar to those of the user: the cosine of their vectors; the users in `train` that they "
    "have in common, over the root of U(i) U(j), which is 1 for an item that the user has.",
]

_CONTENT_NEEDS: Final = {
    "vector": (N.ITEM_VECTORS, N.PROFILE_VECTORS),
    "cooccurrence": (N.ITEM_FAMILIARITY, N.ITEM_USERS),
}
_NEEDS: Final = {"pop": (N.ITEM_LEVEL, N.CATALOGUE_ITEMS), "ge": (N.ITEM_PLACE,)}


@Definition(
    name="Unexpectedness",
    words="unexpected recommendations, distance from the profile, distance from the user's history",
    formula="(1 / m) sum_{i<=m} (1 - mean over j in train(u) of sim(i, j))",
    bounds=(0, 2),
    undefined="the user has no list, or no vector (sim='cooccurrence': no item) in train; an item has no vector (no "
    "user), with unknown='drop' all items",
    source="Zhang et al. (2012), Auralist; Microsoft recommenders",
    needs=lambda sim, **_: _CONTENT_NEEDS[sim],
)
def unexpectedness(cut: CutLists, *, sim: ProfileSim = "vector", unknown: Unknown = "null") -> FloatMatrix:
    """Mean distance of the recommended items from what their user has in the training data.

    In [0, 1] with ``sim='cooccurrence'``.

    >>> one = Ranking([None], items=[Item(vector=(1, 0))], background=Background(profile_vector=(0.5, 0.5)))
    >>> unexpectedness(Lists.of([one]).cut([1]))
    array([[0.5]])
    """
    return _mean_distance(cut, np.ones(len(cut.lists.known_items.item_list)), sim, unknown)


@Definition(
    name="Serendipity",
    words="serendipitous recommendations, surprising and relevant",
    formula="(1 / m) sum_{i<=m} r_i (1 - mean over j in train(u) of sim(i, j))",
    bounds=(0, 2),
    undefined="the user has no list; with kind='pop' the catalogue is empty, with kind='content' as Unexpectedness",
    source="Zhang et al. (2012), Auralist; kind='pop' RecTools; kind='ge' Ge et al. (2010), Beyond accuracy",
    cutoff=Cutoff("optional").but("required", kind="ge"),
    rules=(only_with("unknown", "null", "kind", "content"), only_with("sim", "vector", "kind", "content")),
    needs=lambda kind, sim, **_: _CONTENT_NEEDS[sim] if kind == "content" else _NEEDS[kind],
    is_bounded_by_gains=False,
)
def serendipity(
    cut: CutLists,
    *,
    rel: Level = 1,
    kind: Annotated[
        Literal["content", "pop", "ge"],
        "What makes an item unexpected: its distance from what the user has in the training data, as in "
        "Unexpectedness; how much higher it is in the list than among the popular items; that it is not among the "
        "k most popular.",
    ] = "content",
    sim: ProfileSim = "vector",
    unknown: Unknown = "null",
) -> FloatMatrix:
    """Share of the list that is relevant and that the user could not expect.

    In [0, 1] for the other kinds; 0, not NaN, for a list without a relevant item.

    >>> items = [Item(place=1), Item(place=7)]
    >>> serendipity(Lists.of([Ranking([1, 1], items=items)]).cut([2]), kind="ge")
    array([[0.5]])
    """
    is_relevant = cut.lists.relevant_items(rel)
    if kind == "content":
        return _mean_distance(cut, is_relevant, sim, unknown)
    return _less_popular(cut, is_relevant) if kind == "pop" else _not_most_popular(cut, is_relevant)


def _not_most_popular(cut: CutLists, is_relevant: FloatVector) -> FloatMatrix:
    """(1 / m) |{i <= m : r_i = 1, i not among the k most popular items of train}|; the larger k, the more of these."""
    place = cut.lists.known_items.values[N.ITEM_PLACE]
    counts = [cut.sum_items(is_relevant * (place > k))[:, column] for column, k in enumerate(cut.k[0])]
    return divide_or_nan(np.stack(counts, axis=1), cut.n_items)


def _less_popular(cut: CutLists, is_relevant: FloatVector) -> FloatMatrix:
    """(1 / m) sum r_i max(p_u(i) - p_pop(i), 0), p being (N + 1 - rank) / N, 0 for an item that is not in train."""
    facts = cut.lists.known_items
    n_items, level = facts.totals[N.CATALOGUE_ITEMS], facts.values[N.ITEM_LEVEL]
    size, is_trained = np.maximum(n_items, 1)[facts.item_list], np.isfinite(level)
    at_rank = 1 - (facts.item_rank - 1) / size
    popularity = np.where(is_trained, 1 - (np.where(is_trained, level, 1) - 1) / size, 0.0)
    surprise = np.maximum(at_rank - popularity, 0)
    return np.where(n_items[:, None] > 0, divide_or_nan(cut.sum_items(is_relevant * surprise), cut.n_items), np.nan)


def _mean_distance(cut: CutLists, counted: FloatVector, sim: str, unknown: str) -> FloatMatrix:
    """Sum the distances from the user's profile over the items that count; divide by the number of known items."""
    facts = cut.lists.known_items
    if sim == "cooccurrence":
        similarity, has_item = facts.values[N.ITEM_FAMILIARITY], facts.values[N.ITEM_USERS] > 0
    else:  # mean cosine to the items of the user; NaN where they have none with a vector
        profiles = facts.known_profile_vectors
        has_profile = np.isfinite(profiles).all(axis=1) & (profiles.shape[1] > 0)
        towards = np.where(has_profile[:, None], profiles, 0.0)[facts.item_list]
        n_shared = min(towards.shape[1], facts.unit_vectors.shape[1])  # 0 where a batch knows no vector at all
        cosines = (facts.unit_vectors[:, :n_shared] * towards[:, :n_shared]).sum(axis=1)
        similarity, has_item = np.where(has_profile[facts.item_list], cosines, np.nan), facts.has_vector
    is_known = has_item & ~np.isnan(similarity)  # NaN for every item of a user without a profile
    n_known = cut.sum_items(is_known.astype(np.float64))
    distances = np.where(is_known, 1 - similarity, 0.0)
    mean = np.clip(divide_or_nan(cut.sum_items(counted * distances), n_known), 0, 2)
    return mean if unknown == "drop" else np.where(n_known == cut.n_items, mean, np.nan)


_MONTH: Final = 30


@Definition(
    name="Freshness",
    words="age of items, recency, mean age",
    formula="(1 / m) sum_{i<=m} age(i), in days at the evaluation date",
    bounds=(-math.inf, math.inf),
    undefined="the user has no list, or the day of an item is unknown (with unknown='drop': of every item)",
    source="measure sheet of this project, after Vargas & Castells (2011) and Chou et al. (2015)",
    rules=(only_with("days", _MONTH, "stat", "share"),),
    needs=(N.ITEM_AGE,),
    better=lambda stat, **_: "higher" if stat == "share" else "lower",
    without_relevant=math.nan,
)
def freshness(
    cut: CutLists,
    *,
    days: Annotated[float, Above(0), "For stat='share': items younger than this count."] = _MONTH,
    stat: Annotated[
        Literal["mean", "median", "share"],
        "Mean age; median age; share of items that are younger than `days`, where high is fresh.",
    ] = "mean",
    unknown: Unknown = "null",
) -> FloatMatrix:
    """Age of the recommended items on the evaluation date, in days since they were published; low is fresh.

    Below 0 for what is published after the evaluation date; or a share in [0, 1].

    >>> freshness(Lists.of([Ranking([None, None], items=[Item(age=1), Item(age=4)])]).cut([1, 2]))
    array([[1. , 2.5]])
    """
    facts = cut.lists.known_items
    ages = facts.values[N.ITEM_AGE]
    is_known = ~np.isnan(ages)
    n_known = cut.sum_items(is_known.astype(np.float64))
    if stat == "median":
        kept = [np.flatnonzero(is_known & (facts.item_rank <= k)) for k in cut.k[0]]
        n_lists = cut.lists.n_lists
        values = np.stack([median_by_list(facts.item_list[at], ages[at], n_lists=n_lists) for at in kept], axis=1)
    else:
        known = np.where(is_known, ages, 0.0) if stat == "mean" else (ages < days).astype(np.float64)
        values = divide_or_nan(cut.sum_items(known), n_known)
    return values if unknown == "drop" else np.where(n_known == cut.n_items, values, np.nan)


_NO_LIST: Final = "the user has no list"
_LONG_TAIL: Final = "Abdollahpouri et al. (2019), Managing popularity bias in recommender systems"
_SCALES: Final = {"C": N.TOTAL_INTERACTIONS, "max": N.MOST_INTERACTIONS}

popularity = partial(Definition, undefined=_NO_LIST, better="neither", without_relevant=math.nan)


@popularity(
    name="ARP",
    words="average recommendation popularity, average popularity, mean popularity, popularity, popularity bias",
    aliases={"AvgRecPopularity": {}, "AverageRecommendationPopularity": {}, "AveragePopularity": {}},
    formula="(1 / m) sum_{i<=m} c(i)",
    bounds=(0, math.inf),
    undefined="the user has no list; unseen='drop' leaves no item; norm other than 'none' and train is empty",
    source="Yin et al. (2012), Challenging the long tail recommendation; norm='C' RecTools, norm='max' Evidently",
    needs=lambda norm, **_: (N.ITEM_INTERACTIONS, *([_SCALES[norm]] if norm in _SCALES else [])),
)
def average_popularity(
    cut: CutLists,
    *,
    norm: Annotated[
        Literal["none", "C", "max"],
        "What a count is divided by: nothing; all interactions C; those of the most popular item.",
    ] = "none",
    unseen: Annotated[
        Literal["zero", "drop"],
        "What an item without interactions counts: 0; nothing, and the others of the first k count.",
    ] = "zero",
) -> FloatMatrix:
    """Mean popularity of the recommended items: their interactions in the training data.

    In interactions, or in [0, 1] with a norm.

    >>> items = [Item(interactions=8), Item(interactions=2)]
    >>> average_popularity(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[8., 5.]])
    """
    facts = cut.lists.known_items
    counts = facts.values[N.ITEM_INTERACTIONS]
    n_items = cut.n_items if unseen == "zero" else cut.sum_items((counts > 0).astype(np.float64))
    scale = facts.totals[_SCALES[norm]][:, None] if norm in _SCALES else np.ones((1, 1))
    return divide_or_nan(cut.sum_items(counts), n_items * scale)


@popularity(
    name="APLT",
    words="average percentage of long-tail items, long tail, share of the long tail",
    aliases={"AveragePercentageOfLongTail": {}},
    formula="(1 / m) |{i <= m : item i is of the long tail}|",
    source=_LONG_TAIL,
    needs=(N.ITEM_TAIL,),
)
def long_tail_share(cut: CutLists) -> FloatMatrix:
    """Share of the recommended items that belong to the long tail.

    >>> items = [Item(is_tail=False), Item(is_tail=True)]
    >>> long_tail_share(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[0. , 0.5]])
    """
    return mean_over_items(cut, N.ITEM_TAIL)


@popularity(
    name="ACLT",
    words="average coverage of long-tail items, number of long-tail items",
    aliases={"AverageCoverageOfLongTail": {}},
    formula="|{i <= m : item i is of the long tail}|",
    bounds=(0, math.inf),
    source=_LONG_TAIL,
    needs=(N.ITEM_TAIL,),
)
def long_tail_count(cut: CutLists) -> FloatMatrix:
    """Count the recommended items that belong to the long tail.

    At most m.

    >>> items = [Item(is_tail=False), Item(is_tail=True)]
    >>> long_tail_count(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[0., 1.]])
    """
    return np.where(cut.n_recommended > 0, cut.sum_items(cut.lists.known_items.values[N.ITEM_TAIL]), np.nan)


@Definition(
    name="PopLift",
    words="popularity lift, popularity bias against the profile, group average popularity",
    aliases={"PopularityLift": {}},
    formula="(GAP_L - GAP_P) / GAP_P; GAP_L and GAP_P the means over users of (1 / m) sum_{i<=m} c(i) and of the mean "
    "of c(i) over the distinct items of the user in train",
    bounds=(-1, math.inf),
    undefined="the user has no list or nothing in train, and is in neither mean",
    source="Abdollahpouri et al. (2020), The connection between popularity bias, calibration, and fairness in "
    "recommendation",
    needs=(N.ITEM_INTERACTIONS, N.PROFILE_INTERACTIONS),
    default_agg="micro",
    without_relevant=math.nan,
    better="neither",
)
def popularity_lift(cut: CutLists) -> Ratio:
    """Relative difference in popularity between the recommended items and those that the user has; 0 is unbiased.

    0.5 where the list is by half more popular than the profile.

    >>> one = Ranking([None], items=[Item(interactions=6)], background=Background(profile_interactions=4))
    >>> popularity_lift(Lists.of([one]).cut([1])).values
    array([[0.5]])
    """
    of_list = mean_over_items(cut, N.ITEM_INTERACTIONS)
    of_profile = cut.lists.known_items.known_profile_interactions[:, None]
    return Ratio(of_list - of_profile, of_profile, where=of_profile != 0)


@popularity(
    name="MeanPopRank",
    words="mean popularity rank",
    aliases={"MeanPopularityRank": {}},
    formula="(1 / m) sum_{i<=m} q(i); q(i) the rank of item i by U(i) in train, the least popular first, over |T|",
    source="LensKit MeanPopRank; Ekstrand & Mahant (2017), Sturgeon and the cool kids",
    needs=(N.ITEM_QUANTILE,),
)
def mean_popularity_rank(cut: CutLists) -> FloatMatrix:
    """Mean rank of the recommended items by popularity, as a share: 1 for the most popular item.

    An item that is not in `train` has 0.

    >>> items = [Item(quantile=1), Item(quantile=0.5)]
    >>> mean_popularity_rank(Lists.of([Ranking([None, None], items=items)]).cut([1, 2]))
    array([[1.  , 0.75]])
    """
    return mean_over_items(cut, N.ITEM_QUANTILE)


def mean_over_items(cut: CutLists, fact: str) -> FloatMatrix:
    """Mean of a fact over the recommended items at ranks 1..k; NaN without one."""
    return divide_or_nan(cut.sum_items(cut.lists.known_items.values[fact]), cut.n_items)

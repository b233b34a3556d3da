"""Categories of the recommended items against those that the user's own items, or the relevant ones, have."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import (
    FloatMatrix,
    FloatVector,
    IntVector,
    Ratio,
    divide_or_zero,
    max_by_list,
    positions_in_list,
    sum_by_list,
)
from rankeval_spark.measures.definition import Cutoff, Definition, only_with
from rankeval_spark.measures.lists import CutLists, memoised
from rankeval_spark.measures.options import Above, Level

_ALPHA: Final = 0.01

Alpha: TypeAlias = Annotated[
    float,
    Above(0, below=1),
    "For distance='KL': share of the profile p that is mixed into q, without which a category that is not "
    "recommended would make the distance infinite.",
]
Base: TypeAlias = Annotated[Literal["2", "e"], "Base of the logarithm, bits or nats; for distance='KL' and 'JS'."]
Distance: TypeAlias = Annotated[
    Literal["KL", "JS", "Hellinger"],
    "Kullback-Leibler divergence; Jensen-Shannon divergence; Hellinger distance. The last two take q as it is "
    "and lie in [0, 1]; in nats JS is at most ln 2.",
]
Weights: TypeAlias = Annotated[Literal["none", "log2"], "What a place counts in q: all the same; 1 / log2(rank + 1)."]


@Definition(
    name="Calibration",
    words="calibrated recommendations, miscalibration, genre calibration, KL divergence, Jensen-Shannon divergence",
    formula="KL(p || 0.99 q + 0.01 p) = sum_g p(g) log2(p(g) / (0.99 q(g) + 0.01 p(g)))",
    bounds=(0, math.inf),
    undefined="no categorised item among the first k, or among those that the user has in train",
    source="Steck (2018), Calibrated recommendations",
    rules=(only_with("alpha", _ALPHA, "distance", "KL"), only_with("base", "2", "distance", "KL", "JS")),
    needs=(N.ITEM_CATEGORIES, N.PROFILE_CATEGORIES),
    better="lower",
    without_relevant=math.nan,
)
def calibration(
    cut: CutLists, *, alpha: Alpha = _ALPHA, base: Base = "2", distance: Distance = "KL", weights: Weights = "none"
) -> FloatMatrix:
    """Distance between the categories of the recommended items and those of the user's own items; 0 is calibrated.

    p(g) is the share of a category in the profile and q(g) in items 1..m: bits or nats, or a distance.

    >>> background = Background(profile=(("a", 1, 1), ("b", 1, 1)))
    >>> batch = Lists.of([Ranking([None], items=[Item(categories=("a",))], background=background)])
    >>> calibration(batch.cut([1]), distance="JS").round(4)
    array([[0.3113]])
    """
    owner, of_profile, of_items = _category_weights(cut, weights)
    n_lists = cut.lists.n_lists
    p = _normalise_by_list(of_profile, owner, n_lists)
    values = np.full((n_lists, cut.k.size), np.nan)
    log = np.log2 if base == "2" else np.log
    for column, found in enumerate(of_items):
        q = _normalise_by_list(found, owner, n_lists)
        if distance == "KL":
            terms = _divergence(p, (1 - alpha) * q + alpha * p, log)
        elif distance == "JS":
            terms = (_divergence(p, (p + q) / 2, log) + _divergence(q, (p + q) / 2, log)) / 2
        else:  # half of the squared differences of the roots is 1 - sum sqrt(p q), and exact where they are near
            terms = (np.sqrt(p) - np.sqrt(q)) ** 2 / 2
        total = sum_by_list(owner, terms, n_lists=n_lists)
        is_defined = (sum_by_list(owner, p, n_lists=n_lists) > 0) & (sum_by_list(owner, found, n_lists=n_lists) > 0)
        values[is_defined, column] = np.clip(np.sqrt(total) if distance == "Hellinger" else total, 0, None)[is_defined]
    return values


def _category_weights(cut: CutLists, weights: str) -> tuple[IntVector, FloatVector, list[FloatVector]]:
    """Sum up each category of each list: the lists, the weights in the profiles, and those in the items at each k."""
    facts = cut.lists.known_items
    profile, labels = facts.known_profile, facts.known_categories
    places, index = np.unique(
        np.concatenate([profile.owner, facts.item_list[labels.owner]]) * facts.n_codes
        + np.concatenate([profile.code, labels.code]),
        return_inverse=True,
    )
    of_profile = sum_by_list(index[: len(profile.owner)], profile.weight, n_lists=len(places))
    ranks = facts.item_rank[labels.owner]
    mass = labels.weight / np.log2(ranks + 1) if weights == "log2" else labels.weight
    of_items = [sum_by_list(index[len(profile.owner) :], mass * (ranks <= k), n_lists=len(places)) for k in cut.k[0]]
    return places // facts.n_codes, of_profile, of_items


def _normalise_by_list(mass: FloatVector, owner: IntVector, n_lists: int) -> FloatVector:
    """Divide what each list has in a category by what it has in all of them; 0 for a list without any."""
    return divide_or_zero(mass, sum_by_list(owner, mass, n_lists=n_lists)[owner])


def _divergence(p: FloatVector, q: FloatVector, log: np.ufunc) -> FloatVector:
    """Return p log(p / q); 0 where p is 0. Where p is not, q is neither."""
    is_there = p > 0
    terms: FloatVector = p * log(divide_or_zero(np.where(is_there, p, 1.0), np.where(is_there, q, 1.0)))
    return terms


Redundancy: TypeAlias = Annotated[
    float, Above(0, below=1), "Loss of worth with each further relevant item of a category."
]

_UNDEFINED: Final = "the user has no list, or no relevant judged item with a category"
_NEEDS: Final = (N.ITEM_CATEGORIES, N.JUDGED_CATEGORIES)


@Definition(
    name="alpha_nDCG",
    words="novelty-biased nDCG, α-nDCG, alpha-normalized discounted cumulative gain, diversity of search results",
    aliases={"α_nDCG": {}},
    formula="sum_{i<=m} G(i) / log2(i + 1) over the same sum of the ideal order; G(i) = sum over the categories c of "
    "item i of r_i (1 - alpha)^(relevant items of c above i)",
    bounds=(0, math.e / (math.e - 1)),
    undefined=_UNDEFINED,
    source="Clarke et al. (2008), Novelty and diversity in information retrieval evaluation; ndeval",
    needs=_NEEDS,
    is_bounded_by_gains=False,
)
def alpha_ndcg(cut: CutLists, *, rel: Level = 1, alpha: Redundancy = 0.5) -> Ratio:
    """Discounted gain of new categories among relevant items, over that in an ideal list.

    1 for the ideal list; at most e / (e - 1), because that is not always the best one.

    >>> items = [Item(categories=("a",)), Item(categories=("a",))]
    >>> background = Background(judged=((1, ("a",)), (1, ("a",)), (1, ("b",))))
    >>> batch = Lists.of([Ranking([1, 1], [1], items=items, background=background)])
    >>> alpha_ndcg(batch.cut([1, 2])).values.round(4)
    array([[1.    , 0.8066]])
    """
    gains, owner = _category_gains(cut, rel, alpha)
    found = cut.sum_items(gains / np.log2(cut.lists.known_items.item_rank[owner] + 1), of=owner)
    ideal = _greedy_ideal_gain(cut, rel, alpha)
    return Ratio(found, ideal, where=(cut.n_recommended > 0) & (ideal != 0))


@Definition(
    name="ERR_IA",
    words="intent-aware expected reciprocal rank, intent-aware ERR",
    aliases={"IntentAwareExpectedReciprocalRank": {}},
    formula="sum_{i<=m} G(i) / i over sum_{i<=k} S (1 - alpha)^(i-1) / i; G as of alpha_nDCG, S the categories of "
    "relevant judged items",
    undefined=_UNDEFINED,
    source="Chapelle et al. (2011), Intent-based diversification of web search results; ndeval",
    cutoff=Cutoff("required"),
    needs=_NEEDS,
    is_bounded_by_gains=False,
)
def intent_aware_err(cut: CutLists, *, rel: Level = 1, alpha: Redundancy = 0.5) -> Ratio:
    """Divide the expected reciprocal rank over all categories by that of a list whose items all are of every category.

    >>> background = Background(judged=((1, "a"), (1, "b")))
    >>> one = Ranking([1], [1], items=[Item(categories=("a",))], background=background)
    >>> intent_aware_err(Lists.of([one]).cut([1])).values
    array([[0.5]])
    """
    facts = cut.lists.known_items
    gains, owner = _category_gains(cut, rel, alpha)
    found = cut.sum_items(gains / facts.item_rank[owner], of=owner)
    is_finite = np.isfinite(cut.k)  # the whole list has no k: NaN
    ranks = np.arange(1, int(cut.k.max(initial=1, where=is_finite)) + 1)
    running = np.append(np.cumsum((1 - alpha) ** (ranks - 1) / ranks), np.nan)  # sum_{i<=k} (1 - alpha)^(i-1) / i
    possible = _count_wanted(cut, rel) * running[np.where(is_finite, cut.k, len(running)).astype(np.int64) - 1]
    return Ratio(found, possible, where=(cut.n_recommended > 0) & (possible != 0))


Intents: TypeAlias = Annotated[
    Literal["equal", "train"],
    "Weight of a category: 1 / S each, of the S categories of relevant judged items; its share p(c) of what the user "
    "has in `train`, as of Calibration.",
]


@Definition(
    name="P_IA",
    words="intent-aware precision, precision of intents",
    aliases={"IntentAwarePrecision": {}, "PrecisionIA": {}},
    formula="sum over categories c of p(c) P_c@k, P_c@k = (relevant items of c at ranks 1..k) / k, p(c) = 1 / S",
    undefined=f"{_UNDEFINED}; with intents='train': and none in train",
    source="Agrawal et al. (2009), Diversifying search results; ndeval P-IA",
    cutoff=Cutoff("required"),
    needs=lambda intents, **_: (*_NEEDS, *((N.PROFILE_CATEGORIES,) if intents == "train" else ())),
    is_bounded_by_gains=False,
)
def intent_aware_precision(cut: CutLists, *, rel: Level = 1, intents: Intents = "equal") -> Ratio:
    """Precision for each category that a user may be after, averaged over them.

    1 where every item is relevant and of every category. Of two categories one item of two has one: (1/2 + 0) / 2.

    >>> background = Background(judged=((1, "a"), (1, "b")))
    >>> one = Ranking([1, None], [1], items=[Item(categories=("a",))], background=background)
    >>> intent_aware_precision(Lists.of([one]).cut([2])).values
    array([[0.25]])
    """
    facts, labels = cut.lists.known_items, cut.lists.known_items.known_categories
    worth, n_wanted = cut.lists.relevant_items(rel)[labels.owner], _count_wanted(cut, rel)
    possible, is_defined = cut.k * np.maximum(n_wanted, 1), (cut.n_recommended > 0) & (n_wanted > 0)
    if intents == "train":
        profile = facts.known_profile
        keys, place = np.unique(profile.owner * facts.n_codes + profile.code, return_inverse=True)
        shares = _normalise_by_list(
            sum_by_list(place, profile.weight, n_lists=len(keys)), keys // facts.n_codes, cut.lists.n_lists
        )
        sought = facts.item_list[labels.owner] * facts.n_codes + labels.code
        at = np.searchsorted(keys, sought)
        worth = worth * np.where(np.append(keys, -1)[at] == sought, np.append(shares, 0)[at], 0)
        has_profile = np.bincount(profile.owner, minlength=cut.lists.n_lists)[:, None] > 0
        possible, is_defined = cut.k, is_defined & has_profile
    return Ratio(cut.sum_items(worth, of=labels.owner), possible, where=is_defined)


def _count_wanted(cut: CutLists, rel: float) -> FloatMatrix:
    """Count the categories of the relevant judged items, S: float64, shape (n_lists, 1)."""
    facts, (item, code) = cut.lists.known_items, _relevant_labels(cut, rel)
    wanted = np.unique(facts.known_judged.owner[item] * facts.n_codes + code)
    return np.bincount(wanted // facts.n_codes, minlength=cut.lists.n_lists)[:, None].astype(np.float64)


def _category_gains(cut: CutLists, rel: float, alpha: float) -> tuple[FloatVector, IntVector]:
    """Gain of each category of each relevant item in the lists, and the item it belongs to."""
    facts = cut.lists.known_items
    labels = facts.known_categories
    chosen = np.flatnonzero(cut.lists.relevant_items(rel)[labels.owner])
    key = facts.item_list[labels.owner[chosen]] * facts.n_codes + labels.code[chosen]
    order = np.argsort(key, kind="stable")  # items with a category of a list, the upper ones first
    group = np.unique(key[order], return_inverse=True)[1]
    n_above = positions_in_list(group, n_lists=int(group.max(initial=-1)) + 1) - 1
    gains: FloatVector = (1 - alpha) ** n_above.astype(np.float64)
    return gains, labels.owner[chosen][order]


def _relevant_labels(cut: CutLists, rel: float) -> tuple[IntVector, IntVector]:
    """Judged item and category, for those that are relevant."""
    judged = cut.lists.known_items.known_judged
    is_relevant = judged.gain[judged.labels.owner] >= rel
    return judged.labels.owner[is_relevant], judged.labels.code[is_relevant]


@memoised
def _greedy_ideal_gain(cut: CutLists, rel: float, alpha: float) -> FloatMatrix:
    """Compute the gain of ideal lists, greedily: each rank takes the item with the largest gain that is left."""
    judged, n_lists = cut.lists.known_items.known_judged, cut.lists.n_lists
    item, code = _relevant_labels(cut, rel)
    cell = np.unique(judged.owner[item] * cut.lists.known_items.n_codes + code, return_inverse=True)[1]
    worth = np.ones(int(cell.max(initial=-1)) + 1)  # of a further item, by (list, category)
    is_left = np.zeros(len(judged.owner), dtype=np.bool_)
    is_left[item] = True
    deepest = cut.k.max(initial=0)
    totals = np.zeros((n_lists, cut.k.size))
    rank = 1
    while is_left.any() and rank <= deepest:
        gains = sum_by_list(item, worth[cell], n_lists=len(judged.owner))
        left = np.where(is_left, gains, 0)
        is_best = (left > 0) & (left == max_by_list(judged.owner, left, n_lists=n_lists)[judged.owner])
        candidates = np.flatnonzero(is_best)
        best = candidates[np.unique(judged.owner[candidates], return_index=True)[1]]  # the first of equal ones
        totals[judged.owner[best]] += (gains[best] / np.log2(rank + 1))[:, None] * (rank <= cut.k)
        is_left[best] = False
        worth[cell[np.isin(item, best)]] *= 1 - alpha
        rank += 1
    return totals

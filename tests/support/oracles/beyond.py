"""Naive references of the measures beyond accuracy: popularity, novelty, diversity, serendipity, calibration."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.support.oracles import number
from tests.support.oracles.plain import NAIVE, Number, PlainList, mean, naive, top_items

if TYPE_CHECKING:
    from rankeval_spark.measures import Item


@naive("ARP")
def _(one: PlainList, k: int, *, norm: str, unseen: str) -> Number | None:
    counts = [Fraction(item.interactions) for item in top_items(one, k) if item.interactions or unseen == "zero"]
    scale = {"none": 1, "C": one.background.interactions, "max": one.background.most_interactions}[norm]
    return mean([count / Fraction(scale) for count in counts]) if scale else None


@naive("PopLift")
def _(one: PlainList, k: int) -> Number | None:
    counts = [Fraction(item.interactions) for item in top_items(one, k)]
    has = Fraction(one.background.profile_interactions)
    return (sum(counts) / len(counts) - has) / has if counts and has else None


@naive("MeanPopRank")
def _(one: PlainList, k: int) -> Number | None:
    return mean([Fraction(item.quantile) for item in top_items(one, k)])


@naive("MIUF")
def _(one: PlainList, k: int, *, unseen: str) -> Number | None:
    users = [item.users for item in top_items(one, k) if item.users or unseen == "one"]
    total = one.background.users
    return mean([-number.log2(Fraction(n or 1) / Fraction(total)) for n in users]) if users and total else None


@naive("SelfInfo")
def _(one: PlainList, k: int) -> Number | None:
    counts, total = [item.interactions for item in top_items(one, k)], one.background.interactions
    return mean([-number.log2(Fraction(n or 1) / Fraction(total)) for n in counts]) if counts and total else None


@naive("EPC")
def _(one: PlainList, k: int, *, rel: float, relevance: str) -> Number | None:
    total = one.background.users
    return novelty(one, k, rel, relevance, lambda item: 1 - Fraction(item.users) / Fraction(total)) if total else None


@naive("EFD")
def _(one: PlainList, k: int, *, rel: float, relevance: str) -> Number | None:
    total, least = one.background.interactions, one.background.least_interactions
    worth = lambda item: -number.log2(Fraction(item.interactions or least) / Fraction(total))  # noqa: E731 - as short as the formula
    return novelty(one, k, rel, relevance, worth) if total else None


def novelty(one: PlainList, k: int, rel: float, relevance: str, worth: Callable[[Item], Number]) -> Number | None:
    """Mean worth of the items that count, weighted by the discount of their places."""
    discounts = [1 / number.log2(rank + 1) for rank in range(1, len(top_items(one, k)) + 1)]
    counts = [relevance == "off" or gain >= rel for gain in one.top(k)]
    worths = [worth(item) for item in top_items(one, k)]
    total = number.total(d * w for d, w, is_counted in zip(discounts, worths, counts, strict=True) if is_counted)
    return total / number.total(discounts) if discounts else None


@naive("APLT")
def _(one: PlainList, k: int) -> Number | None:
    return mean([Fraction(item.is_tail) for item in top_items(one, k)])


@naive("ACLT")
def _(one: PlainList, k: int) -> Number | None:
    return sum(item.is_tail for item in top_items(one, k)) if one.items else None


@naive("SufficientReco")
def _(one: PlainList, k: int, *, kind: str) -> Number | None:
    filled = Fraction(len(one.top(k)), k)
    return (filled if kind == "share" else int(filled)) if one.gains else None


@naive("NotInTrain")
def _(one: PlainList, k: int) -> Number | None:
    return mean([Fraction(not item.is_seen) for item in top_items(one, k)])


@naive("UnrepeatedReco")
def _(one: PlainList, k: int, *, kind: str) -> Number | None:
    copies = [int(item.copies) for item in top_items(one, k)]
    if not copies:
        return None
    return int(max(copies) == 1) if kind == "full" else Fraction(len(copies), sum(copies))


@naive("Freshness")
def _(one: PlainList, k: int, *, days: float, stat: str, unknown: str) -> Number | None:
    ages = [item.age for item in top_items(one, k)]
    known = [age for age in ages if not math.isnan(age)]
    if not known or (unknown == "null" and known != ages):
        return None
    if stat == "share":
        return mean([Fraction(age < days) for age in known])
    return statistics.median(known) if stat == "median" else mean([Fraction(age) for age in known])


IS_KNOWN: dict[str, Callable[[Item], object]] = {
    "vector": lambda item: any(item.vector or ()),
    "jaccard": lambda item: item.categories,
    "cooccurrence": lambda item: item.users,
    "hamming": lambda item: item.vector is not None,
}
"""Whether anything is known of what an item is similar to."""


@naive("ILD")
def _(one: PlainList, k: int, *, discount: str, rel: float | None, sim: str, unknown: str) -> Number | None:
    similarity = NAIVE["ILS"](one, k, sim=sim, unknown=unknown)
    if similarity is None or (rel is None and discount == "none"):
        return None if similarity is None else 1 - similarity
    worth = (lambda rank: 1 / number.log2(rank + 1)) if discount == "log2" else (lambda _: 1)
    known = [rank for rank, item in enumerate(top_items(one, k), 1) if IS_KNOWN[sim](item)]
    # Where the item is in a list of the known items alone, and in the list.
    counted = [(place, rank) for place, rank in enumerate(known, 1) if rel is None or one.gains[rank - 1] >= rel]

    def mean_distance(place: int, rank: int) -> Number:
        others = [(worth(max(1, p - place)), 1 - alike(one, rank, r, sim)) for p, r in counted if r != rank]
        return sum(w * d for w, d in others) / sum(w for w, _ in others) if others else 0

    total = number.total(worth(place) * mean_distance(place, rank) for place, rank in counted)
    return total / number.total(worth(place) for place in range(1, len(known) + 1))


def alike(one: PlainList, rank: int, other: int, sim: str) -> Number:
    """Similarity of the items at two ranks."""
    first, second = sorted((rank, other))
    if sim == "cooccurrence":
        return sum(value for *ranks, value in one.background.pairs if ranks == [first, second])
    return ALIKE[sim](one.items[first - 1], one.items[second - 1])


@naive("ILS")
def _(one: PlainList, k: int, *, sim: str, unknown: str) -> Number | None:
    items = top_items(one, k)
    known = [item for item in items if IS_KNOWN[sim](item)]
    if unknown == "null" and len(known) < len(items):
        return None
    if sim == "cooccurrence":
        n_pairs = math.comb(len(known), 2)
        total = number.total(alike for _, later, alike in one.background.pairs if later <= len(items))
        return total / n_pairs if n_pairs else None
    return mean([ALIKE[sim](left, right) for left, right in itertools.combinations(known, 2)])


def cosine(left: Item, right: Item) -> Number:
    """Cosine of the angle between the vectors of two items."""
    a, b = left.vector or (), right.vector or ()
    return sum(x * y for x, y in zip(a, b, strict=True)) / number.norm(*a) / number.norm(*b)


def jaccard(left: Item, right: Item) -> Fraction:
    """Share of the categories of two items that they have in common."""
    a, b = set(left.categories), set(right.categories)
    return Fraction(len(a & b), len(a | b))


def equal_share(left: Item, right: Item) -> Fraction:
    """Share of the numbers of two vectors that are equal."""
    pairs = list(zip(left.vector or (), right.vector or (), strict=True))
    return Fraction(sum(a == b for a, b in pairs), len(pairs))


ALIKE: dict[str, Callable[[Item, Item], Number]] = {"vector": cosine, "jaccard": jaccard, "hamming": equal_share}
"""Similarity of two items by what is known of them."""


@naive("SRecall")
def _(one: PlainList, k: int, *, of: str) -> Number | None:
    covered = {name for item in top_items(one, k) for name in item.categories}
    profile = {name for name, _, _ in one.background.profile}
    n_wanted = len(profile) if of == "user" else int(one.background.categories)
    return Fraction(len(covered & profile if of == "user" else covered), n_wanted) if n_wanted and one.items else None


@naive("alpha_nDCG")
def _(one: PlainList, k: int, *, alpha: float, rel: float) -> Number | None:
    ideal = best_order(one, alpha, rel)
    found = diverse_gain(shown_categories(one, rel), k, alpha)
    return found / diverse_gain(ideal, k, alpha) if ideal and one.items else None


def best_order(one: PlainList, alpha: float, rel: float) -> list[set[str]]:
    """Sort the categories of the relevant items so that each adds most to those above it."""
    left, ideal = relevant_categories(one, rel), list[set[str]]()
    while left:
        best = max(left, key=lambda each: sum(new_categories([*ideal, each], alpha)[-1:]))
        left.remove(best)
        ideal.append(best)
    return ideal


def diverse_gain(by_rank: Sequence[set[str]], k: int, alpha: float) -> Number:
    """Sum of the discounted gains of new categories."""
    return number.total(
        g / number.log2(rank + 1) for rank, g in enumerate(new_categories(by_rank, alpha)[: k or None], 1)
    )


@naive("ERR_IA")
def _(one: PlainList, k: int, *, alpha: float, rel: float) -> Number | None:
    gains = new_categories(shown_categories(one, rel), alpha)[:k]
    found, best = (
        number.total(gain / Fraction(rank) for rank, gain in enumerate(gains, 1)),
        diverse_ceiling(one, k, alpha, rel),
    )
    return found / best if best and one.items else None


def diverse_ceiling(one: PlainList, k: int, alpha: float, rel: float) -> Number:
    """Most that k items with all wanted categories could have."""
    n_wanted = len(set().union(*relevant_categories(one, rel)))
    return number.total(Fraction(n_wanted, rank) * (1 - alpha) ** (rank - 1) for rank in range(1, k + 1))


@naive("P_IA")
def _(one: PlainList, k: int, *, intents: str, rel: float) -> Number | None:
    wanted = set().union(*relevant_categories(one, rel))
    has = {
        name: sum(Fraction(n_with, n) for each, n, n_with in one.background.profile if each == name)
        for name, *_ in one.background.profile
    }
    weights: dict[str, Number] = {name: Fraction(1, len(wanted)) for name in wanted}
    if intents == "train":
        weights = {name: weight / sum(has.values()) for name, weight in has.items()}
    shown = shown_categories(one, rel)[:k]
    found = sum(weight * Fraction(sum(name in each for each in shown), k) for name, weight in weights.items())
    return found if wanted and weights and one.items else None


def relevant_categories(one: PlainList, rel: float) -> list[set[str]]:
    """Categories of each relevant judged item that has any."""
    return [set(categories) for gain, categories in one.background.judged if gain >= rel]


def shown_categories(one: PlainList, rel: float) -> list[set[str]]:
    """Categories at each rank, none of an item that is not relevant."""
    return [set(item.categories) if gain >= rel else set() for item, gain in zip(one.items, one.gains, strict=True)]


def new_categories(by_rank: Sequence[set[str]], alpha: float) -> list[Number]:
    """Gain at each rank: of each category less by alpha for every time that it stood above."""
    return [
        sum((1 - alpha) ** sum(name in above for above in by_rank[:place]) for name in sorted(categories))
        for place, categories in enumerate(by_rank)
    ]


@naive("Unexpectedness")
def _(one: PlainList, k: int, *, sim: str, unknown: str) -> Number | None:
    return distance_from_profile(one, k, sim, unknown, lambda _: True)


@naive("Serendipity")
def _(one: PlainList, k: int, *, kind: str, rel: float, sim: str, unknown: str) -> Number | None:
    if kind == "content":
        return distance_from_profile(one, k, sim, unknown, lambda gain: gain >= rel)
    relevant = [(rank, item) for rank, item in enumerate(top_items(one, k), 1) if one.gains[rank - 1] >= rel]
    depth, n = len(top_items(one, k)), one.background.catalogue
    if not depth or (kind == "pop" and not n):
        return None
    if kind == "ge":
        return Fraction(sum(item.place > k for _, item in relevant), depth)
    below = [(rank, n + 1 if math.isinf(item.level) else item.level) for rank, item in relevant]
    return number.total(Fraction(max(level - rank, 0)) / Fraction(n) for rank, level in below) / depth


def distance_from_profile(
    one: PlainList, k: int, sim: str, unknown: str, counts: Callable[[float], bool]
) -> Number | None:
    """Mean of 1 - similarity to the profile over the known items, those that do not count adding 0."""
    places = list(zip(top_items(one, k), one.top(k), strict=True))
    worth = [(similarity_to_profile(one, item, sim), gain) for item, gain in places]
    known = [(1 - alike, gain) for alike, gain in worth if alike is not None]
    if not known or (unknown == "null" and len(known) < len(places)):
        return None
    return number.total(distance for distance, gain in known if counts(gain)) / len(known)


def similarity_to_profile(one: PlainList, item: Item, sim: str) -> Number | None:
    """Mean similarity of an item to those of the user; None where either is unknown."""
    if sim == "cooccurrence":
        return item.familiarity if item.users and not math.isnan(item.familiarity) else None
    profile, vector = one.background.profile_vector, item.vector or ()
    if profile is None or not any(vector):
        return None
    return sum(x * y for x, y in zip(vector, profile, strict=True)) / number.norm(*vector)


@naive("Calibration")
def _(one: PlainList, k: int, *, alpha: float, base: str, distance: str, weights: str) -> Number | None:
    p: dict[str, Number] = {}
    q: dict[str, Number] = {}
    for name, n_categories, n_items in one.background.profile:
        p[name] = p.get(name, 0) + Fraction(n_items, n_categories)
    for rank, item in enumerate(top_items(one, k), 1):
        for name in item.categories:
            place = 1 / number.log2(rank + 1) if weights == "log2" else Fraction(1)
            q[name] = q.get(name, 0) + place / len(item.categories)
    if not p or not q:
        return None
    pairs = [(p.get(name, 0) / sum(p.values()), q.get(name, 0) / sum(q.values())) for name in {*p, *q}]
    if distance == "KL":
        return divergence([(a, (1 - alpha) * b + alpha * a) for a, b in pairs], base)
    if distance == "JS":
        return sum(divergence([(pair[side], sum(pair) / 2) for pair in pairs], base) for side in (0, 1)) / 2
    return number.norm(*(number.sqrt(a) - number.sqrt(b) for a, b in pairs)) / number.sqrt(2)


def divergence(pairs: Sequence[tuple[Number, Number]], base: str) -> Number:
    """Kullback-Leibler divergence in bits, or with base e in nats."""
    log = {"2": number.log2, "e": number.log}[base]
    return number.total(a * log(a / b) for a, b in pairs if a)

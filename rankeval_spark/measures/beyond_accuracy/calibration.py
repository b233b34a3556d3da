"""Whether the recommended items have the mixture of categories that the user's own items have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, ratio, sum_by_list
from rankeval_spark.measures.definition import NEVER_FILLED, Definition, only_with
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Above, Below, Meaning

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector, IntVector

_ALPHA: Final = 0.01

Alpha: TypeAlias = Annotated[
    float,
    Above(0),
    Below(1),
    Meaning(
        "For distance='KL': share of the profile p that is mixed into q, without which a category that is not "
        "recommended would make the distance infinite."
    ),
]
Base: TypeAlias = Annotated[
    Literal["2", "e"], Meaning("Base of the logarithm, bits or nats; for distance='KL' and 'JS'.")
]
Distance: TypeAlias = Annotated[
    Literal["KL", "JS", "Hellinger"],
    Meaning(
        "Kullback-Leibler divergence; Jensen-Shannon divergence; Hellinger distance. The last two take q as it is "
        "and lie in [0, 1]; in nats JS is at most ln 2."
    ),
]
Weights: TypeAlias = Annotated[
    Literal["none", "log2"], Meaning("What a place counts in q: all the same; 1 / log2(rank + 1).")
]


@Definition(
    name="Calibration",
    formula="KL(p || 0.99 q + 0.01 p) = sum_g p(g) log2(p(g) / (0.99 q(g) + 0.01 p(g)))",
    bounds=(0, math.inf),
    undefined="no categorised item among the first k, or among those that the user has in train",
    source="Steck (2018), Calibrated recommendations",
    rules=(only_with("alpha", _ALPHA, "distance", "KL"), only_with("base", "2", "distance", "KL", "JS")),
    needs=(required_facts.ITEM_CATEGORIES, required_facts.PROFILE_CATEGORIES),
    better="lower",
    aggregation=NEVER_FILLED,
)
def calibration(
    cut: CutLists, *, alpha: Alpha = _ALPHA, base: Base = "2", distance: Distance = "KL", weights: Weights = "none"
) -> FloatMatrix:
    """Distance between the categories of the recommended items and those of the user's own items; 0 is calibrated.

    ``KL(p || (1 - alpha) q + alpha p)``, p(g) being the share of a category in the profile and q(g) in items 1..m: bits
    or nats, or a distance. NaN for a user without a profile and for a list without a categorised item.

    >>> from rankeval_spark.measures import Background, Item, Lists, Ranking
    >>> background = Background(profile=(("a", 1, 1), ("b", 1, 1)))
    >>> batch = Lists.of([Ranking([None], items=[Item(categories=("a",))], background=background)])
    >>> calibration(batch.cut([1]), distance="JS").round(4)
    array([[0.3113]])
    """
    owner, of_profile, of_items = _masses(cut, weights)
    n_lists = cut.lists.n_lists
    p = _shares(of_profile, owner, n_lists)
    values = np.full((n_lists, cut.k.size), np.nan)
    for column, found in enumerate(of_items):
        terms = _terms(p, _shares(found, owner, n_lists), distance, alpha, np.log2 if base == "2" else np.log)
        total = sum_by_list(owner, terms, n_lists=n_lists)
        is_defined = (sum_by_list(owner, p, n_lists=n_lists) > 0) & (sum_by_list(owner, found, n_lists=n_lists) > 0)
        values[is_defined, column] = np.clip(np.sqrt(total) if distance == "Hellinger" else total, 0, None)[is_defined]
    return values


def _masses(cut: CutLists, weights: str) -> tuple[IntVector, FloatVector, list[FloatVector]]:
    """Sum up each category of each list: the lists, the weights in the profiles, and those in the items at each k."""
    facts = cut.lists.known_items
    profile, labels = facts.known_profile, facts.known_categories
    places, index = np.unique(
        np.concatenate([profile.owner, facts.item_list[labels.owner]]) * facts.n_categories
        + np.concatenate([profile.code, labels.code]),
        return_inverse=True,
    )
    of_profile = sum_by_list(index[: len(profile.owner)], profile.weight, n_lists=len(places))
    ranks = facts.item_rank[labels.owner]
    mass = labels.weight / np.log2(ranks + 1) if weights == "log2" else labels.weight
    of_items = [sum_by_list(index[len(profile.owner) :], mass * (ranks <= k), n_lists=len(places)) for k in cut.k[0]]
    return places // max(facts.n_categories, 1), of_profile, of_items


def _shares(mass: FloatVector, owner: IntVector, n_lists: int) -> FloatVector:
    """Divide what each list has in a category by what it has in all of them; 0 for a list without any."""
    return ratio(mass, sum_by_list(owner, mass, n_lists=n_lists)[owner])


def _terms(p: FloatVector, q: FloatVector, distance: str, alpha: float, log: np.ufunc) -> FloatVector:
    """Return what each (list, category) adds."""
    if distance == "KL":
        return _divergence(p, (1 - alpha) * q + alpha * p, log)
    if distance == "JS":
        middle = (p + q) / 2
        return (_divergence(p, middle, log) + _divergence(q, middle, log)) / 2
    # Half of the squared differences of the roots is 1 - sum sqrt(p q), and exact where p and q are nearly equal.
    return (np.sqrt(p) - np.sqrt(q)) ** 2 / 2


def _divergence(p: FloatVector, q: FloatVector, log: np.ufunc) -> FloatVector:
    """Return p log(p / q); 0 where p is 0. Where p is not, q is neither."""
    is_there = p > 0
    terms: FloatVector = p * log(ratio(np.where(is_there, p, 1.0), np.where(is_there, q, 1.0)))
    return terms

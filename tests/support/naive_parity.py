"""The measures of parity between groups of popularity as a few lines of plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure, Offered

Naive = Callable[..., list[Fraction] | None]

NAIVE: dict[str, Naive] = {}
"""Rate of each group of popularity: ``reference(users, groups, **options)``, None where one is undefined."""


@dataclass(frozen=True)
class User:
    """One list, cut at k, and what is known of its user."""

    shown: Sequence[str]
    gains: Mapping[str, float]
    own: frozenset[str] = frozenset()


def users_of(offered: Offered) -> list[User]:
    """Turn the notation of examples into users with gains of 1."""
    nobody = ("",) * len(offered.lists)
    rows = zip(offered.lists, offered.relevant or nobody, offered.own or nobody, strict=True)
    return [User(shown.split(), dict.fromkeys(gains.split(), 1), frozenset(own.split())) for shown, gains, own in rows]


def expected(measure: Measure, users: Iterable[User], groups: Sequence[set[str]]) -> float:
    """Spread of the rates of the groups: the population's standard deviation over the mean; NaN where undefined."""
    cut = [User(one.shown[: measure.k or None], one.gains, one.own) for one in users if one.shown]
    rates = NAIVE[measure.name](cut, groups, **measure.options)
    if rates is None or not sum(rates):
        return math.nan
    mean = sum(rates) / len(rates)
    return math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean


def groups_by_popularity(interactions: Iterable[str], catalogue: set[str]) -> list[set[str]]:
    """Head: fewest items that hold 20 %; middle: the others of the fewest that hold 80 %; tail: all else."""
    counts = Counter(interactions)
    order = sorted(counts, key=lambda item: (-counts[item], item))
    fewest = [
        next(n for n in range(len(order) + 1) if sum(counts[item] for item in order[:n]) >= share * counts.total())
        for share in (Fraction(2, 10), Fraction(8, 10))
    ]
    head, middle = set(order[: fewest[0]]), set(order[fewest[0] : fewest[1]])
    return [head, middle, (catalogue | set(order)) - head - middle]


def naive(name: str) -> Callable[[Naive], Naive]:
    """Name the measure that a reference stands for."""

    def register(reference: Naive) -> Naive:
        NAIVE[name] = reference
        return reference

    return register


@naive("PopREO")
def _(users: Sequence[User], groups: Sequence[set[str]], *, rel: float) -> list[Fraction] | None:
    relevant = [{item for item, gain in one.gains.items() if gain >= rel} - one.own for one in users]
    hits = [items & set(one.shown) for items, one in zip(relevant, users, strict=True)]
    return rates(hits, relevant, groups)


@naive("PopRSP")
def _(users: Sequence[User], groups: Sequence[set[str]]) -> list[Fraction] | None:
    catalogue = set().union(*groups)
    available = [catalogue - one.own for one in users]
    return rates([items & set(one.shown) for items, one in zip(available, users, strict=True)], available, groups)


def rates(taken: Sequence[set[str]], possible: Sequence[set[str]], groups: Sequence[set[str]]) -> list[Fraction] | None:
    """Divide, group by group, what is taken of all lists by what is possible; None where nothing is."""
    sums = [[sum(len(items & group) for items in each) for group in groups] for each in (taken, possible)]
    return [Fraction(n, whole) for n, whole in zip(*sums, strict=True)] if all(sums[1]) else None

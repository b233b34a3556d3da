"""The measures of parity between groups of popularity, or of a category, as a few lines of plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from scipy import stats

from tests.support.naive_exposures import error_without_groups
from tests.support.oracles import number
from tests.support.oracles.plain import Number, References

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure, Offered, Preferred

Naive = Callable[..., Number | None]

NAIVE: References[Naive] = References(
    "no naive reference of {name}; add a function with @naive({name!r}) to tests/support/naive_parity.py"
)
"""``reference(users, groups, **options)``, None where undefined; groups are those of popularity, or the category."""


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


def users_with(preferred: Preferred) -> list[User]:
    """Turn the notation of examples about a category into users."""
    rows = zip(preferred.lists, preferred.own or ("",) * len(preferred.lists), strict=True)
    return [User(shown.split(), {}, frozenset(own.split())) for shown, own in rows]


def expected(measure: Measure, users: Iterable[User], groups: Sequence[set[str]]) -> float:
    """Value over the users with a list; NaN where it is undefined."""
    value = value_of(measure, users, groups)
    return math.nan if value is None else float(value)


def value_of(measure: Measure, users: Iterable[User], groups: Sequence[set[str]]) -> Number | None:
    """Value over the users with a list, as the reference computes it; None where it is undefined."""
    cut = [User(one.shown[: measure.k or None], one.gains, one.own) for one in users if one.shown]
    return NAIVE[measure.name](cut, groups, **measure.options)


def spread(rates: Sequence[Fraction] | None) -> Number | None:
    """Divide the population's standard deviation by the mean; None where a rate is undefined, or all are 0."""
    if rates is None or not sum(rates):
        return None
    mean = sum(rates) / len(rates)
    return number.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean


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
    """Name the measure that a reference computes."""

    def register(reference: Naive) -> Naive:
        NAIVE[name] = reference
        return reference

    return register


@naive("PopREO")
def _(users: Sequence[User], groups: Sequence[set[str]], *, rel: float) -> Number | None:
    relevant = [{item for item, gain in one.gains.items() if gain >= rel} - one.own for one in users]
    hits = [items & set(one.shown) for items, one in zip(relevant, users, strict=True)]
    return spread(rates(hits, relevant, groups))


@naive("PopRSP")
def _(users: Sequence[User], groups: Sequence[set[str]]) -> Number | None:
    catalogue = set().union(*groups)
    available = [catalogue - one.own for one in users]
    hits = [items & set(one.shown) for items, one in zip(available, users, strict=True)]
    return spread(rates(hits, available, groups))


@naive("BiasDisparity")
def _(users: Sequence[User], groups: Sequence[set[str]], *, category: str) -> Fraction | None:  # noqa: ARG001 - the groups have its items
    (members,) = groups  # those of the category, whatever it is called
    shown = [item for one in users for item in one.shown]
    own = [item for one in users for item in one.own]
    n_shown, n_own = (sum(item in members for item in items) for items in (shown, own))
    return Fraction(n_shown, len(shown)) / Fraction(n_own, len(own)) - 1 if n_own else None


def rates(taken: Sequence[set[str]], possible: Sequence[set[str]], groups: Sequence[set[str]]) -> list[Fraction] | None:
    """Divide, group by group, what is taken of all lists by what is possible; None where nothing is."""
    sums = [[sum(len(items & group) for items in each) for group in groups] for each in (taken, possible)]
    return [Fraction(n, whole) for n, whole in zip(*sums, strict=True)] if all(sums[1]) else None


def error_of(
    measure: Measure, value: Callable[[Sequence[str]], float], users: Sequence[str], group: Mapping[str, int]
) -> float:
    """Compute the standard error of a value of users; that of a spread of rates whose interval holds 0 is NaN."""
    error = error_without_groups(value, users, group)
    half = stats.t.ppf(0.975, max(len({group[user] for user in users}) - 1, 1)) * error
    return math.nan if measure.name != "BiasDisparity" and value(users) <= half else error

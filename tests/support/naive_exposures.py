"""The measures of all lists together as a few lines of plain Python, and their jackknife by leaving users out."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure

Number = Fraction | float
Lists = Sequence[Sequence[str]]
Naive = Callable[..., Number | None]

NAIVE: dict[str, Naive] = {}
"""Reference of each measure: ``reference(group of lists, **options)``, None where it is undefined."""


class Group(NamedTuple):
    """Lists that hold an item, cut at k, and the catalogue; empty where it is not known."""

    lists: Lists
    k: int
    catalogue: set[str]

    def times(self) -> Counter[str]:
        """Count the lists that hold each item."""
        return Counter(item for one in self.lists for item in one)


def naive(name: str) -> Callable[[Naive], Naive]:
    """Name the measure that a reference computes."""

    def register(reference: Naive) -> Naive:
        NAIVE[name] = reference
        return reference

    return register


def expected(measure: Measure, lists: Lists, catalogue: set[str] | None = None) -> float:
    """Value of some lists by the naive reference; NaN where undefined."""
    cut = [one[: measure.k or None] for one in lists if one]
    value = NAIVE[measure.name](Group(cut, measure.k, catalogue or set()), **measure.options)
    return math.nan if value is None else float(value)


def jackknife_error(
    measure: Measure, lists: Mapping[str, Sequence[str]], group: Mapping[str, int], catalogue: set[str] | None = None
) -> float:
    """Compute the standard error from what the lists give without each group; ``lists`` and ``group`` are by user."""
    users = [user for user, one in lists.items() if one]
    return error_without_groups(lambda left: expected(measure, [lists[user] for user in left], catalogue), users, group)


def error_without_groups(value: Callable[[list[str]], float], users: Sequence[str], group: Mapping[str, int]) -> float:
    """Compute the standard error from the value of the users that are left without each group; NaN with one group."""
    groups = sorted({group[user] for user in users})
    values = [value([user for user in users if group[user] != left_out]) for left_out in groups]
    if len(groups) < 2 or any(map(math.isnan, values)):
        return math.nan
    n = len(values)
    return math.sqrt((n - 1) / n * math.fsum((value - statistics.fmean(values)) ** 2 for value in values))


@naive("ItemCoverage")
def _(group: Group) -> Number:
    return len(group.times())


@naive("CatalogCoverage")
def _(group: Group, *, items: str) -> Number | None:  # noqa: ARG001 - whose items they are, the caller says
    return Fraction(len(group.catalogue & set(group.times())), len(group.catalogue)) if group.catalogue else None


@naive("Entropy")
def _(group: Group, *, base: str, norm: bool) -> Number | None:
    shown = [n for item, n in group.times().items() if not norm or item in group.catalogue]
    log = {"2": math.log2, "e": math.log}[base]
    if not shown or (norm and len(group.catalogue) < 2):
        return None
    value = -math.fsum(n / sum(shown) * log(n / sum(shown)) for n in shown)
    return value / log(len(group.catalogue)) if norm else value


@naive("Gini")
def _(group: Group, *, items: str, norm: str) -> Number | None:
    """Half the relative mean absolute difference of all ordered pairs: no formula of sorted values."""
    times = group.times()
    shown = [times[item] for item in (group.catalogue if items == "catalogue" else times)]
    n = len(shown)
    if not sum(shown) or (norm == "n-1" and n == 1):
        return None
    differences = sum(abs(one - other) for one, other in itertools.product(shown, repeat=2))
    return Fraction(differences, 2 * (n - 1 if norm == "n-1" else n) * sum(shown))


@naive("Personalization")
def _(group: Group, *, denom: str, sim: str) -> Number | None:
    pairs = list(itertools.combinations(map(set, group.lists), 2))
    if sim == "cosine":
        cosines = [len(one & other) / math.sqrt(len(one) * len(other)) for one, other in pairs]
        return 1 - math.fsum(cosines) / len(pairs) if pairs else None
    most = [group.k if denom == "k" else min(len(one), len(other)) for one, other in pairs]
    shared = sum(Fraction(len(one & other), n) for (one, other), n in zip(pairs, most, strict=True))
    return 1 - shared / len(pairs) if pairs else None

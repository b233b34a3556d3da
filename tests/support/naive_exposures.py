"""The measures of all lists together as a few lines of plain Python, and their jackknife by leaving users out."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from tests.support.oracles import number
from tests.support.oracles.plain import Number, References

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure

Lists = Sequence[Sequence[str]]
Naive = Callable[..., Number | None]

NAIVE: References[Naive] = References(
    "no naive reference of {name}; add a function with @naive({name!r}) to tests/support/naive_exposures.py"
)
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
    value = value_of(measure, lists, catalogue)
    return math.nan if value is None else float(value)


def value_of(measure: Measure, lists: Lists, catalogue: set[str] | None = None) -> Number | None:
    """Value of some lists by the naive reference, as it computes it; None where undefined."""
    cut = [one[: measure.k or None] for one in lists if one]
    return NAIVE[measure.name](Group(cut, measure.k, catalogue or set()), **measure.options)


def bounds_of(measure: Measure) -> tuple[float, float]:
    """Range of a measure; a normalised entropy is a share of the greatest."""
    return (0, 1) if measure.options.get("norm") is True else measure.entry.bounds


def jackknife_error(
    measure: Measure, lists: Mapping[str, Sequence[str]], group: Mapping[str, int], catalogue: set[str] | None = None
) -> float:
    """Compute the standard error from what the lists give without each group; ``lists`` and ``group`` are by user."""
    users = [user for user, one in lists.items() if one]

    def value(left: Sequence[str]) -> float:
        return expected(measure, [lists[user] for user in left], catalogue)

    cut = [lists[user][: measure.k or None] for user in users]
    share = first_order_share(measure, Group(cut, measure.k, catalogue or set()))
    return error_without_groups(value, users, group) * math.sqrt(share)


def error_without_groups(value: Callable[[list[str]], float], users: Sequence[str], group: Mapping[str, int]) -> float:
    """Compute the standard error from the value of the users that are left without each group; NaN with one group.

    A mean of values p with weights w has the variance ``sum w^2 (p - mean)^2 / (w - w^2)``; here of G groups, / G.
    NaN where that is 0: no group differs from another.
    """
    sizes = Counter(group[user] for user in users)
    if len(sizes) < 2:
        return math.nan
    whole, weights = value([*users]), {one: n / len(users) for one, n in sizes.items()}
    pseudo = {
        one: (whole - (1 - weight) * value([user for user in users if group[user] != one])) / weight
        for one, weight in weights.items()
    }
    mean = math.fsum(weights[one] * pseudo[one] for one in weights)
    terms = (weight / (1 - weight) * (pseudo[one] - mean) ** 2 for one, weight in weights.items())
    error = math.sqrt(math.fsum(terms) / len(weights))
    return math.nan if error <= 1e-12 * max(abs(whole), 1) else error


def summed(measure: Measure, counts: Mapping[str, int], *, per_item: float) -> float:
    """Add up what a measure is made of."""
    shown = [n for n in counts.values() if n]
    if measure.name == "Gini":
        counted = shown if per_item else counts.values()
        return sum(abs(one - other) for one, other in itertools.combinations(counted, 2)) - per_item * len(shown)
    terms: dict[str, Callable[[int], float]] = {"Entropy": lambda n: n * math.log(n), "Personalization": lambda n: n**2}
    return math.fsum(map(terms.get(measure.name, lambda _: 1), shown))


def first_order_share(measure: Measure, group: Group) -> float:
    """Share of the variance that changes of one place make, and not those of two; item by item.

    What is followed is the sum that the measure is made of: item x in one list fewer, and in two.
    """
    times, options = group.times(), measure.options
    is_of_catalogue = measure.name == "CatalogCoverage" or options.get("norm") is True
    if is_of_catalogue or options.get("items") == "catalogue":
        times = Counter({item: times[item] for item in group.catalogue})
    n_places, value = sum(times.values()), NAIVE[measure.name](group, **options)
    if not n_places or value is None or ("Coverage" in measure.name and [*times.values()].count(1) < 20):
        return math.nan
    # Of recommended items the Gini index falls with their number
    per_item = float(value) * n_places if options.get("items") == "recommended" else 0.0
    total = functools.partial(summed, measure, per_item=per_item)
    steps = {}
    for item, n in times.items():
        if n:
            now, before, earlier = (total({**times, item: max(n - fewer, 0)}) for fewer in range(3))
            steps[item] = (now - before, now - 2 * before + earlier if n > 1 else 0.0)
    centre = math.fsum(times[item] * first for item, (first, _) in steps.items())
    squares = math.fsum(times[item] * first**2 for item, (first, _) in steps.items())
    ones = squares - centre**2 / n_places
    twos = math.fsum(times[item] * (times[item] - 1) / 2 * second**2 for item, (_, second) in steps.items())
    if ones <= 1e-9 * squares:  # each place of each list counts as much as the others
        return math.nan
    share = ones / (ones + twos)
    return math.nan if "Coverage" in measure.name and share < 2 / 5 else share


@naive("ItemCoverage")
def _(group: Group) -> Number:
    return len(group.times())


@naive("CatalogCoverage")
def _(group: Group, *, items: str) -> Number | None:  # noqa: ARG001 - whose items they are, the caller says
    return Fraction(len(group.catalogue & set(group.times())), len(group.catalogue)) if group.catalogue else None


@naive("Entropy")
def _(group: Group, *, base: str, norm: bool) -> Number | None:
    shown = [n for item, n in group.times().items() if not norm or item in group.catalogue]
    log = {"2": number.log2, "e": number.log}[base]
    if not shown or (norm and len(group.catalogue) < 2):
        return None
    value = -number.total(Fraction(n, sum(shown)) * log(Fraction(n, sum(shown))) for n in shown)
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
        cosines = [len(one & other) / number.sqrt(len(one) * len(other)) for one, other in pairs]
        return 1 - number.total(cosines) / len(pairs) if pairs else None
    most = [group.k if denom == "k" else min(len(one), len(other)) for one, other in pairs]
    shared = sum(Fraction(len(one & other), n) for (one, other), n in zip(pairs, most, strict=True))
    return 1 - shared / len(pairs) if pairs else None

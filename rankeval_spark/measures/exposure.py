"""Inputs of measures over all lists together: how often each item is shown, and rates for groups of items.

Which item it is does not matter. A group (a model, a slice, a cutoff, with some users left out or none) is a histogram:
in how many lists an item is, and how many items are in that many. It has an entry for each of the different numbers
of lists, however many items and lists there are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.measures.arrays import (
    FloatMatrix,
    FloatVector,
    IntVector,
    is_run_start,
    running_count_by_list,
    sum_by_list,
)
from rankeval_spark.measures.required_facts import BY_POPULARITY, CATEGORY_SHARES, GROUP_RELEVANT


class Shown(NamedTuple):
    """Some lists written down by hand, for examples and tests."""

    lists: tuple[str, ...]  # items of each list, best first, with a space between: ``("a b", "a c")``
    catalogue: str | None = None  # all items there are, with a space between; None where unknown

    def items(self, k: int) -> list[list[str]]:
        """Return the items of each list at ranks 1..k; all of them for k = 0."""
        return [items.split()[: k or None] for items in self.lists]

    def __str__(self) -> str:
        lists = " / ".join(items or "(empty)" for items in self.lists)
        return lists if self.catalogue is None else f"{lists} (of {self.catalogue or 'no item'})"


@dataclass(frozen=True, eq=False)
class Exposure:
    """Histograms of several groups of lists, as ragged arrays.

    Item a is in two lists, b and c are in one:

    >>> exposure = Exposure.of([Shown(("a b", "a c"))], k=2)
    >>> exposure.times, exposure.n_items
    (array([1., 2.]), array([2., 1.]))
    """

    group: IntVector  # shape (n_entries,): group of each entry, ascending
    times: FloatVector  # shape (n_entries,): lists that hold an item: above 0, ascending within the group
    n_items: FloatVector  # shape (n_entries,): items that are in exactly so many lists
    # Shape (n_entries,): those of them that the catalogue holds; NaN where there is no catalogue
    n_catalogued: FloatVector
    n_lists: FloatVector  # shape (n_groups,): lists with at least one item
    k: IntVector  # shape (n_groups,): rank at which the lists were cut; 0 = not at all
    catalogue_size: FloatVector  # shape (n_groups,): items in the catalogue; NaN without one
    # Shape (n_entries,): sum over these items, and over the ordered pairs of lists that hold one, of 1 / the length of
    # the shorter list; NaN where lengths are not known
    shared: FloatVector
    cosine: FloatVector  # shape (n_entries,): the same sum of 1 / the root of the product of both lengths

    @classmethod
    def of(cls, groups: Sequence[Shown], *, k: int = WHOLE_LIST) -> Exposure:
        """Build the exposure of groups written down by hand."""
        rows: list[tuple[float, ...]] = []
        for index, shown in enumerate(groups):
            known = None if shown.catalogue is None else set(shown.catalogue.split())
            lists = shown.items(k)
            for item, n in Counter(item for items in lists for item in items).items():
                # Ordered pairs of lists that hold the item, by their lengths
                pairs = list(itertools.permutations([len(items) for items in lists if item in items], 2))
                shared = sum(1 / min(pair) for pair in pairs)
                cosine = sum(1 / math.sqrt(math.prod(pair)) for pair in pairs)
                rows.append((index, n, 1, math.nan if known is None else item in known, shared, cosine))
        group, times, n_items, n_catalogued, shared_sum, cosine_sum = np.array(rows, dtype=np.float64).reshape(-1, 6).T
        sizes = [math.nan if shown.catalogue is None else len(set(shown.catalogue.split())) for shown in groups]
        return cls(
            group.astype(np.int64),
            times,
            n_items,
            n_catalogued,
            n_lists=np.array([sum(map(bool, shown.items(k))) for shown in groups], dtype=np.float64),
            k=np.full(len(groups), k, dtype=np.int64),
            catalogue_size=np.array(sizes, dtype=np.float64),
            shared=shared_sum,
            cosine=cosine_sum,
        ).merged()

    def merged(self) -> Exposure:
        """Sort entries by group and ``times``, and add up those where both are equal.

        An entry may take items away (``n_items`` below 0): a histogram without some users is that of everyone and what
        their absence changes.
        """
        order = np.lexsort((self.times, self.group))
        starts = np.flatnonzero(is_run_start(self.group[order], self.times[order]))
        sums = {
            name: np.add.reduceat(getattr(self, name)[order], starts) if len(starts) else getattr(self, name)
            for name in ("n_items", "n_catalogued", "shared", "cosine")
        }
        return replace(self, group=self.group[order][starts], times=self.times[order][starts], **sums)

    @property
    def n_groups(self) -> int:
        """Groups, those without a list among them."""
        return len(self.n_lists)

    @cached_property
    def n_distinct(self) -> FloatVector:
        """Items that are in at least one list, shape (n_groups,)."""
        return self.sum(self.n_items)

    def sum(self, weights: FloatVector) -> FloatVector:
        """Add up the weights of the entries of each group: shape (n_groups,)."""
        return sum_by_list(self.group, weights, n_lists=self.n_groups)

    def running_sum(self, weights: FloatVector) -> FloatVector:
        """Add up whole numbers up to and including each entry of its group: shape (n_entries,)."""
        return running_count_by_list(weights, self.group, n_lists=self.n_groups)


def nan_unless_positive(denominator: FloatVector) -> FloatVector:
    """Return a denominator with NaN where it is not above 0: a quotient is undefined there.

    >>> nan_unless_positive(np.array([2.0, 0.0, -1.0]))
    array([ 2., nan, nan])
    """
    return np.where(denominator > 0, denominator, np.nan)


class Offered(NamedTuple):
    """Some lists written down by hand, with what could have been recommended instead."""

    lists: tuple[str, ...]  # items of each list, best first, with a space between: ``("a b", "a c")``
    groups: tuple[str, str, str]  # items of head, middle and tail, which are the catalogue
    # Relevant items of the user of each list; none for those that are left out
    relevant: tuple[str, ...] = ()
    own: tuple[str, ...] = ()  # items that each of these users has in the training data

    def __str__(self) -> str:
        known = (("relevant", self.relevant), ("in train", self.own))
        parts = [" / ".join(items or "(empty)" for items in self.lists)]
        parts += [f"({', '.join(f'{name} {items}' for name, items in zip(BY_POPULARITY, self.groups, strict=True))})"]
        parts += [f"({name} {' / '.join(items or '-' for items in each)})" for name, each in known if each]
        return " ".join(parts)

    def sums(self, *, need: str, k: int) -> tuple[list[int], list[int]]:
        """Count, by group, what the lists hold of the items that can be recommended, and these items.

        Those are the relevant ones or all of the catalogue, without the user's own.
        """
        catalogue, no_items = " ".join(self.groups), ("",) * len(self.lists)
        wanted = self.relevant or no_items if need == GROUP_RELEVANT else (catalogue,) * len(self.lists)
        rows = [row for row in zip(self.lists, wanted, self.own or no_items, strict=True) if row[0]]
        possible = [set(items.split()) - set(profile.split()) for _, items, profile in rows]
        hits = [items & set(row[0].split()[: k or None]) for items, row in zip(possible, rows, strict=True)]
        groups = [group.split() for group in self.groups]
        return [_count_members(hits, group) for group in groups], [_count_members(possible, group) for group in groups]


class Preferred(NamedTuple):
    """Some lists written down by hand, with the items of a category and what the users have in the training data."""

    lists: tuple[str, ...]  # items of each list, best first, with a space between: ``("a b", "a c")``
    category: str  # items of the category
    # Items that the user of each list has in the training data; none for those that are left out
    own: tuple[str, ...] = ()

    def __str__(self) -> str:
        known = f" (in train {' / '.join(items or '-' for items in self.own)})" if self.own else ""
        return f"{' / '.join(items or '(empty)' for items in self.lists)} (category {self.category}){known}"

    def sums(self, *, k: int) -> tuple[list[int], list[int]]:
        """Count items of the category, and all items: among the recommended ones, and in the training data."""
        shown = [items.split()[: k or None] for items in self.lists]
        rows = zip(self.lists, self.own or ("",) * len(self.lists), strict=True)
        profiles = [set(items.split()) for shown_items, items in rows if shown_items]
        in_category = [_count_members(shown, self.category.split()), _count_members(profiles, self.category.split())]
        return in_category, [sum(map(len, shown)), sum(map(len, profiles))]


@dataclass(frozen=True, eq=False)
class Rates:
    """Sums over the lists of several groups of them, one column for each rate.

    The rates are those of the groups of popularity, of items that are recommended among those that could be; or two, of
    items of a category among all recommended items, and among those that the users have in the training data.
    """

    taken: FloatMatrix  # shape (n_groups, n_rates): items that are recommended, or of the category
    possible: FloatMatrix  # shape (n_groups, n_rates): items that could be recommended, or all items

    @classmethod
    def of(cls, groups: Sequence[Offered | Preferred], *, need: str, k: int = 0) -> Rates:
        """Build the rates of groups written down by hand; ``need`` says which: a fact of :mod:`required_facts`."""
        sums = [group.sums(need=need, k=k) if isinstance(group, Offered) else group.sums(k=k) for group in groups]
        shape = (len(groups), 2 if need == CATEGORY_SHARES else len(BY_POPULARITY))
        taken, possible = (np.array([pair[side] for pair in sums], dtype=np.float64).reshape(shape) for side in (0, 1))
        return cls(taken, possible)


def _count_members(by_list: Sequence[Collection[str]], group: Collection[str]) -> int:
    """Count the items of all lists that belong to a group."""
    return sum(item in group for items in by_list for item in items)

"""How often each item is shown, for several groups of lists: what the kernels of set measures work on.

Which item it is does not matter to them. A group (a model, a slice, a cutoff, with some users left out or none) is its
histogram: in how many lists an item is, and how many items are in that many. It has as many entries as there are
different numbers of lists, however many items and lists there are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.measures.arrays import sum_by_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import FloatVector, IntVector


class Shown(NamedTuple):
    """Some lists written down by hand, for examples and tests."""

    lists: tuple[str, ...]  # items of each list, best first, with a space between: ``("a b", "a c")``
    catalogue: str | None = None  # all items there are, likewise; None where they are not known

    def items(self, k: int) -> list[list[str]]:
        """Return the items of each list at ranks 1..k; all of them for k = 0."""
        return [one.split()[: k or None] for one in self.lists]

    def __str__(self) -> str:
        """Write the items of each list, and the catalogue."""
        lists = " / ".join(one or "(empty)" for one in self.lists)
        return lists if self.catalogue is None else f"{lists} (of {self.catalogue or 'no item'})"


@dataclass(frozen=True, eq=False)
class Exposure:
    """Histograms of several groups of lists, as ragged arrays.

    Examples
    --------
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
    catalogue_size: FloatVector  # shape (n_groups,): items in the catalogue; NaN where there is none
    # Shape (n_entries,): sum over these items, and over the ordered pairs of lists that hold one, of 1 / the length of
    # the shorter list; NaN where lengths are not known
    shared: FloatVector
    cosine: FloatVector  # shape (n_entries,): the same sum of 1 / the root of the product of both lengths

    @classmethod
    def of(cls, groups: Sequence[Shown], *, k: int = WHOLE_LIST) -> Exposure:
        """Build the exposure of groups written down by hand."""
        entries: list[tuple[int, int, int, float, float, float]] = []
        for index, one in enumerate(groups):
            known = None if one.catalogue is None else set(one.catalogue.split())
            lists = one.items(k)
            times = Counter(item for items in lists for item in items)
            entries += (
                (index, n, 1, np.nan if known is None else float(item in known), *_pair_sums(item, lists))
                for item, n in times.items()
            )
        columns = zip(*entries, strict=True) if entries else ((), (), (), (), (), ())
        group, *sums = (np.array(column, dtype=np.float64) for column in columns)
        n_times, n_items, n_catalogued, shared, cosine = sums
        sizes = (np.nan if one.catalogue is None else len(set(one.catalogue.split())) for one in groups)
        return cls(
            group.astype(np.int64),
            n_times,
            n_items,
            n_catalogued,
            np.array([sum(map(bool, one.items(k))) for one in groups], dtype=np.float64),
            np.full(len(groups), k, dtype=np.int64),
            np.array(list(sizes), dtype=np.float64),
            shared,
            cosine,
        ).merged()

    def merged(self) -> Exposure:
        """Sort entries that are in any order; those of a group with equal ``times`` are added up.

        An entry may take items away (``n_items`` below 0): a histogram without some users is that of everyone and what
        their absence changes.
        """
        order = np.lexsort((self.times, self.group))
        group, times = self.group[order], self.times[order]
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = (group[1:] != group[:-1]) | (times[1:] != times[:-1])
        starts = np.flatnonzero(is_first)
        return replace(
            self,
            group=group[starts],
            times=times[starts],
            n_items=_block_sums(self.n_items[order], starts),
            n_catalogued=_block_sums(self.n_catalogued[order], starts),
            shared=_block_sums(self.shared[order], starts),
            cosine=_block_sums(self.cosine[order], starts),
        )

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
        totals = self.sum(weights)
        before_group = np.cumsum(totals) - totals
        return np.cumsum(weights) - before_group[self.group]


def positive(denominator: FloatVector) -> FloatVector:
    """Make a denominator that is not above 0 NaN: what is divided by it is undefined.

    Examples
    --------
    >>> positive(np.array([2.0, 0.0, -1.0]))
    array([ 2., nan, nan])
    """
    return np.where(denominator > 0, denominator, np.nan)


def _pair_sums(item: str, lists: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Sum 1 / the shorter length, and 1 / the root of both, over the ordered pairs of lists that hold an item."""
    pairs = list(itertools.permutations([len(one) for one in lists if item in one], 2))
    return sum(1 / min(pair) for pair in pairs), sum(1 / math.sqrt(math.prod(pair)) for pair in pairs)


def _block_sums(values: FloatVector, starts: IntVector) -> FloatVector:
    """Add up the values from each start to the next."""
    return np.add.reduceat(values, starts) if len(starts) else values

"""At what rate items of a group of popularity, or of a category, are recommended: what the parity kernels work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.measures.item_groups import BY_POPULARITY
from rankeval_spark.measures.required_facts import CATEGORY_SHARES, GROUP_RELEVANT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rankeval_spark.measures.arrays import FloatMatrix


class Offered(NamedTuple):
    """Some lists written down by hand, with what could have been recommended instead."""

    lists: tuple[str, ...]  # items of each list, best first, with a space between: ``("a b", "a c")``
    groups: tuple[str, str, str]  # items of the head, of the middle and of the tail, likewise; they are the catalogue
    # Relevant items of the user of each list, likewise; of those that are left out, none
    relevant: tuple[str, ...] = ()
    own: tuple[str, ...] = ()  # items that this user has in the training data, likewise

    def __str__(self) -> str:
        """Write the lists, the groups, and what is known of the users."""
        known = (("relevant", self.relevant), ("in train", self.own))
        parts = [" / ".join(one or "(empty)" for one in self.lists)]
        parts += [f"({', '.join(f'{name} {items}' for name, items in zip(BY_POPULARITY, self.groups, strict=True))})"]
        parts += [f"({name} {' / '.join(one or '-' for one in each)})" for name, each in known if each]
        return " ".join(parts)

    def possible(self, need: str) -> list[set[str]]:
        """Items that each list can be given: those that are relevant, or those of the catalogue; not the user's own."""
        catalogue = set(" ".join(self.groups).split())
        no_items = ("",) * len(self.lists)
        owned = [set(one.split()) for one in self.own or no_items]
        wanted = [set(one.split()) if need == GROUP_RELEVANT else catalogue for one in self.relevant or no_items]
        return [items - own for items, own in zip(wanted, owned, strict=True)]

    def sums(self, *, need: str, k: int) -> tuple[list[int], list[int]]:
        """Count, by group, what the lists hold of the items that can be recommended, and these items."""
        by_list = [items for items, shown in zip(self.possible(need), self.lists, strict=True) if shown]
        shown = [set(items.split()[: k or None]) for items in self.lists if items]
        hits = [items & top for items, top in zip(by_list, shown, strict=True)]
        groups = [group.split() for group in self.groups]
        return [_count(hits, group) for group in groups], [_count(by_list, group) for group in groups]


class Preferred(NamedTuple):
    """Some lists written down by hand, with the items of a category and what the users have in the training data."""

    lists: tuple[str, ...]  # items of each list, best first, with a space between: ``("a b", "a c")``
    category: str  # items of the category, likewise
    # Items that the user of each list has in the training data, likewise; of those that are left out, none
    own: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write the lists, the category, and what the users have."""
        known = f" (in train {' / '.join(one or '-' for one in self.own)})" if self.own else ""
        return f"{' / '.join(one or '(empty)' for one in self.lists)} (category {self.category}){known}"

    def sums(self, *, k: int) -> tuple[list[int], list[int]]:
        """Count items of the category, and all items: among the recommended ones, and in the training data."""
        shown = [one.split()[: k or None] for one in self.lists]
        rows = zip(self.lists, self.own or ("",) * len(self.lists), strict=True)
        own = [set(items.split()) for one, items in rows if one]
        in_category = [_count(shown, self.category.split()), _count(own, self.category.split())]
        return in_category, [sum(map(len, shown)), sum(map(len, own))]


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
        sums = [one.sums(need=need, k=k) if isinstance(one, Offered) else one.sums(k=k) for one in groups]
        shape = (len(groups), 2 if need == CATEGORY_SHARES else len(BY_POPULARITY))
        taken, possible = (np.array([one[side] for one in sums], dtype=np.float64).reshape(shape) for side in (0, 1))
        return cls(taken, possible)


def _count(by_list: Sequence[Collection[str]], group: Collection[str]) -> int:
    return sum(item in group for items in by_list for item in items)

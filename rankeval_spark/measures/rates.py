"""At what rate items of each group of popularity are recommended: what the kernels of parity measures work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.measures.needs import GROUP_RELEVANT, GROUPS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rankeval_spark.measures.arrays import FloatMatrix


class Offered(NamedTuple):
    """Some lists written down by hand, with what could have been recommended instead.

    Parameters
    ----------
    lists
        Items of each list, best first, with a space between: ``("a b", "a c")``.
    groups
        Items of the head, of the middle and of the tail, likewise; they are the catalogue.
    relevant
        Relevant items of the user of each list, likewise; of those that are left out, none.
    own
        Items that he has in the training data, likewise.
    """

    lists: tuple[str, ...]
    groups: tuple[str, str, str]
    relevant: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Write the lists, the groups, and what is known of the users."""
        known = (("relevant", self.relevant), ("in train", self.own))
        parts = [" / ".join(one or "(empty)" for one in self.lists)]
        parts += [f"({', '.join(f'{name} {items}' for name, items in zip(GROUPS, self.groups, strict=True))})"]
        parts += [f"({name} {' / '.join(one or '-' for one in each)})" for name, each in known if each]
        return " ".join(parts)

    def possible(self, need: str) -> list[set[str]]:
        """Items that each list can be given: those that are relevant, or those of the catalogue; not his own."""
        catalogue = set(" ".join(self.groups).split())
        nobody = ("",) * len(self.lists)
        owned = [set(one.split()) for one in self.own or nobody]
        wanted = [set(one.split()) if need == GROUP_RELEVANT else catalogue for one in self.relevant or nobody]
        return [items - own for items, own in zip(wanted, owned, strict=True)]


@dataclass(frozen=True, eq=False)
class Rates:
    """Sums over the lists of several groups of them, one column for each group of popularity.

    Parameters
    ----------
    taken : float64, shape (n_groups, 3)
        Items that are recommended of those that could be.
    possible : float64, shape (n_groups, 3)
        Items that could be recommended.
    """

    taken: FloatMatrix
    possible: FloatMatrix

    @classmethod
    def of(cls, groups: Sequence[Offered], *, need: str, k: int = 0) -> Rates:
        """Build the rates of groups written down by hand; ``need`` says what could be recommended."""
        taken, possible = [], []
        for one in groups:
            by_list = [items for items, shown in zip(one.possible(need), one.lists, strict=True) if shown]
            shown = [set(items.split()[: k or None]) for items in one.lists if items]
            hits = [items & top for items, top in zip(by_list, shown, strict=True)]
            taken.append([_count(hits, group.split()) for group in one.groups])
            possible.append([_count(by_list, group.split()) for group in one.groups])
        shape = (len(groups), len(GROUPS))
        return cls(
            np.array(taken, dtype=np.float64).reshape(shape), np.array(possible, dtype=np.float64).reshape(shape)
        )


def _count(by_list: Sequence[Collection[str]], group: Collection[str]) -> int:
    return sum(item in group for items in by_list for item in items)

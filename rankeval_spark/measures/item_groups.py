"""Groups of items to which a measure can be restricted: by popularity in the training data, or by category."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rankeval_spark.measures import required_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import IntVector

HEAD: Final = "head"
MIDDLE: Final = "middle"
TAIL: Final = "tail"
BY_POPULARITY: Final = (HEAD, MIDDLE, TAIL)
"""Head: the fewest, most popular items that hold at least 20 % of the interactions in `train`, ties by item id; tail:
those that are not among the fewest that hold 80 %, and those without interactions; middle: the rest."""

RULES: Final = {
    HEAD: "the fewest, most popular items that hold at least 20 % of the interactions in train, ties by item id",
    MIDDLE: "items in neither the head (the fewest that hold 20 % of the interactions in train) nor the tail (not "
    "among the fewest that hold 80 %)",
    TAIL: "items that are not among the fewest that hold 80 % of the interactions in train, or without interactions",
}
"""Which items each group of :data:`BY_POPULARITY` has; recorded with every measure of one."""

RULE_OF_CATEGORIES: Final = "category of inputs.items"

MAX_GROUPS: Final = 62
"""Groups of one run: as many bits as a whole number of 64 bits holds without its sign, and one to spare."""


class Groups(NamedTuple):
    """The groups of the judged items of a batch, as bits."""

    names: tuple[str, ...]  # group of each bit, the lowest first
    of_hits: IntVector  # shape (n_hits,): Bits of the groups that each judged item that was recommended belongs to
    of_judged: IntVector  # shape (n_judged,): The same of each judgement

    def members(self, group: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which hits and which judgements belong to a group.

        Examples
        --------
        >>> import numpy as np
        >>> groups = Groups(("head", "rock"), np.array([1, 3]), np.array([1, 2, 3]))
        >>> groups.members("rock")
        (array([False,  True]), array([False,  True,  True]))
        """
        bit = 1 << self.names.index(group) if group in self.names else 0
        return (self.of_hits & bit) != 0, (self.of_judged & bit) != 0

    def some(self, hits: NDArray[Any] | slice, judged: NDArray[Any] | slice) -> Groups:
        """Take the groups of some of the hits and of the judgements."""
        return self._replace(of_hits=self.of_hits[hits], of_judged=self.of_judged[judged])


def need_of(group: str) -> str:
    """Name the fact of judged items that decides who belongs to a group.

    Examples
    --------
    >>> need_of("tail"), need_of("rock")
    ('popularity_group', 'category_group')
    """
    return required_facts.POPULARITY_GROUP if group in BY_POPULARITY else required_facts.CATEGORY_GROUP


def rule_of(group: str) -> str:
    """Say which items belong to a group.

    Examples
    --------
    >>> rule_of("rock")
    'category of inputs.items'
    """
    return RULES.get(group, RULE_OF_CATEGORIES)


def bits_of(names: Sequence[str], belongs_to: str) -> int:
    """Return the bits of the groups that a text names, separated by blanks; for lists written down by hand."""
    return sum(1 << names.index(name) for name in set(belongs_to.split()))

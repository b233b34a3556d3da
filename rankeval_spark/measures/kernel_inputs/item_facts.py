"""What is known of the recommended items and of the users who got them, as ragged arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.kernel_inputs.memo import Remembers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.measures.arrays import BoolVector, FloatMatrix, FloatVector, IntVector

T = TypeVar("T")


class Pairs(NamedTuple):
    """Pairs of items of one list that are similar by co-occurrence.

    Attributes
    ----------
    earlier : int, shape (n_pairs,)
        Position among all items of the one that is further up.
    later : int, shape (n_pairs,)
        Position of the other one, ascending.
    similarity : float64, shape (n_pairs,)
        In (0, 1].
    """

    earlier: IntVector
    later: IntVector
    similarity: FloatVector


class Shared(NamedTuple):
    """What each list has in common with the list that another model gave the same user.

    Attributes
    ----------
    owner : int, shape (n_shared,)
        List of each common item, ascending.
    depth : int, shape (n_shared,)
        The greater of its two ranks: cut there or further down, both lists hold it.
    length : float64, shape (n_lists,)
        Last rank of the other list; 0 where the other model gave none.
    other_owner, other_rank : int, shape (n_items,)
        List and rank of each item of the other lists.
    """

    owner: IntVector
    depth: IntVector
    length: FloatVector
    other_owner: IntVector
    other_rank: IntVector


class Judged(NamedTuple):
    """Judged items with their categories.

    Attributes
    ----------
    owner : int, shape (n_judged_items,)
        List of each, ascending.
    gain : float64, shape (n_judged_items,)
        Its gain.
    labels : Labels
        Its categories; their owners are these items.
    """

    owner: IntVector
    gain: FloatVector
    labels: Labels


class Labels(NamedTuple):
    """Categories as numbers.

    Attributes
    ----------
    owner : int, shape (n_labels,)
        Item, or list, that has the category, ascending.
    code : int, shape (n_labels,)
        Number of the category in the batch; numbers ascend as the names do.
    weight : float64, shape (n_labels,)
        1 / categories of the item; in a profile, the items that have it, each divided by its categories.
    """

    owner: IntVector
    code: IntVector
    weight: FloatVector


@dataclass(frozen=True, eq=False)
class ItemFacts(Remembers):
    """What is known of the items of a batch of lists, cut at the largest rank that a measure looks at.

    Parameters
    ----------
    item_list, item_rank : int, shape (n_items,)
        List and rank of each item, sorted by them. Where lists keep the ranks of the log, some may be empty.
    values : mapping of name to float64, shape (n_items,)
        Those of ``needs.ITEM_VALUES`` that were requested.
    totals : mapping of name to float64, shape (n_lists,)
        Those of ``needs.TOTALS`` that were requested.
    categories : Labels or None
        Categories of the items.
    vectors : float64, shape (n_items, n_features), or None
        Vectors of the items; a row of NaN where unknown.
    profile_categories : Labels or None
        Categories of what the user of each list has in the training data.
    profile_vectors : float64, shape (n_lists, n_features), or None
        Mean unit vector of the same; a row of NaN where unknown.
    n_categories : int
        Numbers that ``code`` may take.
    pairs : Pairs or None
        Items that co-occur with another one of their list.
    profile_interactions : float64, shape (n_lists,), or None
        Mean popularity of what the user of each list has in the training data; 0 where they have nothing.
    judged : Judged or None
        Judged items of the user of each list that have categories.
    shared : mapping of model to Shared, or None
        What the lists have in common with those of the models that are named.
    """

    item_list: IntVector
    item_rank: IntVector
    values: Mapping[str, FloatVector]
    totals: Mapping[str, FloatVector]
    categories: Labels | None = None
    vectors: FloatMatrix | None = None
    profile_categories: Labels | None = None
    profile_vectors: FloatMatrix | None = None
    n_categories: int = 0
    pairs: Pairs | None = None
    profile_interactions: FloatVector | None = None
    judged: Judged | None = None
    shared: Mapping[str, Shared] | None = None

    @property
    def known_pairs(self) -> Pairs:
        """Items that co-occur with another one of their list."""
        return _collected(self.pairs, needs.ITEM_PAIRS)

    @property
    def known_categories(self) -> Labels:
        """Categories of the items."""
        return _collected(self.categories, needs.ITEM_CATEGORIES)

    @property
    def known_profile(self) -> Labels:
        """Categories of the profiles."""
        return _collected(self.profile_categories, needs.PROFILE_CATEGORIES)

    @property
    def known_profile_vectors(self) -> FloatMatrix:
        """Mean unit vectors of the profiles."""
        return _collected(self.profile_vectors, needs.PROFILE_VECTORS)

    @property
    def known_profile_interactions(self) -> FloatVector:
        """Mean popularity of the profiles."""
        return _collected(self.profile_interactions, needs.PROFILE_INTERACTIONS)

    @property
    def known_judged(self) -> Judged:
        """Judged items with categories."""
        return _collected(self.judged, needs.JUDGED_CATEGORIES)

    @property
    def known_shared(self) -> Mapping[str, Shared]:
        """What the lists have in common with those of other models, by model."""
        return _collected(self.shared, needs.OTHER_LISTS)

    @property
    def known_vectors(self) -> FloatMatrix:
        """Vectors as they are given; a row of NaN for an item without one."""
        return _collected(self.vectors, needs.ITEM_VECTORS)

    @cached_property
    def has_numbers(self) -> BoolVector:
        """Whether an item has a vector, be it of zeros: shape (n_items,)."""
        vectors = self.known_vectors
        known: BoolVector = np.isfinite(vectors).sum(axis=1) == max(vectors.shape[1], 1)
        return known

    @cached_property
    def unit_vectors(self) -> FloatMatrix:
        """Vectors of length 1; a row of zeros for an item without one, and for one whose numbers are all 0."""
        vectors = self.known_vectors
        squares: FloatVector = (vectors * vectors).sum(axis=1)
        is_known = np.isfinite(squares) & (squares > 0)
        lengths = np.sqrt(np.where(is_known, squares, 1.0))
        return np.where(is_known[:, None], vectors, 0.0) / lengths[:, None]

    @cached_property
    def has_vector(self) -> BoolVector:
        """Whether the direction of an item is known: shape (n_items,)."""
        known: BoolVector = (self.unit_vectors != 0).any(axis=1)
        return known

    @cached_property
    def has_categories(self) -> BoolVector:
        """Whether an item has categories: shape (n_items,)."""
        return np.bincount(self.known_categories.owner, minlength=len(self.item_list)) > 0


def _collected(fact: T | None, need: str) -> T:
    if fact is None:
        message = f"the batch does not hold {need}; a measure that reads it says so in its needs"
        raise ValueError(message)
    return fact

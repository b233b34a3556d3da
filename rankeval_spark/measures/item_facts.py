"""Facts of the recommended items and of the users who got them, as ragged arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import BoolVector, FloatMatrix, FloatVector, IntVector, scaled_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


def require_fact(fact: T | None, lack: str, them: str = "them") -> T:
    """Return a fact of a batch; ValueError where it was not collected."""
    if fact is None:
        message = f"the batch {lack}; a measure that reads {them} says so in its needs"
        raise ValueError(message)
    return fact


class RequiredFact(Generic[T]):
    """Property of a batch: the fact in another attribute, or a ValueError where it was not collected."""

    def __init__(self, name: str, lack: str, them: str = "them") -> None:
        self._name, self._lack, self._them = name, lack, them

    def __get__(self, batch: object, owner: type | None = None) -> T:
        fact: T | None = getattr(batch, self._name)
        return require_fact(fact, self._lack, self._them)


class Empty(NamedTuple):
    """Ranks at which lists have no item, though they have one further down; all of shape (n_runs,)."""

    owner: IntVector  # list of each run of such ranks, ascending
    first: IntVector  # first and last rank of the run
    last: IntVector


class SimilarPairs(NamedTuple):
    """Pairs of items of one list that are similar by co-occurrence."""

    earlier: IntVector  # shape (n_pairs,): position among all items of the one that is further up
    later: IntVector  # shape (n_pairs,): position of the other one, ascending
    similarity: FloatVector  # shape (n_pairs,): in (0, 1]


class Shared(NamedTuple):
    """Items that each list shares with the list that another model gave the same user."""

    owner: IntVector  # shape (n_shared,): list of each common item, ascending
    depth: IntVector  # shape (n_shared,): the greater of its two ranks: cut there or further down, both lists hold it
    length: FloatVector  # shape (n_lists,): last rank of the other list; 0 where the other model gave none
    # Shape (n_items,): list and rank of each item of the other lists
    other_owner: IntVector
    other_rank: IntVector


class Judged(NamedTuple):
    """Judged items with their categories."""

    owner: IntVector  # shape (n_judged_items,): list of each, ascending
    gain: FloatVector  # shape (n_judged_items,): its gain
    labels: Labels  # its categories; their owners are these items


class Labels(NamedTuple):
    """Categories as numbers."""

    owner: IntVector  # shape (n_labels,): item, or list, that has the category, ascending
    code: IntVector  # shape (n_labels,): number of the category in the batch; numbers ascend as the names do
    # Shape (n_labels,): 1 / categories of the item; in a profile, the items that have it, each divided by its
    # categories
    weight: FloatVector


@dataclass(frozen=True, eq=False)
class ItemFacts:
    """Facts about the items in a batch of lists, cut at the largest rank that a measure looks at."""

    # Shape (n_items,): list and rank of each item, sorted by them. Where lists keep the ranks of the log, some may be
    # empty.
    item_list: IntVector
    item_rank: IntVector
    values: Mapping[str, FloatVector]  # shape (n_items,): those of ``required_facts.ITEM_VALUES`` that were requested
    totals: Mapping[str, FloatVector]  # shape (n_lists,): those of ``required_facts.TOTALS`` that were requested
    categories: Labels | None = None  # categories of the items
    vectors: FloatMatrix | None = None  # shape (n_items, n_features): vectors of the items; a row of NaN where unknown
    profile_categories: Labels | None = None  # categories of what the user of each list has in the training data
    # Shape (n_lists, n_features): mean unit vector of the same; a row of NaN where unknown
    profile_vectors: FloatMatrix | None = None
    n_categories: int = 0  # numbers that ``code`` may take
    pairs: SimilarPairs | None = None  # items that co-occur with another one of their list
    # Shape (n_lists,): mean popularity of what the user of each list has in the training data; 0 where they have
    # nothing
    profile_interactions: FloatVector | None = None
    # Shape (n_lists,): items of the catalogue that the same user has there, and that no judgement names
    profile_unjudged: FloatVector | None = None
    judged: Judged | None = None  # judged items of the user of each list that have categories
    # Shape (n_items,): id of each item, and its score in the log
    ids: NDArray[np.object_] | None = None
    scores: FloatVector | None = None
    shared: Mapping[str, Shared] | None = None  # what the lists have in common with those of the models that are named

    known_ids = RequiredFact["NDArray[np.object_]"]("ids", f"does not hold {N.ITEM_IDS}", "it")
    known_scores = RequiredFact[FloatVector]("scores", f"does not hold {N.ITEM_SCORES}", "it")
    known_categories = RequiredFact[Labels]("categories", f"does not hold {N.ITEM_CATEGORIES}", "it")
    known_vectors = RequiredFact[FloatMatrix]("vectors", f"does not hold {N.ITEM_VECTORS}", "it")
    known_profile = RequiredFact[Labels]("profile_categories", f"does not hold {N.PROFILE_CATEGORIES}", "it")
    known_profile_vectors = RequiredFact[FloatMatrix]("profile_vectors", f"does not hold {N.PROFILE_VECTORS}", "it")
    known_pairs = RequiredFact[SimilarPairs]("pairs", f"does not hold {N.ITEM_PAIRS}", "it")
    known_profile_interactions = RequiredFact[FloatVector](
        "profile_interactions", f"does not hold {N.PROFILE_INTERACTIONS}", "it"
    )
    known_profile_unjudged = RequiredFact[FloatVector]("profile_unjudged", f"does not hold {N.PROFILE_UNJUDGED}", "it")
    known_judged = RequiredFact[Judged]("judged", f"does not hold {N.JUDGED_CATEGORIES}", "it")
    known_shared = RequiredFact[Mapping[str, Shared]]("shared", f"does not hold {N.OTHER_LISTS}", "it")

    @property
    def n_codes(self) -> int:
        """Numbers that ``code`` may take, at least 1: what a list is multiplied with in a key of list and category."""
        return max(self.n_categories, 1)

    @cached_property
    def has_numbers(self) -> BoolVector:
        """True if an item has a vector, of zeros too: shape (n_items,)."""
        vectors = self.known_vectors
        known: BoolVector = np.isfinite(vectors).sum(axis=1) == max(vectors.shape[1], 1)
        return known

    @cached_property
    def unit_vectors(self) -> FloatMatrix:
        """Vectors of length 1; a row of zeros for an item without one, and for one whose numbers are all 0."""
        vectors = scaled_rows(self.known_vectors)
        squares: FloatVector = (vectors * vectors).sum(axis=1)
        is_known = np.isfinite(squares) & (squares > 0)
        lengths = np.sqrt(np.where(is_known, squares, 1.0))
        return np.where(is_known[:, None], vectors, 0.0) / lengths[:, None]

    @cached_property
    def has_vector(self) -> BoolVector:
        """True if the direction of an item is known: shape (n_items,)."""
        known: BoolVector = (self.unit_vectors != 0).any(axis=1)
        return known

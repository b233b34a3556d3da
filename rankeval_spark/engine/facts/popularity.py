"""How popular the items of the training data are: how often they occur, and facts that follow from the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import in_id_order, to_codes
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector

N_INTERACTIONS: Final = "_n_interactions"
"""Interactions of an item, a bigint."""
N_USERS: Final = "_n_users"
"""Users who have an item, a bigint."""

_TOP_FIFTH, _TOP_FOUR_FIFTHS = 1, 4
"""Fifths of the interactions that the fewest, most popular items of a head hold."""

_BY_LEVEL = (N.ITEM_TAIL, N.ITEM_POPULARITY_GROUP, N.ITEM_LEVEL, N.ITEM_PLACE)


class ItemCounts(Protocol):
    """The items of the training data and their counts; each array has shape (n_items,)."""

    @property
    def items(self) -> pa.Array:
        """Distinct ids, in their order: integers by value, texts by their UTF-8 bytes."""

    @property
    def interactions(self) -> IntVector:
        """Interactions of each item: int64."""

    @property
    def item_users(self) -> IntVector:
        """Users who have each item: int64."""

    @property
    def n_users(self) -> int:
        """Distinct users of all items together."""


@dataclass(frozen=True)
class Counted:
    """Counts of items that were made elsewhere, see :class:`ItemCounts`."""

    items: pa.Array
    interactions: IntVector
    item_users: IntVector
    n_users: int

    @classmethod
    def of(cls, counts: pa.Table, *, n_users: int) -> Counted:
        """Take rows with a distinct ``item_id``, :data:`N_INTERACTIONS` and :data:`N_USERS`."""
        codes = in_id_order(to_codes(counts[C.ITEM_ID]))
        order = np.argsort(codes.code)
        interactions, users = (to_numpy(counts[name])[order].astype(np.int64) for name in (N_INTERACTIONS, N_USERS))
        return cls(codes.values, interactions, users, n_users)


def to_item_popularity(counts: ItemCounts, *, needs: frozenset[str]) -> pa.Table:
    """Make one row per item of the training data: ``item_id`` and the facts that follow from counts, all double."""
    facts: dict[str, pa.Array] = {}
    if N.ITEM_INTERACTIONS in needs:
        facts[N.ITEM_INTERACTIONS] = _doubles(counts.interactions)
    if N.ITEM_USERS in needs:
        facts[N.ITEM_USERS] = _doubles(counts.item_users)
    if not needs.isdisjoint(_BY_LEVEL):
        by_level = _by_level(counts.interactions)
        facts |= {name: by_level[name] for name in _BY_LEVEL if name in needs}
    if N.ITEM_QUANTILE in needs:
        facts[N.ITEM_QUANTILE] = to_arrow(_quantiles(counts.item_users))
    return pa.Table.from_pydict({C.ITEM_ID: counts.items, **facts})


def _by_level(interactions: IntVector) -> dict[str, pa.Array]:
    """Order items by interactions, the most popular first and ties by id."""
    _, level = np.unique(-interactions, return_inverse=True)
    order = np.argsort(level, kind="stable")
    place, before = np.empty_like(level), np.empty_like(interactions)
    place[order] = np.arange(len(level))
    ordered = interactions[order]
    before[order] = np.cumsum(ordered) - ordered
    n_all = int(interactions.sum())
    is_top, is_head = (_is_within(before, fifths, n_all) for fifths in (_TOP_FIFTH, _TOP_FOUR_FIFTHS))
    return {
        N.ITEM_TAIL: _doubles(~is_head),
        N.ITEM_POPULARITY_GROUP: _doubles(np.where(is_top, 0, np.where(is_head, 1, 2))),
        N.ITEM_LEVEL: _doubles(level + 1),
        N.ITEM_PLACE: _doubles(place + 1),
    }


def _is_within(interactions_before: IntVector, fifths: int, n_all: int) -> BoolVector:
    """Mark items before which others do not yet hold so many fifths of all interactions; in whole numbers."""
    return interactions_before * 5 < n_all * fifths


def _quantiles(users: IntVector) -> FloatVector:
    """Rank by users, ascending, equal items sharing the mean of their ranks, over all items."""
    _, level, size = np.unique(users, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(size) - size + (size + 1) / 2
    return (mean_rank / max(len(users), 1))[level]


def _doubles(values: np.ndarray) -> pa.Array:
    return to_arrow(values.astype(np.float64))

"""How popular the items of the training data are: facts that follow from counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.in_process.facts.interactions import Train, interactions_of
from rankeval_spark.measures import required_facts as N

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector

_TOP_FIFTH, _TOP_FOUR_FIFTHS = 1, 4
"""Fifths of the interactions that the fewest, most popular items of a head hold."""

_BY_LEVEL = (N.ITEM_TAIL, N.ITEM_POPULARITY_GROUP, N.ITEM_LEVEL, N.ITEM_PLACE)


def to_item_popularity(train: Train, *, needs: frozenset[str], n_places: int) -> pa.Table:
    """Make one row per item of the training data: ``item_id`` and the facts that follow from counts, all double.

    Parameters
    ----------
    n_places : int
        How many of the most popular items must know their place; the place of others may be NULL.
    """
    trained = interactions_of(train)
    facts: dict[str, pa.Array] = {}
    if N.ITEM_INTERACTIONS in needs:
        facts[N.ITEM_INTERACTIONS] = _doubles(trained.interactions)
    if N.ITEM_USERS in needs:
        facts[N.ITEM_USERS] = _doubles(trained.item_users)
    if not needs.isdisjoint(_BY_LEVEL):
        by_level = _by_level(trained.interactions, n_places=n_places if N.ITEM_PLACE in needs else 0)
        facts |= {name: by_level[name] for name in _BY_LEVEL if name in needs}
    if N.ITEM_QUANTILE in needs:
        facts[N.ITEM_QUANTILE] = to_arrow(_quantiles(trained.item_users))
    return pa.Table.from_pydict({C.ITEM_ID: trained.items, **facts})


class _Order(NamedTuple):
    """Items by interactions, the most popular first and ties by id; arrays of shape (n_items,).

    ``interactions_before`` are those of all items before one, ``first_before`` those before the first item of the same
    level and ``last_before`` those before its last one; ``items_above`` counts the items of higher levels.
    """

    level: IntVector
    place: IntVector
    interactions_before: IntVector
    first_before: IntVector
    last_before: IntVector
    items_above: IntVector

    @classmethod
    def of(cls, interactions: IntVector) -> _Order:
        negative, level, size = np.unique(-interactions, return_inverse=True, return_counts=True)
        held = -negative * size
        above, items_above = (np.cumsum(each) - each for each in (held, size))
        place = np.empty(len(level), dtype=np.int64)
        place[np.argsort(level, kind="stable")] = np.arange(len(level))
        first, items = above[level], items_above[level]
        before = first + (place - items) * interactions
        return cls(level, place, before, first, first + (size[level] - 1) * interactions, items)


def _by_level(interactions: IntVector, *, n_places: int) -> dict[str, pa.Array]:
    order, n_all = _Order.of(interactions), int(interactions.sum())
    is_top, is_head = (_is_within(order.interactions_before, f, n_all) for f in (_TOP_FIFTH, _TOP_FOUR_FIFTHS))
    # Only items whose id decides have a place, as the items are sorted on Spark: the bits of the table are the same.
    has_place = order.items_above < n_places
    for fifths in (_TOP_FIFTH, _TOP_FOUR_FIFTHS):
        has_place |= _is_within(order.first_before, fifths, n_all) & ~_is_within(order.last_before, fifths, n_all)
    return {
        N.ITEM_TAIL: _doubles(~is_head),
        N.ITEM_POPULARITY_GROUP: _doubles(np.where(is_top, 0, np.where(is_head, 1, 2))),
        N.ITEM_LEVEL: _doubles(order.level + 1),
        N.ITEM_PLACE: to_arrow((order.place + 1).astype(np.float64), is_null=~has_place),
    }


def _is_within(interactions_before: IntVector, fifths: int, n_all: int) -> BoolVector:
    """Mark items before which others do not yet hold so many fifths of all interactions; in whole numbers."""
    is_within: BoolVector = interactions_before * 5 < n_all * fifths
    return is_within


def _quantiles(users: IntVector) -> FloatVector:
    """Rank by users, ascending, equal items sharing the mean of their ranks, over all items."""
    _, level, size = np.unique(users, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(size) - size + (size + 1) / 2
    quantiles: FloatVector = (mean_rank / max(len(users), 1))[level]
    return quantiles


def _doubles(values: np.ndarray) -> pa.Array:
    return to_arrow(values.astype(np.float64))

"""What the training data say: which users have which items, and how popular the items are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from scipy import sparse

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import to_arrow
from rankeval_spark.engine.codes import in_order, starts_of_runs, to_codes
from rankeval_spark.measures import needs as N

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


@dataclass(frozen=True)
class Interactions:
    """The usable rows of the training data; what is counted is counted once, when it is first read.

    Attributes
    ----------
    users : pa.Array
        Distinct ids of the users, by first appearance.
    items : pa.Array
        Distinct ids of the items, in their order: integers by value, texts by their UTF-8 bytes.
    user, item : int64, shape (n_rows,)
        Positions of the ids of each row.
    """

    users: pa.Array
    items: pa.Array
    user: IntVector
    item: IntVector

    @classmethod
    def of(cls, train: pa.Table) -> Interactions:
        """Encode rows with ``user_id`` and ``item_id``, none of them NULL."""
        users, items = to_codes(train[C.USER_ID]), in_order(to_codes(train[C.ITEM_ID]))
        return cls(users.values, items.values, users.code, items.code)

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return len(self.items)

    @cached_property
    def owned(self) -> sparse.csr_array:
        """Users by items: float64, 1 where the user has the item, columns ascending in each row."""
        n_users, n_items = len(self.users), max(self.n_items, 1)
        pairs = np.sort(self.user * n_items + self.item)
        user, item = np.divmod(pairs[starts_of_runs(pairs)], n_items)
        ends = np.append(0, np.cumsum(np.bincount(user, minlength=n_users)))
        return sparse.csr_array((np.ones(len(item)), item, ends), shape=(n_users, self.n_items))

    @cached_property
    def interactions(self) -> IntVector:
        """Interactions of each item: int64, shape (n_items,)."""
        return np.bincount(self.item, minlength=self.n_items)

    @cached_property
    def item_users(self) -> IntVector:
        """Users who have each item: int64, shape (n_items,)."""
        return np.bincount(self.owned.indices, minlength=self.n_items)


Train: TypeAlias = pa.Table | Interactions
"""The training data, or what :meth:`Interactions.of` made of them for several readers."""


def interactions_of(train: Train | None) -> Interactions:
    """Encode the training data if they are not yet; a ValueError where they are not there."""
    if isinstance(train, Interactions):
        return train
    return Interactions.of(given(train))


def given(table: pa.Table | None) -> pa.Table:
    """Return an input that is needed; a ValueError where it is not there."""
    if table is None:
        message = "an input is needed that is not there; requests are checked for that before they are computed"
        raise ValueError(message)
    return table


_TOP_FIFTH, _TOP_FOUR_FIFTHS = 1, 4
"""Fifths of the interactions that the fewest, most popular items of a head hold."""

_BY_LEVEL = (N.ITEM_TAIL, N.ITEM_POPULARITY_GROUP, N.ITEM_LEVEL, N.ITEM_PLACE)


def to_popularity(train: Train, *, needs: frozenset[str], n_places: int) -> pa.Table:
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

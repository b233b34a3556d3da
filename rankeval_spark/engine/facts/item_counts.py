"""How often the items of the training data occur: what facts of popularity are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_numpy
from rankeval_spark.engine.batch.codes import in_id_order, to_codes

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.measures.arrays import IntVector

N_INTERACTIONS: Final = "_n_interactions"
"""Interactions of an item, a bigint."""
N_USERS: Final = "_n_users"
"""Users who have an item, a bigint."""


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

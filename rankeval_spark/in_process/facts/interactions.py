"""The training data as codes: which users have which items, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.codes import in_id_order, to_codes
from rankeval_spark.engine.scoring.user_profiles import owned_items

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy import sparse

    from rankeval_spark.measures.arrays import IntVector


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
        users, items = to_codes(train[C.USER_ID]), in_id_order(to_codes(train[C.ITEM_ID]))
        return cls(users.values, items.values, users.code, items.code)

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return len(self.items)

    @property
    def n_users(self) -> int:
        """Number of distinct users."""
        return len(self.users)

    @cached_property
    def owned(self) -> sparse.csr_array:
        """Users by items: float64, 1 where the user has the item, columns ascending in each row."""
        return owned_items(self.user, self.item, n_users=self.n_users, n_items=self.n_items)

    @cached_property
    def interactions(self) -> IntVector:
        """Interactions of each item: int64, shape (n_items,)."""
        return np.bincount(self.item, minlength=self.n_items)

    @cached_property
    def item_users(self) -> IntVector:
        """Users who have each item: int64, shape (n_items,)."""
        return np.bincount(self.owned.indices, minlength=self.n_items)

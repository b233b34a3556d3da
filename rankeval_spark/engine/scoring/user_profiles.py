"""Facts of users: of the items that they have in the training data, and of their judged ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from rankeval_spark.engine.batch.arrays import lengths_of, list_column, to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import ascending, in_id_order, starts_of_runs, to_codes
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import scaled_rows

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch
    from rankeval_spark.engine.ranking.judgements import Judgements
    from rankeval_spark.measures.arrays import IntVector


def to_profiles(batch: Batch, judgements: Judgements, *, needs: frozenset[str]) -> pa.StructArray | None:
    """Build a struct per user of what is needed, by its name in :mod:`measures.required_facts`; None if nothing is.

    Where judgements name lists, the structs are those of the owners of judgements: lists of users.

    A profile is made of the distinct items that the user has in the training data; for categories and vectors, of those
    that the catalogue describes. A fact is NULL where there is no such item.
    """
    users = _Users(batch, judgements)
    make = {
        N.PROFILE_CATEGORIES: users.categories,
        N.PROFILE_VECTORS: users.vectors,
        N.PROFILE_INTERACTIONS: users.interactions,
    }
    found = {name: make[name]() for name in make if name in needs}
    if batch.owners is not None:
        found = {name: pc.take(fact, to_arrow(batch.owners.user)) for name, fact in found.items()}
    if N.JUDGED_CATEGORIES in needs:
        found[N.JUDGED_CATEGORIES] = users.judged_categories()
    return pa.StructArray.from_arrays(list(found.values()), names=list(found)) if found else None


def distinct_pairs(user: IntVector, item: IntVector, *, n_items: int) -> tuple[IntVector, IntVector]:
    """Keep each pair of a user and an item once, in their order."""
    pairs = np.sort(user * n_items + item)
    user, item = np.divmod(pairs[starts_of_runs(pairs)], max(n_items, 1))
    return user, item


def owned_items(user: IntVector, item: IntVector, *, n_users: int, n_items: int) -> sparse.csr_array:
    """Users by items: float64, 1 where the user has the item, columns ascending in each row."""
    user, item = distinct_pairs(user, item, n_items=n_items)
    ends = np.append(0, np.cumsum(np.bincount(user, minlength=n_users)))
    return sparse.csr_array((np.ones(len(item)), item, ends), shape=(n_users, n_items))


@dataclass(frozen=True)
class _Users:
    """The users of a batch and what they have; items are in the order of their ids."""

    batch: Batch
    judgements: Judgements

    @cached_property
    def place(self) -> IntVector:
        """Place of each item in the order of the ids: int64, shape (n_items,)."""
        return ascending(self.batch.items)

    @cached_property
    def owned(self) -> sparse.csr_array:
        """Users by items: float64, 1 where the user has the item in the training data, columns ascending in a row."""
        train = self.batch.train
        return owned_items(train.user, self.place[train.item], n_users=self.batch.n_users, n_items=self.batch.n_items)

    def known(self, name: str) -> pa.Array:
        """Return a fact of the items, in the order of the ids."""
        return pc.take(self.batch.known_items[name], to_arrow(np.argsort(self.place)))

    def interactions(self) -> pa.Array:
        """Average the interactions of each user's items."""
        total = self.owned @ to_numpy(self.known(N.ITEM_INTERACTIONS), null=0.0)  # whole: the same in any order
        n_items = np.diff(self.owned.indptr)
        return to_arrow(total / np.maximum(n_items, 1), is_null=n_items == 0)

    def categories(self) -> pa.Array:
        """Count the items of each user by category and by how many categories they have."""
        lists = self.known(N.ITEM_CATEGORIES)
        lengths = lengths_of(lists)
        names, above = in_id_order(to_codes(lists.flatten())), int(lengths.max(initial=0)) + 1
        labels, label = np.unique(names.code * above + np.repeat(lengths, lengths), return_inverse=True)
        ends = np.append(0, np.cumsum(lengths))
        has_label = sparse.csr_array((np.ones(len(label)), label, ends), shape=(len(lists), len(labels)))
        counts = (self.owned @ has_label).tocsr()
        counts.sort_indices()  # labels are numbered in the order of (category, number of categories)
        name, n_categories = np.divmod(labels[counts.indices], above)
        fields = {
            "category": pc.take(names.values, to_arrow(name)),
            "n_categories": to_arrow(n_categories.astype(np.int32)),
            "n_items": to_arrow(counts.data.astype(np.int64)),
        }
        return _lists_of(np.diff(counts.indptr), pa.StructArray.from_arrays(list(fields.values()), names=list(fields)))

    def vectors(self) -> pa.Array:
        """Average the unit vectors of each user's items, added up in the order of the items."""
        known, units = _unit_vectors(self.known(N.ITEM_VECTORS))
        owned = self.owned[:, known]
        total = owned @ units
        is_minus_zero = (units == 0) & np.signbit(units)
        if is_minus_zero.any():  # a sum that begins with the first vector, not with 0, keeps the sign of -0.0
            total[owned @ (~is_minus_zero).astype(np.float64) == 0] = -0.0
        n_vectors = np.diff(owned.indptr)
        has_vector = n_vectors > 0
        mean = total[has_vector] / n_vectors[has_vector, None]
        return _lists_of(has_vector * units.shape[1], to_arrow(mean.ravel()))

    def judged_categories(self) -> pa.Array:
        """Collect the judged items of each owner that have a category, the highest ids first."""
        lists = self.batch.known_items[N.ITEM_CATEGORIES]
        owner, item = self.judgements.owner, self.judgements.pair % max(self.batch.n_items, 1)
        judged = np.flatnonzero((lengths_of(lists) > 0)[item])
        judged = judged[np.lexsort((-self.place[item[judged]], owner[judged]))]
        structs = pa.StructArray.from_arrays(
            [to_arrow(self.judgements.gain[judged]), pc.take(lists, to_arrow(item[judged]))],
            names=["gain", "categories"],
        )
        return _lists_of(np.bincount(owner[judged], minlength=self.batch.n_owners), structs)


def _unit_vectors(lists: pa.Array) -> tuple[IntVector, np.ndarray]:
    """Return which items have a vector with a length, and their vectors divided by it."""
    known = np.flatnonzero(lengths_of(lists))
    values = to_numpy(lists.flatten())
    vectors = scaled_rows(values.reshape(len(known), len(values) // max(len(known), 1)))
    squares = np.zeros(len(known))
    for column in vectors.T:  # one number of all items after the other: a sum by rows depends on the batch
        squares += column * column
    length = np.sqrt(squares)
    has_length = length > 0
    return known[has_length], vectors[has_length] / length[has_length, None]


def _lists_of(lengths: IntVector, values: pa.Array) -> pa.ListArray:
    """Build a list column of the values of users, who follow each other; NULL where a user has none."""
    return list_column(lengths, values, is_null=lengths == 0)

"""Training data as codes, and which items have users in common.

The cosine of two items is (users of both) / sqrt(users of one * of the other). The matrix of all cosines may be far
larger than the inputs, so that only a part of its rows is there at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import (
    combine_chunks,
    encode_rows,
    index_in,
    list_column,
    renumber_by_id,
    to_arrow,
    to_codes,
    to_numpy,
)
from rankeval_spark.engine.features import ownership_matrix
from rankeval_spark.measures.arrays import is_run_start

if TYPE_CHECKING:
    from scipy import sparse

    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, IntVector


@dataclass(frozen=True)
class Interactions:
    """The usable rows of the training data; what is counted is counted once, when it is first read."""

    users: pa.Array  # distinct ids of the users, by first appearance
    items: pa.Array  # distinct ids of the items, in their order: integers by value, texts by their UTF-8 bytes
    user: IntVector  # (n_rows,) positions of the ids of each row
    item: IntVector

    @classmethod
    def from_rows(cls, train: pa.Table) -> Interactions:
        """Encode rows with ``user_id`` and ``item_id``, none of them NULL."""
        users, items = to_codes(train[C.USER_ID]), renumber_by_id(to_codes(train[C.ITEM_ID]))
        return cls(users.values, items.values, users.code, items.code)

    @property
    def n_users(self) -> int:
        return len(self.users)

    @cached_property
    def owned(self) -> sparse.csr_array:
        """Users by items: float64, 1 where the user has the item, columns ascending in each row."""
        return ownership_matrix(self.user, self.item, n_users=self.n_users, n_items=len(self.items))

    @cached_property
    def interactions(self) -> IntVector:
        """Interactions of each item: int64, shape (n_items,)."""
        return np.bincount(self.item, minlength=len(self.items))

    @cached_property
    def item_users(self) -> IntVector:
        """Users who have each item: int64, shape (n_items,)."""
        return np.bincount(self.owned.indices, minlength=len(self.items))


MAX_CELLS: Final = 1 << 24  # cosines that are in memory at a time: 200 MB
AT_ONCE: Final = 1 << 21  # pairs of items that are looked up at a time


def to_familiarity(
    ranked: pa.Table,  # rows of ``Job.ranked_items``
    train: Interactions,
    depth: int,  # last rank that is read; 0 for whole lists
) -> pa.Table:
    """Build the mean similarity, in [0, 1], of each recommended item to those that its user has in the training data.

    Returns ``user_id``, ``item_id`` and :data:`row_kinds.SIMILARITY`, for users of the training data alone.
    """
    top = _keep_ranks(ranked, depth)
    users, items = to_codes(top[C.USER_ID]), to_codes(top[C.ITEM_ID])
    owner, n_items = index_in(users.values, train.users)[users.code], max(items.n_values, 1)
    user, code = np.divmod(np.unique(owner[owner >= 0] * n_items + items.code[owner >= 0]), n_items)
    similarity = _mean_profile_similarity(train.owned, user, index_in(items.values, train.items)[code])
    return pa.Table.from_pydict(
        {
            C.USER_ID: pc.take(train.users, to_arrow(user)),
            C.ITEM_ID: pc.take(items.values, to_arrow(code)),
            row_kinds.SIMILARITY: to_arrow(similarity),
        }
    )


def to_pairs(
    ranked: pa.Table,  # rows of ``Job.ranked_items``
    train: Interactions,
    depth: int,  # last rank that is read; 0 for whole lists
) -> pa.Table:
    """Build one row per list with the pairs of its items that have users in common, if any.

    Returns the list's key and :data:`columns.PAIRS`: ranks ``later`` and ``earlier``, ``similarity`` in (0, 1].
    """
    top = _keep_ranks(ranked, depth)
    items = to_codes(top[C.ITEM_ID])
    place = index_in(items.values, train.items)
    top = top.filter(to_arrow((place >= 0)[items.code]))
    item = place[items.code]
    wanted, item = np.unique(item[item >= 0], return_inverse=True)
    key = [name for name in C.LIST_KEY if name in top.column_names]
    lists, rank = encode_rows(top, key), to_numpy(top[C.RANK]).astype(np.int64)
    order = np.lexsort((rank, lists))
    later, earlier, similarity = _find_similar_pairs(train.owned[:, wanted], lists[order], item[order])
    owner = lists[order[later]]
    starts = np.flatnonzero(is_run_start(owner))
    ranks = (to_arrow(rank[order[rows]].astype(np.int32)) for rows in (later, earlier))
    structs = pa.StructArray.from_arrays([*ranks, to_arrow(similarity)], names=["later", "earlier", "similarity"])
    first = to_arrow(order[later[starts]])
    keys = {name: pc.take(combine_chunks(top[name]), first) for name in key}
    return pa.Table.from_pydict({**keys, C.PAIRS: list_column(np.diff(starts, append=len(owner)), structs)})


def _keep_ranks(ranked: pa.Table, depth: int) -> pa.Table:
    """Keep the rows down to a rank; all of them for 0."""
    return ranked.filter(to_arrow(to_numpy(ranked[C.RANK]) <= depth)) if depth else ranked


class _CosineBlock(NamedTuple):
    """Cosines of the items ``start`` to ``end`` with all items; 0 where two items have no user in common."""

    start: int
    end: int
    cosines: sparse.csr_array | FloatMatrix

    def at(self, item: IntVector, other: IntVector) -> FloatVector:
        """Return some of the cosines."""
        if not len(item):  # scipy would return a sparse array
            return np.zeros(0)
        return np.asarray(self.cosines[item - self.start, other]).ravel()


def _cosine_blocks(
    owned: sparse.csr_array,  # (n_users, n_items), 1 where the user has the item
    items: IntVector,  # ascending
) -> Iterator[_CosineBlock]:
    """Yield rows of the item-item cosine matrix, those of ``items``, block by block."""
    by_item = owned.T.tocsr()
    n_users, n_items = np.diff(by_item.indptr), owned.shape[1]
    most = np.minimum(by_item[items] @ np.diff(owned.indptr), n_items)  # cells of each row that are not 0, at most
    for start, end in _split_by_size(most, MAX_CELLS):
        block_items = items[start:end]
        together = (by_item[block_items] @ owned).tocsr()
        of_both = np.repeat(n_users[block_items], np.diff(together.indptr)).astype(np.int64) * n_users[together.indices]
        together.data /= np.sqrt(of_both.astype(np.float64))
        if len(block_items) * n_items <= 2 * MAX_CELLS:
            yield _CosineBlock(start, end, together.toarray())
        else:
            together.sort_indices()  # scipy finds single cells by bisection
            yield _CosineBlock(start, end, together)


def _mean_profile_similarity(owned: sparse.csr_array, user: IntVector, item: IntVector) -> FloatVector:
    """Mean similarity of each item to all items of the user; 0 for an item that no user has (-1).

    Cosines with the items of a user are added up in ascending order: in another one the last bit differs. Pairs whose
    users have about as many items, up to the same power of 2, are worked on together as a matrix of cosines.
    """
    total, n_owned = np.zeros(len(item)), np.diff(owned.indptr)[user]
    order = np.argsort(item, kind="stable")
    order = order[np.searchsorted(item[order], 0) :]
    items, place = np.unique(item[order], return_inverse=True)
    for part in _cosine_blocks(owned, items):
        first, last = np.searchsorted(place, [part.start, part.end])
        rows, of_row = order[first:last], place[first:last]
        width = 1 << np.ceil(np.log2(n_owned[rows])).astype(np.int64)  # columns that hold the items of the user
        for columns in np.unique(width):
            alike, at_once = np.flatnonzero(width == columns), max(AT_ONCE // columns, 1)
            for start in range(0, len(alike), at_once):
                chosen = alike[start : start + at_once]
                chosen_rows, column = rows[chosen], np.arange(columns)
                is_profile_item = column < n_owned[chosen_rows, None]
                at = np.where(is_profile_item, owned.indptr[user[chosen_rows], None] + column, 0)
                cosines = part.at(np.repeat(of_row[chosen], columns), owned.indices[at].ravel()).reshape(at.shape)
                cosines[~is_profile_item] = 0  # zeros come first, and change no sum
                cosines.sort(axis=1)
                total[chosen_rows] = np.cumsum(cosines, axis=1)[:, -1]
    mean: FloatVector = total / n_owned
    return mean


def _find_similar_pairs(
    owned: sparse.csr_array, lists: IntVector, item: IntVector
) -> tuple[IntVector, IntVector, FloatVector]:
    """Find later row, earlier row and similarity of pairs with common users; rows are sorted by list and rank."""
    start = np.maximum.accumulate(np.where(is_run_start(lists), np.arange(len(lists)), 0))
    n_earlier, none = np.arange(len(lists)) - start, np.zeros(0, dtype=np.int64)
    found = [(none, none, np.zeros(0))]
    for part in _cosine_blocks(owned, np.arange(owned.shape[1])):
        for first, last in _split_by_size(n_earlier, AT_ONCE):
            later = np.repeat(np.arange(first, last), n_earlier[first:last])  # each row with those before it
            before = np.cumsum(n_earlier[first:last]) - n_earlier[first:last]
            earlier = start[later] + np.arange(len(later)) - before[later - first]
            low, high = np.minimum(item[later], item[earlier]), np.maximum(item[later], item[earlier])
            here = np.flatnonzero((low >= part.start) & (low < part.end))
            similarity = part.at(low[here], high[here])
            here = here[similarity > 0]
            found.append((later[here], earlier[here], similarity[similarity > 0]))
    later, earlier, similarity = (np.concatenate(each) for each in zip(*found, strict=True))
    is_next = (later[1:] > later[:-1]) | ((later[1:] == later[:-1]) & (earlier[1:] > earlier[:-1]))
    order: slice | IntVector = slice(None) if is_next.all() else np.lexsort((earlier, later))
    return later[order], earlier[order], similarity[order]


def _split_by_size(sizes: IntVector, most: int) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks whose sizes add up to about ``most``, a row at least; yield the first and the end of each.

    >>> list(_split_by_size(np.array([2, 1, 5, 1]), most=4))
    [(0, 3), (3, 4)]
    """
    starts = np.flatnonzero(is_run_start((np.cumsum(sizes) - sizes) // most))
    return pairwise([*starts.tolist(), len(sizes)])

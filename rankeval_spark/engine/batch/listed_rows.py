"""Lists that travel as arrays become rows of items, where the rows of a partition enter the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, lengths_of, owners_of, to_arrow, to_numpy
from rankeval_spark.engine.batch.batch import COLUMNS_OF
from rankeval_spark.measures.arrays import in_ranges

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector

_OF_LIST: Final = {C.USER_ID, C.MODEL_ID, C.INTERACTED_AT, *COLUMNS_OF[row_kinds.LOG]} - {C.SCORE, C.RANK}
"""Columns that an item has of its list, the one that carries all times among them; others are of other inputs."""

_OF_LOG: Final = (row_kinds.LOG, row_kinds.UNNAMED)


class FlatLists(NamedTuple):
    """The items of some lists, in the order of the lists and of each array."""

    row: IntVector  # (n_items,) place of the list of each item
    position: IntVector  # (n_items,) place of the item in its array, from 1
    items: pa.Array  # ids, as the arrays have them
    scores: pa.Array | None  # scores, all NULL for a list whose arrays differ in length


def flat_lists(items: pa.Array | pa.ChunkedArray, scores: pa.Array | pa.ChunkedArray | None) -> FlatLists:
    """Write lists as one row per item; a list that is NULL or empty has none.

    ``items`` (n_lists,): ids, best item first. ``scores`` (n_lists,): a score for each item.

    >>> flat = flat_lists(pa.array([["a", "b"], [], ["c"]]), pa.array([[0.9, 0.8], [], []], pa.list_(pa.float64())))
    >>> flat.row.tolist(), flat.position.tolist(), flat.items.to_pylist(), flat.scores.to_pylist()
    ([0, 0, 2], [1, 2, 1], ['a', 'b', 'c'], [0.9, 0.8, None])
    """
    items = in_one_piece(items)
    lengths = lengths_of(items)
    paired = None if scores is None else _paired(in_one_piece(scores), lengths)
    return FlatLists(owners_of(items), in_ranges(np.ones_like(lengths), lengths), pc.list_flatten(items), paired)


def _paired(scores: pa.Array, n_items: IntVector) -> pa.Array:
    """Return the scores of the items; NULL for those of lists whose arrays differ in length."""
    lengths, flat = lengths_of(scores), pc.list_flatten(scores)
    is_pair: BoolVector = lengths == n_items
    if is_pair.all():
        return flat
    is_null = np.repeat(~is_pair, n_items)
    places = in_ranges(np.cumsum(lengths) - lengths, n_items)
    return pc.take(flat, to_arrow(np.where(is_null, 0, places), is_null=is_null))


def with_items(batches: Iterable[pa.RecordBatch], *, has_ranks: bool) -> Iterator[pa.RecordBatch]:
    """Write lists that travel in columns :data:`row_kinds.LISTED` as one row per item, as a flat log has them.

    Rows of other inputs have empty arrays. ``has_ranks``: whether the place in the array becomes a column ``rank``.
    """
    for batch in batches:
        if row_kinds.LISTED_ITEMS not in batch.schema.names:
            yield batch
            continue
        is_list = np.isin(to_numpy(batch[row_kinds.KIND]), _OF_LOG)
        if not is_list.all():
            yield _others(batch.filter(to_arrow(~is_list)), has_ranks=has_ranks)
        if is_list.any():
            yield _items(batch if is_list.all() else batch.filter(to_arrow(is_list)), has_ranks=has_ranks)


def _others(rows: pa.RecordBatch, *, has_ranks: bool) -> pa.RecordBatch:
    """Add the columns of the items to rows of other inputs, as NULL."""
    columns = {name: rows[name] for name in rows.schema.names if name not in row_kinds.LISTED}
    if row_kinds.LISTED_SCORES in rows.schema.names and C.SCORE not in columns:
        columns[C.SCORE] = pa.nulls(len(rows), _score_type(rows))
    if has_ranks:
        columns[C.RANK] = pa.nulls(len(rows), pa.int32())
    return pa.RecordBatch.from_pydict(columns)


def _items(lists: pa.RecordBatch, *, has_ranks: bool) -> pa.RecordBatch:
    has_scores = row_kinds.LISTED_SCORES in lists.schema.names
    flat = flat_lists(lists[row_kinds.LISTED_ITEMS], lists[row_kinds.LISTED_SCORES] if has_scores else None)
    row, n_items = to_arrow(flat.row), len(flat.row)
    columns = {
        name: pc.take(lists[name], row) if name in _OF_LIST else pa.nulls(n_items, lists[name].type)
        for name in lists.schema.names
        if name not in row_kinds.LISTED
    }
    columns[row_kinds.KIND] = pc.take(lists[row_kinds.KIND], row)
    columns[C.ITEM_ID] = flat.items.cast(lists[C.ITEM_ID].type)
    if flat.scores is not None:
        columns[C.SCORE] = flat.scores.cast(_score_type(lists))
    if has_ranks:
        columns[C.RANK] = to_arrow(flat.position.astype(np.int32))
    return pa.RecordBatch.from_pydict(columns)


def _score_type(rows: pa.RecordBatch) -> pa.DataType:
    """Doubles for floating-point numbers; other numbers keep their type."""
    kind = rows[row_kinds.LISTED_SCORES].type.value_type
    return pa.float64() if pa.types.is_floating(kind) else kind

"""Rows of users as coded arrays, a group for each input; whole lists in a row become rows of items."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import (
    ABSENT,
    combine_chunks,
    lengths_of,
    parent_indices,
    renumber_by_id,
    take_or_null,
    to_arrow,
    to_codes,
    to_numpy,
)
from rankeval_spark.measures.arrays import expand_ranges

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector


COLUMNS_OF: Final = {
    row_kinds.LOG: (C.LIST_ID, C.SCORE, C.RANK, C.PREDICTED_REWARD, C.RECOMMENDED_AT, row_kinds.FACTS),
    row_kinds.HELD_OUT: (C.GAIN, C.VALUE, C.PROPENSITY, C.WEIGHT, C.INTERACTED_AT, row_kinds.FACTS),
    row_kinds.TRAIN: (row_kinds.FACTS, C.INTERACTED_AT),
    row_kinds.SEGMENTS: (row_kinds.SEGMENT_VALUES,),
    row_kinds.FAMILIARITY: (row_kinds.SIMILARITY,),
    row_kinds.PAIRS: (C.MODEL_ID, C.LIST_ID, C.PAIRS),
    row_kinds.USER_VALUES: (C.MODEL_ID, row_kinds.VALUE_NAME, row_kinds.USER_VALUE),
    row_kinds.USER_WEIGHTS: (row_kinds.USER_VALUE,),
}
"""Columns that are read of each input in addition to its ids; a table that lacks one has no use for it."""

_OF_LIST: Final = {
    *(C.USER_ID, C.MODEL_ID, C.INTERACTED_AT, row_kinds.KIND),
    *{*COLUMNS_OF[row_kinds.LOG]}.difference((C.SCORE, C.RANK)),
}
"""Columns that an item has of its list, the one that carries all times among them; others are of other inputs."""


@dataclass(frozen=True)
class CodedRows:
    """The rows of one input."""

    user: IntVector  # (n_rows,) codes of the ids; ``item`` is empty where the input has no items
    item: IntVector
    columns: Mapping[str, pa.Array]  # the other columns, by name

    def __len__(self) -> int:
        return len(self.user)

    def take(self, chosen: np.ndarray) -> CodedRows:
        """Select rows by a mask or by their positions."""
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        by_place = to_arrow(places)
        item = self.item[places] if len(self.item) else self.item
        return CodedRows(
            self.user[places], item, {name: pc.take(column, by_place) for name, column in self.columns.items()}
        )


@dataclass(frozen=True)
class Owners:
    """Owners of judgements: users, or lists of users where judgements name lists, whichever model made them."""

    user: IntVector  # (n_owners,) user of each, ascending
    log: IntVector  # (n_rows,) owner of each row of the two inputs
    held_out: IntVector
    name: IntVector  # (n_owners,) place of its ``list_id`` in `names`; empty where owners are users
    names: pa.Array | None  # distinct values of ``list_id``, in their order; None where owners are users


@dataclass(frozen=True)
class Batch:
    """All rows of some users."""

    # distinct ids, which the codes of the tables are positions in. Users are in the order of their ids, so that sums
    # over users do not depend on the order of the rows.
    users: pa.Array
    items: pa.Array
    models: tuple[str, ...]  # names of all models of the evaluation; ``model`` holds positions in it
    model: IntVector  # (n_log_rows,) model of each row of the log
    owners: Owners
    log: CodedRows  # the inputs, see :mod:`row_kinds`; those that are not given have no rows
    held_out: CodedRows
    train: CodedRows
    segments: CodedRows
    familiarity: CodedRows
    pairs: CodedRows
    user_values: CodedRows
    user_weights: CodedRows
    constants: Mapping[str, pa.Array]  # what is the same for all users, an array of one cell each, by its column

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def judged(self) -> CodedRows:
        """The rows of the held-out table with their owners in place of users."""
        return replace(self.held_out, user=self.owners.held_out)

    def keep_log_rows(self, chosen: np.ndarray) -> Batch:
        """Keep only some rows of the log, by a mask."""
        owners = replace(self.owners, log=self.owners.log[chosen])
        return replace(self, log=self.log.take(chosen), model=self.model[chosen], owners=owners)

    def keep_held_out_rows(self, chosen: np.ndarray) -> Batch:
        """Keep only some judgements, by a mask."""
        owners = replace(self.owners, held_out=self.owners.held_out[chosen])
        return replace(self, held_out=self.held_out.take(chosen), owners=owners)

    @cached_property
    def known_items(self) -> dict[str, pa.Array]:
        """Facts of the distinct items, by name; a fact in the rows replaces a constant one. NULL if unknown."""
        found = {}
        if row_kinds.ITEMS in self.constants:
            facts = struct_fields(self.constants[row_kinds.ITEMS].flatten())
            place = pc.index_in(self.items, value_set=facts.pop(C.ITEM_ID).cast(self.items.type))
            found = {name: pc.take(column, place) for name, column in facts.items()}
        tables = [rows for rows in (self.log, self.held_out, self.train) if row_kinds.FACTS in rows.columns]
        if tables:
            facts_by_row = pa.concat_arrays([rows.columns[row_kinds.FACTS] for rows in tables])
            item = np.concatenate([rows.item for rows in tables])
            row = np.full(self.n_items, ABSENT)  # any row of each item, for all have the same facts: the last one
            row[item] = np.arange(len(item))
            found |= struct_fields(take_or_null(facts_by_row, row))
        return found


def struct_fields(structs: pa.StructArray) -> dict[str, pa.Array]:
    """Split a struct column into its fields; NULL structs have NULL fields."""
    return dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))


def to_batch(
    table: pa.Table,
    *,
    models: Sequence[str],
    constants: Mapping[str, pa.Array] = MappingProxyType({}),
    described: Collection[int] = (row_kinds.LOG,),  # inputs whose rows have the facts of their items
    has_judged_lists: bool = False,  # whether ``list_id`` of a judgement is the list that it belongs to
) -> Batch:
    """Encode rows of :mod:`row_kinds`, all rows of their users; a row without a user is left out.

    A column that the table lacks is read where :data:`row_kinds.CARRIED_BY` says.
    """
    users, items = renumber_by_id(to_codes(table[C.USER_ID])), to_codes(table[C.ITEM_ID])
    kinds = np.where(users.code == ABSENT, ABSENT, to_numpy(table[row_kinds.KIND]))  # segments may name no user
    rows_of_kind = {kind: np.flatnonzero(kinds == kind) for kind in COLUMNS_OF}
    plain = table.drop_columns(row_kinds.FACTS) if row_kinds.FACTS in table.column_names else table
    inputs = []
    for kind, places in rows_of_kind.items():
        source = table if kind in described else plain
        found = {name: name for name in COLUMNS_OF[kind] if name in source.column_names}
        for name, carrier in row_kinds.CARRIED_BY.get(kind, {}).items():
            if carrier in source.column_names:
                found.setdefault(name, carrier)
        has_items = kind in (row_kinds.LOG, row_kinds.HELD_OUT, row_kinds.TRAIN, row_kinds.FAMILIARITY)
        item = items.code[places] if has_items else np.zeros(0, dtype=np.int64)
        columns = {name: _take_rows(source[column], places) for name, column in found.items()}
        inputs.append(CodedRows(users.code[places], item, columns))
    log, held_out, train, segments, familiarity, pairs, user_values, user_weights = inputs
    model: IntVector = np.zeros(len(log), dtype=np.int64)
    if len(models) != 1:  # rows of one model need not name it, and do not where only those of pairs have the column
        codes = to_codes(_take_rows(table[C.MODEL_ID], rows_of_kind[row_kinds.LOG]))
        number = {name: place for place, name in enumerate(models)}
        by_code = np.array([number[name] for name in codes.values.to_pylist()], dtype=np.int64)
        model = by_code[codes.code]
    owners = Owners(np.arange(users.n_values), log.user, held_out.user, np.zeros(0, dtype=np.int64), None)
    if has_judged_lists:
        judged_list = _take_rows(table[C.LIST_ID], rows_of_kind[row_kinds.HELD_OUT])
        names = renumber_by_id(to_codes(pa.chunked_array([judged_list, log.columns[C.LIST_ID]])))
        n_names, n_judged = max(names.n_values, 1), len(held_out)
        keys, owner = np.unique(np.concatenate([held_out.user, log.user]) * n_names + names.code, return_inverse=True)
        owner_user, owner_name = np.divmod(keys, n_names)
        owners = Owners(owner_user, owner[n_judged:], owner[:n_judged], owner_name, names.values)
    ids = users.values, items.values, tuple(models)
    others = train, segments, familiarity, pairs, user_values, user_weights
    return Batch(*ids, model, owners, log, held_out, *others, constants)


def _take_rows(column: pa.ChunkedArray, places: IntVector) -> pa.Array:
    """Return the values of a column at ascending positions."""
    whole = combine_chunks(column)
    is_range = len(places) and places[-1] - places[0] + 1 == len(places)
    return whole.slice(places[0], len(places)) if is_range else pc.take(whole, to_arrow(places))


def pack_constants(cells: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """Pack arrays of one value each into one cell, :data:`row_kinds.SHARED`, as Arrow writes them."""
    batch = pa.RecordBatch.from_arrays(list(cells.values()), names=list(cells))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    cell = sink.getvalue()
    ends = pa.py_buffer(np.array([0, len(cell)], dtype=np.int32))
    yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), 1, [None, ends, cell])], [row_kinds.SHARED])


def unpack_constants(cell: pa.Array) -> dict[str, pa.Array]:
    """Return the columns that :func:`pack_constants` put into a cell, one row each."""
    with pa.ipc.open_stream(cell[0].as_buffer()) as reader:
        batch = reader.read_next_batch()
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def split_constants(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, pa.Array], Iterator[pa.RecordBatch]]:
    """Split what is the same for all users, in the first row of a partition, from all rows."""
    rest = (batch for batch in batches if batch.num_rows)
    first = next(rest, None)
    if first is None:
        return {}, iter(())
    batches = chain([first], rest)
    if row_kinds.SHARED not in first.schema.names:
        return {}, batches
    found = unpack_constants(first[row_kinds.SHARED].slice(0, 1))
    return found, (batch.drop_columns([row_kinds.SHARED]) for batch in batches)


class FlatLists(NamedTuple):
    """The items of some lists, list by list and in the order of each array."""

    row: IntVector  # (n_items,) place of the list of each item
    position: IntVector  # (n_items,) place of the item in its array, from 1
    items: pa.Array  # ids, as the arrays have them
    scores: pa.Array | None  # scores, all NULL for a list whose arrays differ in length


def flatten_lists(
    items: pa.Array | pa.ChunkedArray,  # (n_lists,) ids, best item first
    scores: pa.Array | pa.ChunkedArray | None,  # (n_lists,) a score for each item
) -> FlatLists:
    """Write lists as one row per item; a list that is NULL or empty has none.

    >>> flat = flatten_lists(pa.array([["a", "b"], [], ["c"]]), pa.array([[0.9, 0.8], [], []], pa.list_(pa.float64())))
    >>> flat.row.tolist(), flat.position.tolist(), flat.items.to_pylist(), flat.scores.to_pylist()
    ([0, 0, 2], [1, 2, 1], ['a', 'b', 'c'], [0.9, 0.8, None])
    """
    items, paired = combine_chunks(items), None
    n_items = lengths_of(items)
    if scores is not None:
        whole = combine_chunks(scores)
        n_scores, paired = lengths_of(whole), pc.list_flatten(whole)
        if not (n_scores == n_items).all():
            places = expand_ranges(np.cumsum(n_scores) - n_scores, n_items)
            paired = take_or_null(paired, np.where(np.repeat(n_scores == n_items, n_items), places, ABSENT))
    position = expand_ranges(np.ones_like(n_items), n_items)
    return FlatLists(parent_indices(items), position, pc.list_flatten(items), paired)


def expand_lists(batches: Iterable[pa.RecordBatch], *, has_ranks: bool) -> Iterator[pa.RecordBatch]:
    """Write lists that travel in columns :data:`row_kinds.LISTED` as one row per item, as a flat log has them.

    Rows of other inputs have empty arrays. ``has_ranks``: whether the place in the array becomes a column ``rank``.
    """
    for batch in batches:
        if row_kinds.LISTED_ITEMS not in batch.schema.names:
            yield batch
            continue
        is_list = np.isin(to_numpy(batch[row_kinds.KIND]), (row_kinds.LOG, row_kinds.UNNAMED))
        for to_rows, chosen in ((_null_item_columns, ~is_list), (_item_rows, is_list)):
            if chosen.any():
                rows = batch if chosen.all() else batch.filter(to_arrow(chosen))
                yield to_rows(rows, has_ranks)


def _score_type(rows: pa.RecordBatch) -> pa.DataType | None:
    """Return the type of the scores that travel in lists, floats as double; None without scores."""
    if row_kinds.LISTED_SCORES not in rows.schema.names:
        return None
    score_type = rows[row_kinds.LISTED_SCORES].type.value_type
    return pa.float64() if pa.types.is_floating(score_type) else score_type


def _null_item_columns(rows: pa.RecordBatch, has_ranks: bool) -> pa.RecordBatch:
    """Add the columns of the items, as NULL, to rows of other inputs."""
    columns = {name: rows[name] for name in rows.schema.names if name not in row_kinds.LISTED}
    score_type = _score_type(rows)
    if score_type is not None:
        columns.setdefault(C.SCORE, pa.nulls(len(rows), score_type))
    if has_ranks:
        columns[C.RANK] = pa.nulls(len(rows), pa.int32())
    return pa.RecordBatch.from_pydict(columns)


def _item_rows(rows: pa.RecordBatch, has_ranks: bool) -> pa.RecordBatch:
    """Build a row per item of lists."""
    columns = {name: rows[name] for name in rows.schema.names if name not in row_kinds.LISTED}
    score_type = _score_type(rows)
    scores = None if score_type is None else rows[row_kinds.LISTED_SCORES]
    flat = flatten_lists(rows[row_kinds.LISTED_ITEMS], scores)
    row, n_items = to_arrow(flat.row), len(flat.row)
    columns = {
        name: pc.take(column, row) if name in _OF_LIST else pa.nulls(n_items, column.type)
        for name, column in columns.items()
    }
    columns[C.ITEM_ID] = flat.items.cast(rows[C.ITEM_ID].type)
    if flat.scores is not None:
        columns[C.SCORE] = flat.scores.cast(score_type)
    if has_ranks:
        columns[C.RANK] = to_arrow(flat.position.astype(np.int32))
    return pa.RecordBatch.from_pydict(columns)

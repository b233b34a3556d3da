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
from rankeval_spark.engine.arrays import in_one_piece, lengths_of, owners_of, to_arrow, to_numpy
from rankeval_spark.engine.codes import ABSENT, Codes, in_id_order, to_codes
from rankeval_spark.measures.arrays import in_ranges

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector


@dataclass(frozen=True)
class Owners:
    """The lists of users that the log or the judgements name, whichever model made them."""

    user: IntVector  # (n_owners,) user of each, ascending
    name: IntVector  # (n_owners,) place of its ``list_id`` in `names`
    names: pa.Array  # distinct values of ``list_id``, in their order
    log: IntVector  # (n_rows,) owner of each row of the two inputs
    held_out: IntVector

    @classmethod
    def of(cls, log: tuple[IntVector, pa.Array], held_out: tuple[IntVector, pa.Array]) -> Owners:
        """Find the owners of two inputs, each as its users and its values of ``list_id``."""
        names = in_id_order(to_codes(pa.chunked_array([held_out[1], log[1]])))
        n_names = max(names.n_values, 1)
        keys, owner = np.unique(np.concatenate([held_out[0], log[0]]) * n_names + names.code, return_inverse=True)
        user, name = np.divmod(keys, n_names)
        return cls(user, name, names.values, owner[len(held_out[0]) :], owner[: len(held_out[0])])


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


@dataclass(frozen=True)
class CodedRows:
    """The rows of one input."""

    user: IntVector  # (n_rows,) codes of the ids; ``item`` is empty where the input has no items
    item: IntVector
    columns: Mapping[str, pa.Array]  # the other columns, by name

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.user)

    def at(self, chosen: np.ndarray) -> CodedRows:
        """Select rows by a mask or by their positions."""
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        by_place = to_arrow(places)
        return CodedRows(
            self.user[places],
            self.item[places] if len(self.item) else self.item,
            {name: pc.take(column, by_place) for name, column in self.columns.items()},
        )


@dataclass(frozen=True)
class Batch:
    """All rows of some users."""

    # distinct ids, which the codes of the tables are positions in. Users are in the order of their ids, so that sums
    # over users do not depend on the order of the rows.
    users: pa.Array
    items: pa.Array
    models: tuple[str, ...]  # names of all models of the evaluation; ``model`` holds positions in it
    model: IntVector  # (n_log_rows,) model of each row of the log
    log: CodedRows  # the inputs, see :mod:`row_kinds`; those that are not given have no rows
    held_out: CodedRows
    train: CodedRows
    segments: CodedRows
    familiarity: CodedRows
    pairs: CodedRows
    constants: Mapping[str, pa.Array]  # what is the same for all users, an array of one cell each, by its column
    owners: Owners | None = None  # the lists of users that judgements belong to; None where they belong to users

    def with_log(self, chosen: np.ndarray) -> Batch:
        """Keep only some rows of the log, by a mask."""
        owners = None if self.owners is None else replace(self.owners, log=self.owners.log[chosen])
        return replace(self, log=self.log.at(chosen), model=self.model[chosen], owners=owners)

    def with_held_out(self, chosen: np.ndarray) -> Batch:
        """Keep only some judgements, by a mask."""
        owners = None if self.owners is None else replace(self.owners, held_out=self.owners.held_out[chosen])
        return replace(self, held_out=self.held_out.at(chosen), owners=owners)

    @property
    def log_owner(self) -> IntVector:
        """Whose judgements each row of the log meets: its user, or its list where judgements name lists."""
        return self.log.user if self.owners is None else self.owners.log

    @property
    def judged(self) -> CodedRows:
        """The rows of the held-out table with their owners in place of users."""
        return self.held_out if self.owners is None else replace(self.held_out, user=self.owners.held_out)

    @property
    def n_owners(self) -> int:
        """Number of owners of judgements."""
        return self.n_users if self.owners is None else len(self.owners.user)

    def user_of(self, owner: IntVector) -> IntVector:
        """Return the user of each owner of judgements."""
        return owner if self.owners is None else self.owners.user[owner]

    @cached_property
    def known_items(self) -> dict[str, pa.Array]:
        """Facts of the distinct items, by name, from the constants and from rows; NULL where nothing is known."""
        found = {}
        if row_kinds.ITEMS in self.constants:
            facts = fields(self.constants[row_kinds.ITEMS].flatten())
            place = pc.index_in(self.items, value_set=facts.pop(C.ITEM_ID).cast(self.items.type))
            found = {name: pc.take(column, place) for name, column in facts.items()}
        tables = [rows for rows in (self.log, self.held_out, self.train) if row_kinds.FACTS in rows.columns]
        if tables:
            row = np.full(self.n_items, ABSENT)
            row[np.concatenate([rows.item for rows in tables])] = np.arange(sum(map(len, tables)))
            of_rows = pa.concat_arrays([rows.columns[row_kinds.FACTS] for rows in tables])
            found |= fields(pc.take(of_rows, to_arrow(row, is_null=row < 0)))
        return found

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return len(self.items)


COLUMNS_OF = {
    row_kinds.LOG: (C.LIST_ID, C.SCORE, C.RANK, C.PREDICTED_REWARD, C.RECOMMENDED_AT, row_kinds.FACTS),
    row_kinds.HELD_OUT: (C.GAIN, C.VALUE, C.PROPENSITY, C.WEIGHT, C.INTERACTED_AT, row_kinds.FACTS),
    row_kinds.TRAIN: (row_kinds.FACTS,),
    row_kinds.SEGMENTS: (row_kinds.SEGMENT_VALUES,),
    row_kinds.FAMILIARITY: (row_kinds.SIMILARITY,),
    row_kinds.PAIRS: (C.MODEL_ID, C.LIST_ID, C.PAIRS),
}
"""Columns that are read of each input in addition to its ids; a table that lacks one has no use for it."""


def without_constants(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, pa.Array], Iterator[pa.RecordBatch]]:
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


def to_batch(
    table: pa.Table,
    *,
    models: Sequence[str],
    constants: Mapping[str, pa.Array] = MappingProxyType({}),
    described: Collection[int] = (row_kinds.LOG,),
    has_judged_lists: bool = False,
) -> Batch:
    """Encode rows of :mod:`row_kinds`, all rows of their users; keys are not NULL.

    A column that the table lacks is read where :data:`row_kinds.CARRIED_BY` says. ``described``: inputs whose rows have
    the facts of their items. With ``has_judged_lists``, ``list_id`` of a judgement is the list that it belongs to.
    """
    users, items = in_id_order(to_codes(table[C.USER_ID])), to_codes(table[C.ITEM_ID])
    kinds, names = to_numpy(table[row_kinds.KIND]), tuple(models)
    rows_of_kind = {kind: np.flatnonzero(kinds == kind) for kind in COLUMNS_OF}
    plain = table.drop_columns(row_kinds.FACTS) if row_kinds.FACTS in table.column_names else table
    log, held_out, train, segments, familiarity, pairs = (
        _coded_rows(table if kind in described else plain, places, kind, users, items)
        for kind, places in rows_of_kind.items()
    )
    owners = None
    if has_judged_lists:
        judged_list = take_rows(table[C.LIST_ID], rows_of_kind[row_kinds.HELD_OUT])
        owners = Owners.of((log.user, log.columns[C.LIST_ID]), (held_out.user, judged_list))
    model = _models_of(table, rows_of_kind[row_kinds.LOG], names)
    coded = users.values, items.values, names, model
    return Batch(*coded, log, held_out, train, segments, familiarity, pairs, constants, owners)


def fields(structs: pa.StructArray) -> dict[str, pa.Array]:
    """Split a struct column into its fields; NULL structs have NULL fields."""
    return dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))


def _coded_rows(table: pa.Table, places: IntVector, kind: int, users: Codes, items: Codes) -> CodedRows:
    found = {name: name for name in COLUMNS_OF[kind] if name in table.column_names}
    for name, carrier in row_kinds.CARRIED_BY.get(kind, {}).items():
        if carrier in table.column_names:
            found.setdefault(name, carrier)
    has_items = kind not in (row_kinds.SEGMENTS, row_kinds.PAIRS)
    item = items.code[places] if has_items else np.zeros(0, dtype=np.int64)
    columns = {name: take_rows(table[column], places) for name, column in found.items()}
    return CodedRows(users.code[places], item, columns)


def take_rows(column: pa.ChunkedArray, places: IntVector) -> pa.Array:
    """Return the values of a column at ascending positions."""
    whole = in_one_piece(column)
    is_range = len(places) and places[-1] - places[0] + 1 == len(places)
    return whole.slice(places[0], len(places)) if is_range else pc.take(whole, to_arrow(places))


def _models_of(table: pa.Table, places: IntVector, names: tuple[str, ...]) -> IntVector:
    if len(names) == 1:  # rows need not name it, and do not where only those of pairs have the column
        return np.zeros(len(places), dtype=np.int64)
    codes = to_codes(take_rows(table[C.MODEL_ID], places))
    number = {name: place for place, name in enumerate(names)}
    by_code = np.array([number[name] for name in codes.values.to_pylist()], dtype=np.int64)
    return by_code[codes.code]


_OF_LIST: Final = {C.USER_ID, C.MODEL_ID, C.INTERACTED_AT, *COLUMNS_OF[row_kinds.LOG]} - {C.SCORE, C.RANK}
"""Columns that an item has of its list, the one that carries all times among them; others are of other inputs."""

_OF_LOG: Final = (row_kinds.LOG, row_kinds.UNNAMED)


class FlatLists(NamedTuple):
    """The items of some lists, list by list and in the order of each array."""

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

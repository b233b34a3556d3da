"""Segment values of lists, and groups of rows: the (model, slice values, cutoff) that rows belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import json as pa_json

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import combine_chunks, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.failures import quote_key, refuse_input

if TYPE_CHECKING:
    from rankeval_spark.engine.batch import Batch
    from rankeval_spark.engine.matching import ListKeys


USER_HASH: Final = "_user_hash"  # column of the hash of the user, where it travels to Python
PACKED: Final = "_segments"  # column of the segments' values, where they travel to Python
SEGMENT: Final = "_segment_"

ROWS_AT_ONCE: Final = 65_536  # rows summarised in one go: little work per slice, and under 50 MB

Doubles: TypeAlias = NDArray[np.float64]

Key: TypeAlias = tuple[str, tuple[str | None, ...], int]  # model, values of the other columns, cutoff


def segment_column_names(slices: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Columns of the segments of each slice, once :func:`unpack_segments` has made them."""
    names = dict.fromkeys(name for slicing in slices for name in slicing)
    columns = {name: f"{SEGMENT}{index}" for index, name in enumerate(names)}
    return [tuple(columns[name] for name in slicing) for slicing in slices]


def pack_columns(columns: Sequence[pa.Array]) -> pa.ListArray:
    """Join columns of texts to a list a row."""
    n_rows, n_columns = len(columns[0]), len(columns)
    place = np.arange(n_rows)[:, None] + n_rows * np.arange(n_columns)  # of row i and column j: j * n_rows + i
    values = pc.take(pa.concat_arrays(list(columns)), to_arrow(place.ravel()))
    return pa.ListArray.from_arrays(to_arrow(np.arange(n_rows + 1, dtype=np.int32) * np.int32(n_columns)), values)


def unpack_segments(table: pa.Table, *, packed: str = PACKED, prefix: str = "") -> pa.Table:
    """Replace the packed array of segment values by a column for each segment, as a dictionary."""
    if packed not in table.column_names:
        return table
    values = table[packed].combine_chunks().flatten().dictionary_encode(null_encoding="encode")
    codes = to_numpy(values.indices).reshape(table.num_rows, -1)
    table = table.drop_columns(packed)
    for index, code in enumerate(codes.T):
        found, position = _find_distinct(code, len(values.dictionary))
        column = pa.DictionaryArray.from_arrays(to_arrow(position), pc.take(values.dictionary, to_arrow(found)))
        table = table.append_column(f"{prefix}{SEGMENT}{index}", column)
    return table


def rechunk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join Arrow's batches of some 10,000 rows to chunks of about ROWS_AT_ONCE."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if any(part.num_rows for part in held):
        yield pa.Table.from_batches(held)


def read_doubles(table: pa.Table | pa.RecordBatch, name: str) -> Doubles:
    """Return a column of numbers, NaN where it is NULL."""
    return to_numpy(table[name]).astype(np.float64, copy=False)


def read_matrix(table: pa.Table, names: Collection[str]) -> Doubles:
    """Join columns of numbers side by side: shape (n_rows, n_names)."""
    columns = [read_doubles(table, name) for name in names]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def nan_to_null(values: np.ndarray) -> pa.Array:
    """Return values with NULL in place of NaN."""
    return to_arrow(values, is_null=np.isnan(values))


def dictionary_encode(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Replace text columns by their distinct values and the position of each row's, which every grouping needs."""
    for name in names:
        column = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def find_groups(
    table: pa.Table, names: tuple[str, ...], ks: tuple[int, ...] | None = None
) -> tuple[list[Key], np.ndarray]:
    """Find the groups (model, slice values, k) that occur: their keys, and each row's group; k is 0 without ``ks``."""
    code = np.zeros(table.num_rows, dtype=np.int64) if ks is None else cutoff_positions(table, ks)
    ks = ks or (C.WHOLE_LIST,)
    n_codes, columns = len(ks), list[list[str | None]]()
    for name in (C.MODEL_ID, *names):
        column = table[name].combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode(null_encoding="encode")
        labels, indices = column.dictionary.to_pylist(), column.indices
        if indices.null_count:  # NULL gets a code of its own, after those of the labels
            indices = pc.coalesce(indices, to_arrow(np.array([len(labels)])).cast(indices.type)[0])
            labels = [*labels, None]
        code, n_codes = code * len(labels) + to_numpy(indices), n_codes * len(labels)
        columns.append(labels)
    found, group = _find_distinct(code, n_codes)
    values: list[list[str | None]] = []
    for labels in reversed(columns):
        found, positions = np.divmod(found, len(labels))
        values.append([labels[position] for position in positions.tolist()])
    models, *slice_values = reversed(values)
    by_row = zip(*slice_values, strict=True) if slice_values else repeat((), len(models))
    cutoffs = (ks[position] for position in found.tolist())
    return [(str(model), tuple(key), k) for model, key, k in zip(models, by_row, cutoffs, strict=True)], group


def _find_distinct(code: np.ndarray, n_codes: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the codes that occur, ascending, and the place of each row's among them; codes are below ``n_codes``."""
    if n_codes > max(ROWS_AT_ONCE, len(code)):
        found, group = np.unique(code, return_inverse=True)
        return found, group
    occurs = np.zeros(n_codes, dtype=np.bool_)  # 65,536 rows in 0.1 ms, where a sort takes 3
    occurs[code] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[code]


def cutoff_positions(table: pa.Table, ks: tuple[int, ...]) -> np.ndarray:
    """Find the position of each row's cutoff among ``ks``."""
    order = np.argsort(ks)
    return order[np.searchsorted(np.asarray(ks)[order], to_numpy(table[C.K]))].astype(np.int64)


def to_segment_columns(
    batch: Batch,
    keys: ListKeys,
    *,
    names: Sequence[str],
    absent: Mapping[str, str],  # values of a user without a row, by segment, where the absence is a value
) -> dict[str, pa.Array]:
    """Build the columns ``segments``, a map by name, and :data:`PACKED`, an array in the order of the names.

    A value is NULL where it or the user is unknown. Refused: a user with a list and two rows of segments.
    """
    n_lists, n_names = keys.n_lists, len(names)
    offsets = to_arrow(np.arange(n_lists + 1, dtype=np.int32) * n_names)
    if not n_names:
        return {C.SEGMENTS: pa.MapArray.from_arrays(offsets, pa.nulls(0, pa.string()), pa.nulls(0, pa.string()))}
    table = batch.segments
    unknown = to_texts(absent.get(name) for name in names)
    known = _flatten_segment_values(table.columns[row_kinds.SEGMENT_VALUES]) if len(table) else pa.nulls(0, pa.string())
    row_of = np.full(batch.n_users, len(table))
    row_of[table.user] = np.arange(len(table))
    is_listed = np.zeros(batch.n_users, dtype=np.bool_)
    is_listed[keys.user] = True
    repeated = np.flatnonzero(np.bincount(table.user[is_listed[table.user]], minlength=batch.n_users) > 1)
    if len(repeated):
        what = f"user {quote_key(batch.users[int(repeated[0])].as_py())} occurs twice in the segment table"
        refuse_input("segments", what, expected="each user once", fix="keep one row a user in the segment table")
    places = (row_of[keys.user][:, None] * n_names + np.arange(n_names)).ravel()
    values = pc.take(pa.concat_arrays([known.cast(pa.string()), unknown]), to_arrow(places))
    keys_of_maps = pc.take(to_texts(names), to_arrow(np.tile(np.arange(n_names), n_lists)))
    return {
        C.SEGMENTS: pa.MapArray.from_arrays(offsets, keys_of_maps, values),
        PACKED: pa.ListArray.from_arrays(offsets, values),
    }


def _flatten_segment_values(column: pa.Array) -> pa.Array:
    """Return the values of all users, one user after the other, whichever form the column has."""
    if pa.types.is_list(column.type):
        return column.flatten()
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(column)], column), "\n")[0].as_buffer()
    schema = pa.schema({row_kinds.VALUES_IN_TEXT: pa.list_(pa.string())})
    found = pa_json.read_json(
        pa.BufferReader(lines),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pa_json.ParseOptions(explicit_schema=schema),
    )
    return combine_chunks(found[row_kinds.VALUES_IN_TEXT]).flatten()

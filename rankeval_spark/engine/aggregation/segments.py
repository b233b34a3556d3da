"""Give every list the segment values of its user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pa_json

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import PACKED
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_texts
from rankeval_spark.engine.failures import quoted, refuse_input

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch
    from rankeval_spark.engine.ranking.list_keys import ListKeys
    from rankeval_spark.measures.arrays import IntVector

_IN_TEXT = pa.schema({row_kinds.VALUES_IN_TEXT: pa.list_(pa.string())})


def to_segment_columns(
    batch: Batch, keys: ListKeys, *, names: Sequence[str], absent: Mapping[str, str]
) -> dict[str, pa.Array]:
    """Make the columns ``segments``, a map by name, and :data:`slices.PACKED`, an array in the order of the names.

    A value is NULL where it or the user is unknown. A user with a list and two rows of segments is an error: either
    row would be a guess.

    Parameters
    ----------
    names : sequence of str
        The segments.
    absent : mapping
        Values of a user without a row, by segment, where the absence is a value.
    """
    n_lists, n_names = keys.n_lists, len(names)
    offsets = to_arrow(np.arange(n_lists + 1, dtype=np.int32) * n_names)
    if not n_names:
        return {C.SEGMENTS: pa.MapArray.from_arrays(offsets, pa.nulls(0, pa.string()), pa.nulls(0, pa.string()))}
    values = _values(batch, keys, names, absent)
    repeated = pc.take(to_texts(names), to_arrow(np.tile(np.arange(n_names), n_lists)))
    return {
        C.SEGMENTS: pa.MapArray.from_arrays(offsets, repeated, values),
        PACKED: pa.ListArray.from_arrays(offsets, values),
    }


def _values(batch: Batch, keys: ListKeys, names: Sequence[str], absent: Mapping[str, str]) -> pa.Array:
    """Return the values of all lists, one list after the other."""
    table, n_names = batch.segments, len(names)
    unknown = to_texts(absent.get(name) for name in names)
    known = _known_values(table.columns[row_kinds.SEGMENT_VALUES]) if len(table) else pa.nulls(0, pa.string())
    row_of = np.full(batch.n_users, len(table))
    row_of[table.user] = np.arange(len(table))
    _refuse_repeated(batch, keys, table.user)
    first = row_of[keys.user] * n_names
    places = (first[:, None] + np.arange(n_names)).ravel()
    return pc.take(pa.concat_arrays([known.cast(pa.string()), unknown]), to_arrow(places))


def _known_values(column: pa.Array) -> pa.Array:
    """Return the values of all users, one user after the other, of either form of the column."""
    if pa.types.is_list(column.type):
        return column.flatten()
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(column)], column), "\n")[0].as_buffer()
    found = pa_json.read_json(
        pa.BufferReader(lines),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=lines.size + 1),
        parse_options=pa_json.ParseOptions(explicit_schema=_IN_TEXT),
    )
    return in_one_piece(found[row_kinds.VALUES_IN_TEXT]).flatten()


def _refuse_repeated(batch: Batch, keys: ListKeys, user: IntVector) -> None:
    n_rows = np.bincount(user, minlength=batch.n_users)
    repeated = np.flatnonzero(n_rows[keys.user] > 1)
    if len(repeated):
        name = quoted(batch.users[int(keys.user[repeated[0]])].as_py())
        what, fix = f"user {name} occurs twice in the segment table", "keep one row a user in the segment table"
        refuse_input("segments", what, expected="each user once", fix=fix)

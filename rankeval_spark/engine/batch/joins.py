"""Join small tables by their ids, and number the rows of a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import in_id_order, to_codes

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector


def full_join(tables: Sequence[pa.Table], *, on: str) -> pa.Table:
    """Join tables whose key is one column: every key of any of them once, in order; NULL where a table lacks it."""
    if len(tables) == 1:
        return tables[0]
    keys = in_id_order(to_codes(pa.chunked_array([chunk for table in tables for chunk in table[on].chunks])))
    columns = {on: keys.values}
    ends = np.cumsum([len(table) for table in tables])
    for table, code in zip(tables, np.split(keys.code, ends[:-1]), strict=True):
        place = np.full(keys.n_values, -1)
        place[code] = np.arange(len(table))
        columns |= {name: taken_or_null(table[name], place) for name in table.column_names if name != on}
    return pa.Table.from_pydict(columns)


def taken_or_null(column: pa.Array | pa.ChunkedArray, place: np.ndarray) -> pa.Array:
    """Take the values at some positions; NULL where a position is negative."""
    return pc.take(in_one_piece(column), to_arrow(place, is_null=place < 0))


def row_codes(table: pa.Table, names: Iterable[str]) -> IntVector:
    """Give rows that agree in some columns the same number: int64, shape (n_rows,)."""
    code: IntVector = np.zeros(table.num_rows, dtype=np.int64)
    for name in names:
        own = to_codes(table[name])
        code = code * max(own.n_values, 1) + own.code
    return code


def places_in(ids: pa.Array | pa.ChunkedArray, among: pa.Array) -> np.ndarray:
    """Find ids among others: their positions as int64, -1 where they are not there."""
    found = pc.index_in(in_one_piece(ids), value_set=among, skip_nulls=True)
    return to_numpy(found, null=-1).astype(np.int64)

"""Dense integer codes of ids, sort keys, and joins of small tables by their ids.

Codes differ between partitions: nothing may be ordered by them. Where ids decide
an order, their dictionary is ordered, which is far shorter than the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.statistics.hashed_random import GOLDEN

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import IntVector


ABSENT: Final = -1  # code, or place among others, of what is NULL or not there; so an index of it finds the last cell
UintVector = np.ndarray  # uint64, one-dimensional
_SIGN = np.uint64(1 << 63)
_CELLS_OF_A_VALUE = 8  # cells of a mask for each value that is looked for: one cell in eight is marked
_MOST_CELLS_OF_A_ROW = 4  # whole numbers whose range is wider than so many cells a row are hashed instead


class Codes(NamedTuple):
    """A column of ids as positions in its distinct values."""

    code: IntVector  # (n_rows,) position of the id of each row; NULL ids must have been left out
    values: pa.Array  # distinct ids, in any order

    @property
    def n_values(self) -> int:
        """Number of distinct ids."""
        return len(self.values)


def to_codes(column: pa.Array | pa.ChunkedArray) -> Codes:
    """Encode a column; a row with NULL gets the code :data:`ABSENT`."""
    whole = in_one_piece(column)
    if whole.null_count:
        known = to_codes(whole.drop_null())
        code = np.full(len(whole), ABSENT)
        code[to_numpy(pc.is_valid(whole))] = known.code
        return Codes(code, known.values)
    if pa.types.is_signed_integer(whole.type) and len(whole):
        numbers = to_numpy(whole)
        first, last = int(numbers.min()), int(numbers.max())
        if last - first < _MOST_CELLS_OF_A_ROW * len(numbers):  # marking which occur is faster than hashing
            offset = numbers.astype(np.int64) - first
            is_there = np.zeros(last - first + 1, dtype=np.bool_)
            is_there[offset] = True
            values = to_arrow(np.flatnonzero(is_there) + first).cast(whole.type)
            return Codes((np.cumsum(is_there) - 1)[offset], values)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    encoded = whole.dictionary_encode()
    return Codes(to_numpy(encoded.indices).astype(np.int64), encoded.dictionary)


def places_among(values: IntVector, known: IntVector) -> IntVector:
    """Find each value among distinct others: its position, :data:`ABSENT` where it is not there.

    Most are not: a mask of hashes rules them out before the others are looked up.
    """
    n_bits = max(1, _CELLS_OF_A_VALUE * len(known)).bit_length()
    shift = np.uint64(64 - n_bits)
    mask = np.zeros(1 << n_bits, dtype=np.bool_)
    mask[(known.view(np.uint64) * GOLDEN) >> shift] = True
    rows = np.flatnonzero(mask[(values.view(np.uint64) * GOLDEN) >> shift])
    found = np.full(len(values), ABSENT)
    found[rows] = to_numpy(pc.index_in(to_arrow(values[rows]), value_set=to_arrow(known)), null=ABSENT)
    return found


def in_id_order(codes: Codes) -> Codes:
    """Renumber the codes in the order of the ids; none may be NULL."""
    place = ascending(codes.values)
    return Codes(place[codes.code], pc.take(codes.values, pc.sort_indices(codes.values)))


def ascending(ids: pa.Array) -> IntVector:
    """Place of each distinct id in their order: integers by value, texts by their UTF-8 bytes; from 0."""
    places = np.empty(len(ids), dtype=np.int64)
    places[to_numpy(pc.sort_indices(ids))] = np.arange(len(ids))
    return places


def descending_key(numbers: pa.Array) -> UintVector:
    """Return integers that are smaller the larger a number is, and equal where two numbers are.

    Doubles keep all their bits, whole numbers are never turned into doubles, and decimals go by their places among the
    distinct values. -0.0 equals 0.0.
    """
    if pa.types.is_decimal(numbers.type):
        codes = to_codes(numbers)
        place = np.uint64(codes.n_values) - ascending(codes.values).astype(np.uint64)[codes.code]
        return place << np.uint64(64 - max(1, int(codes.n_values).bit_length()))
    values = to_numpy(numbers)
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64, copy=False) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        key: UintVector = np.where(bits & _SIGN, bits, ~bits & ~_SIGN)
    else:
        key = ~(values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN)
    return key


def packed(high: IntVector, low: UintVector, *, n_high: int) -> tuple[UintVector, int]:
    """Pack two numbers into a sort key of 64 bits; return it, and how many bits at the end of ``low`` it lacks."""
    n_bits = max(1, int(n_high - 1).bit_length())
    return (high.astype(np.uint64) << np.uint64(64 - n_bits)) | (low >> np.uint64(n_bits)), n_bits


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Return where a value differs from the one before: bool, shape (n,)."""
    is_start = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    return is_start


def full_join(tables: Sequence[pa.Table], *, on: str) -> pa.Table:
    """Join tables whose key is one column: every key of any of them once, in order; NULL where a table lacks it."""
    if len(tables) == 1:
        return tables[0]
    keys = in_id_order(to_codes(pa.chunked_array([chunk for table in tables for chunk in table[on].chunks])))
    columns = {on: keys.values}
    ends = np.cumsum([len(table) for table in tables])
    for table, code in zip(tables, np.split(keys.code, ends[:-1]), strict=True):
        place = np.full(keys.n_values, ABSENT)
        place[code] = np.arange(len(table))
        columns |= {name: taken_or_null(table[name], place) for name in table.column_names if name != on}
    return pa.Table.from_pydict(columns)


def taken_or_null(column: pa.Array | pa.ChunkedArray, place: np.ndarray) -> pa.Array:
    """Return the values at some positions; NULL where a position is negative."""
    return pc.take(in_one_piece(column), to_arrow(place, is_null=place < 0))


def row_codes(table: pa.Table, names: Iterable[str]) -> IntVector:
    """Return numbers of rows, the same where some columns agree: int64, shape (n_rows,)."""
    code: IntVector = np.zeros(table.num_rows, dtype=np.int64)
    for name in names:
        own = to_codes(table[name])
        code = code * max(own.n_values, 1) + own.code
    return code


def places_in(ids: pa.Array | pa.ChunkedArray, among: pa.Array) -> np.ndarray:
    """Find ids among others: their positions as int64, :data:`ABSENT` where they are not there."""
    found = pc.index_in(in_one_piece(ids), value_set=among, skip_nulls=True)
    return to_numpy(found, null=ABSENT).astype(np.int64)

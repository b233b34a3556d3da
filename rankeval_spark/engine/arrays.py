"""From numpy to Arrow and back without pandas; columns of lists; dense codes of ids, sort keys, joins by id.

``pa.array``, ``pa.scalar``, ``pc.fill_null`` and ``to_numpy`` import pandas on their first call, to recognise its
objects: 0.4 s of processor time in each worker, so the engine converts with the functions of this module.

Codes differ between partitions: nothing may be ordered by them. Where ids decide an order, their dictionary is ordered,
which is far shorter than the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.statistics.hashed_random import GOLDEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import BoolVector, IntVector

UintVector = np.ndarray  # uint64, one-dimensional

ABSENT: Final = -1  # code, or place among others, of what is NULL or not there; so an index of it finds the last cell
_SIGN: Final = np.uint64(1 << 63)
_CELLS_OF_A_VALUE: Final = 8  # cells of a mask for each value that is looked for: one cell in eight is marked
_MAX_CELLS_OF_A_ROW: Final = 4  # whole numbers whose range is wider than so many cells a row are hashed instead
_MAX_CODES: Final = 1 << 40  # codes of several columns together, before they are numbered anew


def to_arrow(values: NDArray[Any], *, is_null: BoolVector | None = None) -> pa.Array:
    """View numbers as Arrow, NULL where ``is_null``; truth values are copied, because Arrow packs them into bits.

    >>> to_arrow(np.array([1, 2]), is_null=np.array([False, True])).to_pylist()
    [1, None]
    """
    data = _bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    validity = None if is_null is None else pa.py_buffer(_bits(~is_null))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(data)])


def to_numpy(column: pa.Array | pa.ChunkedArray, *, null: float | None = None) -> NDArray[Any]:
    """View numbers, or copy truth values or a column with NULL, as numpy; a view cannot be written to.

    ``null`` replaces NULL; without it NULL is NaN, and a column that has one becomes float64.

    >>> to_numpy(pa.array([1, None])), to_numpy(pa.array([1, None]), null=-1)
    (array([ 1., nan]), array([ 1, -1]))
    """
    whole = combine_chunks(column)
    if whole.null_count:
        filled = whole if null is not None else whole.cast(pa.float64(), safe=False)
        fill = np.array([np.nan if null is None else null])
        whole = pc.coalesce(filled, to_arrow(fill).cast(filled.type)[0])
    if pa.types.is_boolean(whole.type):
        return np.from_dlpack(whole.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(whole)


def to_texts(values: Iterable[str | None]) -> pa.Array:
    """Build a column of texts; None is NULL.

    >>> to_texts(["a", None]).to_pylist()
    ['a', None]
    """
    cells = [None if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *(len(cell or b"") for cell in cells)], dtype=np.int32)
    validity = _bits(np.array([cell is not None for cell in cells], dtype=np.bool_))
    data = b"".join(cell or b"" for cell in cells)
    return pa.Array.from_buffers(pa.string(), len(cells), [pa.py_buffer(each) for each in (validity, ends, data)])


def _bits(flags: BoolVector) -> NDArray[np.uint8]:
    """Pack truth values into bits, in Arrow's order."""
    return np.packbits(flags, bitorder="little")


def combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as a single array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def lengths_of(lists: pa.Array) -> IntVector:
    """Count the values of each list: int64; a NULL list has none."""
    return to_numpy(pc.list_value_length(lists), null=0).astype(np.int64)


def parent_indices(lists: pa.Array) -> IntVector:
    """Return the list of each value of the flattened column."""
    return np.repeat(np.arange(len(lists)), lengths_of(lists))


def list_column(lengths: IntVector, values: pa.Array, *, is_null: BoolVector | None = None) -> pa.ListArray:
    """Build lists of these lengths of values that follow each other."""
    mask = None if is_null is None else to_arrow(is_null)
    offsets = to_arrow(np.append(0, np.cumsum(lengths)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values, mask=mask)


class Codes(NamedTuple):
    """A column of ids as positions in its distinct values."""

    code: IntVector  # (n_rows,) int64; ABSENT where the id is NULL
    values: pa.Array  # distinct ids, in any order

    @property
    def n_values(self) -> int:
        return len(self.values)


def to_codes(column: pa.Array | pa.ChunkedArray) -> Codes:
    """Encode a column; a row with NULL gets the code :data:`ABSENT`."""
    whole = combine_chunks(column)
    if whole.null_count:
        known = to_codes(whole.drop_null())
        code = np.full(len(whole), ABSENT)
        code[to_numpy(pc.is_valid(whole))] = known.code
        return Codes(code, known.values)
    if pa.types.is_signed_integer(whole.type) and len(whole):
        numbers = to_numpy(whole)
        first, last = int(numbers.min()), int(numbers.max())
        if last - first < _MAX_CELLS_OF_A_ROW * len(numbers):  # marking which occur is faster than hashing
            offset = numbers.astype(np.int64) - first
            is_there = np.zeros(last - first + 1, dtype=np.bool_)
            is_there[offset] = True
            values = to_arrow(np.flatnonzero(is_there) + first).cast(whole.type)
            return Codes((np.cumsum(is_there) - 1)[offset], values)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    encoded = whole.dictionary_encode()
    return Codes(to_numpy(encoded.indices).astype(np.int64), encoded.dictionary)


def rank_ids(ids: pa.Array) -> IntVector:
    """Place of each distinct id in their order: integers by value, texts by their UTF-8 bytes; from 0."""
    places = np.empty(len(ids), dtype=np.int64)
    places[to_numpy(pc.sort_indices(ids))] = np.arange(len(ids))
    return places


def renumber_by_id(codes: Codes) -> Codes:
    """Renumber the codes in the order of the ids; NULL keeps its code."""
    place = np.append(rank_ids(codes.values), ABSENT)
    return Codes(place[codes.code], pc.take(codes.values, pc.sort_indices(codes.values)))


def encode_rows(table: pa.Table, names: Iterable[str], *, in_order: bool = False) -> IntVector:
    """Return numbers of rows, the same where some columns agree: int64; ``in_order``: they follow the order of rows."""
    code, n_codes = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in names:
        column_codes = renumber_by_id(to_codes(table[name])) if in_order else to_codes(table[name])
        if n_codes * (column_codes.n_values + 1) > _MAX_CODES:
            _, code = np.unique(code, return_inverse=True)
            n_codes = int(code.max(initial=0)) + 1
        n_values = column_codes.n_values + 1  # NULL, which has the code -1, among them
        code, n_codes = code * n_values + column_codes.code + 1, n_codes * n_values
    return code


def index_in(ids: pa.Array | pa.ChunkedArray, among: pa.Array) -> IntVector:
    """Find ids among others: their positions as int64, :data:`ABSENT` where they are not there."""
    found = pc.index_in(combine_chunks(ids), value_set=among, skip_nulls=True)
    return to_numpy(found, null=ABSENT).astype(np.int64)


def rare_index_in(values: IntVector, known: IntVector) -> IntVector:
    """Find each value among distinct others as :func:`index_in` does; fast if most are missing, by a mask of hashes."""
    n_bits = max(1, _CELLS_OF_A_VALUE * len(known)).bit_length()
    shift = np.uint64(64 - n_bits)
    mask = np.zeros(1 << n_bits, dtype=np.bool_)
    mask[(known.view(np.uint64) * GOLDEN) >> shift] = True
    rows = np.flatnonzero(mask[(values.view(np.uint64) * GOLDEN) >> shift])
    found = np.full(len(values), ABSENT)
    found[rows] = index_in(to_arrow(values[rows]), to_arrow(known))
    return found


def take_or_null(column: pa.Array | pa.ChunkedArray, place: IntVector) -> pa.Array:
    """Return the values at some positions; NULL where a position is negative."""
    return pc.take(combine_chunks(column), to_arrow(place, is_null=place < 0))


def full_join(tables: Sequence[pa.Table], *, on: str) -> pa.Table:
    """Join tables whose key is one column: every key of any of them once, in order; NULL where a table lacks it."""
    if len(tables) == 1:
        return tables[0]
    keys = renumber_by_id(to_codes(pa.chunked_array([chunk for table in tables for chunk in table[on].chunks])))
    columns = {on: keys.values}
    ends = np.cumsum([len(table) for table in tables])
    for table, code in zip(tables, np.split(keys.code, ends[:-1]), strict=True):
        place = np.full(keys.n_values, ABSENT)
        place[code] = np.arange(len(table))
        columns |= {name: take_or_null(table[name], place) for name in table.column_names if name != on}
    return pa.Table.from_pydict(columns)


def descending_key(numbers: pa.Array) -> UintVector:
    """Return integers that are smaller the larger a number is, and equal where two numbers are.

    Doubles keep all their bits, whole numbers are never turned into doubles, and decimals go by their places among the
    distinct values. -0.0 equals 0.0.
    """
    if pa.types.is_decimal(numbers.type):
        codes = to_codes(numbers)
        place = np.uint64(codes.n_values) - rank_ids(codes.values).astype(np.uint64)[codes.code]
        return place << np.uint64(64 - max(1, int(codes.n_values).bit_length()))
    values = to_numpy(numbers)
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64, copy=False) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        key: UintVector = np.where(bits & _SIGN, bits, ~bits & ~_SIGN)
    else:
        key = ~(values.astype(np.int64, copy=False).view(np.uint64) ^ _SIGN)
    return key


def pack_keys(high: IntVector, low: UintVector, *, n_high: int) -> tuple[UintVector, int]:
    """Pack two numbers into a sort key of 64 bits; return it, and how many bits at the end of ``low`` it lacks."""
    n_bits = max(1, int(n_high - 1).bit_length())
    return (high.astype(np.uint64) << np.uint64(64 - n_bits)) | (low >> np.uint64(n_bits)), n_bits

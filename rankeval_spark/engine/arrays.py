"""From numpy to Arrow and back, without pandas; columns of lists.

``pa.array``, ``pa.scalar``, ``pc.fill_null`` and ``to_numpy`` import pandas on their first call, to recognise its
objects. That is 0.4 s of processor time in each worker, so the engine converts with the functions of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rankeval_spark.measures.arrays import BoolVector, IntVector


def to_arrow(values: NDArray[Any], *, is_null: BoolVector | None = None) -> pa.Array:
    """View numbers as Arrow; truth values are copied, because Arrow packs them into bits.

    ``values`` has shape (n,). ``is_null`` (n,): where the array is NULL, whatever the value.

    >>> to_arrow(np.array([1, 2]), is_null=np.array([False, True])).to_pylist()
    [1, None]
    """
    data = _bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    validity = None if is_null is None else pa.py_buffer(_bits(~is_null))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(data)])


def to_numpy(column: pa.Array | pa.ChunkedArray, *, null: float | None = None) -> NDArray[Any]:
    """View numbers, or copy truth values or a column with NULL, as numpy; a view cannot be written to.

    ``null``: what replaces NULL. None: NaN, and a column that has NULL becomes float64.

    >>> to_numpy(pa.array([1, None])), to_numpy(pa.array([1, None]), null=-1)
    (array([ 1., nan]), array([ 1, -1]))
    """
    whole = in_one_piece(column)
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


def in_one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as a single array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _bits(flags: BoolVector) -> NDArray[np.uint8]:
    return np.packbits(flags, bitorder="little")


def lengths_of(lists: pa.Array) -> IntVector:
    """Count the values of each list: int64; a NULL list has none."""
    return to_numpy(pc.list_value_length(lists), null=0).astype(np.int64)


def owners_of(lists: pa.Array) -> IntVector:
    """Return the list of each value of the flattened column."""
    return np.repeat(np.arange(len(lists)), lengths_of(lists))


def list_column(lengths: IntVector, values: pa.Array, *, is_null: BoolVector | None = None) -> pa.ListArray:
    """Build lists of these lengths of values that follow each other."""
    mask = None if is_null is None else to_arrow(is_null)
    offsets = to_arrow(np.append(0, np.cumsum(lengths)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values, mask=mask)

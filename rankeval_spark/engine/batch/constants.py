"""What is the same for all users as one cell of bytes, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from rankeval_spark.engine.batch import row_kinds


def pack_constants(cells: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """Put arrays of one value each into one cell, :data:`row_kinds.SHARED`, as Arrow writes them."""
    batch = pa.RecordBatch.from_arrays(list(cells.values()), names=list(cells))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    cell = sink.getvalue()
    ends = pa.py_buffer(np.array([0, len(cell)], dtype=np.int32))
    yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), 1, [None, ends, cell])], [row_kinds.SHARED])


def unpack_constants(cell: pa.Array) -> dict[str, pa.Array]:
    """Unpack the cell: the columns that were put into it, one row each.

    Parameters
    ----------
    cell : pa.Array
        One value, which :func:`pack_constants` made.
    """
    with pa.ipc.open_stream(cell[0].as_buffer()) as reader:
        batch = reader.read_next_batch()
    return dict(zip(batch.schema.names, batch.columns, strict=True))

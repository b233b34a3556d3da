"""Partial rows of any sum as bytes of Arrow, with the bucket in which the rows of a key meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.batch.user_hashes import hashes_of

COLUMNS: Final = "sum string, bucket int, rows binary"
"""Packed rows as Spark reads them."""

N_BUCKETS: Final = 64


def in_buckets(rows: pa.RecordBatch, key: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut partial rows by the bucket of their key; all are in bucket 0 without one."""
    if not key or not rows.num_rows:
        yield 0, rows
        return
    if C.SLICE_VALUES in key:  # all rows of a group of users meet
        lists = in_one_piece(rows[C.SLICE_VALUES])
        values = pc.fill_null(lists.flatten(), "\0")
        ends = np.append(0, np.cumsum(to_numpy(pc.list_value_length(lists)))).astype(np.int32)
        texts = pc.binary_join(pa.ListArray.from_arrays(to_arrow(ends), values), "\1")
        bucket = (hashes_of(texts) + to_numpy(rows["slice_index"])) % N_BUCKETS
    else:
        bucket = hashes_of(rows[key[0]]) % N_BUCKETS
    found = np.unique(bucket).tolist()
    for one in found:
        yield one, rows if len(found) == 1 else rows.filter(to_arrow(bucket == one))


def pack(name: str, bucket: int, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Return one row with the rows of a sum as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    cells = (pa.array([name]), pa.array([bucket], pa.int32()), pa.array([sink.getvalue().to_pybytes()], pa.binary()))
    return pa.RecordBatch.from_arrays(list(cells), ["sum", "bucket", "rows"])


def unpack(cells: Iterable[pa.Scalar]) -> pa.Table:
    """Return the rows of all cells of one sum."""
    return pa.concat_tables(pa.ipc.open_stream(cell.as_buffer()).read_all() for cell in cells)

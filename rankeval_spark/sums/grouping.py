"""Rows of one key together, in order, and packed as bytes of Arrow; for small tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.arrays import combine_chunks, lengths_of, list_column, to_arrow, to_codes, to_numpy
from rankeval_spark.engine.buckets import hash_users
from rankeval_spark.engine.failures import quote_key, refuse_input


def apply_by_key(
    table: pa.Table,
    names: Sequence[str],
    make: Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table],
    schema: pa.Schema,
) -> pa.Table:
    """Join the results of ``make`` for the rows of each key, as ``applyInArrow(make)`` does; a key may hold lists."""
    number: dict[tuple[object, ...], int] = {}
    columns = ([tuple(x) if isinstance(x, list) else x for x in table[name].to_pylist()] for name in names)
    cells = zip(*columns, strict=True)
    group = np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)
    ends = np.append(0, np.cumsum(np.bincount(group, minlength=len(number)))).tolist()
    ordered = pc.take(table, to_arrow(np.argsort(group, kind="stable")))
    groups = (ordered.slice(start, end - start) for start, end in pairwise(ends))
    made = (make(tuple(rows[name][0] for name in names), rows) for rows in groups)
    return pa.concat_tables([schema.empty_table(), *made])


def sort_by_key(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Sort rows by a key, ascending, NULL last. Columns of lists are left out of it: another column has their text."""
    key = [name for name in names if not pa.types.is_list(table.schema.field(name).type)]
    return table.sort_by([(name, "ascending") for name in key]) if table.num_rows else table


COLUMNS: Final = "sum string, bucket int, rows binary"  # packed rows as Spark reads them
SCHEMA: Final = pa.schema({"sum": pa.string(), "bucket": pa.int32(), "rows": pa.binary()}.items())
N_BUCKETS: Final = 64
"""Buckets of the keys of a sum. The rows of a bucket meet in the memory of one worker."""

MAX_BUCKETS: Final = 1024
MOVED_PARTITIONS: Final = 8  # partitions of users for each bucket, where these are many


def n_buckets_of(n_partitions: int) -> int:
    """Return the buckets of a job whose users are in up to so many partitions.

    Each partition has a row for up to all items of the catalogue: with 4,000 partitions and a million items a 64th of
    these is 1.5 GB. Smaller buckets are more work: each packed row takes 0.6 KB and 35 microseconds.
    """
    return min(MAX_BUCKETS, max(N_BUCKETS, n_partitions // MOVED_PARTITIONS))


NULL_TEXT: Final = "\0"  # NULL in the text of a key whose hash is its bucket
_BETWEEN_COLUMNS, _BETWEEN_VALUES = "\1", "\2"  # joins the columns of such a key, and the values of a list in it


MAX_ROWS: Final = 2_000_000
"""Rows of a small result, which one process holds; a slice with a value for almost every user makes more."""


def refuse_large(rows: pa.Table, *, most: int) -> pa.Table:
    """Return rows of a result; more than ``most`` are refused, with the slice that makes most of them."""
    if rows.num_rows > most and C.SLICE in rows.column_names:
        counts = pc.value_counts(rows[C.SLICE])
        largest = counts.field("values")[int(np.argmax(to_numpy(counts.field("counts"))))]
        found = f"a result of more than {MAX_ROWS:,} rows, most of them of the slice {quote_key(largest)}"
        fix = "leave the segment out, or make bands of its numbers"
        refuse_input("slices", found, expected="segments with few values", fix=fix)
    return rows


def split_by_key_bucket(
    rows: pa.RecordBatch, key: Sequence[str], n_buckets: int = N_BUCKETS
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut partial rows by the bucket of their key; all are in bucket 0 without one."""
    if not key or not rows.num_rows:
        yield 0, rows
        return
    column = rows[key[0]]
    if len(key) > 1 or column.null_count or pa.types.is_list(column.type):
        column = pc.binary_join_element_wise(*(_to_key_text(rows[name]) for name in key), _BETWEEN_COLUMNS)
    codes = to_codes(column)  # keys are hashed once each
    bucket = (hash_users(codes.values) % n_buckets).astype(np.uint16)[codes.code]
    order = np.argsort(bucket, kind="stable")
    found, starts = np.unique(bucket[order], return_index=True)
    if len(found) == 1:
        yield int(found[0]), rows
        return
    ordered = pc.take(rows, to_arrow(order))
    for number, start, end in zip(found.tolist(), starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield number, ordered.slice(start, end - start)


def _to_key_text(column: pa.Array) -> pa.Array:
    """Write cells as texts, lists of texts too; NULL as a text of its own."""
    if pa.types.is_list(column.type):
        lists = combine_chunks(column)
        values = list_column(lengths_of(lists), pc.fill_null(lists.flatten(), NULL_TEXT))
        column = pc.binary_join(values, _BETWEEN_VALUES)
    return pc.fill_null(column.cast(pa.string()), NULL_TEXT)


def pack(name: str, bucket: int, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Return one row with the rows of a sum as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    content = sink.getvalue()
    ends = pa.array([0, content.size], pa.int32()).buffers()[1]
    cell = pa.Array.from_buffers(pa.binary(), 1, [None, ends, content])  # without a copy: rows of users take megabytes
    return pa.RecordBatch.from_arrays([pa.array([name]), pa.array([bucket], pa.int32()), cell], schema=SCHEMA)


def unpack(cells: Iterable[pa.Scalar]) -> pa.Table:
    """Return the rows of all cells of one sum."""
    return pa.concat_tables(pa.ipc.open_stream(cell.as_buffer()).read_all() for cell in cells)

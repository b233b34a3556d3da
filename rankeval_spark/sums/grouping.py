"""Rows of one key together, and rows in the order of a key; for the small tables that aggregates and results are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import to_arrow


def by_key(table: pa.Table, names: Sequence[str]) -> Iterator[tuple[tuple[pa.Scalar, ...], pa.Table]]:
    """Yield the rows of each key with it, as ``groupBy(*names).applyInArrow`` hands them on; a key may hold lists."""
    number: dict[tuple[object, ...], int] = {}
    cells = zip(*(map(_hashable, table[name].to_pylist()) for name in names), strict=True)
    group = np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)
    order = np.argsort(group, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(group, minlength=len(number)))).tolist()
    ordered = pc.take(table, to_arrow(order))
    for start, end in pairwise(ends):
        own = ordered.slice(start, end - start)
        yield tuple(own[name][0] for name in names), own


def applied(
    batches: Sequence[pa.RecordBatch],
    names: Sequence[str],
    make: Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table],
    schema: pa.Schema,
) -> pa.Table:
    """Combine what is made of the rows of each key, as ``groupBy(*names).applyInArrow(make)`` does."""
    groups = by_key(pa.Table.from_batches(batches), names) if batches else ()
    return pa.concat_tables([schema.empty_table(), *(make(key, rows) for key, rows in groups)])


def in_order_of(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Sort rows by a key, all ascending and NULL last; a column of lists is left out, its readable form is one."""
    key = [name for name in names if not pa.types.is_list(table.schema.field(name).type)]
    return table.sort_by([(name, "ascending") for name in key]) if table.num_rows else table


def _hashable(cell: object) -> object:
    return tuple(cell) if isinstance(cell, list) else cell

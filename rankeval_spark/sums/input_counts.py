"""Counts of the checks of the log and the judgements, made by the workers that evaluate them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.checks.partition_tallies import ITEM_FIELDS, Tally
from rankeval_spark.engine.checks.unusable_rows import RowCounts
from rankeval_spark.result_rows import check_rows

if TYPE_CHECKING:
    from rankeval_spark.engine.checks.partition_tallies import PartitionTallies

ROWS: Final = pa.schema({"kind": pa.int32(), "count": pa.int64()}.items())
"""Rows of the inputs by their kind, see :class:`RowCounts`."""

TALLIES: Final = pa.schema(
    {"check": pa.string(), "count": pa.int64(), "total": pa.int64(), "first": pa.string(), "last": pa.string()}.items()
)
"""Fields of :class:`Tally`."""


def row_counts(tallies: PartitionTallies) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition by kind."""
    by_kind = tallies.counts.by_kind.astype(np.int64)
    kind = np.flatnonzero(by_kind)
    yield pa.RecordBatch.from_arrays([to_arrow(kind.astype(np.int32)), to_arrow(by_kind[kind])], schema=ROWS)


def to_row_counts(rows: pa.Table) -> RowCounts:
    """Add up the rows of all partitions."""
    counts = RowCounts()
    np.add.at(counts.by_kind, to_numpy(rows["kind"]), to_numpy(rows["count"]))
    return counts


def judgement_tallies(tallies: PartitionTallies) -> Iterator[pa.RecordBatch]:
    """Yield what was counted of the judgements of a partition."""
    yield pa.RecordBatch.from_pylist([asdict(one) for one in tallies.tallies.values()], TALLIES)


def to_tallies(rows: pa.Table) -> dict[str, Tally]:
    """Add up the tallies of all partitions, by check."""
    found: dict[str, Tally] = {}
    for row in rows.to_pylist():
        one = Tally(**row)
        found[one.check] = found.get(one.check, Tally(one.check, 0, 0)).plus(one)
    return found


def used_items(tallies: PartitionTallies) -> Iterator[pa.RecordBatch]:
    """Yield the items of the log and the judgements of a partition, with the judgements of each."""
    for columns in tallies.items:
        yield pa.RecordBatch.from_arrays(list(columns), names=ITEM_FIELDS)


def unmatched(rows: pa.Table) -> pa.Table:
    """Count the judgements of items that no list has: one row of :data:`TALLIES`; rows of an item are all there."""
    items = rows.group_by(C.ITEM_ID).aggregate([("n_judged", "sum"), ("is_listed", "any")])
    n_judged = items["n_judged_sum"]
    found = items.filter(pc.and_(pc.invert(items["is_listed_any"]), pc.greater(n_judged, 0)))
    ends = pc.min_max(found[C.ITEM_ID].cast(pa.string())).as_py()
    count, total = (pc.sum(each).as_py() or 0 for each in (found["n_judged_sum"], n_judged))
    row = {
        "check": check_rows.UNMATCHED_ITEMS,
        "count": count,
        "total": total,
        "first": ends["min"],
        "last": ends["max"],
    }
    return pa.Table.from_pylist([row], TALLIES)

"""The small tables of an evaluation from one job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.sums import packed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.spark.rows.moved_rows import MovedRows
    from rankeval_spark.sums.sums import Totals


def to_totals(rows: MovedRows, totals: Totals) -> dict[str, pa.Table]:
    """Run the job that makes all sums."""
    found = to_packed(rows, totals).toArrow()
    names = pc.unique(found["sum"]).to_pylist()
    tables = {name: packed.unpack(found.filter(pc.equal(found["sum"], name))["rows"]) for name in names}
    return totals.adjusted(tables)


def to_packed(rows: MovedRows, totals: Totals) -> DataFrame:
    """Plan it: rows of each sum are packed in the workers, and merged by sum and bucket where they meet."""
    job = rows.job

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name, partials in totals.add(job, batches):
            for bucket, own in packed.in_buckets(partials, totals.sums[name].key):
                yield packed.pack(name, bucket, own)

    def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        name, bucket = (one.as_py() for one in key)
        finished = totals.sums[name].finish(packed.unpack(group["rows"]))
        return pa.Table.from_batches([packed.pack(name, bucket, finished)])

    partial_rows = rows.frame.mapInArrow(add, packed.COLUMNS)
    return partial_rows.groupBy("sum", "bucket").applyInArrow(merge, packed.COLUMNS)

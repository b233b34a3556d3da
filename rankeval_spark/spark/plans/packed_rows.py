"""One pass over the rows of users: partial rows of sums, and rows of users and lists, packed in the workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.spark.plans.moved_rows import map_in_arrow
from rankeval_spark.sums import grouping
from rankeval_spark.sums.exposures import CatalogueItems, readers_of_catalogues
from rankeval_spark.sums.input_checks import ROWS
from rankeval_spark.sums.published import NIGHT
from rankeval_spark.sums.sums import NO_WRITERS, adjusted

if TYPE_CHECKING:
    from rankeval_spark.sums.published import UserTotals
    from rankeval_spark.sums.sums import Addition, Sum, Writer


def to_packed(rows: DataFrame, addition: Addition, writers: Mapping[str, Writer] = NO_WRITERS) -> DataFrame:
    """Plan the pass over ``rows``, in which all rows of a user are in one partition.

    Rows of tables with one of the ``writers`` go to files, which every attempt at a task writes anew: the packed rows
    name those of the attempt that Spark keeps.
    """

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name, found in addition.add(batches):
            if name in writers:
                writers[name].add(pa.Table.from_batches([found]))
            else:
                yield from pack_by_key(name, found, addition.sums)
        for name, writer in writers.items():
            yield grouping.pack(name, 0, writer.drain())

    return rows.mapInArrow(add, grouping.COLUMNS)


def with_catalogues(packed_rows: DataFrame, sums: Mapping[str, Sum], items_of: Callable[[str], DataFrame]) -> DataFrame:
    """Add the partial rows of the items of the catalogues that sums read; ``items_of`` returns their ids."""
    for catalogue, readers in readers_of_catalogues(sums).items():
        packed_rows = packed_rows.union(to_packed(items_of(catalogue), CatalogueItems(readers)))
    return packed_rows


def pack_by_key(name: str, rows: pa.RecordBatch, sums: Mapping[str, Sum]) -> Iterator[pa.RecordBatch]:
    """Pack rows of a sum by the bucket of their key, and those of a table as they are."""
    for bucket, own in grouping.in_buckets(rows, sums[name].key if name in sums else ()):
        yield grouping.pack(name, bucket, own)


def to_merged(packed_rows: DataFrame, sums: Mapping[str, Sum]) -> DataFrame:
    """Plan the merging of all sums: by sum and bucket, where their partial rows meet, and again of what these make."""
    most = 2 * grouping.MOST_ROWS // grouping.N_BUCKETS  # of a bucket, of which some have more than others

    def merge_in(group_rows: DataFrame, names: Collection[str]) -> DataFrame:
        def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
            name, bucket = (one.as_py() for one in key)
            if name not in names:
                return group
            one = sums[name]
            finished = one.finish(grouping.unpack(group["rows"]))
            if one.into is None:
                few = grouping.refuse_large(finished, most=most if one.key else grouping.MOST_ROWS)
                return pa.Table.from_batches([grouping.pack(name, bucket, few)])
            parts = (pack_by_key(one.into, batch, sums) for batch in finished.combine_chunks().to_batches())
            return pa.Table.from_batches(list(chain(*parts)), grouping.SCHEMA)

        return group_rows.groupBy("sum", "bucket").applyInArrow(merge, grouping.COLUMNS)

    later = {one.into for one in sums.values() if one.into is not None}
    found = merge_in(packed_rows.where(F.col("sum").isin(*sums)), sums.keys() - later)
    return merge_in(found, later) if later else found


def to_totals(packed_rows: DataFrame, sums: Mapping[str, Sum]) -> dict[str, pa.Table]:
    """Run the job that makes all sums."""
    found = to_merged(packed_rows, sums).toArrow()
    names = pc.unique(found["sum"]).to_pylist()
    tables = {name: grouping.unpack(found.filter(pc.equal(found["sum"], name))["rows"]) for name in names}
    return adjusted(sums, tables)


def to_rows(packed_rows: DataFrame, name: str, types: Mapping[str, str], *, counts: Sum | None = None) -> DataFrame:
    """Plan the rows of a table that the pass made, in columns of Spark.

    ``counts``: the sum of the rows of the inputs, which refuses an input without a usable row. Its own rows are read
    with those of the table, which may have none.
    """
    read, columns = [name], [F.col("sum"), F.col("rows")]
    if counts is not None:
        counted = packed_rows.where(F.col("sum") == ROWS).agg(F.collect_list("rows"))
        read, columns = [name, ROWS], [*columns, counted.scalar().alias("counted")]

    def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if counts is not None and batch.num_rows:
                counts.finish(grouping.unpack(batch["counted"][0].values))
            for cell in batch["rows"].filter(pc.equal(batch["sum"], name)):
                yield from grouping.unpack([cell]).to_batches()

    return map_in_arrow(packed_rows.where(F.col("sum").isin(*read)).select(*columns), unpacked, types)


def to_published_users(nights: Sequence[DataFrame], totals: UserTotals) -> dict[str, pa.Table]:
    """Run the job that adds up the users of published nights."""
    frames = (
        night.where(F.col(C.K).isin(*totals.measures.ks)).select(*totals.columns, F.lit(place).alias(NIGHT))
        for place, night in enumerate(nights)
    )
    rows = reduce(DataFrame.unionByName, frames).repartition(C.USER_ID)
    found = to_packed(rows, totals)
    if totals.known:
        known = [one for name, partial in totals.known for one in pack_by_key(name, partial, totals.sums)]
        found = found.union(rows.sparkSession.createDataFrame(pa.Table.from_batches(known), grouping.COLUMNS))
    return to_totals(found, totals.sums)

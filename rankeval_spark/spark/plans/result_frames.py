"""Frames of results from usable inputs, and the sums that all small tables are made of.

All are plans, but for :func:`to_totals`, the one job that makes the sums. The partial rows that checks read of the
inputs that workers do not see with the lists are planned here too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.request import agreement_request
from rankeval_spark.engine.checks import ROWS as N_ROWS
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.spark.plans.moved_rows import map_in_arrow
from rankeval_spark.spark.plans.usable_rows import failure_flags, has_keys, is_finite_vector, keep_usable
from rankeval_spark.spark.plans.user_rows import to_user_rows
from rankeval_spark.sums import grouping
from rankeval_spark.sums.exposures import CatalogueItems, group_by_catalogue
from rankeval_spark.sums.input_checks import BANDS, N_KNOWN, ROWS, SEGMENT_VALUES, VALUE_NAMES, VECTORS
from rankeval_spark.sums.sums import ITEMS, NO_WRITERS, adjust_sums

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.checks import RowChecks
    from rankeval_spark.spark.plans.user_rows import InputFrames
    from rankeval_spark.sums.input_checks import InputChecks
    from rankeval_spark.sums.sums import Addition, Sum, Writer

RequestedValue: TypeAlias = tuple[str, str, int]
"""Label, column in ``user_metrics`` and cutoff of a measure."""


def to_ranked_items(inputs: InputFrames, *, request: Request) -> DataFrame:
    """Rank the items of every list: model, user, list, item, rank, gain and whether the item is relevant.

    A row per item that is left in a list, in the population or not. ``gain`` is NULL without a judgement;
    ``is_relevant`` is true from a gain of 1 on.
    """
    plain = request.copy_with(slices=())
    ranked = to_user_rows(inputs, plain, needs=frozenset()).to_ranked_items()
    list_id = F.col(C.LIST_ID) if C.LIST_ID in ranked.columns else F.lit(C.ONE_LIST)
    return ranked.select(
        *(C.MODEL_ID, C.USER_ID, list_id.alias(C.LIST_ID), C.ITEM_ID, C.RANK, C.GAIN),
        (F.coalesce(C.GAIN, F.lit(0.0)) >= RELEVANT).alias("is_relevant"),
    )


def to_hit_ranks(ranked: DataFrame, model: str, baseline: str) -> DataFrame:
    """Join the ranks of items in ``ranked`` that are relevant under either model; the larger gain counts."""
    sides = {C.BASELINE_RANK: baseline, C.RANK: model}
    ranks = (F.min(F.when(F.col(C.MODEL_ID) == name, F.col(C.RANK))).alias(side) for side, name in sides.items())
    items = ranked.where(F.col(C.MODEL_ID).isin(model, baseline)).groupBy(C.USER_ID, C.LIST_ID, C.ITEM_ID)
    found = items.agg(F.max(C.GAIN).alias(C.GAIN), *ranks)
    return found.where(F.col(C.GAIN) >= RELEVANT)


def to_agreement(inputs: InputFrames, *, request: Request, baseline: str, k: int, p: float) -> DataFrame:
    """Compare the first k items of each list with those of the baseline: ``overlap``, ``jaccard`` and ``rbo``.

    One row per list of another model whose user got one of the baseline too, in the population or not.
    """
    asked, measures = agreement_request(request, baseline=baseline, k=k, p=p)
    scored = to_user_rows(inputs, asked).to_user_rows()
    has_lists = not inputs.has_one_list
    return scored.where(F.col(measures["overlap"].column).isNotNull()).select(
        *(C.MODEL_ID, C.USER_ID, *([C.LIST_ID] if has_lists else [])),
        *(F.col(measure.column).alias(name) for name, measure in measures.items()),
    )


def to_user_values(user_metrics: DataFrame, *, requested: Iterable[RequestedValue]) -> DataFrame:
    """Return one row per requested (list, measure, k); ``value`` is NULL where it is undefined."""
    before = [name for name in user_metrics.columns if name in C.RUN_KEY]
    values = F.array(
        *(
            F.struct(F.lit(label).alias(C.MEASURE), F.lit(k).alias(C.K), F.col(column).alias(C.VALUE))
            for label, column, k in requested
        )
    )
    each = user_metrics.select(*before, *C.LIST_KEY, C.K, F.explode(values).alias("_value"))
    return each.where(F.col(C.K) == F.col("_value.k")).select(
        *before, *C.LIST_KEY, F.col("_value.measure").alias(C.MEASURE), C.K, F.col("_value.value").alias(C.VALUE)
    )


def to_packed(
    rows: DataFrame,
    addition: Addition,
    writers: Mapping[str, Writer] = NO_WRITERS,
    n_buckets: int = grouping.N_BUCKETS,
) -> DataFrame:
    """Plan the pass over ``rows``, in which all rows of a user are in one partition.

    Rows of tables with one of the ``writers`` go to files, which every attempt at a task writes again: the packed rows
    name those of the attempt that Spark keeps.
    """

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name, found in addition.add(batches):
            if name in writers:
                writers[name].add(pa.Table.from_batches([found]))
            else:
                yield from pack_by_key(name, found, addition.sums, n_buckets)
        for name, writer in writers.items():
            yield grouping.pack(name, 0, writer.drain())

    return rows.mapInArrow(add, grouping.COLUMNS)


def write_rows(rows: DataFrame, writer: Writer) -> None:
    """Run the job whose workers write rows to files of a table."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            writer.add(pa.Table.from_batches([batch]))
        yield writer.drain()

    writer.adopt(rows.mapInArrow(write, "add string").toArrow())


def with_catalogues(
    packed_rows: DataFrame,
    sums: Mapping[str, Sum],
    items_of: Callable[[str], DataFrame],
    n_buckets: int = grouping.N_BUCKETS,
) -> DataFrame:
    """Add the partial rows of the items of the catalogues that sums read; ``items_of`` returns their ids."""
    for catalogue, readers in group_by_catalogue(sums).items():
        packed_rows = packed_rows.union(to_packed(items_of(catalogue), CatalogueItems(readers), n_buckets=n_buckets))
    return packed_rows


def pack_by_key(
    name: str, rows: pa.RecordBatch, sums: Mapping[str, Sum], n_buckets: int = grouping.N_BUCKETS
) -> Iterator[pa.RecordBatch]:
    """Pack rows of a sum by their key's bucket, and those of tables unchanged."""
    for bucket, of_bucket in grouping.split_by_key_bucket(rows, sums[name].key if name in sums else (), n_buckets):
        yield grouping.pack(name, bucket, of_bucket)


def to_merged(packed_rows: DataFrame, sums: Mapping[str, Sum], n_buckets: int = grouping.N_BUCKETS) -> DataFrame:
    """Plan the merging of all sums: by sum and bucket, where their partial rows meet, and again of what these make."""
    # Of a bucket twice the mean, since some have more than others; of more and smaller buckets four times.
    most = 4 * grouping.MAX_ROWS // max(n_buckets, 2 * grouping.N_BUCKETS)

    def merge_in(group_rows: DataFrame, names: Collection[str]) -> DataFrame:
        def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
            name, bucket = (part.as_py() for part in key)
            return merge_bucket(sums, name, bucket, group, n_buckets, most) if name in names else group

        return group_rows.groupBy("sum", "bucket").applyInArrow(merge, grouping.COLUMNS)

    later = {sum_.into for sum_ in sums.values() if sum_.into is not None}
    found = merge_in(packed_rows.where(F.col("sum").isin(*sums)), sums.keys() - later)
    return merge_in(found, later) if later else found


def merge_bucket(
    sums: Mapping[str, Sum],
    name: str,
    bucket: int,
    packed_rows: pa.Table,
    n_buckets: int,
    most: int = grouping.MAX_ROWS,
) -> pa.Table:
    """Finish a bucket's sum in a worker: packed rows for the sum above it, or one row with its table.

    More than ``most`` rows of a bucket are refused there, so that they never reach the driver.
    """
    sum_ = sums[name]
    finished = sum_.finish(grouping.unpack(packed_rows["rows"]))
    if sum_.into is None:
        few = grouping.refuse_large(finished, most=most if sum_.key else grouping.MAX_ROWS)
        return pa.Table.from_batches([grouping.pack(name, bucket, few)])
    parts = (pack_by_key(sum_.into, batch, sums, n_buckets) for batch in finished.combine_chunks().to_batches())
    return pa.Table.from_batches(list(chain(*parts)), grouping.SCHEMA)


def to_totals(
    packed_rows: DataFrame, sums: Mapping[str, Sum], n_buckets: int = grouping.N_BUCKETS
) -> dict[str, pa.Table]:
    """Run the job that makes all sums; ``n_buckets`` is that of the packed rows."""
    return read_totals(to_merged(packed_rows, sums, n_buckets).toArrow(), sums)


def read_totals(found: pa.Table, sums: Mapping[str, Sum]) -> dict[str, pa.Table]:
    """Return the tables of the sums from their packed rows, in the driver."""
    names = pc.unique(found["sum"]).to_pylist()
    tables = {name: grouping.unpack(found.filter(pc.equal(found["sum"], name))["rows"]) for name in names}
    return adjust_sums(sums, tables)


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


def pack_input_partials(inputs: InputFrames, asked: InputChecks, n_buckets: int) -> DataFrame | None:
    """Plan the packed partial rows of the other inputs; None without any."""
    given = inputs.others
    counted = {name: frame for name, frame in given.items() if name != "segments" or asked.is_judged}
    found = [(ROWS, to_tallies(frame, asked.of_rows[name])) for name, frame in counted.items()]
    found += [(BANDS, frame) for frame in inputs.band_facts]
    if asked.catalogue is not None:
        known = keep_usable(given[asked.catalogue], asked.of_rows[asked.catalogue])
        found.append((ITEMS, to_known_items(known)))
    if asked.has_vectors:
        found.append((VECTORS, to_vector_lengths(given["items"])))
    if asked.texts:
        found.append((SEGMENT_VALUES, to_segment_values(given["segments"], names=asked.texts)))
    if asked.value_names:
        rows = keep_usable(given["user_values"], asked.of_rows["user_values"])
        names = rows.where(F.col(C.NAME).isin(*asked.value_names)).select(F.col(C.NAME).alias("name"))
        found.append((VALUE_NAMES, names.distinct()))
    sums = asked.sums
    packed = (
        frame.mapInArrow(partial(_pack_partials, name=name, sum_=sums[name], n_buckets=n_buckets), grouping.COLUMNS)
        for name, frame in found
    )
    return reduce(DataFrame.unionByName, packed) if found else None


def _pack_partials(
    batches: Iterable[pa.RecordBatch], *, name: str, sum_: Sum, n_buckets: int
) -> Iterator[pa.RecordBatch]:
    """Pack partial rows of a sum, in the types in which workers add them up: those may be NULL."""
    for rows in batches:
        plain = pa.schema([(field.name, field.type) for field in rows.schema])
        typed = rows.cast(sum_.schema if plain.names == sum_.schema.names else plain)
        yield from pack_by_key(name, typed, {name: sum_}, n_buckets)


def to_tallies(frame: DataFrame, checks: RowChecks) -> DataFrame:
    """Count the rows, and those that do not pass each check: a row of ``input_checks.TALLIES`` each, in one pass."""
    key = F.concat_ws(" ", *(F.coalesce(F.col(name).cast("string"), F.lit("NULL")) for name in checks.key))
    tallies = []
    for check, flag in {N_ROWS: F.lit(True), **failure_flags(checks)}.items():
        concerned = F.when(flag & F.lit(check != N_ROWS), key)
        tally = F.struct(
            F.lit(checks.input).alias("input"),
            F.lit(check).alias("check"),
            F.count_if(flag).alias("count"),
            F.count("*").alias("total"),
            F.min(concerned).alias("first"),
            F.max(concerned).alias("last"),
        )
        tallies.append(tally.alias(check))
    counts = frame.agg(*tallies)
    return counts.select(F.inline(F.array(*counts.columns)))


def to_known_items(catalogue: DataFrame) -> DataFrame:
    """Count a catalogue's usable rows by item: ``item_id``, ``n_judged, n_listed`` of 0, and ``n_known``."""
    n_rows = catalogue.groupBy(C.ITEM_ID).agg(F.count("*").alias(N_KNOWN))
    none = F.lit(0).cast("bigint")
    return n_rows.select(C.ITEM_ID, none.alias("n_judged"), none.alias("n_listed"), N_KNOWN)


def to_vector_lengths(items: DataFrame) -> DataFrame:
    """Count the items by the length of their vector; one some of whose numbers are no numbers has none."""
    named = items.where(has_keys(schemas.ITEMS.key)).where(is_finite_vector(F.col(C.VECTOR)))
    first = F.min(F.col(C.ITEM_ID).cast("string"))
    length = F.size(C.VECTOR).cast("bigint").alias("length")
    return named.groupBy(length).agg(F.count("*").alias("n_items"), first.alias("item"))


def to_segment_values(segments: DataFrame, *, names: Sequence[str]) -> DataFrame:
    """Collect the values of these segments: ``segment, value``, each once."""
    pairs = (F.struct(F.lit(name).alias("segment"), F.col(C.quoted_name(name)).alias("value")) for name in names)
    each = F.array(*pairs)
    return segments.where(has_keys(C.SEGMENT_KEY)).select(F.inline(each)).where(F.col("value").isNotNull()).distinct()

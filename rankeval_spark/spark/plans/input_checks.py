"""Plans of the partial rows that checks read of the inputs that workers do not see with the lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.checks import ROWS as N_ROWS
from rankeval_spark.spark.plans.result_frames import pack_by_key
from rankeval_spark.spark.plans.usable_rows import flags_of, has_keys, is_finite_vector, keep_usable
from rankeval_spark.sums import grouping
from rankeval_spark.sums.input_checks import BANDS, N_KNOWN, ROWS, SEGMENT_VALUES, VECTORS
from rankeval_spark.sums.sums import ITEMS

if TYPE_CHECKING:
    from rankeval_spark.engine.checks import RowChecks
    from rankeval_spark.spark.plans.user_rows import InputFrames
    from rankeval_spark.sums.input_checks import InputChecks
    from rankeval_spark.sums.sums import Sum


def to_partials(inputs: InputFrames, asked: InputChecks) -> DataFrame | None:
    """Plan the packed partial rows of the other inputs; None without any."""
    frames = {"train": inputs.train, "items": inputs.items, "segments": inputs.segment_table}
    given = {name: frame for name, frame in frames.items() if frame is not None}
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
    sums = asked.sums
    packed = (frame.mapInArrow(partial(_packed, name=name, one=sums[name]), grouping.COLUMNS) for name, frame in found)
    return reduce(DataFrame.unionByName, packed) if found else None


def _packed(batches: Iterable[pa.RecordBatch], *, name: str, one: Sum) -> Iterator[pa.RecordBatch]:
    for rows in batches:  # in the types of what workers add up, which may be NULL
        schema = one.schema if rows.schema.names == one.schema.names else None
        plain = pa.schema([(field.name, field.type) for field in rows.schema]) if schema is None else schema
        yield from pack_by_key(name, rows.cast(plain), {name: one})


def to_tallies(frame: DataFrame, checks: RowChecks) -> DataFrame:
    """Count the rows, and those that do not pass each check: a row of ``input_checks.TALLIES`` each, in one pass."""
    key = F.concat_ws(" ", *(F.coalesce(F.col(name).cast("string"), F.lit("NULL")) for name in checks.key))
    flags = {N_ROWS: F.lit(True), **flags_of(checks)}
    counts = frame.agg(*(_tally(checks.input, name, flag, key).alias(name) for name, flag in flags.items()))
    return counts.select(F.inline(F.array(*counts.columns)))


def _tally(of: str, check: str, flag: Column, key: Column) -> Column:
    concerned = F.when(flag & F.lit(check != N_ROWS), key)
    return F.struct(
        F.lit(of).alias("input"),
        F.lit(check).alias("check"),
        F.count_if(flag).alias("count"),
        F.count("*").alias("total"),
        F.min(concerned).alias("first"),
        F.max(concerned).alias("last"),
    )


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
    each = F.array(
        *(F.struct(F.lit(name).alias("segment"), F.col(C.quoted_name(name)).alias("value")) for name in names)
    )
    return segments.where(has_keys(C.SEGMENT_KEY)).select(F.inline(each)).where(F.col("value").isNotNull()).distinct()

"""One judgement per (user, item), or (user, list, item) where judgements name lists, as the checks count them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.spark.rows.moved_rows import map_in_arrow
from rankeval_spark.statistics.exact_sums import exact_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

N_COPIES: Final = "_n_copies"
"""Rows of the held-out table that a judgement has."""


def to_judgements(held_out: DataFrame, *, duplicates: str) -> DataFrame:
    """Make one row per judgement with its gain and :data:`N_COPIES`.

    Parameters
    ----------
    held_out : DataFrame
        Usable rows of ``schemas.HELD_OUT``.
    duplicates : {"max", "sum", "last"}
        Gain of a pair that occurs twice: the largest, the sum, or that of the newest ``interacted_at`` (the largest of
        several; a NULL is the oldest).
    """
    key = schemas.HELD_OUT.key_in(held_out.columns)
    when = [C.INTERACTED_AT] if duplicates == "last" else []
    judged = (
        held_out.select(*key, C.GAIN, *when)
        .repartition(C.USER_ID)
        .groupBy(*key)
        .agg(
            _gain(duplicates).alias(C.GAIN),
            F.count("*").cast("int").alias(N_COPIES),
        )
    )
    if duplicates != "sum":
        return judged
    return map_in_arrow(judged, _sum_gains, {**dict(judged.dtypes), C.GAIN: "double"})


def _gain(duplicates: str) -> Column:
    if duplicates == "last":
        return F.max(F.struct(C.INTERACTED_AT, C.GAIN))[C.GAIN]
    return F.collect_list(C.GAIN) if duplicates == "sum" else F.max(C.GAIN)


def _sum_gains(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replace the gains of each row by their sum."""
    for batch in batches:
        gains = batch.column(C.GAIN)
        sums = exact_sums(to_numpy(gains.flatten()), to_numpy(pc.list_value_length(gains)))
        yield batch.set_column(batch.schema.get_field_index(C.GAIN), C.GAIN, to_arrow(sums))

"""The groups of users that the jackknife leaves out, and the slices of users, as columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.user_hashes import GROUP, N_GROUPS
from rankeval_spark.spark.rows.usable_rows import user_hash


def user_group() -> Column:
    """Group of the user, by a hash of the user id."""
    return F.pmod(user_hash(), F.lit(N_GROUPS)).cast("int").alias(GROUP)


def user_slices(slices: Sequence[Sequence[str]]) -> Column:
    """Slices to which the segments of a user belong: a row each, structs of ``slice_index`` and ``slice_values``."""
    return F.explode(F.array(*(_slice(index, one) for index, one in enumerate(slices))))


def _slice(index: int, names: Sequence[str]) -> Column:
    values = F.array(*(F.col(C.SEGMENTS)[name] for name in names)).cast("array<string>")
    return F.struct(F.lit(index).alias("slice_index"), values.alias(C.SLICE_VALUES))

"""From scored rows to the table ``metrics``: a mean, its health counts and its interval for every slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages import finish, moments
from rankeval_spark.stages.population import IS_EVALUATED

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet

EVERYONE: tuple[str, ...] = ()

_GROUP = (C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K, "measure_index")


def to_users(scored: DataFrame, *, measures: Sequence[str]) -> DataFrame:
    """Average the lists of each user: one row per (model, user, k). A list where a measure is NULL does not count."""
    facts = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED)
    return scored.groupBy(C.MODEL_ID, C.USER_ID, C.K).agg(
        F.first(C.SEGMENTS).alias(C.SEGMENTS),
        F.bool_or(IS_EVALUATED).alias(IS_EVALUATED),
        *(F.max(name).alias(name) for name in facts),
        F.avg(F.col(C.HAS_TIES).cast("double")).alias(C.HAS_TIES),
        *(F.avg(name).alias(name) for name in measures),
    )


def to_metrics(
    users: DataFrame,
    *,
    measures: MeasureSet,
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
) -> DataFrame:
    """Make one row per (model, slice, slice values, measure, k) in the columns of ``schemas.METRICS`` from there on.

    Parameters
    ----------
    users : DataFrame
        One row per (model, user, k), as :func:`to_users` or, where every user has one list, the scored rows.
    slices : sequence of sequences of str
        Segments and crossings of segments to report on; everyone is always reported.
    min_slice_size : int
        Slices with fewer users in the mean are marked ``is_small``.
    confidence : float in (0, 1)
        Nominal coverage of the intervals.
    """
    all_slices = every_slice(slices)
    return (
        moments.to_partials(users, measures=measures.columns, slices=all_slices, ks=measures.ks)
        .transform(_merged)
        .transform(
            finish.to_rows,
            measures=measures,
            slices=all_slices,
            min_slice_size=min_slice_size,
            confidence=confidence,
        )
    )


def every_slice(slices: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Put everyone before the slices that were asked for."""
    return [EVERYONE, *(tuple(one) for one in slices)]


def _merged(partials: DataFrame) -> DataFrame:
    """Merge the moments of all partitions: M2 = sum of M2_i + n_i (mean_i - mean)^2, which cancels nothing."""
    parts = F.array_sort(F.collect_list(F.when(F.col("n") > 0, F.struct("n", "mean", "m2"))))
    total, weighted = F.sum("n"), F.sum(F.col("n") * F.coalesce("mean", F.lit(0.0)))
    grouped = partials.groupBy(*_GROUP).agg(
        total.alias("n"),
        F.when(total > 0, weighted / total).alias("mean"),
        parts.alias("_parts"),
        *(F.sum(name).alias(name) for name in moments.COUNTS),
    )

    def add(m2: Column, part: Column) -> Column:
        return m2 + part["m2"] + part["n"] * (part["mean"] - F.col("mean")) * (part["mean"] - F.col("mean"))

    return grouped.withColumn("m2", F.aggregate("_parts", F.lit(0.0), add)).drop("_parts")

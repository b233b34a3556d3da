"""From scored rows to the table ``metrics``: a mean, its health counts and its interval for every slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages import moments
from rankeval_spark.stages.population import IS_EVALUATED

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet

CROSSING = "*"
UNKNOWN = "(unknown)"
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
    every_slice = [EVERYONE, *(tuple(one) for one in slices)]
    return (
        moments.to_partials(users, measures=measures.columns, slices=every_slice, ks=measures.ks)
        .transform(_merged)
        .where(_is_asked_for(measures))
        .transform(_with_names, measures=measures, slices=every_slice)
        .transform(_with_spread, measures=measures, confidence=confidence)
        .transform(_to_schema, min_slice_size=min_slice_size, confidence=confidence)
    )


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


def _is_asked_for(measures: MeasureSet) -> Column:
    asked = [(measures.columns.index(one.column), one.k) for one in measures.measures]
    pairs = F.array(*(F.struct(F.lit(index).alias("measure_index"), F.lit(k).alias("k")) for index, k in asked))
    return F.array_contains(pairs, F.struct("measure_index", C.K))


def _with_names(merged: DataFrame, *, measures: MeasureSet, slices: Sequence[Sequence[str]]) -> DataFrame:
    names = F.array(*(F.lit(CROSSING.join(one) or C.ALL_USERS) for one in slices))
    labels = F.array(*(F.lit(label) for label in measures.labels))
    return (
        merged.withColumn(C.SLICE, names[F.col("slice_index")])
        .withColumn(C.SLICE_VALUE, F.array_join(C.SLICE_VALUES, CROSSING, UNKNOWN))
        .withColumn(C.MEASURE, labels[F.col("measure_index")])
    )


def _with_spread(named: DataFrame, *, measures: MeasureSet, confidence: float) -> DataFrame:
    proportions = F.array(*(F.lit(column in measures.proportions) for column in measures.columns))
    is_proportion = proportions[F.col("measure_index")]
    interval = moments.intervals_udf(confidence)("n", F.coalesce("mean", F.lit(0.0)), "m2", "_is_proportion")
    return (
        named.withColumn("std_dev", F.when(F.col("n") > 1, F.sqrt(F.col("m2") / (F.col("n") - 1))))
        .withColumn("std_error", F.col("std_dev") / F.sqrt("n"))
        .withColumn("_is_proportion", is_proportion)
        .withColumn("_interval", interval)
        .withColumn("ci_low", F.col("_interval.low"))
        .withColumn("ci_high", F.col("_interval.high"))
        .withColumn("ci_method", _method())
    )


def _method() -> Column:
    by_kind = F.when(F.col("_is_proportion"), "wilson").otherwise("t")
    return F.when(F.col("ci_low").isNull(), "none").otherwise(by_kind)


def _to_schema(spread: DataFrame, *, min_slice_size: int, confidence: float) -> DataFrame:
    def count(name: str) -> Column:
        return F.round(name).cast("bigint").alias(name)

    return spread.select(
        C.MODEL_ID,
        C.SLICE,
        C.SLICE_VALUE,
        C.SLICE_VALUES,
        C.MEASURE,
        C.K,
        F.col("mean").alias(C.VALUE),
        F.col("n").alias("n_users"),
        (F.round("n_population").cast("bigint") - F.col("n")).alias("n_undefined"),
        count("n_missing"),
        count("n_zero_relevant"),
        count("n_extra_users"),
        F.when(F.col("n_with_list") > 0, F.col("n_tied") / F.col("n_with_list")).alias("tie_share"),
        (F.col("n") < min_slice_size).alias("is_small"),
        "std_dev",
        "std_error",
        "ci_low",
        "ci_high",
        F.lit(confidence).alias("ci_level"),
        "ci_method",
    )

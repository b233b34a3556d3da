"""From scored rows to the table ``metrics``: a mean, its health counts and its interval for every slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages import finish, moments, resample
from rankeval_spark.stages.population import IS_EVALUATED

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.statistics.resampled import Draws

EVERYONE: tuple[str, ...] = ()
NO_WEIGHTS: Mapping[str, str] = MappingProxyType({})

_GROUP = (C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K, "measure_index")


def to_users(scored: DataFrame, *, measures: Sequence[str], weights: Mapping[str, str] = NO_WEIGHTS) -> DataFrame:
    """Average the lists of each user: one row per (model, user, k). A list where a measure is NULL does not count.

    Of a measure with ``weights``, its column of denominators, numerators and denominators are averaged.
    """
    facts = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED)
    return scored.groupBy(C.MODEL_ID, C.USER_ID, C.K).agg(
        F.first(C.SEGMENTS).alias(C.SEGMENTS),
        F.bool_or(IS_EVALUATED).alias(IS_EVALUATED),
        *(F.max(name).alias(name) for name in facts),
        F.avg(F.col(C.HAS_TIES).cast("double")).alias(C.HAS_TIES),
        *(_over_lists(name, weights.get(name)).alias(name) for name in measures),
        *(F.avg(weight).alias(weight) for weight in weights.values()),
    )


def _over_lists(name: str, weight: str | None) -> Column:
    if weight is None:
        return F.avg(name)
    return F.when(F.avg(weight) > 0, F.avg(F.col(name) * F.col(weight)) / F.avg(weight)).otherwise(F.avg(name))


def to_metrics(  # noqa: PLR0913 - what is summarised, and how
    users: DataFrame,
    *,
    measures: MeasureSet,
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
    draws: Draws | None = None,
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
    draws : Draws, optional
        Of a bootstrap, for standard errors and intervals; those of the moments where left out.
    """
    all_slices = every_slice(slices)
    return (
        moments.to_partials(
            users,
            measures=measures.columns,
            weights=measures.weights,
            slices=all_slices,
            ks=measures.ks,
            draws=draws,
            confidence=confidence,
        )
        .transform(_merged, has_weights=bool(measures.weights), is_drawn=draws is not None)
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


def _merged(partials: DataFrame, *, has_weights: bool, is_drawn: bool) -> DataFrame:
    """Merge the moments of all partitions: M2 = sum of M2_i + n_i (mean_i - mean)^2, which cancels nothing.

    The products of the deviations of two columns merge as the squares do. What was drawn stands in one row each.
    """
    columns = ["n", "mean", "m2", *(moments.WEIGHTED if has_weights else ())]
    parts = F.array_sort(F.collect_list(F.when(F.col("n") > 0, F.struct(*columns))))
    total = F.sum("n")
    means = [name for name in columns if name.endswith("mean")]
    sums = {name: F.sum(F.col("n") * F.coalesce(name, F.lit(0.0))) for name in means}
    grouped = partials.groupBy(*_GROUP).agg(
        total.alias("n"),
        *(F.when(total > 0, sums[name] / total).alias(name) for name in means),
        parts.alias("_parts"),
        *(F.sum(name).alias(name) for name in moments.COUNTS),
        *(F.max(name).alias(name) for name in (resample.SPREAD if is_drawn else ())),
    )

    def products(name: str, left: str, right: str) -> Column:
        def add(total: Column, part: Column) -> Column:
            apart = (part[left] - F.col(left)) * (part[right] - F.col(right))
            return total + part[name] + part["n"] * apart

        return F.aggregate("_parts", F.lit(0.0), add)

    merged = {"m2": products("m2", "mean", "mean")}
    if has_weights:
        merged["weight_m2"] = products("weight_m2", "weight_mean", "weight_mean")
        merged["cross"] = products("cross", "mean", "weight_mean")
    return grouped.withColumns(merged).drop("_parts")

"""Turn numbers of users into a few values that can be sliced by: given edges, or quantiles of the users.

Quantiles are an aggregate of one row that the users are joined with, so that nothing is collected. Numbers are rounded
to three significant digits for them: so few distinct ones are left that their exact quantiles fit into any memory, are
the same for any partitioning, and can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.bands import NO_INTERACTION

if TYPE_CHECKING:
    from rankeval_spark.config.bands import Band

CHECK: Final = "bands."
"""Start of the names of the checks that hold the edges."""

_DIGITS: Final = 3
_MOST_WHOLE: Final = 1e15
"""Whole numbers below this are written without an exponent."""


def to_activity(train: DataFrame, *, names: tuple[str, ...]) -> DataFrame:
    """Count the interactions of each user of the training data: ``user_id`` and that number under each name."""
    counts = train.where(F.col(C.USER_ID).isNotNull()).groupBy(C.USER_ID).agg(F.count("*").alias("_n"))
    return counts.select(C.USER_ID, *(F.col("_n").cast("double").alias(name) for name in names))


def with_bands(users: DataFrame, *, bands: Mapping[str, Band]) -> DataFrame:
    """Replace the numbers of the columns of ``bands`` by the names of their bands; NULL and NaN become NULL.

    Rows are neither added nor lost.
    """
    names = {name: f"_edges_{index}" for index, name in enumerate(bands) if bands[name].edges is None}
    if names:
        quantiles = users.agg(*(_edges(name, bands[name]).alias(edges) for name, edges in names.items()))
        users = users.crossJoin(F.broadcast(quantiles))
    edges_of = {name: F.col(names[name]) if name in names else _edges(name, band) for name, band in bands.items()}
    return users.withColumns({name: _band_of(name, edges_of[name], band) for name, band in bands.items()}).drop(
        *names.values()
    )


def with_activity(segments: DataFrame | None, *, activity: DataFrame | None) -> DataFrame | None:
    """Put the segments of :func:`to_activity` beside those of the segment table; either may lack users."""
    if segments is None or activity is None:
        return activity if segments is None else segments
    names = [name for name in activity.columns if name != C.USER_ID]
    joined = segments.join(activity, on=[C.USER_ID], how="full")
    return joined.withColumns({name: F.coalesce(name, F.lit(NO_INTERACTION)) for name in names})


def to_facts(users: DataFrame, *, bands: Mapping[str, Band], name: str) -> DataFrame:
    """Record the edges of each column, and how many users have no number: facts as ``check`` makes them."""
    edges = {
        column: F.coalesce(_edges(column, band), F.array().cast("array<double>")) for column, band in bands.items()
    }
    facts = [
        F.struct(
            F.lit(name).alias("input"),
            F.lit(f"{CHECK}{column}").alias("check"),
            F.count_if(_number(column).isNull()).alias("count"),
            F.count("*").alias("total"),
            F.transform(edges[column], _text).alias("sample_keys"),
        ).alias(f"_{index}")
        for index, column in enumerate(edges)
    ]
    frame = users.agg(*facts)
    return frame.select(F.inline(F.array(*frame.columns)))


def _edges(name: str, band: Band) -> Column:
    """Give the edges of a column: as they are given, or quantiles, which are an aggregate; NULL without any number."""
    if band.edges is not None:
        return F.array(*(F.lit(float(edge)) for edge in band.edges))
    number = _number(name)
    is_finite = F.abs(number) != F.lit(float("inf"))
    quantiles = F.percentile(F.when(is_finite, _rounded(number)), F.array(*map(F.lit, band.shares)))
    return F.transform(quantiles, _rounded)


def _band_of(name: str, edges: Column, band: Band) -> Column:
    number = _number(name)
    place = F.size(F.filter(edges, lambda edge: edge <= number))
    if band.names is not None:
        label = F.get(F.array(*map(F.lit, band.names)), place)
    else:
        label = _between(F.get(edges, place - 1), F.get(edges, place))
    return F.when(number.isNotNull(), label)


def _between(low: Column, high: Column) -> Column:
    """Write the bounds of a band; the first has no lower one, the last no upper one."""
    inside = F.concat(F.lit("["), _text(low), F.lit(", "), _text(high), F.lit(")"))
    return (
        F.when(low.isNull(), F.concat(F.lit("< "), _text(high)))
        .when(high.isNull(), F.concat(F.lit(">= "), _text(low)))
        .otherwise(inside)
    )


def _text(number: Column) -> Column:
    is_whole = (number == F.floor(number)) & (F.abs(number) < _MOST_WHOLE)
    return F.when(is_whole, number.cast("bigint").cast("string")).otherwise(number.cast("string"))


def _rounded(number: Column) -> Column:
    """Round to so many significant digits; powers of ten are multiplied or divided by, which leaves 0.1 what it is."""
    to_whole = F.lit(float(_DIGITS - 1)) - F.floor(F.log10(F.abs(number)))
    larger, smaller = F.pow(F.lit(10.0), to_whole), F.pow(F.lit(10.0), -to_whole)
    rounded = F.when(to_whole >= 0, F.round(number * larger) / larger).otherwise(F.round(number / smaller) * smaller)
    return F.when(number == 0, F.lit(0.0)).otherwise(rounded)


def _number(name: str) -> Column:
    number = F.col(f"`{name.replace('`', '``')}`")
    return F.when(~F.isnan(number), number)

"""Turn numbers of users into a few values that can be sliced by: given edges, or quantiles of the users.

Quantiles are an aggregate of one row that the users are joined with, so that nothing is collected. Numbers are rounded
for them, to four digits of their range. So few distinct ones are left (10,000, and 900 for each power of ten below)
that their exact quantiles fit into any memory. They are also the same for any partitioning, and can be read. Digits of
the numbers alone would give all years one value. Digits of the range alone would give all users one value where a
single user has a million interactions. So each number is rounded to whichever is finer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.sections.bands import NO_INTERACTION
from rankeval_spark.spark.spark_types import with_columns

if TYPE_CHECKING:
    from rankeval_spark.config.sections.bands import Band

CHECK: Final = "bands."
"""Start of the names of the checks that hold the edges."""

_DIGITS_OF_SPREAD: Final = 4
_DIGITS_OF_NUMBER: Final = 3
"""What a number keeps for the quantiles: digits of the distance between the least and the greatest, or of its own."""

_MOST_PLACES: Final = 300
"""Decimal places beyond which a power of ten is no number any more."""

_MOST_WHOLE: Final = 2.0**53
"""Whole numbers below this are exact, and written without an exponent."""


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
        quantiles = _with_spreads(users, bands).agg(
            *(_edges(name, bands[name]).alias(edges) for name, edges in names.items())
        )
        users = users.crossJoin(F.broadcast(quantiles))
    edges_of = {name: F.col(names[name]) if name in names else _edges(name, band) for name, band in bands.items()}
    banded = with_columns(users, {name: _band_of(name, edges_of[name], band) for name, band in bands.items()})
    return banded.drop(*names.values())


def with_activity(segments: DataFrame | None, *, activity: DataFrame | None) -> DataFrame | None:
    """Join the segments of :func:`to_activity` with those of the segment table; either may lack users."""
    if segments is None or activity is None:
        return activity if segments is None else segments
    names = [name for name in activity.columns if name != C.USER_ID]
    joined = segments.join(activity, on=[C.USER_ID], how="full")
    return with_columns(joined, {name: F.coalesce(name, F.lit(NO_INTERACTION)) for name in names})


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
    frame = _with_spreads(users, bands).agg(*facts)
    return frame.select(F.inline(F.array(*frame.columns)))


def rounded(number: Column, spread: Column) -> Column:
    """Round to so many digits of the spread, or of the number where these are finer; as it is where all are the same.

    Powers of ten are multiplied or divided by, which leaves 0.1 what it is.
    """
    of_number, of_spread = (
        F.lit(digits - 1) - F.floor(F.log10(F.abs(size)))
        for digits, size in ((_DIGITS_OF_NUMBER, number), (_DIGITS_OF_SPREAD, spread))
    )
    places = F.least(F.greatest(of_number, of_spread), F.lit(_MOST_PLACES)).cast("double")
    larger, smaller = F.pow(F.lit(10.0), places), F.pow(F.lit(10.0), -places)
    whole = F.when(places >= 0, number * larger).otherwise(number / smaller)
    nearest = F.when(places >= 0, F.round(whole) / larger).otherwise(F.round(whole) * smaller)
    is_fine = (number == 0) | (spread == 0) | (F.abs(whole) >= F.lit(_MOST_WHOLE))
    return F.when(is_fine, number).otherwise(nearest)


def _with_spreads(users: DataFrame, bands: Mapping[str, Band]) -> DataFrame:
    """Add how far the finite numbers of each column lie apart that has quantiles: the same for everyone."""
    spreads = [
        (F.max(_finite(name)) - F.min(_finite(name))).alias(_spread_of(name))
        for name, band in bands.items()
        if band.edges is None
    ]
    return users.crossJoin(F.broadcast(users.agg(*spreads))) if spreads else users


def _edges(name: str, band: Band) -> Column:
    """Give the edges of a column: as they are given, or quantiles, which are an aggregate; NULL without any number."""
    if band.edges is not None:
        return F.array(*(F.lit(float(edge)) for edge in band.edges))
    spread = _column(_spread_of(name))
    quantiles = F.percentile(rounded(_finite(name), spread), F.array(*map(F.lit, band.shares)))
    return F.transform(quantiles, lambda edge: rounded(edge, F.max(spread)))


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


def _finite(name: str) -> Column:
    number = _number(name).cast("double")
    return F.when(F.abs(number) != F.lit(float("inf")), number)


def _number(name: str) -> Column:
    number = _column(name)
    return F.when(~F.isnan(number), number)


def _spread_of(name: str) -> str:
    return f"_spread_{name}"


def _column(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")

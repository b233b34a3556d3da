"""Turn numbers of users into a few values that can be sliced by: given edges, or quantiles of the users.

Quantiles are an aggregate of one row that the users are joined with, so that nothing is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, get_args

import numpy as np
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.config.slicing import KindName
from rankeval_spark.errors import require_same
from rankeval_spark.result_rows.bands import Quantiles, edge_lists

if TYPE_CHECKING:
    from rankeval_spark.config.slicing import Band

_COUNTED: Final = "band int, spread double, number double, n bigint"


NUMBERS: Final[Mapping[KindName, Callable[[], Column]]] = {"train": lambda: F.count("*")}
"""The number of a user as an aggregate over the rows of the user, by kind of segment."""

require_same("NUMBERS", NUMBERS, get_args(KindName))


def to_numbers(rows: DataFrame, *, bands: Mapping[str, Band]) -> DataFrame:
    """Compute the numbers of each user in an input: ``user_id``, and a column for each of the bands."""
    numbers = {name: NUMBERS[band.of]() for name, band in bands.items() if band.of is not None}
    columns = (number.cast("double").alias(name) for name, number in numbers.items())
    return rows.where(F.col(C.USER_ID).isNotNull()).groupBy(C.USER_ID).agg(*columns)


def with_bands(users: DataFrame, *, bands: Mapping[str, Band]) -> DataFrame:
    """Replace the numbers in the columns of ``bands`` by the names of their bands; NULL and NaN become NULL."""

    def label(name: str, place: int) -> Column:
        number, edges = _null_if_nan(name), F.col(f"_edges_{place}")
        band = F.get(f"_names_{place}", F.size(F.filter(edges, lambda edge: edge <= number)))
        return F.when(number.isNotNull() & (F.size(edges) > 0), band)

    labels = {name: label(name, place) for place, name in enumerate(bands)}
    columns = (F.col(C.quoted_name(name)) for name in users.columns)
    return _add_columns(_add_edges(users, users, bands), labels).select(*columns)


def join_segments(segments: DataFrame, computed: DataFrame, *, absent: Mapping[str, str]) -> DataFrame:
    """Join segments that are computed to others; either may lack users. ``absent``: values of those, by segment."""
    joined = segments.join(computed, on=[C.USER_ID], how="full")
    filled = {name: F.coalesce(C.quoted_name(name), F.lit(text)) for name, text in absent.items()}
    return _add_columns(joined, {name: column for name, column in filled.items() if name in joined.columns})


def to_facts(users: DataFrame, *, bands: Mapping[str, Band], name: str) -> DataFrame:
    """Record the edges of each column, and how many users have no number: facts as ``check`` makes them."""
    counts = [F.count_if(_null_if_nan(column).isNull()).alias(f"_count_{place}") for place, column in enumerate(bands)]
    facts = (
        F.struct(
            F.lit(name).alias("input"),
            F.lit(f"{BANDS}{column}").alias("check"),
            F.col(f"_count_{place}").alias("count"),
            F.col("_total").alias("total"),
            F.col(f"_texts_{place}").alias("sample_keys"),
        )
        for place, column in enumerate(bands)
    )
    counted = users.agg(*counts, F.count("*").alias("_total"))
    return _add_edges(counted, users, bands).select(F.inline(F.array(*facts)))


def _add_edges(frame: DataFrame, users: DataFrame, bands: Mapping[str, Band]) -> DataFrame:
    """Add the lists of :func:`bands.edge_lists` of each band, such as ``_edges_0``: the same in all rows."""
    given = {
        f"_{name}_{place}": F.array(*map(F.lit, values))
        for place, band in enumerate(bands.values())
        if band.edges is not None
        for name, values in edge_lists(np.array(band.edges, dtype=np.float64), band).items()
    }
    frame = _add_columns(frame, given)
    quantiles, names = (
        Quantiles({place: band for place, band in enumerate(bands.values()) if band.edges is None}),
        [*bands],
    )
    if not quantiles.bands:
        return frame
    doubles = {place: _null_if_nan(names[place]).cast("double") for place in quantiles.bands}
    is_finite = {place: F.abs(number) != F.lit(float("inf")) for place, number in doubles.items()}
    numbers = users.select(
        *(F.when(is_finite[place], number).alias(f"_number_{place}") for place, number in doubles.items())
    )
    spreads = ((F.max(name) - F.min(name)).alias(name.replace("number", "spread")) for name in numbers.columns)
    counted = numbers.crossJoin(F.broadcast(numbers.agg(*spreads))).mapInArrow(quantiles.count, _COUNTED)
    distinct = counted.groupBy("band", "spread", "number").agg(F.sum("n").alias("n"))
    every = distinct.agg(F.collect_list(F.struct("band", "spread", "number", "n")))
    lists = "_edges_{0} array<double>, _names_{0} array<string>, _texts_{0} array<string>"
    edges = every.mapInArrow(quantiles.finish, ", ".join(map(lists.format, quantiles.bands)))
    return frame.crossJoin(F.broadcast(edges))


def _null_if_nan(name: str) -> Column:
    number = F.col(C.quoted_name(name))
    return F.when(~F.isnan(number), number)


def _add_columns(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Add columns to a frame; none is fine, which ``withColumns`` of Spark Connect refuses."""
    return frame.withColumns(dict(columns)) if columns else frame

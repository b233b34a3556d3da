"""A published table compared with the same table computed again: the rows and values in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, functions as F, types as T

from rankeval_spark import columns as C

if TYPE_CHECKING:
    from pyspark.sql import Column

TOLERANCE: Final = 1e-9
"""Largest difference, relative to the numbers or to 1, that the order of summation can explain."""

_FLOATS: Final = (T.DoubleType, T.FloatType)
_NUMBERS: Final = (*_FLOATS, T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_WAS, _IS, _VALUES, _OTHERS = "_was", "_is", "_values", "_others"


def to_differences(published: DataFrame, rerun: DataFrame, *, key: Sequence[str]) -> DataFrame:
    """Join the rows of both frames; 1:1, the key is unique in each.

    One row a key: its columns, ``was_published``, ``is_made`` (the rerun has it), and ``unlike``, an array of
    (``column``, ``distance``, ``is_rounding``) of the columns in which the two differ; ``distance`` is NULL where one
    of them is NULL or no number. Columns that only one of the two frames has are left out.
    """
    keys = [name for name in key if name not in C.RUN_KEY]
    names = [name for name in rerun.columns if name not in (*keys, *C.RUN_KEY) and name in published.columns]
    was = published.select(*keys, _to_struct(published, names).alias(_VALUES), F.lit(True).alias(_WAS))
    made = rerun.select(*keys, _to_struct(rerun, names).alias(_OTHERS), F.lit(True).alias(_IS))
    unlike = F.array(*(_difference(name, rerun.schema[name].dataType) for name in names))
    was_published, is_made = (F.coalesce(name, F.lit(False)) for name in (_WAS, _IS))
    return was.join(made, on=keys, how="full").select(
        *keys,
        was_published.alias("was_published"),
        is_made.alias("is_made"),
        F.when(was_published & is_made, F.filter(unlike, lambda difference: difference.isNotNull())).alias("unlike"),
    )


def _to_struct(frame: DataFrame, names: Sequence[str]) -> Column:
    """Combine the values of a row into one struct; maps, which cannot be compared, as entries sorted by key."""
    there = frame.schema
    values = (
        F.array_sort(F.map_entries(name)) if isinstance(there[name].dataType, T.MapType) else F.col(name)
        for name in names
    )
    return F.struct(*(value.alias(name) for value, name in zip(values, names, strict=True)))


def _difference(name: str, type_: T.DataType) -> Column:
    """Return a struct of a column's name, distance, and whether it is rounding; NULL where both values are equal."""
    was, now = F.col(_VALUES)[name], F.col(_OTHERS)[name]
    distance = F.abs(was.cast("double") - now.cast("double")) if isinstance(type_, _NUMBERS) else F.lit(None)
    largest = F.greatest(F.lit(1.0), F.abs(was), F.abs(now)) if isinstance(type_, _FLOATS) else F.lit(None)
    is_rounding = F.coalesce(distance <= TOLERANCE * largest.cast("double"), F.lit(False))
    parts = F.struct(
        F.lit(name).alias("column"),
        distance.cast("double").alias("distance"),
        is_rounding.alias("is_rounding"),
    )
    return F.when(~was.eqNullSafe(now), parts)


def difference_counts(tables: dict[str, DataFrame]) -> DataFrame:
    """Count the rows of :func:`to_differences` by table: one row a table.

    ``n_missing`` rows were published and are not made, ``n_extra`` are made and were not published, ``n_differing``
    have another value and ``n_rounded`` one that differs by rounding only.
    """
    was_published, is_made = F.col("was_published"), F.col("is_made")
    counts = (
        rows.agg(
            F.lit(name).alias("table"),
            F.count_if(was_published).alias("n_published"),
            F.count_if(was_published & ~is_made).alias("n_missing"),
            F.count_if(is_made & ~was_published).alias("n_extra"),
            F.count_if(_differs()).alias("n_differing"),
            F.count_if((F.size("unlike") > 0) & ~_differs()).alias("n_rounded"),
        )
        for name, rows in tables.items()
    )
    return reduce(DataFrame.unionByName, counts)


def differences_by_column(rows: DataFrame) -> DataFrame:
    """Count by column: ``column, n_rows, distance`` (the largest, NULL where none is a number), most rows first."""
    each = rows.select(F.inline("unlike"))
    counted = each.groupBy("column").agg(F.count("*").alias("n_rows"), F.max("distance").alias("distance"))
    return counted.orderBy(F.desc("n_rows"), "column")


def difference_examples(rows: DataFrame, *, key: Sequence[str]) -> DataFrame:
    """Return the rows that are not the same, rounding aside: ``example``, such as ``model_id=als, k=10``."""
    keys, parts = [name for name in key if name not in C.RUN_KEY], []
    for name in keys:
        text = F.col(name)
        if isinstance(rows.schema[name].dataType, T.ArrayType):
            text = F.concat_ws("/", F.transform(name, lambda element: F.coalesce(element, F.lit("NULL"))))
        parts.append(F.concat(F.lit(f"{name}="), text.cast("string")))
    is_other = ~F.col("was_published") | ~F.col("is_made") | _differs()
    return rows.where(is_other).orderBy(*keys).select(F.concat_ws(", ", *parts).alias("example"))


def _differs() -> Column:
    return F.coalesce(F.exists("unlike", lambda difference: ~difference["is_rounding"]), F.lit(False))

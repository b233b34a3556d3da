"""The models of an evaluation: those named, else those in the log.

On the way from rows to lists a named model goes by its number: ten million names cross no network, and lists are sorted
and grouped by integers. (With the name in the sort key, ordering 10 million rows took 8.2 s, with the number 6.6 s.)
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C


def keep_models(recommendations: DataFrame, *, names: Sequence[str] | None) -> DataFrame:
    """Keep the rows of the named models, and those without a model, which are counted; all where none are named."""
    if names is None:
        return recommendations
    return recommendations.where(F.col(C.MODEL_ID).isin(*names) | F.col(C.MODEL_ID).isNull())


def with_numbers(recommendations: DataFrame, *, names: Sequence[str] | None) -> DataFrame:
    """Replace the name of each model by its position in ``names``, from 1; nothing changes where none are named."""
    if names is None:
        return recommendations
    return recommendations.withColumn(C.MODEL_ID, F.array_position(_array(names), F.col(C.MODEL_ID)).cast("int"))


def with_names(lists: DataFrame, *, names: Sequence[str] | None) -> DataFrame:
    """Undo :func:`with_numbers`."""
    if names is None:
        return lists
    return lists.withColumn(C.MODEL_ID, F.element_at(_array(names), F.col(C.MODEL_ID)))


def reference(name: str, *, names: Sequence[str] | None) -> Column:
    """Refer to a model as the rows do after :func:`with_numbers`; one that is not named is 0, which no row has."""
    return F.lit(name) if names is None else F.array_position(_array(names), F.lit(name)).cast("int")


def to_models(recommendations: DataFrame, *, names: Sequence[str] | None) -> DataFrame:
    """Make one row per model: the number of each that is named, else the names in the log (one narrow distinct)."""
    if names is None:
        return recommendations.select(C.MODEL_ID).where(F.col(C.MODEL_ID).isNotNull()).distinct()
    # The session of the frame, without a job and without a local relation that would depend on the session's Python.
    numbers = recommendations.sparkSession.range(1, len(names) + 1, numPartitions=1)
    return numbers.select(F.col("id").cast("int").alias(C.MODEL_ID))


def _array(names: Sequence[str]) -> Column:
    return F.array(*(F.lit(name) for name in names))

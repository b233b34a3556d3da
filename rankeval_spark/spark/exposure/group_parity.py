"""Plan the measures that compare popular and rare items, or a category: counts of all partitions in, rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.result_rows.jackknife_rows import SLICE
from rankeval_spark.result_rows.metric_rows import ROW_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.result_rows.exposure_rows import ParityRows


def to_parity_rows(counts: DataFrame, *, rows: ParityRows) -> DataFrame:
    """Make one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure).

    Over all users with a list. A model without any list has rows of all users, and of each slice in which another model
    has lists.

    Parameters
    ----------
    counts : DataFrame
        Rows of ``MovedRows.to_parity``.
    """
    no_lists = counts.sparkSession.createDataFrame(rows.no_lists())
    return counts.unionByName(no_lists).repartition(*SLICE[1:]).mapInArrow(rows.finish, ROW_TYPE)

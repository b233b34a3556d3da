"""Plan how far the groups of a slicing lie apart: rows of ``metrics`` and of ``group_metrics`` in, one row out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.result_rows.groups import gap_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NIGHT: Final = gap_rows.NIGHT
COLUMNS: Final = gap_rows.COLUMNS


def to_gaps(metrics: DataFrame, group_metrics: DataFrame) -> DataFrame:
    """Make the rows of :func:`gap_rows.to_gaps`: one per (model, slice, measure, k).

    Parameters
    ----------
    metrics : DataFrame
        Rows of ``schemas.METRICS``.
    group_metrics : DataFrame
        Rows of ``schemas.GROUP_METRICS`` made of them.
    """
    night = [name for name in NIGHT if name in metrics.columns]
    groups, statements = (
        frame.select(*night, *gap_rows.READ, F.lit(are_statements).alias(gap_rows.IS_STATEMENT))
        for frame, are_statements in ((metrics, False), (group_metrics, True))
    )
    # All rows of a slicing in one partition: the name of a statement's measure is read in Python only.
    by_slicing = groups.unionByName(statements).repartition(*night, C.MODEL_ID, C.SLICE)
    return by_slicing.mapInArrow(gap_rows.of_batches, gap_rows.row_type(night))

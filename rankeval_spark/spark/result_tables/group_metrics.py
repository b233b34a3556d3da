"""Plan how the groups of a slice compare: rows of ``metrics`` in, rows of ``group_metrics`` out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rankeval_spark import columns as C
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.result_rows.groups.group_rows import ROW_TYPE, to_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SLICINGS_A_TASK: Final = 8
"""A task costs 60 ms before its first row, and a slicing some 10 for a hundred measures and cutoffs."""


def to_group_metrics(metrics: DataFrame, *, n_slicings: int | None) -> DataFrame:
    """Make the rows of :func:`group_rows.to_groups`.

    Parameters
    ----------
    metrics : DataFrame
        The columns of ``schemas.METRICS`` from the model on.
    n_slicings : int or None
        Slicings of all models together, everyone among them; None where it is not known how many models there are.
    """
    # All groups of a slicing in one partition. Where it is known how many there are, their number is given: adaptive
    # execution goes by the size of their rows alone, and would put the pairs of groups of many slicings into one task.
    rows, slicing = metrics.select(*metric_rows.SCHEMA.names), (C.MODEL_ID, C.SLICE)
    if n_slicings is None:
        by_slicing = rows.repartition(*slicing)
    else:
        by_slicing = rows.repartition(math.ceil(n_slicings / _SLICINGS_A_TASK), *slicing)
    return by_slicing.mapInArrow(to_groups, ROW_TYPE)

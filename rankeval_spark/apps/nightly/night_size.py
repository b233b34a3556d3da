"""Count what multiplies the rows of a night, before anything is computed: models and slice values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from rankeval_spark import columns as C
from rankeval_spark.config import Cost, counted_cost

if TYPE_CHECKING:
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.spark.plans import InputFrames

_ERROR: Final = 0.02
"""Relative standard deviation of a count: each is one pass over a few columns, without a shuffle of rows."""


def cost_of(config: EvaluationConfig, inputs: InputFrames) -> Cost:
    """Count the values of each slice, about; models are those that are expected or, where none are, of the log."""
    return counted_cost(config, n_models=len(inputs.model_names), slice_values=_slice_values(config, inputs))


def _slice_values(config: EvaluationConfig, inputs: InputFrames) -> dict[str, int]:
    """Count the values of each slice, NULL among them: users that are not in the table may add one more."""
    if inputs.segments is None or not config.slices:
        return {}
    columns = {name: F.col(C.quoted_name(name)) for names in config.slices for name in names}
    # NULL is left out of a count; its hash is one as any other.
    counts = [
        F.approx_count_distinct(F.xxhash64(*(columns[name] for name in names)), _ERROR).alias(str(place))
        for place, names in enumerate(config.slices)
    ]
    (row,) = inputs.segments.select(*counts).collect()
    return {C.CROSSING.join(names): row[str(place)] for place, names in enumerate(config.slices)}

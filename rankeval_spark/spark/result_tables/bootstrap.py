"""Plan the intervals of a bootstrap: replicate sums of all partitions in, the spread of each group out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.engine.aggregation.aggregate_state import GROUP, PARTIAL, SPREAD
from rankeval_spark.result_rows.bootstrap_intervals import BootstrapIntervals

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.statistics.resampling.replicate_sums import Draws


def with_intervals(partials: DataFrame, *, n_measures: int, draws: Draws, level: float) -> DataFrame:
    """Replace the states by a row of ``aggregate_state.SPREAD`` for each group; the rows of moments pass through.

    A group's states are added up in one place: at most ``16 n_measures n_replicates`` bytes of each partition.

    Parameters
    ----------
    partials : DataFrame
        Rows of :data:`WITH_STATES`.
    """
    merger = BootstrapIntervals(n_measures, draws, level)

    def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return merger.merge(key, group)

    return partials.groupBy(*GROUP).applyInArrow(merge, f"{PARTIAL}, {SPREAD} binary")

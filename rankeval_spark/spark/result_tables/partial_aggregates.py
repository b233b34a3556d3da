"""From scored rows to partial moments of every slice, summarised in numpy, and to the intervals of a bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import GROUP, PARTIAL, SPREAD
from rankeval_spark.engine.aggregation.bootstrap_sums import STATES
from rankeval_spark.engine.aggregation.partial_aggregates import COUNTED
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.result_rows.bootstrap_intervals import BootstrapIntervals
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.rows.usable_rows import user_hash

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.engine.aggregation.partial_aggregates import PartialAggregator
    from rankeval_spark.statistics.resampling.replicate_sums import Draws


def to_partials(users: DataFrame, aggregator: PartialAggregator, *, slices: Sequence[Sequence[str]]) -> DataFrame:
    """Summarise each partition: one row of ``aggregate_state.PARTIAL`` per (model, slice, slice values, k) found in it.

    Parameters
    ----------
    users : DataFrame
        Rows of users, one per (model, user, k), those outside the population too.
    aggregator : PartialAggregator
        What is summarised. With draws of a bootstrap the rows are those of :data:`bootstrap_sums.WITH_STATES`.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone. ``slice_index`` counts them from 0.
    """
    segments, _ = segments_of(slices)
    is_drawn = aggregator.draws is not None

    hashes = [user_hash().alias(USER_HASH)] if is_drawn else []
    numbers = dict.fromkeys((*aggregator.measures, *aggregator.weights.values(), *aggregator.lists))
    values = users.select(C.MODEL_ID, C.K, *segments, *COUNTED, *numbers, *hashes)
    states = STATES if is_drawn else ()
    return values.mapInArrow(aggregator.summarise, PARTIAL + "".join(f", {name} binary" for name in states))


def with_intervals(partials: DataFrame, *, n_measures: int, draws: Draws, level: float) -> DataFrame:
    """Replace the states by a row of ``aggregate_state.SPREAD`` for each group; the rows of moments pass through.

    A group's states are added up in one place: at most ``16 n_measures n_replicates`` bytes of each partition.

    ``partials``: rows of :data:`bootstrap_sums.WITH_STATES`.
    """
    merger = BootstrapIntervals(n_measures, draws, level)

    def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return merger.merge(key, group)

    return partials.groupBy(*GROUP).applyInArrow(merge, f"{PARTIAL}, {SPREAD} binary")

"""From scored rows to partial moments of every slice: each partition is summarised in numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import PARTIAL
from rankeval_spark.engine.aggregation.bootstrap_sums import STATES
from rankeval_spark.engine.aggregation.partial_aggregates import COUNTED, PartialAggregator
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.rows.usable_rows import user_hash

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.statistics.resampling.replicate_sums import Draws


def to_partials(  # noqa: PLR0913 - what is summarised, and how
    users: DataFrame,
    *,
    measures: Sequence[str],
    slices: Sequence[Sequence[str]],
    ks: Sequence[int],
    weights: Mapping[str, str] = MappingProxyType({}),
    lists: Sequence[str] = (),
    draws: Draws | None = None,
) -> DataFrame:
    """Summarise each partition: one row of ``aggregate_state.PARTIAL`` per (model, slice, slice values, k) found in it.

    Parameters
    ----------
    users : DataFrame
        Rows of ``population.with_population``, one per (model, user, k).
    measures : sequence of str
        The measure columns.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone. ``slice_index`` counts them from 0.
    ks : sequence of int
        The cutoffs that occur.
    weights : mapping
        Column of the denominators, by the column of each measure that is a ratio of sums.
    lists : sequence of str
        Columns that count the lists of a user for which each measure is defined; none where each user has one list.
    draws : Draws, optional
        Of a bootstrap. The rows then are those of :data:`bootstrap.WITH_STATES`.
    """
    segments, sliced_by = segments_of(slices)
    summariser = PartialAggregator(tuple(measures), dict(weights), tuple(sliced_by), tuple(ks), draws, tuple(lists))

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # Spark takes no method here
        return summariser.summarise(batches)

    hashes = [] if draws is None else [user_hash().alias(USER_HASH)]
    numbers = dict.fromkeys((*measures, *weights.values(), *lists))
    values = users.select(C.MODEL_ID, C.K, *segments, *COUNTED, *numbers, *hashes)
    states = () if draws is None else STATES
    return values.mapInArrow(summarise, PARTIAL + "".join(f", {name} binary" for name in states))

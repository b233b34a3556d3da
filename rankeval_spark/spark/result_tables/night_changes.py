"""Each model on one night against itself on an earlier one: per-user values of both in, rows of changes out.

Only published tables are read. The two nights are joined by user, each partition is aggregated in numpy, slice by
slice, and only the small aggregates are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import GROUP
from rankeval_spark.engine.aggregation.slices import PACKED, in_chunks, unpacked
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.result_rows.night_change_rows import EARLIER, PARTIAL, ROW_TYPE, NightChanges, earlier
from rankeval_spark.spark.result_tables import mean_metrics
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.spark_types import with_columns

if TYPE_CHECKING:
    import pyarrow as pa


def to_changes(now: DataFrame, before: DataFrame, changes: NightChanges) -> DataFrame:
    """Make one row per (model, slice, slice values, measure, k) that has users on either night.

    ``n_users``, ``value`` are those of now, ``n_earlier_users``, ``earlier_value`` of before; ``n_common_users`` have a
    value on both nights, in the same slice. The other numbers are those of the relative change and of
    :class:`rankeval_spark.statistics.comparisons.night_differences.Shift`; NULL where undefined, and there is no p
    where the slice is small on either night.

    Parameters
    ----------
    now, before : DataFrame
        Rows of ``schemas.USER_METRICS`` of one night each.
    changes : NightChanges
        What is compared, and how.
    """
    columns, denominators = changes.measures.columns, changes.denominators

    def aggregate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in in_chunks(batches):
            yield from changes.aggregate(unpacked(unpacked(chunk), packed=earlier(PACKED), prefix=EARLIER))

    def finish(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return changes.finish(key, group)

    segments, sliced_by = segments_of(changes.reported.segments)
    now_users, earlier_users = (
        frame.transform(_to_users, columns=columns, ks=changes.measures.ks).select(
            C.MODEL_ID, C.USER_ID, C.K, *segments, *columns, *denominators
        )
        for frame in (now, before)
    )
    earlier_users = earlier_users.withColumnsRenamed(
        {name: earlier(name) for name in (PACKED, *columns, *denominators)}
    )
    null_segments = F.array_repeat(F.lit(None).cast("string"), len({name for one in sliced_by for name in one}))
    packed = [PACKED, earlier(PACKED)] if segments else []
    return (
        now_users.join(earlier_users, on=[C.MODEL_ID, C.USER_ID, C.K], how="full")
        .transform(with_columns, {name: F.coalesce(name, null_segments) for name in packed})
        .drop(C.USER_ID)
        .mapInArrow(aggregate, PARTIAL)
        .groupBy(*GROUP)
        .applyInArrow(finish, ROW_TYPE)
    )


def _to_users(user_metrics: DataFrame, *, columns: Sequence[str], ks: Sequence[int]) -> DataFrame:
    """Average the lists of each user as the means do; published users belong to the population."""
    evaluated = user_metrics.where(F.col(C.K).isin(*ks)).withColumn(IS_EVALUATED, F.lit(True))
    return mean_metrics.to_user_means(evaluated, measures=columns)

"""Each model against a baseline on the same users: scored rows in, or aggregates of them; rows of ``comparisons`` out.

As for the means each partition is aggregated in numpy (:mod:`rankeval_spark.engine.comparisons.paired_differences`),
slice by slice, and only the small aggregates are merged; here their merging and what is made of them are Python too, a
group at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.engine.comparisons.comparison_state import GROUP, PARTIAL
from rankeval_spark.engine.scoring.population import IS_EVALUATED
from rankeval_spark.result_rows.comparison_rows import ROW_TYPE
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.rows.usable_rows import user_hash

if TYPE_CHECKING:
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows


def to_comparisons(
    users: DataFrame, lists: DataFrame, finisher: ComparisonRows, *, unjudged: pa.Table | None = None
) -> DataFrame:
    """Make the rows of ``schemas.COMPARISONS`` from the baseline on: one per (pair, slice, values, measure, k, test).

    Parameters
    ----------
    users : DataFrame
        One row per (model, user, k) as ``mean_metrics.to_user_means`` makes them.
    lists : DataFrame
        Scored rows of which they are made, and of users who are not evaluated.
    unjudged : pa.Table, optional
        Rows of ``metrics``, where users without a judgement have no scored rows.
    finisher : ComparisonRows
        What is compared, and how.

    Notes
    -----
    A user's values under all models are brought together by one exchange of narrow rows (none where the scored rows are
    partitioned by user already). Compared are means of users and, by t alone, ratios of sums; measures that are neither
    (GMAP) have no rows. If the request names its models, every pair has rows of every slice. Else a pair has rows of a
    slice where the model has users in it although the baseline may have none; of two models of which neither is the
    baseline both must.
    """
    segments, _ = segments_of(finisher.reported.segments)
    aggregator = finisher.aggregator
    is_listed = (F.col(C.K) == finisher.requested.ks[0]) & (F.col(C.N_RECOMMENDED) > 0)
    key: tuple[Column | str, ...] = (C.MODEL_ID, C.USER_ID, user_hash().alias(USER_HASH), C.K, C.N_RECOMMENDED)
    found = (
        users.where(F.col(IS_EVALUATED) | is_listed)
        .select(*key, IS_EVALUATED, *segments, *finisher.requested.stored)
        .repartition(C.USER_ID)
        .sortWithinPartitions(USER_HASH, C.USER_ID)
        .mapInArrow(aggregator.aggregate_all_rows, PARTIAL)
    )
    if finisher.has_judged_lists:
        counts = (
            lists.where(is_listed)
            .select(C.MODEL_ID, *aggregator.owner, IS_EVALUATED, *segments)
            .repartition(C.USER_ID)
            .sortWithinPartitions(C.USER_ID)
            .mapInArrow(aggregator.count_rows, PARTIAL)
        )
        found = found.unionByName(counts)
    if unjudged is not None:
        batches = [*finisher.unjudged(unjudged)]
        if batches:
            found = found.unionByName(users.sparkSession.createDataFrame(pa.Table.from_batches(batches), PARTIAL))
    return to_comparisons_of_partials(found, finisher)


def to_comparisons_of_partials(partials: DataFrame, finisher: ComparisonRows) -> DataFrame:
    """Make the same rows of aggregates, wherever they come from: rows of ``comparison_state.PARTIAL``."""

    def finish(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return finisher.finish(key, group)

    return (
        partials.groupBy(*GROUP)
        .applyInArrow(finish, ROW_TYPE)
        .repartition(1)  # a family is all tests of one kind in the run; a few thousand rows
        .mapInArrow(finisher.adjust, ROW_TYPE)
    )

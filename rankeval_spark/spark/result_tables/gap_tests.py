"""Plan a test of each gap between groups of users by a bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.result_rows.groups.gap_test_rows import (
    PARTIAL,
    SCHEMA,
    ComparedGroups,
    GapBootstrap,
    adjusted,
)
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.rows.usable_rows import user_hash

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.config.gap_tests import GapTestRequest
    from rankeval_spark.config.request import Request


def to_gap_tests(
    users: DataFrame,
    tested: DataFrame,
    gaps: Sequence[ComparedGroups],
    request: Request,
    gap_request: GapTestRequest,
) -> DataFrame:
    """Test every gap: a row of ``SCHEMA`` each, one family.

    Parameters
    ----------
    users : DataFrame
        One row per (model, user, k), as ``mean_metrics.to_user_means`` makes them.
    tested : DataFrame
        The gaps as rows of ``TESTED``.
    gaps : sequence of ComparedGroups
        What is tested, with the groups that are compared. Of those without a gap there is a row, without a p.
    request : Request
        Its slices are those of the gaps; its confidence is one minus the level of the tests.
    gap_request : GapTestRequest
        Draws, and the correction for the number of tests.

    Notes
    -----
    See :func:`gap_bootstrap.gap_p`. A partition passes on, for each gap, the sums of every group in every replicate: 24
    bytes times groups times replicates.
    """
    segments, _ = segments_of(request.slices)
    resampling = GapBootstrap.of(gaps, request, gap_request.draws)

    def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return resampling.merge(key, group)

    p = (
        users.select(C.MODEL_ID, C.K, *segments, user_hash().alias(USER_HASH), *resampling.measures)
        .mapInArrow(resampling.draw, PARTIAL)
        .groupBy("test")
        .applyInArrow(merge, "test int, p_value double")
    )

    def adjust(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return adjusted(
            batches,
            replicates=gap_request.draws.replicates,
            correction=gap_request.correction,
            alpha=1 - request.confidence,
        )

    return (
        tested.join(F.broadcast(p), on="test", how="left")
        .repartition(1)  # one family, a few thousand rows
        .sortWithinPartitions("test")
        .drop("test")
        .mapInArrow(adjust, SCHEMA)
    )

"""Plan a permutation test of each gap between groups of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import USER_HASH
from rankeval_spark.result_rows.groups.gap_test_rows import PARTIAL, SCHEMA, ComparedGroups, GapPermutation, adjusted
from rankeval_spark.result_rows.metric_rows import slice_names
from rankeval_spark.spark.rows.slice_columns import segments_of
from rankeval_spark.spark.rows.usable_rows import user_hash

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.statistics.multiple_testing import Correction
    from rankeval_spark.statistics.resampling.replicate_sums import Draws


def to_gap_tests(  # noqa: PLR0913 - what is tested, and how
    users: DataFrame,
    tested: DataFrame,
    *,
    gaps: Sequence[ComparedGroups],
    columns: Mapping[str, str],
    slices: Sequence[Sequence[str]],
    ks: Sequence[int],
    draws: Draws,
    correction: Correction,
    alpha: float,
) -> DataFrame:
    """Test every gap: a row of ``SCHEMA`` each, one family.

    Parameters
    ----------
    users : DataFrame
        One row per (model, user, k), as ``mean_metrics.to_user_means`` makes them.
    tested : DataFrame
        The gaps as rows of ``TESTED``.
    gaps : sequence of Gap
        What is tested, with the groups that are compared. Of those without a gap there is a row, without a p.
    columns : mapping
        Column of each measure.
    slices : sequence of sequences of str
        The slicings that the gaps are of.
    ks : sequence of int
        The cutoffs that occur among ``users``.
    draws : Draws
        Replicates and seed.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        For the number of tests.
    alpha : float
        Level that the adjusted p will be held against.

    Notes
    -----
    ``p = (1 + #{gap* >= gap}) / (1 + B)``, gap* that of the random labels (:mod:`labels`). A partition hands on, for
    each gap, the sums of every group in every replicate: 16 bytes times groups times replicates.
    """
    segments, sliced_by = segments_of(slices)
    names = dict(zip(slice_names(slices), sliced_by, strict=True))
    lots = GapPermutation(tuple(gaps), dict(columns), names, tuple(ks), draws)

    def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # Spark takes no method here
        return lots.draw(batches)

    def merge(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        return lots.merge(key, group)

    p = (
        users.select(C.MODEL_ID, C.K, *segments, user_hash().alias(USER_HASH), *lots.measures)
        .mapInArrow(draw, PARTIAL)
        .groupBy("test")
        .applyInArrow(merge, "test int, p_value double")
    )

    def adjust(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return adjusted(batches, replicates=draws.replicates, correction=correction, alpha=alpha)

    return (
        tested.join(F.broadcast(p), on="test", how="left")
        .repartition(1)  # one family, a few thousand rows
        .sortWithinPartitions("test")
        .drop("test")
        .mapInArrow(adjust, SCHEMA)
    )

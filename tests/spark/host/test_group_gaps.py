"""From rows of metrics to how far the groups lie apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark import evaluate
from rankeval_spark.spark.result_tables import group_gaps
from rankeval_spark.statistics.groups.group_gaps import GroupMeans, gap_of, ratio_interval
from tests.support.frames import judgements, ranking, table
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOMES = {"a1": "AT", "a2": "AT", "d1": "DE", "d2": "DE", "f1": "FR", "x1": None, "x2": None}


def test_small_and_unknown_groups_are_left_out_and_the_extremes_named(spark: SparkSession) -> None:
    """Hits at rank 1 or 2: AT 1 and 1/2, DE 1/2 and 1/2; FR has one user, and that of two is not known."""
    hits = {"a1": "hit b", "a2": "b hit", "d1": "b hit", "d2": "b hit", "f1": "hit b", "x1": "hit b", "x2": "hit b"}
    result = evaluate(
        ranking(spark, hits),
        judgements(spark, {user: {"hit": 1} for user in hits}),
        measures=["RR@2", "ItemCoverage@1"],
        segments=table(spark, "user_id country", *HOMES.items()),
        slices=["country"],
        min_slice_size=2,
    )
    with no_spark_jobs(spark):
        found = result.gaps
    assert tuple(found.columns) == group_gaps.COLUMNS
    rows = {row["measure"]: row for row in found.collect()}

    at, de = (1 + 1 / 2) / 2, 1 / 2
    of_groups = np.array([at, de]), np.array([1 / 4, 0]), np.array([1.0, 1.0]), 0.95
    groups = GroupMeans(*of_groups, bounds=(0.0, 1.0))
    expected = gap_of(groups)
    by_rank = rows["RR"]
    numbers = [by_rank[name] for name in ("gap", "ci_low", "ci_high", "ratio", "mad")]
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-12)
    assert (by_rank["n_groups"], by_rank["n_left_out"], by_rank["ci_level"]) == (2, 2, 0.95)
    extremes = [by_rank[name] for name in ("lowest_group", "lowest_value", "highest_group", "highest_value")]
    assert extremes == ["DE", de, "AT", at]
    covered = rows["ItemCoverage"]
    assert (covered["gap"], covered["ratio"], covered["highest_group"]) == (2 - 1, 1 / 2, "AT")

    said = {row["measure"]: row for row in result.group_metrics.collect()}
    ratio = (by_rank["ratio"], *ratio_interval(groups))
    estimates = {"GroupGap": expected[:3], "GroupRatio": ratio, "UserMAD": (expected.mad, None, None)}
    for name, estimate in estimates.items():
        row = said[f"{name}(RR)"]
        shown = np.array([row["value"], row["ci_low"], row["ci_high"]], dtype=np.float64)
        np.testing.assert_allclose(shown, np.array(estimate, dtype=np.float64), rtol=0, atol=1e-12)
        assert (row["slice_values"], row["n_users"], row["n_left_out"]) == ([], 4, 3)
    worst = said["WorstGroup(ItemCoverage)"]
    assert (worst["slice_values"], worst["slice_value"], worst["value"]) == (["DE"], "DE", 1.0)


def test_without_two_groups_there_is_no_gap(spark: SparkSession) -> None:
    result = evaluate(
        ranking(spark, {"a1": "hit", "d1": "hit"}),
        judgements(spark, {"a1": {"hit": 1}, "d1": {"hit": 1}}),
        measures=["P@1"],
        segments=table(spark, "user_id country", *HOMES.items()),
        slices=["country"],
        min_slice_size=2,
    )
    (row,) = result.gaps.collect()
    assert (row["n_groups"], row["n_left_out"], row["gap"], row["lowest_group"]) == (0, 2, None, None)

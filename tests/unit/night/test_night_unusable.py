"""Nights whose log counts ranks from 0, or whose inputs hold rows of which none can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.arrow_frames import by
from tests.support.nights import FIRST, Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAY = FIRST.isoformat()
COUNT_ONLY: dict[str, Any] = {"checks__null_keys": {}, "checks__invalid_scores": {}}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Items a, b, c, d at ranks 0 to 3; relevant are a for u and b for v."""
    made = Workspace(tmp_path)
    ranked = [(user, item, rank) for user in "uv" for rank, item in enumerate("abcd")]
    made.write("recommendations", [{"day": DAY, "user_id": u, "item_id": i, "rank": r} for u, i, r in ranked])
    made.write("held_out", nights.held_out({FIRST: {"u": {"a": 1}, "v": {"b": 1}}}))
    made.configure(nights.config_of("recommendations", "held_out"))
    made.change(measures=["RR"], cutoffs=["all"], results__lists=False)
    return made


def published(spark: SparkSession, made: Workspace) -> tuple[float, dict[Any, Any]]:
    run_night(spark, load_config(made.config, ()), FIRST)
    results = Results(made.root)
    (row,) = results.metrics(date=FIRST, measure="RR").to_pylist()
    return float(row["value"]), by(results.checks(date=FIRST, input="recommendations"), "check", value="count")


def test_log_that_counts_from_0_fails_a_night_unless_its_config_says_so(
    spark: SparkSession, workspace: Workspace
) -> None:
    with pytest.raises(ChecksFailedError) as failed:
        run_night(spark, load_config(workspace.config, ()), FIRST)
    (fault,) = failed.value.faults
    assert (fault.where, fault.found.split(",")[0]) == ("recommendations, zero_ranks", "2 (25.00%)")
    assert "write ranks_from: 0 in inputs.recommendations" in fault.fix

    workspace.change(inputs__recommendations__ranks_from=0)
    mean, counts = published(spark, workspace)
    assert mean == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
    assert (counts["zero_ranks"], counts["invalid_scores"], counts["rank_gaps"]) == (0, 0, 0)

    workspace.change(inputs__recommendations__ranks_from=1, checks__zero_ranks={"warn": 0})
    mean, counts = published(spark, workspace)
    assert mean == pytest.approx((0 + 1) / 2, rel=0, abs=1e-12)  # as asked for: the rows with rank 0 are left out
    assert (counts["zero_ranks"], counts["invalid_scores"]) == (2, 0)


def test_night_without_a_usable_row_fails_whatever_the_thresholds(spark: SparkSession, workspace: Workspace) -> None:
    rows: list[dict[str, Any]] = [
        {"day": DAY, "user_id": None, "item_id": "a", "rank": 1},
        {"day": DAY, "user_id": "u", "item_id": "a", "rank": -1},
    ]
    workspace.write("recommendations", rows)
    config = workspace.change(**COUNT_ONLY)
    with pytest.raises(ChecksFailedError) as failed:
        run_night(spark, load_config(config, ()), FIRST)
    fault = failed.value.faults[0]
    assert (fault.where, fault.found) == (
        "inputs.recommendations",
        "2 rows and none that can be used (1 null_keys, 1 invalid_scores)",
    )

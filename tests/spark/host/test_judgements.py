"""One judgement per (user, item), as the checks count them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.spark.plans import input_checks
from tests.support.frames import assert_key, by, held_out, tuples
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("policy", "gain"), [("max", 3.0), ("sum", 1.0 + 3.0 + 2.0)])
def test_a_repeated_judgement_has_the_gain_of_the_policy(spark: SparkSession, policy: str, gain: float) -> None:
    rows = held_out(spark, "user_id item_id gain", *(("u", "a", each) for each in (1.0, 3.0, 2.0)), ("u", "b", 0.5))
    with no_spark_jobs(spark):
        judged = input_checks.to_judgements(rows, duplicates=policy)
    assert tuples(judged, "item_id", "gain", "_n_copies") == [("a", gain, 3), ("b", 0.5, 1)]
    assert_key(judged, ("user_id", "item_id"))


def test_sums_of_gains_are_rounded_once_in_any_order(spark: SparkSession) -> None:
    """Added up one by one, ten times 0.1 is below 1."""
    gains = {"ten": [0.1] * 10, "up": [1e16, 1.0, -1e16], "down": [-1e16, 1e16, 1.0], "odd": [0.1, 0.2, 0.3]}
    rows = [(user, "a", gain) for user, each in gains.items() for gain in each]
    judged = input_checks.to_judgements(held_out(spark, "user_id item_id gain", *rows), duplicates="sum")
    assert by(judged, "user_id", value="gain") == {"ten": 1.0, "up": 1.0, "down": 1.0, "odd": 0.6}


def test_the_last_of_several_judgements_can_count(spark: SparkSession) -> None:
    """Of two at one time the larger; one without a time is older than any other."""
    at = dt.datetime(2026, 1, 3, tzinfo=dt.UTC)
    later = at + dt.timedelta(seconds=1)
    rows = held_out(
        spark,
        "user_id item_id gain interacted_at",
        *(("u", "a", 5.0, at), ("u", "a", 1.0, later), ("u", "a", 2.0, later), ("u", "a", 9.0, None)),
        *(("u", "b", 3.0, None), ("u", "b", 4.0, None), ("v", "a", 7.0, at)),
    )
    judged = input_checks.to_judgements(rows, duplicates="last")
    assert tuples(judged, "user_id", "item_id", "gain", "_n_copies") == [
        ("u", "a", 2.0, 4),
        ("u", "b", 4.0, 2),
        ("v", "a", 7.0, 1),
    ]

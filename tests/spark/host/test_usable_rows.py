"""Which rows of the inputs can be used."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.engine.checks import (
    held_out_checks,
    item_checks,
    log_checks,
    segment_checks,
    train_checks,
)
from rankeval_spark.spark.plans import usable_rows
from rankeval_spark.spark.plans.usable_rows import failure_flags, keep_usable
from tests.support.frames import frame_of, table, tuples
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.engine.checks import RowChecks

BAD = (None, math.nan, math.inf, -math.inf)
ROWS: dict[str, tuple[str, list[tuple[Any, ...]], RowChecks]] = {
    "scores": (
        "model_id string, user_id string, list_id string, item_id string, score double",
        [
            *(("m", "u", "", "a", score) for score in (0.5, 0.0, *BAD)),
            *((None, "u", "", "b", 1.0), ("m", None, "", "c", None)),
            *(("m", "u", None, "d", 1.0), ("m", "u", "", None, math.nan)),
        ],
        log_checks(["model_id", "list_id", "score"]),
    ),
    "ranks": (
        "model_id string, user_id string, list_id string, item_id string, rank int",
        [("m", user, "", "a", rank) for user in ("u", None) for rank in (1, 7, 0, -1, None)],
        log_checks(["model_id", "list_id", "rank"]),
    ),
    "decimals": (
        "model_id string, user_id string, list_id string, item_id string, score decimal(5,2)",
        [("m", "u", "", "a", Decimal("1.5")), ("m", "u", "", "b", None)],
        log_checks(["model_id", "list_id", "score"]),
    ),
    "judgements": (
        "user_id bigint, item_id bigint, gain double, value double, weight double",
        [
            (user, 1, gain, other, weight)
            for user in (1, None)
            for gain in (1.0, 0.5, 0.0, -1.0, *BAD)
            for other, weight in ((1.0, 1.0), (None, 0.0), (math.nan, -1.0), (-math.inf, math.inf), (0.0, None))
        ],
        held_out_checks(["user_id", "item_id", "value", "weight"]),
    ),
    "own items": (
        "model_id string, user_id bigint, list_id string, item_id bigint, score double",
        [("m", user, "", item, score) for user in (1, None) for item in (1, 2, None) for score in (0.5, None)],
        log_checks(["model_id", "list_id", "score"], own_item="drop"),
    ),
    "train": (
        "user_id string, item_id string, interacted_at timestamp",
        [
            (user, item, at)
            for user, item in (("u", "a"), (None, "a"), ("u", None))
            for at in (None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC))
        ],
        train_checks(["interacted_at"], before=date(2026, 1, 1)),
    ),
    "items": (
        "item_id string, vector array<double>, lost boolean",
        [
            (item, vector, lost)
            for item in ("a", None)
            for vector in (None, [], [1.0, -1.0], [1.0, math.nan], [None], [None, 1.0], [math.inf], [-math.inf])
            for lost in (False, True, None)
        ],
        item_checks(["vector"], unreadable="lost"),
    ),
    "segments": ("user_id string", [("u",), (None,)], segment_checks()),
}
"""Columns, rows and checks of inputs with everything awkward in them."""


@pytest.mark.parametrize("name", ROWS)
def test_spark_flags_the_rows_that_are_flagged_in_memory(spark: SparkSession, name: str) -> None:
    columns, rows, checks = ROWS[name]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # days are those of UTC, whatever the session's
    numbered = [(place, *row) for place, row in enumerate(rows)]
    frame = frame_of(spark, numbered, f"place int, {columns}")
    with no_spark_jobs(spark):
        flags = failure_flags(checks)
        flagged = frame.select("place", *(flag.alias(check) for check, flag in flags.items()))
        usable = keep_usable(frame, checks)
    table = frame.toArrow().sort_by("place")
    expected = checks.flag_failures(table)
    found = flagged.toArrow().sort_by("place")
    assert {check: found[check].to_pylist() for check in flags} == {
        check: flag.tolist() for check, flag in expected.items()
    }
    assert any(flag.any() for flag in expected.values())
    left = [place for place, is_left in enumerate(checks.is_usable(expected).tolist()) if is_left]
    assert [place for (place,) in tuples(usable, "place")] == left


def test_one_row_that_a_check_refuses_fails_the_job(spark: SparkSession) -> None:
    columns, rows, _ = ROWS["scores"]
    checks = log_checks(["model_id", "list_id", "score"], invalid_scores="error")
    refused = keep_usable(frame_of(spark, rows[:3], columns), checks)
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:invalid_scores\]"):
        refused.collect()
    fine = keep_usable(frame_of(spark, [*rows[:2], ("m", None, "", "c", None)], columns), checks)
    assert tuples(fine, "score") == [(0.0,), (0.5,)]


def test_rows_of_other_models_go_and_those_without_a_model_stay_to_be_counted(spark: SparkSession) -> None:
    log = table(spark, "model_id", ("b",), ("a",), ("b",), (None,), ("it's",))
    kept = usable_rows.keep_models(log, names=("z", "it's", "a")).collect()
    assert sorted(str(row.model_id) for row in kept) == ["None", "a", "it's"]
    assert usable_rows.keep_models(log, names=None).count() == 5


def test_a_sample_takes_the_same_users_from_every_input_and_type_of_ids(spark: SparkSession) -> None:
    def users(share: float, ids: str, *numbers: int) -> set[str]:
        frame = table(spark, "user_id item_id", *((number, 1) for number in numbers), ids=ids)
        return {str(user) for (user,) in tuples(usable_rows.keep_sample(frame, share=share), "user_id")}

    quarter = users(0.25, "string", *range(200))
    assert users(0.25, "bigint", *reversed(range(200))) == quarter
    assert 25 <= len(quarter) <= 75
    assert quarter < users(0.6, "string", *range(200))
    everyone = table(spark, "user_id item_id", ("u", "a"), (None, "b"))
    assert usable_rows.keep_sample(everyone, share=1.0) is everyone

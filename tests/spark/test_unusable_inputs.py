"""What a notebook must not measure silently: ranks from 0 or of another type, inputs without a usable row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support.frames import by, table
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark import Evaluation

USERS = ("u", "v")
FROM_0 = [(user, item, rank) for user in USERS for rank, item in enumerate("abcd")]

RESULTS: dict[str, Callable[[Evaluation], DataFrame]] = {
    "user_metrics": lambda result: result.user_metrics,
    "user_values": lambda result: result.user_values,
    "metrics": lambda result: result.metrics,
    "comparisons": lambda result: result.comparisons,
    "checks": lambda result: result.checks,
    "leaderboard": lambda result: result.leaderboard(),
    "agreement": lambda result: result.agreement("model", k=2),
}


def held_out(spark: SparkSession) -> DataFrame:
    return table(spark, "user_id item_id gain", ("u", "a", 1.0), ("v", "b", 1.0))


def log(spark: SparkSession, *rows: tuple[Any, ...], order: str = "rank") -> DataFrame:
    return table(spark, f"user_id item_id {order}", *(rows or FROM_0))


def evaluated(recommendations: DataFrame, judged: DataFrame, **options: Any) -> Evaluation:  # noqa: ANN401 - of evaluate
    return evaluate(recommendations, judged, **{"measures": ["RR"], "baseline": "model", **options})


def mean_rr(result: Evaluation) -> float:
    (row,) = result.metrics.where("measure = 'RR'").collect()
    return float(row["value"])


# ---- ranks from 0 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(RESULTS))
def test_ranks_from_0_fail_every_result_and_name_the_remedy(spark: SparkSession, name: str) -> None:
    with no_spark_jobs(spark):
        result = evaluated(log(spark), held_out(spark))
        frame = RESULTS[name](result)
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:recommendations\] rank 0, .*ranks_from=0"):
        frame.collect()


def test_ranks_from_0_are_measured_as_such_on_request(spark: SparkSession) -> None:
    result = evaluated(log(spark), held_out(spark), ranks_from=0)
    assert mean_rr(result) == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
    checks = by(result.checks.where("input = 'recommendations'"), "check", value="count")
    assert (checks["zero_ranks"], checks["invalid_scores"], checks["rank_gaps"]) == (0, 0, 0)


@pytest.mark.parametrize("options", [{"rank_gaps": "keep"}, {"preset": "rectools"}])
def test_ranks_from_0_that_are_kept_count_from_1_too(spark: SparkSession, options: dict[str, str]) -> None:
    result = evaluated(log(spark), held_out(spark), ranks_from=0, measures=["RR@4"], **options)
    assert mean_rr(result) == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
    with pytest.raises(JOB_FAILED, match="ranks_from=0"):
        evaluated(log(spark), held_out(spark), measures=["RR@4"], **options).metrics.collect()


def test_ranks_from_0_beside_scores_change_no_number(spark: SparkSession) -> None:
    """The score orders the lists; the check of gaps sees the ranks."""
    frame = log(spark).withColumn("score", F.lit(10.0) - F.col("rank"))
    for options, n_gaps in (({}, 2), ({"ranks_from": 0}, 0)):
        result = evaluated(frame, held_out(spark), **options)
        assert mean_rr(result) == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
        assert by(result.checks.where("input = 'recommendations'"), "check", value="count")["rank_gaps"] == n_gaps


def test_rank_0_of_a_model_that_is_not_evaluated_is_no_fault(spark: SparkSession) -> None:
    rows = [("old", *row) for row in FROM_0] + [("new", user, item, rank + 1) for user, item, rank in FROM_0]
    frame = table(spark, "model_id user_id item_id rank", *rows)
    assert mean_rr(evaluated(frame, held_out(spark), models=["new"], baseline="new")) == 3 / 4
    with pytest.raises(JOB_FAILED, match="ranks_from=0"):
        evaluated(frame, held_out(spark), models=["new", "old"], baseline="new").metrics.collect()


@pytest.mark.parametrize("asked", [2, -1, "0", True, 0.5])
def test_ranks_from_is_0_or_1(spark: SparkSession, asked: object) -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(ranks_from=\)"):
        evaluated(log(spark), held_out(spark), ranks_from=asked)


# ---- no usable row -------------------------------------------------------------------------------------------------

LOGS: dict[str, tuple[str, list[tuple[Any, ...]], str]] = {
    "negative ranks": ("rank", [("u", "a", -1), ("v", "b", -2)], "2 rows and none that can be used (2 invalid_scores)"),
    "no score": ("score", [("u", "a", math.nan), ("v", None, 1.0)], "(1 null_keys, 1 invalid_scores)"),
    "no list": ("rank list_id", [("u", "a", 1, None), ("v", "b", 2, None)], "(2 null_keys)"),
}


@pytest.mark.parametrize("models", [None, ["model"]])
@pytest.mark.parametrize("case", list(LOGS))
def test_log_without_a_usable_row_fails_with_the_counts(
    spark: SparkSession, case: str, models: list[str] | None
) -> None:
    order, rows, counted = LOGS[case]
    result = evaluated(log(spark, *rows, order=order), held_out(spark), models=models)
    for name in ("user_metrics", "metrics", "comparisons", "checks"):
        with pytest.raises(JOB_FAILED) as failed:
            RESULTS[name](result).collect()
        assert "[rankeval:recommendations]" in str(failed.value)
        assert counted in str(failed.value), name
    drawn = evaluated(log(spark, *rows, order=order), held_out(spark), models=models, intervals="bootstrap")
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:recommendations\] .*none that can be used"):
        drawn.metrics.collect()
    with pytest.raises(JOB_FAILED), result.cached() as kept:
        kept.metrics.collect()


def test_inputs_of_which_one_row_can_be_used_or_that_have_no_row_are_measured(spark: SparkSession) -> None:
    mixed = log(spark, ("u", "a", 1), ("u", "b", -1), (None, "a", 1))
    assert mean_rr(evaluated(mixed, held_out(spark), models=["model"])) == (1 + 0) / 2
    empty = log(spark).where("user_id = 'nobody'")
    assert mean_rr(evaluated(empty, held_out(spark), models=["model"])) == 0


def test_other_inputs_without_a_usable_row_fail_too(spark: SparkSession) -> None:
    good, nobody = log(spark, ("u", "a", 1), ("v", "b", 1)), F.lit(None).cast("string")
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:held_out\] 2 rows and none that can be used \(2 null_gains\)"):
        evaluated(good, held_out(spark).withColumn("gain", F.lit(math.nan))).metrics.collect()
    train = held_out(spark).select(nobody.alias("user_id"), "item_id")
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:train\] 2 rows and none that can be used \(2 null_keys\)"):
        evaluated(good, held_out(spark), train=train, measures=["ARP@1"]).metrics.collect()
    segments = held_out(spark).select(nobody.alias("user_id"), F.lit("DE").alias("country"))
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:segments\] 2 rows"):
        evaluated(good, held_out(spark), segments=segments, slices=["country"]).metrics.collect()


@pytest.mark.parametrize("kind", ["double", "float", "decimal(4,1)", "boolean"])
def test_rank_that_is_no_whole_number_is_refused_at_the_call(spark: SparkSession, kind: str) -> None:
    frame = log(spark).withColumn("rank", F.col("rank").cast(kind))
    with no_spark_jobs(spark), pytest.raises(InputError, match=r"'rank' of type .*expected whole numbers"):
        evaluated(frame, held_out(spark))


# ---- scores that a double cannot tell apart ------------------------------------------------------------------------

NEAR = {
    "bigint": (str(2**53), str(2**53 + 1)),
    "decimal(30,25)": ("1.0000000000000000000100000", "1.0000000000000000000200000"),
}


@pytest.mark.parametrize("kind", list(NEAR))
def test_whole_numbers_and_decimals_are_ordered_exactly(spark: SparkSession, kind: str) -> None:
    """Item b has the higher score; as doubles the two tie, and the item id puts a first."""
    low, high = NEAR[kind]
    rows = [(user, item, score) for user in USERS for item, score in (("a", low), ("b", high))]
    text = spark.createDataFrame(rows, "user_id string, item_id string, score string")
    frame = text.withColumn("score", F.col("score").cast(kind))
    result = evaluated(frame, held_out(spark), measures=["RR", "AUC"])
    assert by(result.user_metrics, "user_id", value="rr") == {"u": 1 / 2, "v": 1.0}
    (row,) = result.metrics.where("measure = 'RR'").collect()
    assert row["tie_share"] == 0.0
    assert by(result.checks.where("input = 'recommendations'"), "check", value="count")["ties"] == 0
    assert evaluated(frame, held_out(spark), ties="error").metrics.count() == 1
    (rough,) = evaluated(frame, held_out(spark), score_precision="single").metrics.collect()
    assert rough["tie_share"] == 1.0


def test_ranks_contradict_whole_scores_that_differ_beyond_a_double(spark: SparkSession) -> None:
    rows = [("u", "a", 2**53, 1), ("u", "b", 2**53 + 1, 2)]
    frame = spark.createDataFrame(rows, "user_id string, item_id string, score long, rank int")
    checks = by(evaluated(frame, held_out(spark)).checks.where("input = 'recommendations'"), "check", value="count")
    assert checks["score_rank_disagree"] == 1

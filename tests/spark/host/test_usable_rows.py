"""Which rows of the inputs can be used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.spark.plans import usable_rows
from tests.support.frames import assert_columns, held_out, recommendations, table, tuples
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCORES = [("ok", 0.5), ("zero", 0.0), ("null", None), ("nan", math.nan), ("inf", math.inf), ("-inf", -math.inf)]


def test_rows_with_scores_that_are_no_finite_number_are_dropped(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id score", *(("u", item, score) for item, score in SCORES))
    with no_spark_jobs(spark):
        usable = usable_rows.keep_usable_recommendations(log, invalid_scores="drop")
    assert tuples(usable, "item_id", "score") == [("ok", 0.5), ("zero", 0.0)]
    assert_columns(usable, [field for field in schemas.RECOMMENDATIONS.fields if field.name in usable.columns])
    assert {*schemas.RECOMMENDATIONS.field_names()} - {*usable.columns} == {
        "rank",
        "recommended_at",
        "predicted_reward",
    }


@pytest.mark.parametrize("score", [None, math.nan, math.inf, -math.inf])
def test_one_invalid_score_fails_the_job_where_the_policy_is_error(spark: SparkSession, score: float | None) -> None:
    log = recommendations(spark, "user_id item_id score", ("u", "a", 0.5), ("u", "b", score))
    with no_spark_jobs(spark):
        usable = usable_rows.keep_usable_recommendations(log, invalid_scores="error")
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:invalid_scores\]"):
        usable.collect()


def test_valid_scores_pass_where_the_policy_is_error(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id score", ("u", "a", 0.5), ("u", "b", -0.5))
    usable = usable_rows.keep_usable_recommendations(log, invalid_scores="error")
    assert tuples(usable, "item_id") == [("a",), ("b",)]


def test_rows_with_a_null_in_any_key_are_dropped(spark: SparkSession) -> None:
    log = recommendations(
        spark,
        "model_id user_id list_id item_id score",
        ("m", "u", "", "a", 1.0),
        (None, "u", "", "b", 1.0),
        ("m", None, "", "c", 1.0),
        ("m", "u", None, "d", 1.0),
        ("m", "u", "", None, 1.0),
    )
    usable = usable_rows.keep_usable_recommendations(log, invalid_scores="drop")
    assert tuples(usable, "item_id") == [("a",)]


def test_a_log_without_scores_needs_ranks_from_1_on(spark: SparkSession) -> None:
    log = recommendations(
        spark, "user_id item_id rank", ("u", "a", 1), ("u", "b", 7), ("u", "c", 0), ("u", "d", -1), ("u", "e", None)
    )
    usable = usable_rows.keep_usable_recommendations(log, invalid_scores="drop")
    assert tuples(usable, "item_id", "rank") == [("a", 1), ("b", 7)]


def test_the_score_orders_a_log_that_has_both_so_a_null_rank_is_no_fault(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id score rank", ("u", "a", 0.5, None), ("u", "b", None, 1))
    usable = usable_rows.keep_usable_recommendations(log, invalid_scores="drop")
    assert tuples(usable, "item_id") == [("a",)]


def test_rows_of_other_models_go_and_those_without_a_model_stay_to_be_counted(spark: SparkSession) -> None:
    log = table(spark, "model_id", ("b",), ("a",), ("b",), (None,), ("it's",))
    kept = usable_rows.keep_models(log, names=("z", "it's", "a")).collect()
    assert sorted(str(row.model_id) for row in kept) == ["None", "a", "it's"]
    assert usable_rows.keep_models(log, names=None).count() == 5


def test_single_precision_rounds_scores_and_no_ranks(spark: SparkSession) -> None:
    """0.1 and 0.1 + 1e-9 are one number then, 0.1 + 1e-7 is another."""
    scores = [("u", "a", 0.1), ("u", "b", 0.1 + 1e-9), ("u", "c", 0.1 + 1e-7)]
    log = recommendations(spark, "user_id item_id score", *scores)
    assert usable_rows.with_score_precision(log, precision="double") is log
    a, b, c = (score for (score,) in tuples(usable_rows.with_score_precision(log, precision="single"), "score"))
    assert a == b < c
    of_ranks = recommendations(spark, "user_id item_id rank", ("u", "a", 16_777_217), ("u", "b", 16_777_216))
    ranked = usable_rows.with_score_precision(of_ranks, precision="single")
    assert tuples(ranked, "rank", "item_id") == [(16_777_216, "b"), (16_777_217, "a")]


def test_judgements_need_both_keys_and_a_finite_gain(spark: SparkSession) -> None:
    rows = [("u", item, gain) for item, gain in SCORES] + [(None, "a", 1.0), ("u", None, 1.0), ("u", "minus", -2.0)]
    with no_spark_jobs(spark):
        usable = usable_rows.keep_usable_held_out(held_out(spark, "user_id item_id gain", *rows))
    assert tuples(usable, "item_id") == [("minus",), ("ok",), ("zero",)]
    assert_columns(usable, [field for field in schemas.HELD_OUT.fields if field.name != C.LIST_ID])


def test_a_sample_takes_the_same_users_from_every_input(spark: SparkSession) -> None:
    users = [(f"user {number}", "a") for number in range(200)]
    both = [table(spark, "user_id item_id", *rows) for rows in (users, reversed(users))]
    left, right = (set(tuples(usable_rows.keep_sample(frame, share=0.25), "user_id")) for frame in both)
    assert left == right
    assert 25 <= len(left) <= 75


def test_integer_and_text_ids_of_the_same_digits_fall_into_the_same_sample(spark: SparkSession) -> None:
    numbers = table(spark, "user_id item_id", *((number, 1) for number in range(50)), ids="bigint")
    texts = table(spark, "user_id item_id", *((str(number), "1") for number in range(50)))
    left, right = (tuples(usable_rows.keep_sample(frame, share=0.5), "user_id") for frame in (numbers, texts))
    assert {str(user) for (user,) in left} == {user for (user,) in right}


def test_a_smaller_sample_is_part_of_a_larger_one(spark: SparkSession) -> None:
    users = table(spark, "user_id item_id", *((f"user {number}", "a") for number in range(200)))
    small, large = (set(tuples(usable_rows.keep_sample(users, share=share), "user_id")) for share in (0.2, 0.6))
    assert small < large


def test_everyone_is_a_sample_of_share_1(spark: SparkSession) -> None:
    users = table(spark, "user_id item_id", ("u", "a"), (None, "b"))
    assert usable_rows.keep_sample(users, share=1.0) is users

"""What Spark makes of a refusal: a job that fails, not a plan, and for the command line a readable fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import evaluate
from rankeval_spark.apps.error_translation import translated_errors
from rankeval_spark.errors import ChecksFailedError
from tests.support.frames import judgements, ranking, table
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_error_policy_fails_the_job_that_meets_its_case(spark: SparkSession) -> None:
    with no_spark_jobs(spark):
        log, held_out = ranking(spark, {"ann": "a b"}), judgements(spark, {"ann": {"a": 1}, "bob": {"a": 1}})
        result = evaluate(log, held_out, measures=["P@1"], policies={"missing": "error"})
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:missing\]"):
        result.metrics.collect()


def test_a_gain_that_cannot_be_raised_ends_as_a_readable_fault(spark: SparkSession) -> None:
    log, held_out = ranking(spark, {"u": "a"}), judgements(spark, {"u": {"a": 2000}})
    with (
        pytest.raises(ChecksFailedError, match=r"dcg='exp-log2': found a gain of 2000; expected none above 1000"),
        translated_errors(),
    ):
        evaluate(log, held_out, measures=["DCG(dcg='exp-log2')@5"]).metrics.collect()


def test_user_whose_prediction_is_missing_is_named_by_a_readable_fault(spark: SparkSession) -> None:
    log = table(spark, "model_id user_id item_id score", ("als", 7, 1, 4.5), ("als", 8, 1, 4.5), ids="bigint")
    held_out = table(spark, "user_id item_id gain", (7, 1, 5.0), (8, 1, 5.0), (8, 2, 1.0), ids="bigint")
    asked = evaluate(log.coalesce(1), held_out, measures=["MAE(missing='error')"])
    with (
        pytest.raises(ChecksFailedError, match="lists, such as that of user '8' under model 'als'"),
        translated_errors(),
    ):
        asked.user_metrics.collect()

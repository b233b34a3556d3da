"""Agreement of each model's lists with a baseline's on Spark: one pass of Python, planned without a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark import evaluate
from tests.support.frames import judgements, table
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_agreement_is_one_pass_of_python_without_a_job_before(spark: SparkSession) -> None:
    rows = [("base", "u", "a", 2.0), ("base", "u", "b", 1.0), ("new", "u", "a", 2.0), ("new", "u", "c", 1.0)]
    log = table(spark, "model_id user_id item_id score", *rows)
    held_out = judgements(spark, {"u": {"a": 1}})
    with no_spark_jobs(spark):
        found = evaluate(log, held_out, measures=["P@1"], models=["new", "base"]).agreement("base", k=2)
    assert python_nodes(found) == ["MapInArrow"]
    assert found.columns == ["model_id", "user_id", "overlap", "jaccard", "rbo"]

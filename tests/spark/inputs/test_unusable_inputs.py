"""An input that cannot be used on Spark: refused at the call where its type says so, else by the job that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from rankeval_spark.engine.row_kinds import LOG
from rankeval_spark.errors import InputError
from rankeval_spark.spark.plans.moved_rows import unite_and_exchange
from tests.support.frames import table
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def inputs(spark: SparkSession, *ranks: int) -> tuple[DataFrame, DataFrame]:
    log = table(spark, "user_id item_id rank", *(("u", f"i{rank}", rank) for rank in ranks))
    return log, table(spark, "user_id item_id gain", ("u", "i1", 1.0))


@pytest.mark.parametrize("name", ["metrics", "checks"])
def test_ranks_from_0_fail_the_job_and_name_the_remedy(spark: SparkSession, name: str) -> None:
    log, held_out = inputs(spark, 0, 1)
    with no_spark_jobs(spark):
        result = evaluate(log, held_out, measures=["RR"])
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:recommendations\] rank 0, .*'ranks_from': 0"):
        getattr(result, name)


def test_a_log_without_a_usable_row_fails_the_job_with_the_counts(spark: SparkSession) -> None:
    log, held_out = inputs(spark, -1, -2)
    result = evaluate(log, held_out, measures=["RR"])
    counted = r"\[rankeval:recommendations\] 2 rows and none that can be used \(2 invalid_scores\)"
    for name in ("metrics", "checks"):
        with pytest.raises(JOB_FAILED, match=counted):
            getattr(result, name)
    with pytest.raises(JOB_FAILED, match=counted), result.cached() as kept:
        kept.metrics.collect()


@pytest.mark.parametrize("user_id", ["u", None], ids=["judged", "without any user"])
def test_kept_rows_of_users_fail_as_the_small_results_do(spark: SparkSession, user_id: str | None) -> None:
    log, _ = inputs(spark, -1, -2)
    held_out = spark.createDataFrame([(user_id, "i1", 1.0)], "user_id string, item_id string, gain double")
    counted = r"\[rankeval:recommendations\] 2 rows and none that can be used \(2 invalid_scores\)"
    with evaluate(log, held_out, measures=["RR"]).cached() as kept:
        with no_spark_jobs(spark):
            users = kept.user_metrics
        with pytest.raises(JOB_FAILED, match=counted):
            users.collect()


def test_rows_without_a_key_are_spread_over_the_partitions(spark: SparkSession) -> None:
    """They have no user in common: with NULL as the key all of them would be in one partition."""
    log = spark.range(1000).selectExpr(
        "CAST(NULL AS string) AS user_id", "CAST(id AS string) AS item_id", "0.5 AS score"
    )
    for user_id in ("string", "bigint"):
        rows = log.withColumn("user_id", F.lit(None).cast(user_id))
        columns = {field.name: field.dataType for field in rows.schema}
        moved = unite_and_exchange({LOG: rows}, constants=None, columns=columns, n_partitions=4)
        sizes = moved.groupBy(F.spark_partition_id()).count().collect()
        assert len(sizes) == 4
        assert max(row["count"] for row in sizes) < 400


def test_rank_that_is_no_whole_number_is_refused_before_any_job(spark: SparkSession) -> None:
    log, held_out = inputs(spark, 1, 2)
    frame = log.withColumn("rank", F.col("rank").cast("double"))
    with no_spark_jobs(spark), pytest.raises(InputError, match=r"'rank' of type .*expected whole numbers"):
        evaluate(frame, held_out, measures=["RR"])

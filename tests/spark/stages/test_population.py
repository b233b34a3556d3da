"""Who enters the means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from rankeval_spark.stages import population
from tests.support.frames import scored_rows, tuples
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def users(spark: SparkSession) -> DataFrame:
    """Make a user of each kind, each with 1/2 for the measure."""
    kinds = {
        "both": {},
        "extra": {"n_judged": 0, "n_relevant": 0},
        "missing": {"n_recommended": 0},
        "zero": {"n_relevant": 0},
    }
    rows = scored_rows(spark, *({"user_id": user, "p": 1 / 2, **facts} for user, facts in kinds.items()))
    return rows.drop("_is_evaluated")


@pytest.mark.parametrize(
    ("policy", "members"),
    [
        ("truth", {"both", "missing", "zero"}),
        ("judged", {"both", "missing", "zero"}),
        ("intersection", {"both", "zero"}),
        ("intersection_judged", {"both", "zero"}),
        ("run", {"both", "extra", "zero"}),
    ],
)
def test_a_population_has_its_members_and_only_counts_the_others(
    spark: SparkSession, policy: str, members: set[str]
) -> None:
    scored = users(spark)
    with no_spark_jobs(spark):
        marked = population.with_population(scored, population=policy, measures=["p"])
    assert tuples(marked, "user_id", "p", "_is_evaluated") == [
        (user, 1 / 2 if user in members else None, user in members) for user in ("both", "extra", "missing", "zero")
    ]
    assert {user for (user,) in tuples(population.keep_population(marked), "user_id")} == members


@pytest.mark.parametrize("policy", ["truth", "judged"])
def test_users_without_a_list_can_be_left_out(spark: SparkSession, policy: str) -> None:
    marked = population.with_population(users(spark), population=policy, missing="exclude", measures=["p"])
    assert {user for (user,) in tuples(population.keep_population(marked), "user_id")} == {"both", "zero"}


@pytest.mark.parametrize(
    ("policies", "refused"),
    [({"missing": "error"}, "missing"), ({"zero_relevant": "error"}, "zero")],
)
def test_a_case_of_error_fails_the_job_and_no_other_does(
    spark: SparkSession, policies: dict[str, str], refused: str
) -> None:
    scored = users(spark)
    with no_spark_jobs(spark):
        marked = population.with_population(scored, population="truth", measures=["p"], **policies)
    assert tuples(marked.where(F.col("user_id") != refused), "user_id", "p") == [
        (user, None if user == "extra" else 1 / 2) for user in ("both", "extra", "missing", "zero") if user != refused
    ]
    with pytest.raises(JOB_FAILED, match=rf"\[rankeval:{next(iter(policies))}\]"):
        marked.collect()


def test_error_for_users_without_a_relevant_item_looks_at_the_population_only(spark: SparkSession) -> None:
    """Under `intersection` nobody minds the missing user who has none."""
    neither = F.when(F.col("user_id") == "missing", 0).otherwise(F.col("n_relevant")).alias("n_relevant")
    rows = users(spark).where("user_id IN ('both', 'missing')").withColumn("n_relevant", neither)
    marked = population.with_population(
        rows, population="intersection", missing="exclude", zero_relevant="error", measures=["p"]
    )
    assert tuples(marked, "user_id", "_is_evaluated") == [("both", True), ("missing", False)]

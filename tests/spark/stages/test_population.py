"""Who enters the means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark.stages import population
from tests.support.frames import scored_rows, tuples
from tests.support.plans import no_spark_jobs

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
    return scored_rows(spark, *({"user_id": user, "p": 1 / 2, **facts} for user, facts in kinds.items()))


@pytest.mark.parametrize(
    ("policy", "members"),
    [
        ("truth", {"both", "missing", "zero"}),
        ("judged", {"both", "missing", "zero"}),
        ("intersection", {"both", "zero"}),
        ("run", {"both", "extra", "zero"}),
    ],
)
def test_a_population_has_its_members_and_only_counts_the_others(
    spark: SparkSession, policy: str, members: set[str]
) -> None:
    scored = users(spark).drop("_is_evaluated")
    with no_spark_jobs(spark):
        marked = population.with_population(scored, population=policy, measures=["p"])
    assert tuples(marked, "user_id", "p", "_is_evaluated") == [
        (user, 1 / 2 if user in members else None, user in members) for user in ("both", "extra", "missing", "zero")
    ]
    assert {user for (user,) in tuples(population.keep_population(marked), "user_id")} == members


def test_only_judged_gives_zero_to_a_user_without_a_relevant_item() -> None:
    chosen = {policy: population.zero_relevant(policy) for policy in ("truth", "judged", "intersection", "run")}
    assert chosen == {"truth": "exclude", "judged": "zero", "intersection": "exclude", "run": "exclude"}

"""From scored rows to means with their health counts and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval_spark import schemas
from rankeval_spark.config.request import ReportedSlices
from rankeval_spark.measures import MeasureSet
from rankeval_spark.spark.result_tables import mean_metrics
from tests.support.frames import after_run, assert_columns, assert_key, scored_rows, tuples
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

ASKED = MeasureSet.parse(["P@1", "Success@1"])


def metrics(users: DataFrame, slices: Sequence[Sequence[str]] = (), measures: MeasureSet = ASKED) -> DataFrame:
    """Summarise with a smallest slice of 2 users."""
    return mean_metrics.to_metrics(users, measures=measures, reported=ReportedSlices([(), *slices], 2, 0.95))


def both(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Rows with both measures."""
    return scored_rows(spark, *rows, measures=("p", "success"))


def test_the_rows_have_the_declared_columns_and_key(spark: SparkSession) -> None:
    country = [{"country": value} for value in ("FR", None, "FR")]
    rows = ({"user_id": f"{n}", "model_id": m, "segments": country[n], "p": 1.0} for m in "ab" for n in range(3))
    found = metrics(both(spark, *rows), slices=[("country",)])
    assert_columns(found, after_run(schemas.METRICS))
    assert_key(found, ("model_id", "slice", "slice_values", "measure", "k"))


def test_a_value_is_the_mean_over_users_of_the_mean_over_their_lists(spark: SparkSession) -> None:
    """One list of 1; lists 1, 0, 0, 0: the mean is 5 / 8 over users, and would be 2 / 5 over lists."""
    lists = [("ann", "1", 1.0), *(("bob", f"{n}", float(n == 0)) for n in range(4))]
    scored = both(
        spark,
        *({"user_id": user, "list_id": name, "p": p, "success": p, "has_ties": p == 1.0} for user, name, p in lists),
    )
    with no_spark_jobs(spark):
        users = mean_metrics.to_user_means(scored, measures=ASKED.columns)
    assert tuples(users, "user_id", "p", "has_ties", "_is_evaluated") == [
        ("ann", 1.0, 1.0, True),
        ("bob", 1 / 4, 1 / 4, True),
    ]
    assert_key(users, ("model_id", "user_id", "k"))
    assert tuples(metrics(users), "measure", "value", "n_users", "n_lists", "tie_share") == [
        ("P", (1 + 1 / 4) / 2, 2, 5, (1 + 1 / 4) / 2),
        ("Success", (1 + 1 / 4) / 2, 2, 5, (1 + 1 / 4) / 2),
    ]


def test_lists_are_counted_where_the_measure_is_defined_and_the_user_belongs_to_the_mean(spark: SparkSession) -> None:
    """Ann has a list of two undefined; Bob none, which counts 0; Cat has no value; Dan is outside the population."""
    scored = both(
        spark,
        {"user_id": "ann", "list_id": "1", "p": 1.0, "success": 1.0, "segments": {"country": "FR"}},
        {"user_id": "ann", "list_id": "2", "p": None, "success": 0.0, "segments": {"country": "FR"}},
        {"user_id": "bob", "p": 0.0, "success": 0.0, "n_recommended": 0, "has_ties": None},
        {"user_id": "cat", "list_id": "1", "p": None, "success": 1.0},
        {"user_id": "cat", "list_id": "2", "p": None, "success": 1.0},
        {"user_id": "dan", "list_id": "1", "n_judged": 0, "n_relevant": 0, "_is_evaluated": False},
    )
    users = mean_metrics.to_user_means(scored, measures=ASKED.columns)
    found = tuples(metrics(users, slices=[("country",)]), "slice_value", "measure", "n_users", "n_lists")
    assert found == [
        ("", "P", 2, 2),
        ("", "Success", 3, 5),
        ("(unknown)", "P", 1, 1),
        ("(unknown)", "Success", 2, 3),
        ("FR", "P", 1, 1),
        ("FR", "Success", 1, 2),
    ]


def test_no_row_gives_no_metric(spark: SparkSession) -> None:
    assert tuples(metrics(both(spark), slices=[("country",)]), "value") == []

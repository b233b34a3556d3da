"""The models of an evaluation: kept, numbered on the way, named again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.stages import models
from tests.support.frames import table, tuples
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("z", "it's", "a")


def log(spark: SparkSession) -> DataFrame:
    return table(spark, "model_id", ("b",), ("a",), ("b",), (None,), ("it's",))


def test_the_models_are_those_named_or_else_those_of_the_log(spark: SparkSession) -> None:
    with no_spark_jobs(spark):
        found, named = models.to_models(log(spark), names=None), models.to_models(log(spark), names=NAMES)
    assert tuples(found, "model_id") == [("a",), ("b",), ("it's",)]
    assert tuples(named, "model_id") == [(1,), (2,), (3,)]


def test_rows_of_other_models_go_and_those_without_a_model_stay_to_be_counted(spark: SparkSession) -> None:
    kept = models.keep_models(log(spark), names=NAMES).collect()
    assert sorted(str(row.model_id) for row in kept) == ["None", "a", "it's"]
    assert models.keep_models(log(spark), names=None).count() == 5


def test_numbered_models_get_their_names_back(spark: SparkSession) -> None:
    kept = models.keep_models(log(spark), names=NAMES).where("model_id IS NOT NULL")
    numbered = models.with_numbers(kept, names=NAMES)
    assert tuples(numbered, "model_id") == [(2,), (3,)]
    assert tuples(models.with_names(numbered, names=NAMES), "model_id") == [("a",), ("it's",)]


def test_without_names_nothing_is_numbered(spark: SparkSession) -> None:
    rows = log(spark)
    assert models.with_numbers(rows, names=None) is rows
    assert models.with_names(rows, names=None) is rows

"""The long view of per-user values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rankeval_spark.spark.plans import result_frames
from tests.support.frames import assert_columns, scored_rows, tuples
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED = [("P", "p", 1), ("P", "p", 5), ("Success", "success", 5)]


def test_there_is_a_row_for_each_measure_at_each_cutoff_that_was_asked_for(spark: SparkSession) -> None:
    wide = scored_rows(
        spark,
        {"user_id": "ann", "k": 1, "p": 1.0},
        {"user_id": "ann", "k": 5, "p": 2 / 5, "success": 1.0},
        {"user_id": "bob", "k": 1, "p": None},
        {"user_id": "bob", "k": 5, "p": None, "success": None},
        measures=("p", "success"),
    )
    with no_spark_jobs(spark):
        values = result_frames.to_user_values(wide, requested=ASKED)
    assert tuples(values, "user_id", "measure", "k", "value") == [
        ("ann", "P", 1, 1.0),
        ("ann", "P", 5, 2 / 5),
        ("ann", "Success", 5, 1.0),
        ("bob", "P", 1, None),
        ("bob", "P", 5, None),
        ("bob", "Success", 5, None),
    ]
    keys = [(name, "string") for name in ("model_id", "user_id", "list_id", "measure")]
    assert_columns(values, [*keys, ("k", "int"), ("value", "double")])
    assert python_nodes(values) == []


def test_columns_of_the_run_stay_in_front(spark: SparkSession) -> None:
    wide = scored_rows(spark, {"user_id": "ann", "p": 1.0}).withColumn("run_id", F.lit("r"))
    values = result_frames.to_user_values(wide, requested=[("P", "p", 1)])
    assert values.columns == ["run_id", "model_id", "user_id", "list_id", "measure", "k", "value"]
    assert tuples(values, "run_id", "value") == [("r", 1.0)]


def test_no_row_gives_no_value(spark: SparkSession) -> None:
    assert tuples(result_frames.to_user_values(scored_rows(spark), requested=[("P", "p", 1)]), "value") == []

"""Ratios of sums over users on Spark: over any number of partitions, in its SQL, and in a night."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, evaluate
from tests.evaluate.test_micro import DELTA, MICRO, statement_of_surprise
from tests.support import arrow_frames
from tests.support.frames import tuples
from tests.support.ratings import random_ratings, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_ratios_and_intervals_are_those_of_this_process_over_several_partitions(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    inputs = tables(*random_ratings(seed=11))
    on_spark = evaluate(*(spark.createDataFrame(rows).repartition(3) for rows in inputs), measures=MICRO)
    found = tuples(on_spark.metrics, C.MEASURE, *DELTA)
    expected = arrow_frames.tuples(evaluate(*inputs, measures=MICRO).metrics, C.MEASURE, *DELTA)
    assert len(expected) == len(MICRO)
    assert found == [
        tuple(pytest.approx(cell, rel=1e-12, abs=1e-12) if isinstance(cell, float) else cell for cell in row)
        for row in expected
    ]


def test_statement_of_the_docs_for_the_number_of_surprise_runs_on_spark(spark: SparkSession) -> None:
    statement, of_users, expected = statement_of_surprise()
    ((found,),) = tuples(
        spark.sql(
            statement.replace("FROM user_metrics", "FROM {of_users}"),
            of_users=spark.createDataFrame(of_users.drop_columns("segments")),
        ),
        "fcp",
    )
    assert found == pytest.approx(expected, rel=0, abs=1e-12)

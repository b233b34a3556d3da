"""Ratios of sums over users on Spark: over any number of partitions, in its SQL, and in a night."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, evaluate
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.results import Results
from tests.evaluate.test_micro import DELTA, MICRO, statement_of_surprise
from tests.support import arrow_frames
from tests.support.frames import tuples
from tests.support.nights import FIRST
from tests.support.ratings import random_ratings, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


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


def test_night_publishes_denominators_with_the_values_and_its_audit_agrees(
    spark: SparkSession, own_copy: Workspace
) -> None:
    own_copy.change(measures=["P(agg='micro')", "RMSE(agg='micro')", "GMAP@2", "RR"])
    run_night(spark, load_config(own_copy.config, ()), FIRST)
    results = Results(own_copy.root)
    rows = results.user_metrics(date=FIRST, evaluation="nightly", k=2, model_id="als")
    weights = arrow_frames.by(rows, C.USER_ID, value="p_agg_micro__weight")
    assert weights == {"ann": 2, "bob": 2, "eve": 2, "kim": 2, "ida": None}
    means = arrow_frames.by(
        results.metrics(date=FIRST, evaluation="nightly", slice="all", model_id="als"), C.MEASURE, C.K, value=C.VALUE
    )
    assert means["P(agg='micro')", 2] == pytest.approx(1 / 8, rel=0, abs=1e-12)
    # Scores are 10, 9, 8. ann: a at 10 for 3, c at 8 for 1; bob: d at 8 for 2; eve and kim have no prediction.
    assert means["RMSE(agg='micro')", 0] == pytest.approx(math.sqrt((7**2 + 7**2 + 6**2) / 3), rel=0, abs=1e-12)
    values = results.user_values(date=FIRST, evaluation="nightly")
    assert set(values[C.MEASURE].to_pylist()) == {"P(agg='micro')", "RMSE(agg='micro')", "GMAP", "RR"}

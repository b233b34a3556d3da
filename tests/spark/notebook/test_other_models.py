"""Measures of the agreement of two models on Spark: their plan, and a night with comparisons and gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, evaluate
from tests.evaluate.test_other_models import ASKED, MODELS, drawn, evaluated, inputs
from tests.support import arrow_frames
from tests.support.frames import tuples
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("models", "ids"), [(None, "bigint"), (MODELS, "string")], ids=["found", "named"])
def test_lists_of_models_are_compared_without_a_job_and_to_the_same_bits(
    spark: SparkSession, models: tuple[str, ...] | None, ids: str
) -> None:
    lists = drawn([str(number) for number in range(12)])
    frames = [spark.createDataFrame(rows).repartition(3) for rows in inputs(lists, ids=ids)]
    result = evaluate(*frames, measures=ASKED, models=models, policies={"population": "run"})
    assert result.metrics.columns  # looks models up that are not named
    with no_spark_jobs(spark):
        values = result.user_values
    columns = (*C.LIST_KEY, C.MEASURE, C.K, C.VALUE)
    here = evaluated(lists, ids=ids, measures=ASKED, models=models).user_values
    assert tuples(values, *columns) == arrow_frames.tuples(here, *columns)

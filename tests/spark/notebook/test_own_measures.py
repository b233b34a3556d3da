"""Functions as measures on Spark: they travel to the workers, and fail there with the same words."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from rankeval_spark import evaluate, measure
from rankeval_spark.errors import MeasureError
from tests.support.arrow_frames import by, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG: Final = [("als", "u", "a", 2.0), ("als", "u", "b", 1.0), ("als", "v", "b", 1.0), ("pop", "u", "b", 3.0)]
JUDGED: Final = [("u", "a"), ("v", "a")]


@pytest.mark.usefixtures("team_measures")
def test_functions_travel_to_workers_that_lack_their_module(spark: SparkSession) -> None:
    module = import_module("team.measures")
    bonus = 0.25

    def of_cell(items: list[str], scores: list[float], *, scale: float = 1.0) -> float:
        """Sum of the scores of other items than b."""
        return scale * sum(score for item, score in zip(items, scores, strict=True) if item != "b") + bonus

    asked: list[Any] = ["P@1", module.halved @ 2, module.halved_of_all, "HalvedOfAll@1", of_cell, "of_cell(scale=2)@1"]
    here = evaluate(table("model_id user_id item_id score", *LOG), table("user_id item_id", *JUDGED), measures=asked)
    log = spark.createDataFrame(LOG, "model_id string, user_id string, item_id string, score double")
    judged = spark.createDataFrame(JUDGED, "user_id string, item_id string")
    there = evaluate(log, judged, measures=asked)
    key = ("model_id", "measure", "k")
    values, expected = by(there.metrics.toArrow(), *key, value="value"), by(here.metrics, *key, value="value")
    assert values.keys() == expected.keys()
    np.testing.assert_array_equal([values[each] for each in expected], list(expected.values()))
    assert expected["als", "halved", 2] == 1 / 4
    assert expected["als", "of_cell(scale=2)", 1] == (2 * 2.0 + 2 * bonus) / 2


def test_failure_on_a_worker_has_the_words_of_one_in_this_process(spark: SparkSession) -> None:
    @measure
    def inverse(ranks: list[int]) -> float:
        return 1 / ranks[0]

    with pytest.raises(MeasureError) as here:
        _ = evaluate(
            table("model_id user_id item_id score", *LOG[:3]), table("user_id item_id", *JUDGED), measures=[inverse @ 5]
        ).metrics
    log = spark.createDataFrame(LOG[:3], "model_id string, user_id string, item_id string, score double")
    result = evaluate(log, spark.createDataFrame(JUDGED, "user_id string, item_id string"), measures=[inverse @ 5])
    with pytest.raises(Exception, match="an own measure failed") as there:
        _ = result.metrics
    (fault,) = here.value.faults
    assert fault.where == "evaluate(measures=), inverse@5, user 'v' under model 'als'"
    assert f"inverse@5, user 'v' under model 'als': found {fault.found}; expected {fault.expected}" in str(there.value)

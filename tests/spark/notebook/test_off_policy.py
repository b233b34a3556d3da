"""Off-policy measures on Spark give what they give in this process, and a night publishes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import evaluate
from tests.evaluate.test_off_policy import MEASURES, inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_estimates_and_intervals_are_those_of_this_process(spark: SparkSession) -> None:
    here = inputs(200)
    there = [spark.createDataFrame(table.to_pandas()) for table in here]
    options: dict[str, Any] = {"measures": MEASURES, "population": "judged"}
    wanted, found = (
        {row["measure"]: row for row in result.to_pylist()}
        for result in (evaluate(*here, **options).metrics, evaluate(*there, **options).metrics.toArrow())
    )
    assert found.keys() == wanted.keys() == {*MEASURES}
    for name, row in wanted.items():
        for column in ("value", "ci_low", "ci_high", "n_users"):
            assert found[name][column] == pytest.approx(row[column], rel=1e-12), (name, column)


def test_a_propensity_above_1_is_a_readable_fault(spark: SparkSession) -> None:
    log, held_out = (table.to_pandas() for table in inputs(20))
    held_out["item_id"], held_out["propensity"] = 0, 1.5
    result = evaluate(
        spark.createDataFrame(log), spark.createDataFrame(held_out), measures=["IPS"], population="judged"
    )
    with pytest.raises(Exception, match=r"a propensity of 1\.5 for an impression"):
        result.metrics.collect()

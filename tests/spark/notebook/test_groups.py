"""Measures whose inputs or columns Spark does not have: told before any job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError
from tests.support.frames import judgements, ranking
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_a_measure_lacks_is_reported_before_any_job(spark: SparkSession) -> None:
    log, held_out = ranking(spark, {"ann": "a b"}), judgements(spark, {"ann": {"a": 1}})
    with no_spark_jobs(spark), pytest.raises(InputError) as raised:
        evaluate(log, held_out, measures=["ClassAccuracy@3", "R(gains='value')@3"], policies={"ties": "rank"})
    assert [fault.found for fault in raised.value.faults] == [
        "no column 'rank'",
        "ClassAccuracy@3 without a catalogue",
        "no column 'value'",
    ], "a policy, a measure without its input and one without its column, all at once"

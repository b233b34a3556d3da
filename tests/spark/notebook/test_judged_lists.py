"""Judgements that name their list, on DataFrames: nested logs, and what is refused before a job starts."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from rankeval_spark import attributed_interactions, evaluate
from rankeval_spark.errors import InputError
from tests.evaluate.test_judged_lists import FLOATS, IN_TIME, JUDGED, LOG, with_unread_lists
from tests.support.arrow_frames import by, where
from tests.support.nested_logs import nested
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.datetime(2026, 1, 1)


@pytest.mark.parametrize("form", ["flat", "nested"])
def test_each_list_is_scored_against_its_own_judgements(spark: SparkSession, form: str) -> None:
    log = spark.createDataFrame(nested(LOG) if form == "nested" else LOG)
    numbers = spark.createDataFrame(JUDGED).withColumn("list_id", F.col("list_id").cast("int"))
    missing = numbers.withColumn("list_id", F.lit(None).cast("int"))
    found = evaluate(log, numbers.unionByName(missing), measures=["R", "RR"])
    values = where(found.user_metrics.toArrow(), k=0)
    assert by(values, "list_id", value="r") == {"1": 1.0, "2": 1.0}
    assert by(values, "list_id", value="rr") == {"1": 1.0, "2": 1 / 2}
    checks = where(found.checks.toArrow(), input="held_out")
    assert by(checks, "check", value="count")["null_keys"] == 2


@pytest.mark.parametrize(
    ("name", "asked", "unnamed"), [("floats", IN_TIME, ""), ("without a value", {}, "list_id"), ("arrays", {}, "")]
)
def test_pooled_lists_read_no_list_of_either_table(
    spark: SparkSession, name: str, asked: dict[str, Any], unnamed: str
) -> None:
    log, held_out = map(spark.createDataFrame, with_unread_lists(name))
    result = evaluate(log.drop(unnamed), held_out, **sections(measures=["R"], lists="pooled", **asked))
    assert where(result.metrics.toArrow(), slice="all")["value"].to_pylist() == [1.0]
    checks = where(result.checks.toArrow(), check="null_keys")
    assert by(checks, "input", value="count") == {"recommendations": 0, "held_out": 0}


def test_what_contradicts_lists_of_judgements_is_refused(spark: SparkSession) -> None:
    log, held_out = spark.createDataFrame(LOG), spark.createDataFrame(JUDGED)
    with pytest.raises(InputError, match=r"recommendations=\): found no column 'list_id'"):
        evaluate(log.drop("list_id"), held_out, measures=["R"]).metrics  # noqa: B018 - a result is used
    with pytest.raises(InputError, match="of type double for list_id; expected text or whole numbers"):
        evaluate(log, spark.createDataFrame(FLOATS), measures=["R"]).metrics  # noqa: B018 - as above
    timed = log.withColumn("recommended_at", F.lit(DAY)), held_out.withColumn("interacted_at", F.lit(DAY))
    with pytest.raises(InputError, match=r"held_out=\): found a column 'list_id' and attribution='all'"):
        evaluate(*timed, **sections(measures=["R"], **IN_TIME)).metrics  # noqa: B018 - as above
    with pytest.raises(InputError, match=r"held_out=\): found a column 'list_id' and attribution='all'"):
        attributed_interactions(*timed, **IN_TIME)

"""Segments of scored rows, whichever order and company they stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.engine.slices import PACKED, unpack_segments
from rankeval_spark.sums.published import pack_segments
from tests.support.frames import table, tuples
from tests.support.plans import JOB_FAILED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAPS: tuple[dict[str, str | None] | None, ...] = (
    {"country": "DE", "device": "phone"},
    {"device": "phone", "country": "DE"},
    {"country": "DE", "tier": "gold", "device": "phone"},
    {"country": "DE", "device": None},
    {"country": "DE"},
    {},
    None,
)


def test_segments_are_found_wherever_they_stand() -> None:
    maps = pa.array([None if one is None else list(one.items()) for one in MAPS], pa.map_(pa.string(), pa.string()))
    users = unpack_segments(pa.table({PACKED: pack_segments(maps, ["country", "device"])}))

    assert users.column_names == ["_segment_0", "_segment_1"]
    assert users["_segment_0"].to_pylist() == [(one or {}).get("country") for one in MAPS]
    assert users["_segment_1"].to_pylist() == [(one or {}).get("device") for one in MAPS]


def sliced(spark: SparkSession, segments: DataFrame, *users: str) -> DataFrame:
    """Evaluate a list a user by all columns of their segments: a mean, and a measure of all lists together."""
    log = table(spark, "user_id item_id score", *((user, "a", 1.0) for user in users))
    held_out = table(spark, "user_id item_id", *((user, "a") for user in users))
    names = [name for name in segments.columns if name != "user_id"]
    result = evaluate(log, held_out, measures=["P@1", "ItemCoverage@1"], segments=segments, slices=names)
    metrics: DataFrame = result.metrics
    return metrics.where("slice <> 'all'")


def test_a_segment_may_have_any_name_and_a_row_without_a_user_is_left_out(spark: SparkSession) -> None:
    names = ["a.b", "age band", "back`tick", "größe"]
    rows = [(user, *[value] * len(names)) for user, value in (("ann", "1"), (None, "2"), (None, "1"))]
    users = table(spark, "user_id w x y z", *rows).toDF("user_id", *names)
    means = sliced(spark, users, "ann", "bob")
    values = tuples(means.selectExpr("*", "slice_values[0] AS own_value"), "slice", "own_value", "measure", "n_users")
    expected = [
        (name, value, measure, 1) for name in names for value in (None, "1") for measure in ("ItemCoverage", "P")
    ]
    assert values == expected


def test_a_user_twice_among_the_segments_fails_the_job_if_they_have_a_list(spark: SparkSession) -> None:
    users = table(spark, "user_id country", ("bob", "FR"), ("zoe", "DE"), ("zoe", "DE"), ("ann", "IT"))
    assert sliced(spark, users, "ann", "bob").count() == 4
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:segments\] user 'zoe' occurs twice"):
        sliced(spark, users, "ann", "zoe").count()

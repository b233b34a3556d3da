"""Segments of scored rows, whichever order and company they stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.engine.aggregation.slices import unpacked
from rankeval_spark.spark.rows.slice_columns import segments_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAPS: tuple[dict[str, str | None] | None, ...] = (
    {"country": "DE", "device": "phone"},
    {"device": "phone", "country": "DE"},
    {"country": "DE", "tier": "gold", "device": "phone"},
    {"country": "DE", "device": None},
    {"country": "DE"},
    {},
    None,
)


def test_segments_are_found_wherever_they_stand(spark: SparkSession) -> None:
    columns, sliced_by = segments_of([(), ("country",), ("country", "device")])
    rows = spark.createDataFrame([(one,) for one in MAPS], "segments map<string, string>").select(*columns).toArrow()
    users = unpacked(rows)

    assert sliced_by == [(), ("_segment_0",), ("_segment_0", "_segment_1")]
    assert users.column_names == ["_segment_0", "_segment_1"]
    assert users["_segment_0"].to_pylist() == [(one or {}).get("country") for one in MAPS]
    assert users["_segment_1"].to_pylist() == [(one or {}).get("device") for one in MAPS]


def test_no_segment_is_no_column(spark: SparkSession) -> None:
    columns, sliced_by = segments_of([()])

    assert (columns, sliced_by) == ([], [()])
    assert spark.createDataFrame([(None,)], "segments map<string, string>").select(*columns).columns == []

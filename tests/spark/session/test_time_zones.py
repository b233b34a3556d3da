"""What an input says of time is read alike in every zone: at midnight, and in the hours that clocks skip and repeat."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from rankeval_spark import schemas
from rankeval_spark.config import Filter
from rankeval_spark.engine.attribution import to_micros
from rankeval_spark.inputs.arrow.reading import to_source
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import IS_UNPARSABLE
from rankeval_spark.inputs.spark.reading import from_frame
from rankeval_spark.time_zones import moment_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ZONES: Final = ("UTC", "America/New_York", "Asia/Kolkata")

TIMES: Final = {
    "2026-03-08 02:30:00": "2026-03-08T02:30:00",  # an hour that New York skips
    "2026-11-01 01:30:00": "2026-11-01T01:30:00",  # and one that it has twice
    "2026-01-31": "2026-01-31T00:00:00",
    " 2026-01-31 05:00 ": "2026-01-31T05:00:00",
    "2026-01-31T23:59:59.999999": "2026-01-31T23:59:59.999999",
    "2026-01-31T06:00:00+05:30": "2026-01-31T00:30:00",
    "2026-01-31 06:00:00 America/New_York": "2026-01-31T11:00:00",
    "2026-01-31T06:00:00Z": "2026-01-31T06:00:00",
    "no time": None,
    None: None,
}
"""Times as they stand in a file, and what they are in UTC."""

DAY: Final = dt.date(2026, 3, 8)


def micros(text: str | None) -> int | None:
    """Microseconds since 1970 of a time in UTC."""
    if text is None:
        return None
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def interactions(frame: DataFrame) -> DataFrame:
    """Read the column `at` as the time of interactions."""
    named = frame.select(F.lit("u").alias("user_id"), F.lit("a").alias("item_id"), frame["at"].alias("interacted_at"))
    return from_frame("train", named, schemas.TRAIN).frame


@pytest.mark.parametrize("zone", ZONES)
def test_time_without_a_zone_is_in_utc(spark: SparkSession, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    text = spark.createDataFrame([(each,) for each in TIMES], "at string")
    read = interactions(text).select(F.unix_micros("interacted_at"), IS_UNPARSABLE).collect()
    assert [row[0] for row in read] == [micros(each) for each in TIMES.values()]
    assert [row[1] for row in read] == [each == "no time" for each in TIMES]

    zoneless = text.select(F.col("at").try_cast("timestamp_ntz").alias("at")).limit(5)
    read = interactions(zoneless).select(F.unix_micros("interacted_at")).collect()
    assert [row[0] for row in read] == [micros(each) for each in list(TIMES.values())[:5]]

    days = text.select(F.lit(DAY).alias("at")).limit(1)
    read = interactions(days).select(F.unix_micros("interacted_at")).collect()
    assert [row[0] for row in read] == [micros("2026-03-08T00:00:00")]


@pytest.mark.parametrize("zone", ZONES)
def test_times_that_name_lists_are_in_utc(spark: SparkSession, zone: str) -> None:
    """Otherwise two lists would have one name in the hour that clocks repeat."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    texts = ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-03-08T07:00:00.000001Z", "1969-12-31T23:59:59.5Z"]
    rows = spark.createDataFrame([(each,) for each in texts], "at string").select(F.col("at").try_cast("timestamp"))
    named = rows.select(*(F.lit(each).alias(f"{each}_id") for each in ("user", "item")), F.col("at").alias("list_id"))
    log = from_frame("recommendations", named.withColumn("score", F.lit(1.0)), schemas.RECOMMENDATIONS).frame
    assert [row.list_id for row in log.select("list_id").collect()] == [
        "2026-11-01 05:30:00",
        "2026-11-01 06:30:00",
        "2026-03-08 07:00:00.000001",
        "1969-12-31 23:59:59.5",
    ]


@pytest.mark.parametrize("zone", ZONES)
def test_day_of_a_filter_begins_at_midnight_in_utc(spark: SparkSession, zone: str) -> None:
    """Late data of the day before stays out, and none of the day's last microsecond is lost."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    moments = [
        "2026-03-07T23:59:59.999999Z",
        "2026-03-08T00:00:00Z",
        "2026-03-08T23:59:59.999999Z",
        "2026-03-09T00:00:00Z",
    ]
    rows = spark.createDataFrame([(index, each) for index, each in enumerate(moments)], "id int, text string")
    instants = rows.withColumn("at", F.col("text").cast("timestamp"))
    zoneless = rows.withColumn("at", F.col("text").cast("timestamp_ntz"))
    of_day = [
        Filter(column="at", op=">=", value="{date}"),
        Filter(column="at", op="<", value="2026-03-09T05:30:00+05:30"),
    ]
    for frame in (instants, zoneless):
        condition = RowFilter(of_day, DAY).spark_condition(frame.schema)
        assert condition is not None
        assert [row.id for row in frame.where(condition).collect()] == [1, 2]


AN_HOUR: Final = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        pytest.param("UTC", dt.date(2026, 3, 29), 24, id="UTC"),
        pytest.param("Asia/Tokyo", dt.date(2026, 1, 31), 24, id="Tokyo"),
        pytest.param("Asia/Kolkata", dt.date(2026, 1, 31), 24, id="half an hour apart"),
        pytest.param("Europe/Berlin", dt.date(2026, 3, 29), 23, id="day of 23 hours"),
        pytest.param("America/New_York", dt.date(2026, 11, 1), 25, id="day of 25 hours"),
        pytest.param("Australia/Lord_Howe", dt.date(2026, 4, 5), 24.5, id="day of 24 hours and a half"),
        pytest.param("America/Sao_Paulo", dt.date(2018, 11, 4), 23, id="no midnight"),
        pytest.param("Africa/Cairo", dt.date(2026, 4, 24), 23, id="no midnight in Cairo"),
        pytest.param("America/Havana", dt.date(2026, 11, 1), 25, id="two midnights"),
        pytest.param("Asia/Beirut", dt.date(2026, 10, 24), 25, id="an hour before midnight twice"),
    ],
)
def test_day_of_a_zone_is_the_same_on_both_hosts(spark: SparkSession, zone: str, day: dt.date, hours: float) -> None:
    """Every half hour around it: as moments, as its clocks show them, and as both are read from text without a zone."""
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    noon = dt.datetime(day.year, day.month, day.day, 12, tzinfo=dt.UTC)
    moments = [noon + place * AN_HOUR / 2 for place in range(-96, 96)]
    shown = [moment.astimezone(ZoneInfo(zone)) for moment in moments]
    texts = [f"{each:%Y-%m-%d %H:%M:%S}" for each in shown]
    here = pa.table(
        {
            "id": list(range(len(moments))),
            "moment": pa.array(moments, pa.timestamp("us", "UTC")),
            "clock": pa.array([each.replace(tzinfo=None) for each in shown], pa.timestamp("us")),
            "text": texts,
        }
    )
    there = spark.createDataFrame(here.drop_columns("clock")).withColumn("clock", F.col("text").cast("timestamp_ntz"))
    in_day = [place for place, each in enumerate(shown) if each.date() == day]
    assert len(in_day) == hours * 2
    kinds = ("moment", "clock", "text")
    windows = [
        RowFilter(Filter(column=kind, op="last", value="1d").expand_window(0), day, time_zone=zone) for kind in kinds
    ]
    conditions = [(window.spark_condition(there.schema), kind) for kind, window in zip(kinds, windows, strict=True)]
    flags = [condition.alias(kind) for condition, kind in conditions if condition is not None]
    on_spark = there.select("id", *flags).toArrow().sort_by("id")
    for kind, window in zip(kinds, windows, strict=True):
        assert here.filter(window.arrow_condition(here.schema))["id"].to_pylist() == in_day, kind
        assert [place for place, is_in in enumerate(on_spark[kind].to_pylist()) if is_in] == in_day, kind
    expected = [to_micros(moment_of(each.replace(tzinfo=None), zone)) for each in shown]
    for kind in kinds[1:]:
        named = there.select(
            F.lit("u").alias("user_id"), F.lit("a").alias("item_id"), F.col(kind).alias("interacted_at")
        )
        read = from_frame("train", named, schemas.TRAIN, time_zone=zone).frame
        assert sorted(row[0] for row in read.select(F.unix_micros("interacted_at")).collect()) == sorted(expected), kind
        named_here = pa.table({"user_id": texts, "item_id": texts, "interacted_at": here[kind]})
        source = to_source("train", named_here, schemas.TRAIN, time_zone=zone).table
        assert source["interacted_at"].cast(pa.int64()).to_pylist() == expected, kind

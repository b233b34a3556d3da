"""The training interactions and the catalogue: lists, vectors and days come out the same from every format."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import schemas
from rankeval_spark.config import TrainInput, validate_model
from rankeval_spark.errors import ConfigError
from rankeval_spark.inputs.input_columns import IS_UNPARSABLE
from rankeval_spark.inputs.spark.reading import from_frame
from tests.support.frames import frame_of
from tests.support.spark_inputs import read, rows, write_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.date(2025, 12, 31)
ITEM_COLUMNS = ["item_id", "categories", "vector", "published_at"]
KNOWN = ("a", ["rock", "blues|jazz"], [0.5, -1.0], DAY)
UNKNOWN = ("b", None, None, None)


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_lists_and_days_of_the_catalogue_come_out_the_same(spark: SparkSession, tmp_path: Path, form: str) -> None:
    schema = "item_id string, genres array<string>, vector array<float>, published_at date"
    spark.createDataFrame([KNOWN, UNKNOWN], schema).write.format(form).save(str(tmp_path / "items"))
    path = str(tmp_path / "items")
    source = read(spark, schemas.ITEMS, format=form, path=path, columns={"categories": "genres"})
    types = {field.name: field.type for field in schemas.ITEMS.fields}
    assert {name: source.frame.schema[name].dataType.simpleString() for name in types} == types
    assert rows(source.frame, *ITEM_COLUMNS) == [KNOWN, UNKNOWN]


def test_lists_in_text_are_split_at_the_declared_separator(spark: SparkSession, tmp_path: Path) -> None:
    lines = ("item_id,categories,vector", "a,rock.|blues ||,0.5| -1", "b,,", "c,jazz,0.5|x")
    path = write_lines(tmp_path / "items.csv", *lines)
    source = read(spark, schemas.ITEMS, format="csv", path=path, list_separator="|")
    assert rows(source.frame, "item_id", "categories", "vector", IS_UNPARSABLE) == [
        ("a", ["rock.", "blues"], [0.5, -1.0], False),
        ("b", None, None, False),
        ("c", ["jazz"], None, True),
    ]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
def test_day_of_a_time_is_that_in_utc(spark: SparkSession, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    late = dt.datetime(2025, 12, 31, 23, 30, tzinfo=dt.UTC)
    frame = frame_of(spark, [("a", late)], "item_id string, published_at timestamp")
    assert rows(from_frame("items", frame, schemas.ITEMS).frame, "item_id", "published_at") == [("a", DAY)]
    naive = frame.selectExpr("item_id", "timestamp_ntz'2025-12-31 23:30:00' AS published_at")
    assert rows(from_frame("items", naive, schemas.ITEMS).frame, "published_at") == [(DAY,)]


def test_training_interactions_have_a_time_or_none(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "train.csv", "user_id,item_id", "u,a", "u,a")
    source = read(spark, schemas.TRAIN, format="csv", path=path)
    assert rows(source.frame, "user_id", "item_id", "interacted_at") == [("u", "a", None)] * 2


def test_only_the_catalogue_has_a_separator_of_lists() -> None:
    with pytest.raises(ConfigError, match="unknown key 'list_separator'"):
        validate_model(TrainInput, {"format": "csv", "path": "x", "list_separator": "|"})

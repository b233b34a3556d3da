"""The training interactions and the catalogue: lists, vectors and days come out the same from every format."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import schemas
from rankeval_spark.config import ItemsInput, TrainInput, validate_model
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.inputs.spark import IS_UNPARSABLE, Source, from_frame, read_input
from tests.support.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATE = dt.date(2026, 1, 2)
DAY = dt.date(2025, 12, 31)
ITEM_COLUMNS = ["item_id", "categories", "vector", "published_at"]
KNOWN = ("a", ["rock", "blues|jazz"], [0.5, -1.0], DAY)
UNKNOWN = ("b", None, None, None)


def items(spark: SparkSession, path: Path, form: str, **config: Any) -> Source:  # noqa: ANN401 - any keys of the config
    return read_input(
        spark, "items", validate_model(ItemsInput, {"format": form, "path": str(path), **config}), schemas.ITEMS, DATE
    )


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=repr)


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_lists_and_days_of_the_catalogue_come_out_the_same(spark: SparkSession, tmp_path: Path, form: str) -> None:
    schema = "item_id string, genres array<string>, vector array<float>, published_at date"
    spark.createDataFrame([KNOWN, UNKNOWN], schema).write.format(form).save(str(tmp_path / "items"))
    source = items(spark, tmp_path / "items", form, columns={"categories": "genres"})
    assert [source.frame.schema[name].dataType.simpleString() for name in ITEM_COLUMNS] == [
        field.type for field in schemas.ITEMS.fields
    ]
    assert rows(source.frame, *ITEM_COLUMNS) == [KNOWN, UNKNOWN]


def test_lists_in_text_are_split_at_the_declared_separator(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item_id,categories,vector\na,rock.|blues ||,0.5| -1\nb,,\nc,jazz,0.5|x\n", encoding="utf-8")
    source = items(spark, path, "csv", list_separator="|")
    assert rows(source.frame, "item_id", "categories", "vector", IS_UNPARSABLE) == [
        ("a", ["rock.", "blues"], [0.5, -1.0], False),
        ("b", None, None, False),
        ("c", ["jazz"], None, True),
    ]


def test_text_that_is_no_json_array_is_unknown_and_marked(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text('item_id;categories\na;["rock"]\nb;rock\n', encoding="utf-8")
    source = items(spark, path, "csv", options={"sep": ";", "quote": "'"})
    assert rows(source.frame, "item_id", "categories", IS_UNPARSABLE) == [("a", ["rock"], False), ("b", None, True)]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
def test_day_of_a_time_is_that_in_utc(spark: SparkSession, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    late = dt.datetime(2025, 12, 31, 23, 30, tzinfo=dt.UTC)
    frame = frame_of(spark, [("a", late)], "item_id string, published_at timestamp")
    assert rows(from_frame("items", frame, schemas.ITEMS).frame, "item_id", "published_at") == [("a", DAY)]
    naive = frame.selectExpr("item_id", "timestamp_ntz'2025-12-31 23:30:00' AS published_at")
    assert rows(from_frame("items", naive, schemas.ITEMS).frame, "published_at") == [(DAY,)]


def test_training_interactions_have_a_time_or_none(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("user_id,item_id\nu,a\nu,a\n", encoding="utf-8")
    source = read_input(
        spark, "train", validate_model(TrainInput, {"format": "csv", "path": str(path)}), schemas.TRAIN, DATE
    )
    assert rows(source.frame, "user_id", "item_id", "interacted_at") == [("u", "a", None)] * 2


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("vector string, categories int", "column 'categories' of type int for categories; expected a type that"),
        (
            "vector array<array<double>>",
            "column 'vector' of type array<array<double>> for vector; expected a type that",
        ),
        ("published_at double", "column 'published_at' of type double for published_at; expected a type that"),
    ],
)
def test_column_of_another_type_is_refused(spark: SparkSession, column: str, expected: str) -> None:
    frame = frame_of(spark, [], f"item_id string, {column}")
    with pytest.raises(InputError, match=expected.replace("(", r"\(")):
        from_frame("items", frame, schemas.ITEMS)


def test_only_the_catalogue_has_a_separator_of_lists() -> None:
    with pytest.raises(ConfigError, match="unknown key 'list_separator'"):
        validate_model(TrainInput, {"format": "csv", "path": "x", "list_separator": "|"})

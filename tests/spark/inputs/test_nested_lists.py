"""Logs with one row per list from files: arrays, structs and JSON come out as the rows of a flat log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import schemas
from rankeval_spark.engine import row_kinds
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.input_columns import IS_UNPARSABLE, RAW
from tests.support import spark_inputs
from tests.support.spark_inputs import write_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.inputs.spark.reading import Source

ROWS: Final = [("ann", 7, 0.5, 1), ("ann", 8, 0.25, 2), ("bob", 9, 1.0, 1)]
LISTS: Final = {"ann": ([7, 8], [0.5, 0.25]), "bob": ([9], [1.0]), "eve": ([], [])}
ARRAYS: Final = {"items": "ids", "scores": "scores"}
STRUCTS: Final = {"items": "recs.id", "scores": "recs.rating"}


def read(spark: SparkSession, path: Path, form: str, **given: Any) -> Source:  # noqa: ANN401 - keys of the config
    return spark_inputs.read(spark, schemas.RECOMMENDATIONS, format=form, path=str(path), **given)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return spark_inputs.rows(frame, "user_id", "item_id", "score", "rank")


def arrays(spark: SparkSession) -> DataFrame:
    given = [(user, *both) for user, both in LISTS.items()]
    return spark.createDataFrame(given, "user_id string, ids array<int>, scores array<float>")


def structs(spark: SparkSession) -> DataFrame:
    return (
        arrays(spark)
        .selectExpr("user_id", "arrays_zip(ids, scores) recs")
        .selectExpr("user_id", "cast(recs as array<struct<id: int, rating: float>>) recs")
    )


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_arrays_and_structs_are_the_rows_of_a_flat_log(spark: SparkSession, tmp_path: Path, form: str) -> None:
    arrays(spark).write.format(form).save(str(tmp_path / "arrays"))
    structs(spark).write.format(form).save(str(tmp_path / "structs"))
    for name, nested in (("arrays", ARRAYS), ("structs", STRUCTS)):
        source = read(spark, tmp_path / name, form, nested=nested)
        assert rows(source.frame) == ROWS
        assert {"score", "rank"} <= source.given
        assert source.id_types == {"user_id": "string", "item_id": "bigint"}
        assert source.unread == ()
        assert source.lists is not None
        found = {
            row.user_id: (row[row_kinds.LISTED_ITEMS], row[row_kinds.LISTED_SCORES]) for row in source.lists.collect()
        }
        assert found == {user: both for user, both in LISTS.items() if both[0]}
    alone = read(spark, tmp_path / "arrays", form, nested={"items": "ids"})
    assert rows(alone.frame) == [(user, item, None, rank) for user, item, _, rank in ROWS]
    assert "score" not in alone.given


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_json_in_text_is_read(spark: SparkSession, tmp_path: Path, form: str) -> None:
    given = [
        (
            user,
            json.dumps(items),
            json.dumps(scores),
            json.dumps([{"id": i, "rating": s} for i, s in zip(items, scores, strict=True)]),
        )
        for user, (items, scores) in LISTS.items()
    ]
    table = spark.createDataFrame(given, "user_id string, ids string, scores string, recs string")
    table.write.format(form).options(header=True, escape='"').save(str(tmp_path / "log"))
    options = {"options": {"escape": '"'}} if form == "csv" else {}
    for nested in (ARRAYS, STRUCTS):
        source = read(spark, tmp_path / "log", form, nested=nested, types={"item_id": "integer"}, **options)
        assert rows(source.frame) == ROWS


def test_arrays_of_json_lines_are_read(spark: SparkSession, tmp_path: Path) -> None:
    structs(spark).write.json(str(tmp_path / "log"))
    source = read(spark, tmp_path / "log", "json", nested=STRUCTS, types={"item_id": "integer"})
    assert rows(source.frame) == ROWS


def test_text_that_is_no_array_counts_as_one_row_without_an_item(spark: SparkSession, tmp_path: Path) -> None:
    lines = ('{"user_id": "ann", "ids": "[1, 2"}', '{"user_id": "bob", "ids": "[3]"}', "broken")
    write_lines(tmp_path / "r.json", *lines)
    source = read(spark, tmp_path / "r.json", "json", nested={"items": "ids"})
    assert rows(source.frame) == [("ann", None, None, 1), ("bob", "3", None, 1), (None, None, None, 1)]
    raw = {row[RAW] for row in source.with_raw.frame.where("item_id is null").collect()}
    assert "broken" in raw
    assert any("ann" in one for one in raw), raw


def test_ids_and_scores_that_are_no_numbers_are_null_and_marked(spark: SparkSession, tmp_path: Path) -> None:
    given = [("ann", ["7", "x"], ["0.5", "high"])]
    spark.createDataFrame(given, "user_id string, ids array<string>, scores array<string>").write.parquet(
        str(tmp_path / "r")
    )
    source = read(spark, tmp_path / "r", "parquet", nested=ARRAYS, types={"item_id": "integer"})
    assert rows(source.frame) == [("ann", 7, 0.5, 1), ("ann", None, None, 2)]
    assert [row[IS_UNPARSABLE] for row in source.frame.orderBy("rank").collect()] == [False, True]
    assert source.lists is not None
    assert [row[row_kinds.LISTED_ITEMS] for row in source.lists.collect()] == [[7, None]]


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ({"items": "idz"}, r"inputs\.recommendations\.nested\.items.*no column 'idz'.*did you mean 'ids'"),
        ({"items": "ids.id"}, r"'ids\.id' of type array<int>; expected an array, a field of an array of structs"),
        ({"items": "user_id", "scores": "n"}, r"nested\.scores.*'n' of type int"),
    ],
)
def test_other_shapes_are_refused(spark: SparkSession, tmp_path: Path, nested: dict[str, str], message: str) -> None:
    arrays(spark).selectExpr("*", "1 n").write.parquet(str(tmp_path / "r"))
    with pytest.raises(InputError, match=message):
        read(spark, tmp_path / "r", "parquet", nested=nested)

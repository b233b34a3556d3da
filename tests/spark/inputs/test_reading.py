"""Reading inputs: every format comes out in the same canonical columns."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession, functions as F

from rankeval_spark import schemas
from rankeval_spark.inputs.input_columns import IS_UNPARSABLE, segments_schema
from rankeval_spark.inputs.spark.probes import estimated_bytes, is_wholly_empty
from rankeval_spark.inputs.spark.reading import from_frame
from tests.support.frames import frame_of
from tests.support.spark_inputs import DATE, read, rows, write_lines

RECOMMENDATION_COLUMNS: Final = ["model_id", "user_id", "list_id", "item_id", "score", "rank"]
recommendations = partial(read, schema=schemas.RECOMMENDATIONS)
held_out = partial(read, schema=schemas.HELD_OUT)


@pytest.mark.parametrize("form", ["delta", "parquet", "orc", "csv", "json"])
def test_every_format_gives_the_same_canonical_rows(spark: SparkSession, tmp_path: Path, form: str) -> None:
    log = frame_of(
        spark, [("m", "007", "x", 1.5, 1), ("m", "7", "y", 0.5, 2)], "m string, u string, i string, s double, rank int"
    )
    log.write.format(form).options(**({"header": True} if form == "csv" else {})).save(str(tmp_path / "log"))

    columns = {"model_id": "m", "user_id": "u", "item_id": "i", "score": "s"}
    source = recommendations(spark, format=form, path=str(tmp_path / "log"), columns=columns)

    assert source.frame.columns[:6] == RECOMMENDATION_COLUMNS
    assert rows(source.frame, *RECOMMENDATION_COLUMNS) == [
        ("m", "007", "", "x", 1.5, 1),
        ("m", "7", "", "y", 0.5, 2),
    ]
    assert [field.dataType.simpleString() for field in source.frame.schema.fields[:6]] == [
        *["string"] * 4,
        "double",
        "int",
    ]
    assert {"score", "rank", "model_id"} <= source.given
    assert ("list_id" in source.given, "model_id" in source.given) == (False, True)
    assert (IS_UNPARSABLE in source.given) == (form in ("csv", "json"))
    assert source.version == (0 if form == "delta" else None)


def test_columns_that_the_table_does_not_have_hold_their_defaults(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.csv", "user_id,item_id,rank", "u,i,1")
    assert rows(recommendations(spark, format="csv", path=path).frame, *RECOMMENDATION_COLUMNS) == [
        ("model", "u", "", "i", None, 1)
    ]
    path = write_lines(tmp_path / "h.csv", "user_id,item_id", "u,i")
    source = held_out(spark, format="csv", path=path)
    assert rows(source.frame, "user_id", "item_id", "gain") == [("u", "i", 1.0)]
    assert "gain" not in source.given


def test_whole_number_ids_become_bigint_and_stay_so(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).selectExpr("cast(3 as int) user_id", "cast(4 as decimal(18,0)) item_id").write.parquet(
        str(tmp_path / "h")
    )
    source = held_out(spark, format="parquet", path=str(tmp_path / "h"))
    assert source.id_types == {"user_id": "bigint", "item_id": "bigint"}
    assert dict(source.frame.dtypes)["user_id"] == "bigint"
    assert rows(source.frame, "user_id", "item_id") == [(3, 4)]


def test_types_cast_ids_both_ways(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "h.csv", "user_id,item_id", "007,a", "abc,b", ",c")
    source = held_out(spark, format="csv", path=path, types={"user_id": "integer"})
    assert rows(source.frame, "user_id", "item_id", IS_UNPARSABLE) == [
        (7, "a", False),
        (None, "b", True),
        (None, "c", False),
    ]
    spark.range(7, 8).selectExpr("id user_id", "'a' item_id").write.parquet(str(tmp_path / "p"))
    source = held_out(spark, format="parquet", path=str(tmp_path / "p"), types={"user_id": "string"})
    assert rows(source.frame, "user_id") == [("7",)]


@pytest.mark.parametrize("kind", ["bigint", "smallint", "decimal(30,25)", "decimal(38,0)"])
def test_scores_keep_the_type_of_whole_numbers_and_decimals(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    log = spark.range(1).select(F.lit("u").alias("user_id"), F.lit("a").alias("item_id"))
    log.withColumn("score", F.lit(1).cast(kind)).write.parquet(str(tmp_path / "r"))
    source = recommendations(spark, format="parquet", path=str(tmp_path / "r"))
    assert source.frame.schema["score"].dataType.simpleString() == kind


def test_csv_columns_go_by_name_in_every_file(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "h" / "1.csv", "item_id;extra;user_id", "'i;1';z;u")
    source = held_out(spark, format="csv", path=str(tmp_path / "h"), options={"sep": ";", "quote": "'"})
    assert rows(source.frame, "user_id", "item_id") == [("u", "i;1")]


def test_csv_with_a_byte_order_mark_is_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_bytes("\ufeffuser_id,item_id\nu,i\n".encode())
    assert rows(held_out(spark, format="csv", path=str(tmp_path / "h.csv")).frame, "user_id", "item_id") == [("u", "i")]


def test_broken_csv_line_has_no_key_and_is_marked(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "h.csv", "user_id,item_id,gain", "u,a,1", "u,b", "u,c,1,9")
    frame = held_out(spark, format="csv", path=path).frame
    assert rows(frame, "user_id", "item_id", IS_UNPARSABLE) == [
        ("u", "a", False),
        (None, None, True),
        (None, None, True),
    ]


def test_broken_json_line_has_no_key_and_is_marked(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        '{"user_id": "u", "item_id": 7, "gain": 2}',
        '{"user_id": "u", "ite',
        '{"user_id": "u", "item_id": "8", "gain": "x"}',
    ]
    frame = held_out(spark, format="json", path=write_lines(tmp_path / "h.json", *lines)).frame
    assert rows(frame, "user_id", "item_id", "gain", IS_UNPARSABLE) == [
        ("u", "7", 2.0, False),
        ("u", "8", None, True),
        (None, None, None, True),
    ]
    assert frame.agg(F.count_if(IS_UNPARSABLE)).collect()[0][0] == 2


def test_delta_stays_at_the_version_it_was_pinned_to(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    row = frame_of(spark, [("u", "a")], "user_id string, item_id string")
    row.write.format("delta").save(path)
    source = held_out(spark, format="delta", path=path)
    row.write.format("delta").mode("append").save(path)

    assert (source.version, source.frame.count()) == (0, 1)
    assert (held_out(spark, format="delta", path=path).version) == 1
    assert held_out(spark, format="delta", path=path, version=0).frame.count() == 1


def test_delta_timestamp_takes_the_newest_version_of_that_time(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    frame_of(spark, [("u", "a")], "user_id string, item_id string").write.format("delta").save(path)
    assert held_out(spark, format="delta", path=path, timestamp="2999-01-01").version == 0


def test_catalog_tables_are_read_by_name(spark: SparkSession) -> None:
    row = frame_of(spark, [("u", "a")], "user_id string, item_id string")
    for form in ("delta", "parquet"):
        row.write.format(form).mode("overwrite").saveAsTable(f"default.held_out_{form}")
        source = held_out(spark, format=form, table=f"default.held_out_{form}")
        assert rows(source.frame, "user_id", "item_id") == [("u", "a")]
        assert source.location == f"default.held_out_{form}"
        spark.sql(f"DROP TABLE default.held_out_{form}")


def test_a_table_of_any_format_and_a_view_of_the_caller_are_read_by_name(spark: SparkSession) -> None:
    row = spark.createDataFrame([("u", "a", 2.0)], "user_id string, item_id string, stars double")
    row.createOrReplaceTempView("rated")
    row.write.format("orc").mode("overwrite").saveAsTable("default.held_out_orc")
    for name in ("rated", "default.held_out_orc"):
        source = held_out(spark, format="table", table=name, columns={"gain": "stars"})
        assert rows(source.frame, "user_id", "item_id", "gain") == [("u", "a", 2.0)]
        assert (source.location, source.format, source.version) == (name, "table", None)
    spark.sql("DROP TABLE default.held_out_orc")
    spark.catalog.dropTempView("rated")


def test_orc_files_of_different_columns_have_those_of_all(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    spark.createDataFrame([("u", "a")], "user_id string, item_id string").write.orc(path)
    with_gain = spark.createDataFrame([("u", "b", 2.0)], "user_id string, item_id string, gain double")
    with_gain.write.mode("append").orc(path)
    source = held_out(spark, format="orc", path=path)
    assert rows(source.frame, "item_id", "gain") == [("a", None), ("b", 2.0)]
    assert "gain" in source.given


def test_date_is_filled_in_path_and_filter(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "2026-01-02" / "h.csv", "user_id,item_id,day", "u,a,2026-01-02", "u,b,2026-01-01")
    filters = [{"column": "day", "op": "=", "value": "{date}"}]
    source = held_out(spark, format="csv", path=str(tmp_path / "{date}"), filters=filters)
    assert rows(source.frame, "item_id") == [("a",)]
    assert source.location.endswith("2026-01-02")


def test_segments_are_text_by_user(spark: SparkSession, tmp_path: Path) -> None:
    users = frame_of(spark, [(1, 30, None), (2, 40, "f")], "user_id int, age int, sex string")
    users.write.format("delta").save(str(tmp_path / "s"))
    schema = segments_schema(("age", "gender"))
    source = read(spark, schema, format="delta", path=str(tmp_path / "s"), columns={"gender": "sex"})
    assert rows(source.frame, "user_id", "age", "gender") == [(1, "30", None), (2, "40", "f")]
    assert source.frame.columns == ["user_id", "age", "gender"]


def test_empty_date_is_distinguished_from_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    row = frame_of(spark, [("u", "a", DATE)], "user_id string, item_id string, day date")
    row.write.format("delta").save(str(tmp_path / "some"))
    row.limit(0).write.format("delta").save(str(tmp_path / "none"))
    filters = [{"column": "day", "op": "=", "value": "2020-01-01"}]
    some = held_out(spark, format="delta", path=str(tmp_path / "some"), filters=filters)
    assert some.frame.isEmpty()
    assert not is_wholly_empty(some)
    assert is_wholly_empty(held_out(spark, format="delta", path=str(tmp_path / "none")))
    header_only = write_lines(tmp_path / "h.csv", "user_id,item_id")
    assert is_wholly_empty(held_out(spark, format="csv", path=header_only))


def test_only_the_needed_columns_are_read(spark: SparkSession, tmp_path: Path) -> None:
    row = frame_of(spark, [("u", "a", "x")], "user_id string, item_id string, unused string")
    row.write.parquet(str(tmp_path / "h"))
    source = held_out(spark, format="parquet", path=str(tmp_path / "h"))
    assert source.frame.columns == schemas.HELD_OUT.field_names()
    assert 100 < estimated_bytes(source) < 10_000  # one small file


def test_frame_of_a_notebook_comes_out_canonical_too(spark: SparkSession) -> None:
    frame = frame_of(spark, [(1, 2, 3)], "user_id int, item_id int, score int")
    spark.sparkContext.setJobGroup("from_frame", "no job is expected")
    source = from_frame("recommendations", frame, schemas.RECOMMENDATIONS)
    spark.sparkContext.setJobGroup("", "")
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("from_frame")) == []
    assert rows(source.frame, *RECOMMENDATION_COLUMNS) == [("model", 1, "", 2, 3.0, None)]


def test_column_names_are_never_code(spark: SparkSession, tmp_path: Path) -> None:
    odd = "a.b`c d"
    frame_of(spark, [("u", "i")], "user_id string, x string").toDF("user_id", odd).write.parquet(str(tmp_path / "h"))
    filters = [{"column": odd, "op": "=", "value": "i"}]
    source = held_out(spark, format="parquet", path=str(tmp_path / "h"), columns={"item_id": odd}, filters=filters)
    assert rows(source.frame, "item_id") == [("i",)]

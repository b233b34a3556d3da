"""Selection by date: only the partitions of the day, or of the days, are read."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from rankeval_spark import schemas
from rankeval_spark.config import HeldOutInput, RecommendationsInput, validate_model
from rankeval_spark.inputs.arrow import files
from rankeval_spark.inputs.arrow.arrow_types import spark_name
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_columns import CORRUPT
from rankeval_spark.inputs.spark.opening import open_table
from rankeval_spark.inputs.spark.reading import read_input
from tests.support.plans import files_read

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DATE = dt.date(2026, 1, 5)
OF_DAY = [{"column": "day", "op": "=", "value": "{date}"}]
BEFORE = [{"column": "day", "op": "=", "value": "{date-1}"}]
WINDOW = [{"column": "day", "op": ">=", "value": "{date-2}"}, {"column": "day", "op": "<=", "value": "{date}"}]
LAST = [{"column": "day", "op": "last", "value": "3d"}]
NEXT = [{"column": "day", "op": "next", "value": "2d"}]
CASES = [
    pytest.param(OF_DAY, ["i5"], id="the day"),
    pytest.param(BEFORE, ["i4"], id="the day before"),
    pytest.param(WINDOW, ["i3", "i4", "i5"], id="a window of days"),
    pytest.param(LAST, ["i3", "i4", "i5"], id="the last days"),
    pytest.param([{**NEXT[0], "value": "1d"}], ["i6"], id="the next day"),
    pytest.param([*OF_DAY, {"column": "item_id", "op": "!=", "value": "i5"}], [], id="and a filter of rows"),
]


def write_days(spark: SparkSession, path: Path, form: str, type_: str) -> None:
    """Write seven days, one row each, in a partition of their own."""
    number = F.col("id").cast("string")
    day = F.concat(F.lit("2026-01-0"), number).cast(type_)
    rows = spark.range(1, 8, 1, 1).select(
        F.lit("u").alias("user_id"),
        F.concat(F.lit("i"), number).alias("item_id"),
        day.alias("day"),
        F.col("id").alias("n"),
    )
    rows.write.format(form).partitionBy("day").save(str(path))


def config_of(path: Path, form: str, filters: list[dict[str, Any]]) -> HeldOutInput:
    return validate_model(HeldOutInput, {"format": form, "path": str(path), "filters": filters})


def items(frame: DataFrame) -> list[str]:
    return sorted(row.item_id for row in frame.collect())


@pytest.mark.parametrize(("filters", "expected"), CASES)
@pytest.mark.parametrize("written", ["parquet date", "delta date", "delta string"])
def test_spark_reads_the_partitions_of_the_days_alone(
    spark: SparkSession, tmp_path: Path, written: str, filters: list[dict[str, Any]], expected: list[str]
) -> None:
    form, type_ = written.split()
    write_days(spark, tmp_path / "t", form, type_)
    source = read_input(spark, "held_out", config_of(tmp_path / "t", form, filters), schemas.HELD_OUT, DATE)
    assert items(source.frame) == expected
    n_files = files_read(source.frame)
    assert n_files == len(expected) or (not expected and n_files <= 1)  # by its statistics, Delta leaves that one out
    assert files_read(source.unfiltered) == 7


@pytest.mark.parametrize(("filters", "expected"), CASES[:5])
def test_this_process_reads_the_partitions_of_the_days_alone(
    spark: SparkSession, tmp_path: Path, filters: list[dict[str, Any]], expected: list[str]
) -> None:
    write_days(spark, tmp_path / "t", "delta", "date")
    config = config_of(tmp_path / "t", "delta", filters)
    table = files.open_files(config, DATE)
    condition = RowFilter(config.filters, DATE).arrow_condition(table.schema)
    assert sorted(table.read(["item_id"], condition)["item_id"].to_pylist()) == expected
    assert len([*table.dataset.get_fragments(filter=condition)]) == table.count(condition) == len(expected)


EDGES = {
    "2026-01-02": [],
    "2026-01-03": LAST,
    "2026-01-05": LAST,
    "2026-01-06": NEXT,
    "2026-01-07": NEXT,
    "2026-01-08": [],
}
"""The days at both ends of the windows and next to them, each with the window that it is in."""
TIMES = ("T00:00:00", "T23:59:59.999999")
OF_TYPES = {
    "dates": ("delta", [""], pa.date32()),
    "text": ("delta", [""], pa.string()),
    "text with times": ("delta", TIMES, pa.string()),
    "times in UTC": ("delta", TIMES, pa.timestamp("us", "UTC")),
    "times without a zone": ("parquet", TIMES, pa.timestamp("us")),
}


@pytest.mark.parametrize("window", [LAST, NEXT], ids=["last", "next"])
@pytest.mark.parametrize("type_", OF_TYPES)
def test_windows_have_their_first_and_last_day_whole(
    spark: SparkSession, tmp_path: Path, type_: str, window: list[dict[str, Any]]
) -> None:
    form, times, arrow_type = OF_TYPES[type_]
    days = [f"{day}{time}" for day in EDGES for time in times]
    text = pa.array(days)
    at = text if arrow_type == pa.string() else text.cast(pa.timestamp("us")).cast(arrow_type)
    table = pa.table({"day": at, "user_id": ["u"] * len(days), "item_id": days})
    if form == "delta":
        deltalake.write_deltalake(tmp_path / "t", table)
    else:
        pq.write_table(table, tmp_path / "t")
    config = config_of(tmp_path / "t", form, window)

    opened = files.open_files(config, DATE)
    here = opened.read(["item_id"], RowFilter(config.filters, DATE).arrow_condition(opened.schema))
    there = read_input(spark, "held_out", config, schemas.HELD_OUT, DATE).frame

    expected = [day for day in days if EDGES[day[:10]] == window]
    assert sorted(here["item_id"].to_pylist()) == items(there) == expected


@pytest.mark.parametrize(
    ("filters", "n_files", "models"),
    [
        (WINDOW, 6, {"als", "pop"}),
        (LAST, 6, {"als", "pop"}),
        ([*WINDOW, {"column": "model_id", "op": "=", "value": "pop"}], 3, {"pop"}),
    ],
    ids=["of both models", "of both models, the last days", "of one model"],
)
def test_of_a_place_for_each_model_the_partitions_of_the_days_are_read(
    spark: SparkSession, tmp_path: Path, filters: list[dict[str, Any]], n_files: int, models: set[str]
) -> None:
    for model in ("als", "pop"):
        write_days(spark, tmp_path / model, "delta", "date")
    paths = {model: str(tmp_path / model) for model in ("als", "pop")}
    given = {"format": "delta", "paths": paths, "filters": filters, "columns": {"rank": "n"}}
    config = validate_model(RecommendationsInput, given)
    table = files.open_files(config, DATE)
    condition = RowFilter(config.filters, DATE).arrow_condition(table.schema)
    here = table.read(["model_id", "item_id", "day"], condition)
    assert len([*table.dataset.get_fragments(filter=condition)]) == table.count(condition) == n_files
    frame = read_input(spark, "recommendations", config, schemas.RECOMMENDATIONS, DATE).frame
    assert files_read(frame) == n_files
    found = {(row.model_id, row.item_id) for row in frame.collect()}
    assert found == {(row["model_id"], row["item_id"]) for row in here.to_pylist()}
    assert found == {(model, f"i{day}") for model in models for day in (3, 4, 5)}


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_folders_are_columns_of_the_same_types_on_both_hosts(spark: SparkSession, tmp_path: Path, form: str) -> None:
    names = {
        **{"whole": ["7", "+08", "-1"], "large": ["1", "2147483648"], "day": ["2026-01-01", "0001-12-31"]},
        **{"text": ["2026-1-1", "2026-02-30", "true"], "mixed": ["2026-01-01", "20260102", "a"]},
        **{"escaped": ["a%20b", "c%3Dd", "%C3%A4", "ä", "100%", "x=y"], "null": [files.NULL, "3"]},
    }
    text = {"csv": "item_id,user_id\na,u\n", "json": '{"item_id": "a"}\n'}
    for name, values in names.items():
        for value in values:
            folder = tmp_path / name / f"year=2026/{name}={value}"
            folder.mkdir(parents=True)
            if form == "parquet":
                pq.write_table(pa.table({"item_id": ["a"]}), folder / "p.parquet")
            else:
                (folder / f"p.{form}").write_text(text[form])
        config = validate_model(HeldOutInput, {"format": form, "path": str(tmp_path / name)})
        here = files.open_files(config, DATE)
        there = open_table(spark, "held_out", config, DATE)[0].drop(CORRUPT)
        assert [(one.name, spark_name(one.type)) for one in here.schema] == there.dtypes, name
        rows = [tuple(row.values()) for row in here.read(here.schema.names, None).to_pylist()]
        assert sorted(rows, key=str) == sorted(map(tuple, there.collect()), key=str), name


def test_a_folder_of_the_day_before_is_read(spark: SparkSession, tmp_path: Path) -> None:
    for name, item in (("2026-01-04", "a"), ("2026-01-05", "b")):
        spark.createDataFrame([("u", item)], "user_id string, item_id string").write.parquet(str(tmp_path / name))
    config = validate_model(HeldOutInput, {"format": "parquet", "path": f"{tmp_path}/{{date-1}}"})
    assert items(read_input(spark, "held_out", config, schemas.HELD_OUT, DATE).frame) == ["a"]

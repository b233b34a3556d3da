"""Structured filters compare as the column's type says."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from rankeval_spark.config import Filter, validate_model
from rankeval_spark.inputs.filters import RowFilter
from tests.support.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATE = dt.date(2026, 1, 2)
HOSTILE = "a` OR 1=1 --.`b"


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    """Three rows, of which the last is NULL throughout."""
    moment = dt.datetime(2026, 1, 2, 6, tzinfo=dt.UTC)
    rows = [
        (1, "9", 9, 0.5, dt.date(2026, 1, 1), moment, True),
        (2, "10", 10, 1.5, DATE, moment + dt.timedelta(hours=1), False),
        (3, None, None, None, None, None, None),
    ]
    schema = "id int, text string, whole bigint, number double, day date, at timestamp, flag boolean"
    table = frame_of(spark, rows, schema).withColumn("amount", F.col("number").cast("decimal(10,2)"))
    return table.withColumn(HOSTILE, F.lit("1=1"))


@pytest.mark.parametrize(
    ("column", "op", "value", "ids"),
    [
        ("text", "=", "9", [1]),
        ("text", "<", "9", [2]),  # as text
        ("text", "<", 10, [1]),  # as numbers
        ("text", "in", ["9", "10"], [1, 2]),
        ("text", "in", [9.0, 11], [1]),
        ("text", "!=", "9", [2]),  # NULL fulfils nothing
        ("text", "=", "' OR 1=1 --", []),
        ("text", "!=", "reflect('java.lang.System', 'exit', 1)", [1, 2]),
        (HOSTILE, "=", "x", []),
        (HOSTILE, "in", ["x", "1=1"], [1, 2, 3]),
        ("whole", ">=", 10, [2]),
        ("whole", "=", "9", [1]),
        ("whole", ">", 9.5, [2]),
        ("number", "<=", 0.5, [1]),
        ("amount", "=", 1.5, [2]),
        ("day", "=", "{date}", [2]),
        ("day", "in", ["2026-01-01", "{date}"], [1, 2]),
        ("at", "<", "2026-01-02 06:30:00", [1]),
        ("at", "<", "2026-01-02T06:30:00+01:00", []),
        ("at", ">=", "{date}", [1, 2]),
        ("flag", "=", True, [1]),
        ("flag", "!=", True, [2]),
    ],
)
def test_filter_compares_as_the_type_of_the_column(
    table: DataFrame,
    column: str,
    op: str,
    value: object,
    ids: list[int],
) -> None:
    condition = RowFilter([validate_model(Filter, {"column": column, "op": op, "value": value})], DATE).spark_condition(
        table.schema
    )
    assert condition is not None
    assert sorted(row.id for row in table.where(condition).collect()) == ids


def test_all_filters_have_to_hold(table: DataFrame) -> None:
    both = [Filter(column="whole", op=">", value=8), Filter(column="flag", op="=", value=False)]
    condition = RowFilter(both, DATE).spark_condition(table.schema)
    assert condition is not None
    assert [row.id for row in table.where(condition).collect()] == [2]
    assert RowFilter([], DATE).spark_condition(table.schema) is None

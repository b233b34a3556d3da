"""Filters as conditions of Arrow: they compare as the type of the column says, or are left to Spark."""

from __future__ import annotations

import datetime as dt
from typing import Final

import pyarrow as pa
import pytest

from rankeval_spark.config import Filter, validate_model
from rankeval_spark.inputs.filters import RowFilter
from rankeval_spark.inputs.input_files import ForSparkError

DATE: Final = dt.date(2026, 1, 2)
SIX: Final = dt.datetime(2026, 1, 2, 6, tzinfo=dt.UTC)
TABLE: Final = pa.table(
    {
        "id": [1, 2, 3],
        "text": ["9", "10", None],
        "whole": pa.array([9, 10, None], pa.int16()),
        "number": [0.5, 1.5, None],
        "day": [dt.date(2026, 1, 1), DATE, None],
        "at": pa.array([SIX, SIX + dt.timedelta(hours=1), None], pa.timestamp("ms", "Asia/Kolkata")),
        "clock": pa.array([SIX.replace(tzinfo=None), dt.datetime(2026, 1, 2, 7), None], pa.timestamp("us")),
        "flag": [True, False, None],
    }
)


def filter_of(column: str, op: str, value: object) -> RowFilter:
    return RowFilter([validate_model(Filter, {"column": column, "op": op, "value": value})], DATE)


@pytest.mark.parametrize(
    ("column", "op", "value", "ids"),
    [
        ("text", "<", "9", [2]),
        ("text", "in", ["9", "10"], [1, 2]),
        ("text", "!=", "9", [2]),
        ("whole", ">=", 10, [2]),
        ("whole", "=", "9", [1]),
        ("day", "in", ["2026-01-01", "{date}"], [1, 2]),
        ("at", "<", "2026-01-02T06:30:00", [1]),
        ("at", "<", "2026-01-02T06:30:00+01:00", []),
        ("clock", "<", "2026-01-02T07:30:00+01:00", [1]),
        ("flag", "!=", True, [2]),
    ],
)
def test_filter_compares_as_the_type_of_the_column(column: str, op: str, value: object, ids: list[int]) -> None:
    condition = filter_of(column, op, value).arrow_condition(TABLE.schema)
    assert TABLE.filter(condition)["id"].to_pylist() == ids


@pytest.mark.parametrize(
    ("column", "op", "value"),
    [
        ("number", "<=", 0.5),  # NaN and rounding
        ("whole", ">", 9.5),
        ("text", "<", 10),  # a number with the number in a text
        ("whole", "=", "nine"),
        ("whole", "=", True),
        ("whole", "=", 2**63),
        ("flag", "=", "true"),
        ("day", "=", "20260102"),
        ("at", "=", "noon"),
        ("clock", "<", "9999-12-31T23:59:59-10:00"),
        ("days", "=", "2026-01-02"),
    ],
)
def test_filter_that_spark_compares_or_refuses_is_left_to_it(column: str, op: str, value: object) -> None:
    with pytest.raises(ForSparkError):
        filter_of(column, op, value).arrow_condition(TABLE.schema)


def test_input_without_filters_has_no_condition() -> None:
    assert RowFilter([], DATE).arrow_condition(TABLE.schema) is None

"""A table of pandas has the same canonical columns in this process as on Spark, cell by cell."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pytest

from rankeval_spark import schemas
from rankeval_spark.config.inputs import LogRows
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow.reading import to_source
from rankeval_spark.inputs.input_columns import IS_UNPARSABLE, segments_schema
from rankeval_spark.inputs.spark.reading import from_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.schemas import Schema

DAY: Final = dt.date(2026, 1, 31)
NOON: Final = dt.datetime(2026, 1, 31, 12, 30, 0, 250_000)
NUMBERS: Final = (
    *("1.5", " 2 ", "-3", "+4", "1e3", "1E-400", "1e400", ".5", "5.", "1d", "2F", "NaN", "nan", "Infinity", "-inf"),
    *("+Infinity", "", " ", "x", "1,5", "1_000", "0x10", "1e", "nan(1)", "--1", "１", "true", "\t7\n", None),
)
RANKS: Final = ("1", " 2", "+3", "-4", "007", "1.0", "1e1", "2147483647", "2147483648", "99999999999", "", "x", None)
TIMES: Final = (
    *("2026-03-08 02:30:00", "2026-01-31", " 2026-01-31 05:00 ", "2026-1-3", "2026-01-31T23:59:59.999999"),
    *("2026-01-31T06:00:00+05:30", "2026-01-31 06:00:00 America/New_York", "2026-01-31T06:00:00Z", "2026-02-29"),
    *("2024-02-29", "2026-13-01", "2026-01-01T25:00", "2026-01-01T00:00:00.1234567", "2026-01-01T00:00:00-1:00"),
    *("2026-01-01T10", "2026-01-01 00:00:00 UTC", "2026-01-01 00:00:00 Mars/Phobos", "2026", "2026-02", "x"),
    *("2026-01-01T00:00:00+19:00", "2026-01-01T00:00:00 UTC+3", "26-01-01", "1969-12-31 23:59:59.5", None),
)
LISTS: Final = (
    *('["rock", "pop"]', "['rock', \"it's\"]", "[]", " [1, 2.5] ", "[true, null]", '["a", null]', '{"a": 1}', "rock"),
    *(
        "",
        "null",
        '"rock"',
        '["open"',
        "[NaN]",
        '["\\u00e9", "\\"q\\""]',
        None,
        '["a"] x',
        "['a',]",
        '["a" "b"]',
        "[1e2]",
        '[["a", 1]]',
        '[{"a": 1}]',
        "[01]",
        '["a\\/b"]',
        "['a\"b']",
        "['a\tb']",
        '["a\\tb"]',
        "[-Infinity]",
        "[123456789012345678901234567890]",
        "[None]",
        "[True]",
        "[0.1]",
        "['it\\'s']",
        '["a"]]',
        "[1.50]",
        "[ ]",
    ),
)


def ids(**columns: Any) -> pd.DataFrame:  # noqa: ANN401 - cells of any type
    """Make a table with ids."""
    (n_rows,) = {len(column) for column in columns.values()}
    return pd.DataFrame({"user_id": [*range(n_rows)], "item_id": [f"i{number}" for number in range(n_rows)], **columns})


def typed(type_: str, *values: object) -> pd.Series[Any]:
    return pd.Series(values, dtype=type_)


FRAMES: Final[dict[str, tuple[Schema, pd.DataFrame]]] = {
    "log": (
        schemas.RECOMMENDATIONS,
        ids(model_id=["als", None], list_id=[1, 2], score=[0.5, None], rank=[1, 2], extra=[1, 2]),
    ),
    "scores in text": (schemas.RECOMMENDATIONS, ids(score=[*NUMBERS])),
    "whole scores": (schemas.RECOMMENDATIONS, ids(score=[2**53, 2**53 + 1])),
    "decimal scores": (schemas.RECOMMENDATIONS, ids(score=[Decimal("1.50"), Decimal("2.25")])),
    "true scores": (schemas.RECOMMENDATIONS, ids(score=[True, False])),
    "ranks in text": (schemas.RECOMMENDATIONS, ids(rank=[*RANKS])),
    "long ranks": (schemas.RECOMMENDATIONS, ids(rank=[1, -1, 0, 2**31 - 1, 2**31, -(2**31), -(2**63)])),
    "small ranks": (schemas.RECOMMENDATIONS, ids(rank=typed("int8", 0, 1, -1))),
    "judgements": (schemas.HELD_OUT, ids(gain=[1, 2], value=["3.5", "x"], interacted_at=[NOON, None])),
    "judgements without gains": (schemas.HELD_OUT, ids(value=typed("float32", 0.1, 2.0))),
    "times in text": (schemas.TRAIN, ids(interacted_at=[*TIMES])),
    "days of interactions": (schemas.TRAIN, ids(interacted_at=[DAY, None])),
    "seconds": (schemas.TRAIN, ids(interacted_at=[0, 1_767_225_600, -1])),
    "seconds and parts": (schemas.TRAIN, ids(interacted_at=[0.5, 1e30, None, -1.25])),
    "seconds and milliseconds": (schemas.TRAIN, ids(interacted_at=[1_767_225_600_000, 253_402_300_799, -(2**63)])),
    "items": (schemas.ITEMS, ids(categories=[["a", "b"], [], None], vector=[[1.0], [2.5], None])),
    "lists of numbers": (schemas.ITEMS, ids(categories=[[1, 2], [3]], vector=[[1, 2], [3]])),
    "lists with a gap": (schemas.ITEMS, ids(categories=[["a", None], ["b"]], vector=[["1", "x"], ["2.5", " 3"]])),
    "lists in text": (schemas.ITEMS, ids(categories=[*LISTS], vector=[*LISTS])),
    "vectors in text": (schemas.ITEMS, ids(vector=["[1, 2.5]", '["1e3"]', "[1, x]", "[]"])),
    "days in text": (schemas.ITEMS, ids(published_at=[*TIMES])),
    "days of times": (schemas.ITEMS, ids(published_at=[NOON, None])),
    "segments": (
        segments_schema(("text", "flag", "whole", "number", "single", "day", "at", "exact", "age"), numbers=("age",)),
        ids(
            text=["a", None, ""],
            flag=[True, False, True],
            whole=typed("int16", 1, -2, 3),
            number=[1.0, 1e-5, 1.25e7],
            single=typed("float32", 0.1, 1e7, 100.0),
            day=[DAY, None, dt.date(1, 1, 1)],
            at=[NOON, dt.datetime(2026, 1, 1), None],
            exact=[Decimal("1.50"), Decimal("0.00"), None],
            age=["31", "x", None],
        ),
    ),
}
WRONG: Final[dict[str, tuple[Schema, pd.DataFrame]]] = {
    "no ids": (schemas.HELD_OUT, pd.DataFrame({"user": ["u"], "item": ["a"]})),
    "no score": (schemas.RECOMMENDATIONS, ids(scores=[1.0])),
    "neither": (schemas.RECOMMENDATIONS, ids(x=[1.0])),
    "ranks": (schemas.RECOMMENDATIONS, ids(rank=[1.5])),
    "several": (schemas.HELD_OUT, pd.DataFrame({"user_id": ["u"], "gain": [DAY], "interacted_at": [True]})),
    "scores in arrays": (schemas.RECOMMENDATIONS, ids(model_id=["x"], score=[[1.0]])),
    "catalogue": (schemas.ITEMS, ids(categories=[1], vector=[[[1.0]]], published_at=[1.0])),
}


CASES: Final = [
    *((title, 1) for title in FRAMES),
    *((title, 0) for title, (_, frame) in FRAMES.items() if "rank" in frame),
]


@pytest.mark.parametrize(("title", "ranks_from"), CASES)
def test_cells_are_those_of_spark(spark: SparkSession, title: str, ranks_from: int) -> None:
    schema, frame = FRAMES[title]
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = LogRows(ranks_from=ranks_from) if schema is schemas.RECOMMENDATIONS else None
    on_spark = from_frame(schema.name, spark.createDataFrame(frame), schema, rows)
    here = to_source(schema.name, frame, schema, rows)
    expected = on_spark.frame.toArrow()
    assert here.given == on_spark.given - {IS_UNPARSABLE}
    assert here.id_types == on_spark.id_types
    for name in here.table.column_names:
        cells = expected[name].cast(here.table[name].type).to_pylist()
        assert repr(here.table[name].to_pylist()) == repr(cells), name
    is_unreadable = [False] * len(frame) if here.unreadable is None else here.unreadable.to_pylist()
    assert is_unreadable == (
        expected[IS_UNPARSABLE].to_pylist() if IS_UNPARSABLE in on_spark.given else [False] * len(frame)
    )


@pytest.mark.parametrize("title", WRONG)
def test_faults_are_those_of_spark(spark: SparkSession, title: str) -> None:
    schema, frame = WRONG[title]
    with pytest.raises(InputError) as on_spark:
        from_frame(schema.name, spark.createDataFrame(frame), schema)
    with pytest.raises(InputError) as here:
        to_source(schema.name, frame, schema)
    assert here.value.faults == on_spark.value.faults

"""Cells, whole lists and broken lines of text become canonical rows, as both hosts read them."""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import schemas
from rankeval_spark.config import HeldOutInput, ItemsInput, RecommendationsInput, validate_model
from rankeval_spark.errors import InputError
from rankeval_spark.inputs.arrow import canonical, texts
from rankeval_spark.inputs.arrow.canonical import Reading, read_batches
from rankeval_spark.inputs.input_columns import CORRUPT, RAW

INFINITE: Final = float("inf")
NUMBERS: Final = {
    **{"1.5": 1.5, " 2 ": 2.0, "-3": -3.0, "+4": 4.0, "1e3": 1000.0, ".5": 0.5, "5.": 5.0, "\t7\n": 7.0},
    **{"1d": 1.0, "2F": 2.0, "1E-400": 0.0, "1e400": INFINITE, "Infinity": INFINITE, "-inf": -INFINITE},
    **dict.fromkeys(("", " ", "x", "1,5", "1_000", "0x10", "1e", "nan(1)", "--1", "１", "true")),
}
WHOLE: Final = {
    **{"1": 1, " 2": 2, "+3": 3, "-4": -4, "007": 7, "99999999999": 99_999_999_999, "0" * 30 + "5": 5},
    **{"9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63)},
    **dict.fromkeys(("9223372036854775808", "1" * 25, "1.0", "1e1", "0x10", "", " ", "x", "-")),
}
TIMES: Final = {
    "2026-03-08 02:30:00": "2026-03-08 02:30:00.000000Z",
    "2026-01-31": "2026-01-31 00:00:00.000000Z",
    " 2026-01-31 05:00 ": "2026-01-31 05:00:00.000000Z",
    "2026-1-3": "2026-01-03 00:00:00.000000Z",
    "2026-01-31T06:00:00+05:30": "2026-01-31 00:30:00.000000Z",
    "2026-01-31 06:00:00 America/New_York": "2026-01-31 11:00:00.000000Z",
    "2026-01-01T00:00:00.1234567": "2026-01-01 00:00:00.123456Z",
    "2026-01-01T00:00:00-1:00": "2026-01-01 01:00:00.000000Z",
    "2026-01-01T10": "2026-01-01 10:00:00.000000Z",
    "2026-01-01T00:00:00 UTC+3": "2025-12-31 21:00:00.000000Z",
    "2026": "2026-01-01 00:00:00.000000Z",
    "1969-12-31 23:59:59.5": "1969-12-31 23:59:59.500000Z",
    **dict.fromkeys(
        ("2026-02-29", "2026-13-01", "2026-01-01T25:00", "2026-01-01 00:00:00 Mars/Phobos", "x", "26-01-01")
    ),
}
LISTS: Final = {
    '["rock", "pop"]': ["rock", "pop"],
    "['rock', \"it's\"]": ["rock", "it's"],
    " [1, 2.5] ": ["1", "2.5"],
    '[true, null, ["a", 1], {"a": 1}]': ["true", None, '["a",1]', '{"a":1}'],
    '["\\u00e9", "\\"q\\"", "a\\/b"]': ["é", '"q"', "a/b"],
    "[NaN]": ['"NaN"'],
    '["a"] x': ["a"],
    "['a\"b', 'it\\'s']": ['a"b', "it's"],
    "[]": [],
    **dict.fromkeys(('{"a": 1}', "rock", "", "null", '"rock"', '["open"', "['a',]", '["a" "b"]', "[01]", "[None]")),
}


@pytest.mark.parametrize(
    ("read", "cells"),
    [(texts.to_doubles, NUMBERS), (texts.to_whole, WHOLE), (texts.read_times, TIMES), (texts.to_text_lists, LISTS)],
    ids=["numbers", "whole numbers", "times", "lists"],
)
def test_texts_are_read_as_spark_casts_them(read: Any, cells: dict[str, object]) -> None:  # noqa: ANN401 - four types
    """The values were recorded from Spark's casts, and stay those of both hosts."""
    found = read(pa.chunked_array([pa.array([*cells, None])]))
    found = found.cast(pa.string()) if pa.types.is_timestamp(found.type) else found
    assert dict(zip(cells, found.to_pylist()[:-1], strict=True)) == cells
    assert found.to_pylist()[-1] is None


def test_days_are_read_with_and_without_a_time() -> None:
    days = {"2026-01-31": "2026-01-31", " 2026-1-3T05:00 ": "2026-01-03", "2026-02": "2026-02-01", "2026-02-29": None}
    found = texts.read_days(pa.chunked_array([pa.array([*days])])).cast(pa.string())
    assert found.to_pylist() == [*days.values()]


def rows_of(reading: Reading, table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    found = pa.Table.from_batches(read_batches(table.to_batches(), reading, names))
    return [tuple(row.values()) for row in found.to_pylist()]


def log_of(**given: Any) -> Reading:  # noqa: ANN401 - keys of the config
    config = validate_model(RecommendationsInput, {"format": "json", "path": "x", **given})
    return Reading.from_rows("inputs.recommendations", schemas.RECOMMENDATIONS, config)


def test_ids_are_cast_to_whole_numbers_and_to_text() -> None:
    table = pa.table({"user_id": ["007", "abc", None], "item_id": [1, 2, None]})
    given = {"format": "csv", "path": "x", "types": {"user_id": "integer", "item_id": "string"}}
    reading = Reading.from_rows("inputs.held_out", schemas.HELD_OUT, validate_model(HeldOutInput, given))
    found = rows_of(reading, table, "user_id", "item_id", "is_unparsable")
    assert found == [(7, "1", False), (None, "2", True), (None, None, False)]


def test_lists_in_text_are_split_at_their_separator() -> None:
    given = {"format": "csv", "path": "x", "list_separator": "|"}
    reading = Reading.from_rows("inputs.items", schemas.ITEMS, validate_model(ItemsInput, given))
    table = pa.table(
        {"item_id": [*"abcd"], "categories": ["rock.| a b ||", "", None, "x"], "vector": ["1| -.5", "x|1", None, ""]}
    )
    assert rows_of(reading, table, "categories", "vector", "is_unparsable") == [
        (["rock.", "a b"], [1.0, -0.5], False),
        ([], None, True),
        (None, None, False),
        (["x"], [], False),
    ]


def test_line_that_could_not_be_split_has_no_key_and_is_marked() -> None:
    table = pa.table(
        {"user_id": ["u", "v"], "item_id": ["a", "b"], "gain": ["2", "3"], CORRUPT: [None, "v,b"], RAW: ["{}", "v,b"]}
    )
    reading = Reading("held_out", schemas.HELD_OUT)
    found = rows_of(reading, table, "user_id", "item_id", "gain", "is_unparsable", RAW)
    assert found == [("u", "a", 2.0, False, "{}"), (None, None, 3.0, True, "v,b")]


STRUCTS: Final = [
    '[{"id": 7, "score": 0.5}, {"id": "x", "score": 0.25}]',
    "[]",
    None,
    "[7]",
    "broken",
]
JSON_LOG: Final = pa.table(
    {"user_id": [*"abcde"], "recs": STRUCTS, CORRUPT: [None, None, None, None, "br"], RAW: ['{"user_id":"a"}'] * 5}
)
NESTED: Final[dict[str, Any]] = {
    "nested": {"items": "recs.id", "scores": "recs.score"},
    "types": {"item_id": "integer"},
}


def test_objects_in_text_become_rows_of_items() -> None:
    found = rows_of(log_of(**NESTED), JSON_LOG, "user_id", "item_id", "score", "rank", "is_unparsable")
    assert found == [
        ("a", 7, 0.5, 1, False),
        ("a", None, 0.25, 2, True),
        ("d", None, None, 1, False),
        (None, None, None, 1, True),
    ]


def test_objects_in_text_become_lists_with_their_arrays() -> None:
    names = ("user_id", "_listed_items", "_listed_scores")
    found = [*read_batches(JSON_LOG.to_batches(), log_of(**NESTED), names, as_lists=True)]
    assert [tuple(row.values()) for row in pa.Table.from_batches(found).to_pylist()] == [
        ("a", [7, None], [0.5, 0.25]),
        ("d", [None], [None]),
        (None, [None], [None]),
    ]


def test_unchanged_row_of_an_item_has_its_item_and_place() -> None:
    found = [row[0] for row in rows_of(log_of(**NESTED), JSON_LOG, RAW)]
    assert [json.loads(row) for row in found[:2]] == [
        {"user_id": "a", "recs.id": "7", "recs.score": "0.5", "_position": 1},
        {"user_id": "a", "recs.id": "x", "recs.score": "0.25", "_position": 2},
    ]
    assert found[3] == '{"user_id":"a"}'  # of a broken line, what Spark says of it


def test_texts_and_lists_with_large_offsets_are_read_too() -> None:
    """As a session hands them over whose settings say so."""
    text, lists = pa.large_string(), pa.large_list(pa.large_string())
    table = pa.table(
        {"user_id": pa.array(["a"], text), "ids": pa.array([["7", "x"]], lists), RAW: pa.array(["{}"], text)}
    )
    reading = log_of(nested={"items": "ids"}, types={"item_id": "integer"})
    found = rows_of(reading, table, "item_id", RAW)
    assert found == [(7, '{, "ids": "7", "_position": 1}'), (None, '{, "ids": "x", "_position": 2}')]


def test_many_lists_are_written_as_rows_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "MAX_LISTS", 2)
    table = pa.table({"user_id": [*"abcde"], "item_id": [[n] * n for n in range(5)]})
    reading = Reading.from_frame("recommendations", schemas.RECOMMENDATIONS, table.schema)
    parts = [*read_batches(table.to_batches(), reading, ["user_id", "item_id", "rank"])]
    assert [part.num_rows for part in parts] == [0 + 1, 2 + 3, 4]
    assert pa.Table.from_batches(parts)["rank"].to_pylist() == [1, 1, 2, 1, 2, 3, 1, 2, 3, 4]


def test_type_that_arrow_does_not_have_is_refused_by_its_name() -> None:
    table = pa.table({"user_id": ["u"], "item_id": ["a"], "gain": pa.array([b"x"], pa.binary())})
    opaque = pa.schema([*(table.schema.field(n) for n in (0, 1)), ("gain", pa.opaque(pa.binary(), "variant", "Spark"))])
    with pytest.raises(InputError, match="column 'gain' of type variant for gain"):
        Reading("held_out", schemas.HELD_OUT).read_columns(opaque.empty_table())

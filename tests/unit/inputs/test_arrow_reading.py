"""Tables of any library come out in the same canonical columns, of plain types."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from rankeval_spark import schemas
from rankeval_spark.config.inputs import LogRows
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.arrow.reading import is_table, to_source
from rankeval_spark.inputs.input_columns import segments_schema
from tests.support.code import ROOT

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.reading import Source

UTC: Final = dt.UTC
NOON: Final = dt.datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
DAY: Final = dt.date(2026, 1, 31)
IDS: Final = {"user_id": ["u", "v"], "item_id": ["a", "b"]}
LIBRARIES: Final[Mapping[str, Callable[[pa.Table], object]]] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "pyarrow": lambda table: table,
    "reader": lambda table: table.to_reader(),
    "duckdb": duckdb.from_arrow,
}


def read(schema: schemas.Schema, frame: object, *, ranks_from: int = 1) -> Source:
    rows = LogRows(ranks_from=ranks_from) if schema is schemas.RECOMMENDATIONS else None
    return to_source(schema.name, frame, schema, rows)


def faults_of(schema: schemas.Schema, frame: object) -> list[Fault]:
    with pytest.raises(InputError) as raised:
        read(schema, frame)
    return list(raised.value.faults)


def cells(name: str, column: pa.Array, schema: schemas.Schema = schemas.HELD_OUT) -> tuple[pa.DataType, list[Any]]:
    """Read one column; its type and its cells."""
    columns = {one: pa.array(range(len(column)), pa.int64()) for one in ("user_id", "item_id")}
    if schema is schemas.RECOMMENDATIONS and name != "score":
        columns["rank"] = columns["user_id"]
    columns[name] = column
    read_column = read(schema, pa.table(columns)).table[name]
    read_column.validate(full=True)
    return read_column.type, read_column.to_pylist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_of_every_library_come_out_the_same(library: str) -> None:
    log = pa.table(
        {
            "extra": ["x", "y", "z"],
            "rank": pa.array([1, 2, 1], pa.int32()),
            "score": [0.5, 0.25, 1.0],
            "item_id": pa.array([10, 11, 10], pa.int32()),
            "user_id": ["u", "u", "v"],
            "model_id": pa.array(["als", "als", "pop"]).dictionary_encode(),
        }
    )
    source = read(schemas.RECOMMENDATIONS, LIBRARIES[library](log))
    assert source.table.to_pydict() == {
        "model_id": ["als", "als", "pop"],
        "user_id": ["u", "u", "v"],
        "item_id": [10, 11, 10],
        "score": [0.5, 0.25, 1.0],
        "rank": [1, 2, 1],
    }
    assert [str(kind) for kind in source.table.schema.types] == ["string", "string", "int64", "double", "int32"]
    assert source.given == {"model_id", "user_id", "item_id", "score", "rank"}
    assert source.id_types == {"user_id": "string", "item_id": "bigint"}
    assert source.unreadable is None


@pytest.mark.parametrize("library", LIBRARIES)
def test_times_days_and_lists_of_every_library_come_out_the_same(library: str) -> None:
    held_out = pa.table({**IDS, "interacted_at": pa.array([NOON, None], pa.timestamp("ns", "Asia/Kolkata"))})
    source = read(schemas.HELD_OUT, LIBRARIES[library](held_out))
    assert source.table["interacted_at"].to_pylist() == [NOON, None]
    assert source.table["interacted_at"].type == pa.timestamp("us", "UTC")
    items = pa.table(
        {"item_id": ["a", "b"], "categories": [["x", "y"], []], "vector": [[1.0, 2.0], None], "published_at": [DAY] * 2}
    )
    source = read(schemas.ITEMS, LIBRARIES[library](items))
    assert source.table.to_pydict() == items.to_pydict()
    assert source.table.schema.types == [pa.string(), pa.list_(pa.string()), pa.list_(pa.float64()), pa.date32()]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_without_rows_have_their_columns(library: str) -> None:
    empty = pa.table({name: pa.array([], pa.string()) for name in schemas.HELD_OUT.field_names()})
    source = read(schemas.HELD_OUT, LIBRARIES[library](empty))
    assert source.table.num_rows == 0
    assert source.table.column_names == schemas.HELD_OUT.field_names()
    assert source.unreadable is None
    empty = pa.table({name: pa.array([], pa.string()) for name in schemas.ITEMS.field_names()})
    assert read(schemas.ITEMS, LIBRARIES[library](empty)).table.num_rows == 0


TEXTS: Final = {
    "string": pa.array(["7", None], pa.string()),
    "large_string": pa.array(["7", None], pa.large_string()),
    "string_view": pa.array(["7", None], pa.string_view()),
    "dictionary": pa.array(["7", None]).dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, None], pa.uint32()), pa.array(["7"], pa.string_view())
    ),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["7", None])),
}
WHOLE: Final = {
    **{str(kind): pa.array([7, None], kind) for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64())},
    "dictionary": pa.array([7, None], pa.int16()).dictionary_encode(),
    "decimal": pa.array([Decimal(7), None], pa.decimal128(18, 0)),
    "decimal64": pa.array([Decimal(7), None], pa.decimal64(5, 0)),
}


SCORES: Final[Mapping[str, tuple[pa.Array, pa.DataType, list[Any]]]] = {
    "float": (pa.array([0.5], pa.float32()), pa.float64(), [0.5]),
    "half": (pa.array([np.float16(0.5)], pa.float16()), pa.float64(), [0.5]),
    "whole": (pa.array([2**53 + 1]), pa.int64(), [2**53 + 1]),
    "small": (pa.array([3], pa.int16()), pa.int64(), [3]),
    "unsigned": (pa.array([3], pa.uint64()), pa.int64(), [3]),
    "largest": (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
    "decimal": (pa.array([Decimal("1.50")]), pa.decimal128(3, 2), [Decimal("1.50")]),
    "wide": (pa.array([Decimal("1.50")], pa.decimal256(9, 2)), pa.decimal128(9, 2), [Decimal("1.50")]),
    "flag": (pa.array([True, False]), pa.float64(), [1.0, 0.0]),
    "text": (pa.array(["1.5", "x"]), pa.float64(), [1.5, None]),
}


GAINS: Final = (pa.array([2**53]), pa.array([Decimal(2**53)]), pa.array([2**53], pa.uint64()), pa.array([str(2**53)]))


def test_judgements_without_gains_have_gains_of_1() -> None:
    source = read(schemas.HELD_OUT, pa.table({**IDS, "value": [1, 2]}))
    assert source.table.to_pydict() == {**IDS, "gain": [1.0, 1.0], "value": [1.0, 2.0]}
    assert source.given == {"user_id", "item_id", "value"}
    assert read(schemas.TRAIN, pa.table(IDS)).table.to_pydict() == IDS


def test_cells_that_cannot_be_read_are_null_and_marked_by_row() -> None:
    columns = {"user_id": [1, 2, 3], "item_id": [1, 2, 3], "gain": ["1", "x", None], "value": ["one", "2", "3"]}
    source = read(schemas.HELD_OUT, pa.table(columns))
    assert source.table["gain"].to_pylist() == [1.0, None, None]
    assert source.table["value"].to_pylist() == [None, 2.0, 3.0]
    assert isinstance(source.unreadable, pa.BooleanArray)
    assert source.unreadable.to_pylist() == [True, True, False]


NO_INT: Final = 2**31
RANKS: Final = {
    "long": pa.array([0, 1, NO_INT - 1, NO_INT, -1, None]),
    "unsigned": pa.array([0, 1, NO_INT - 1, NO_INT, None, None], pa.uint64()),
    "decimal": pa.array([Decimal(n) if n is not None else None for n in (0, 1, NO_INT - 1, NO_INT, -1, None)]),
    "text": pa.array(["0", "+1", str(NO_INT - 1), str(NO_INT), "-1", None]),
}


@pytest.mark.parametrize("title", RANKS)
def test_rank_that_an_int_does_not_hold_is_null(title: str) -> None:
    frame = pa.table({"user_id": [*range(6)], "item_id": [*range(6)], "rank": RANKS[title]})
    minus = None if title == "unsigned" else -1
    source = read(schemas.RECOMMENDATIONS, frame)
    assert source.table["rank"].type == pa.int32()
    assert source.table["rank"].to_pylist() == [0, 1, NO_INT - 1, None, minus, None]
    assert source.unreadable is not None
    assert source.unreadable.to_pylist() == [False, False, False, True, False, False]
    source = read(schemas.RECOMMENDATIONS, frame, ranks_from=0)
    assert source.table["rank"].to_pylist() == [1, 2, None, None, None, None]
    assert source.unreadable is not None
    assert source.unreadable.to_pylist() == [False, False, True, True, minus is not None, False]


EPOCH_DAY: Final = dt.datetime(2026, 1, 31, tzinfo=UTC)
INSTANTS: Final[Mapping[str, tuple[pa.Array, dt.datetime]]] = {
    **{unit: (pa.array([EPOCH_DAY], pa.timestamp(unit)), EPOCH_DAY) for unit in ("s", "ms", "us", "ns")},
    "zone": (pa.array([NOON], pa.timestamp("ms", "America/New_York")), NOON),
    "date32": (pa.array([DAY]), EPOCH_DAY),
    "date64": (pa.array([DAY], pa.date64()), EPOCH_DAY),
    "seconds": (pa.array([int(NOON.timestamp())]), NOON),
    "unsigned seconds": (pa.array([int(NOON.timestamp())], pa.uint32()), NOON),
    "parts of seconds": (pa.array([NOON.timestamp() + 0.25]), NOON + dt.timedelta(milliseconds=250)),
    "decimal seconds": (pa.array([Decimal("0.123457")]), dt.datetime(1970, 1, 1, 0, 0, 0, 123_457, tzinfo=UTC)),
    "text": (pa.array(["2026-01-31 18:00:00+05:30"]), NOON),
}


def test_seconds_that_are_no_time_are_unknown_and_not_marked() -> None:
    source = read(schemas.TRAIN, pa.table({**IDS, "interacted_at": [float("nan"), 1e30]}))
    assert source.table["interacted_at"].to_pylist() == [None, None]
    assert source.unreadable is None


DAYS: Final = (
    pa.array([dt.datetime(2026, 1, 31, 23, 30, tzinfo=UTC)], pa.timestamp("us", "Asia/Kolkata")),
    pa.array([dt.datetime(2026, 1, 31, 23, 30)], pa.timestamp("ns")),
    pa.array([DAY], pa.date64()),
    pa.array(["2026-1-31T23:30"]),
)


def test_day_before_1970_begins_at_midnight() -> None:
    moment = pa.array([-1], pa.timestamp("us", "America/New_York"))
    assert cells("published_at", moment, schemas.ITEMS)[1] == [dt.date(1969, 12, 31)]


LISTS: Final = {
    "list": pa.list_(pa.int8()),
    "large": pa.large_list(pa.float32()),
    "fixed": pa.list_(pa.int64(), 2),
    "view": pa.list_view(pa.uint8()),
    "large view": pa.large_list_view(pa.decimal128(5, 1)),
    "text": pa.list_(pa.string_view()),
}


@pytest.mark.parametrize("title", LISTS)
@pytest.mark.parametrize("start", [0, 1])
def test_vectors_of_every_kind_are_lists_of_doubles(title: str, start: int) -> None:
    kind = LISTS[title]
    number: Callable[[int], object] = {"text": str, "large view": Decimal}.get(title, int)
    values = [[number(1), number(2)], None, [number(3), number(4)]]
    assert cells("vector", pa.array(values, kind).slice(start), schemas.ITEMS) == (
        pa.list_(pa.float64()),
        [[1.0, 2.0], None, [3.0, 4.0]][start:],
    )


CATEGORIES: Final[Mapping[str, tuple[pa.Array, list[list[str] | None]]]] = {
    "large": (pa.array([["a", "b"], []], pa.large_list(pa.large_string())), [["a", "b"], []]),
    "coded": (
        pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array(["a", "b", "a"]).dictionary_encode()),
        [["a", "b"], ["a"]],
    ),
    "numbers": (pa.array([[1.0], [1e-5]]), [["1.0"], ["1.0E-5"]]),
    "text": (pa.array(['["a", 2]', "rock"]), [["a", "2"], None]),
}


def test_list_with_an_unreadable_element_is_unknown_and_marked() -> None:
    items = pa.table(
        {"item_id": [1, 2, 3], "vector": [[1.0, None], [2.0], None], "categories": [["a"], ["b", None], []]}
    )
    source = read(schemas.ITEMS, items)
    assert source.table["vector"].to_pylist() == [None, [2.0], None]
    assert source.table["categories"].to_pylist() == [["a"], None, []]
    assert source.unreadable is not None
    assert source.unreadable.to_pylist() == [True, True, False]


SEGMENTS: Final[Mapping[str, tuple[pa.Array, list[str | None]]]] = {
    "text": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "flags": (pa.array([True, False]), ["true", "false"]),
    "whole": (pa.array([-7], pa.int8()), ["-7"]),
    "double": (
        pa.array([1.0, 0.1, 1e7, 1e-5, -0.0, 123456.789]),
        ["1.0", "0.1", "1.0E7", "1.0E-5", "-0.0", "123456.789"],
    ),
    "not finite": (pa.array([float("nan"), float("inf"), -float("inf")]), ["NaN", "Infinity", "-Infinity"]),
    "float": (pa.array([0.1, 1e10], pa.float32()), ["0.1", "1.0E10"]),
    "decimal": (pa.array([Decimal("1.50"), Decimal("0.00000001")]), ["1.50000000", "0.00000001"]),
    "day": (pa.array([DAY]), ["2026-01-31"]),
    "day64": (pa.array([DAY], pa.date64()), ["2026-01-31"]),
    "instant": (pa.array([NOON], pa.timestamp("ns", "Asia/Kolkata")), ["2026-01-31 12:30:00"]),
    "parts": (pa.array([1_500_000, 0], pa.timestamp("us")), ["1970-01-01 00:00:01.5", "1970-01-01 00:00:00"]),
    "time": (pa.array([3_600], pa.time32("s")), ["01:00:00"]),
    "coded": (pa.array([1.5, 1.5]).dictionary_encode(), ["1.5", "1.5"]),
    "null": (pa.nulls(1), [None]),
}


IN_UTC: Final = pa.timestamp("us", "UTC")
BAND: Final = segments_schema(("band",))
CELLS: Final[Mapping[str, tuple[schemas.Schema, str, pa.Array, pa.DataType, list[Any]]]] = {
    **{f"text id {title}": (schemas.TRAIN, "user_id", ids, pa.string(), ["7", None]) for title, ids in TEXTS.items()},
    **{f"whole id {title}": (schemas.TRAIN, "item_id", ids, pa.int64(), [7, None]) for title, ids in WHOLE.items()},
    **{f"score {title}": (schemas.RECOMMENDATIONS, "score", *expected) for title, expected in SCORES.items()},
    **{f"gain {gain.type}": (schemas.HELD_OUT, "gain", gain, pa.float64(), [2.0**53]) for gain in GAINS},
    **{
        f"time {title}": (schemas.HELD_OUT, "interacted_at", at, IN_UTC, [utc]) for title, (at, utc) in INSTANTS.items()
    },
    **{f"day {day.type}": (schemas.ITEMS, "published_at", day, pa.date32(), [DAY]) for day in DAYS},
    **{
        f"categories {title}": (schemas.ITEMS, "categories", given, pa.list_(pa.string()), expected)
        for title, (given, expected) in CATEGORIES.items()
    },
    **{f"segment {title}": (BAND, "band", given, pa.string(), texts) for title, (given, texts) in SEGMENTS.items()},
    "segment of numbers": (
        *(segments_schema(("age",), numbers={"age"}), "age", pa.array(["31", "x"])),
        *(pa.float64(), [31.0, None]),
    ),
    "null id": (schemas.TRAIN, "user_id", pa.nulls(2), pa.string(), [None, None]),
    "null gain": (schemas.HELD_OUT, "gain", pa.nulls(2), pa.float64(), [None, None]),
    "null time": (schemas.HELD_OUT, "interacted_at", pa.nulls(2), IN_UTC, [None, None]),
    "null categories": (schemas.ITEMS, "categories", pa.nulls(2), pa.list_(pa.string()), [None, None]),
}


@pytest.mark.parametrize("title", CELLS)
def test_cells_of_every_kind_are_read_exactly_into_one_type(title: str) -> None:
    schema, name, column, kind, expected = CELLS[title]
    assert cells(name, column, schema) == (kind, expected)


def test_columns_that_are_right_already_are_not_copied() -> None:
    table = pa.table({"user_id": [1, 2], "item_id": ["a", "b"], "score": [0.5, 1.0]})
    read_table = read(schemas.RECOMMENDATIONS, table).table
    for name in table.column_names:
        given, kept = (one[name].chunk(0).buffers()[-1].address for one in (table, read_table))
        assert given == kept


def test_stream_is_read_once() -> None:
    class Streamed:
        """A table that counts how often it is read."""

        reads = 0

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            self.reads += 1
            return pa.table(IDS).__arrow_c_stream__(requested_schema)

    streamed = Streamed()
    assert read(schemas.TRAIN, streamed).table.to_pydict() == IDS
    assert streamed.reads == 1


def test_index_of_pandas_is_no_column() -> None:
    frame = pd.DataFrame({**IDS, "mixed": [1, "x"]}, index=pd.Index([1, "x"], name="gain"))
    assert read(schemas.HELD_OUT, frame).given == set(IDS)
    assert frame.index.name == "gain"
    (fault, _) = faults_of(schemas.TRAIN, pd.DataFrame(IDS).set_index(["user_id", "item_id"]))
    assert fault.found == "no column 'user_id' (the table has none)"


def test_objects_of_pandas_are_read_by_what_they_hold() -> None:
    frame = pd.DataFrame(
        {
            "user_id": pd.Series([1, None], dtype="Int64"),
            "item_id": pd.Series(["a", None], dtype="string"),
            "gain": pd.Categorical([1, 2]),
            "value": pd.Series([Decimal("1.5"), None], dtype=object),
        }
    )
    source = read(schemas.HELD_OUT, frame)
    assert source.table.to_pydict() == {
        "user_id": [1, None],
        "item_id": ["a", None],
        "gain": [1.0, 2.0],
        "value": [1.5, None],
    }
    assert source.unreadable is None


def test_ids_that_pandas_made_floats_are_refused_with_the_remedy() -> None:
    frame = pd.DataFrame({"user_id": [1, None], "item_id": ["a", "b"]})
    assert faults_of(schemas.HELD_OUT, frame) == [
        Fault(
            "held_out",
            "column 'user_id' of type double for user_id",
            "text or whole numbers",
            "write frame.astype({'user_id': 'Int64'}), because a missing id makes floats of whole numbers in pandas",
        )
    ]
    assert read(schemas.HELD_OUT, frame.astype({"user_id": "Int64"})).table["user_id"].to_pylist() == [1, None]
    (fault,) = faults_of(schemas.HELD_OUT, pl.from_pandas(frame))
    assert fault.fix == "cast it to text or to whole numbers"


WRONG_TYPES: Final[Mapping[str, tuple[schemas.Schema, str, pa.Array, str]]] = {
    "id": (
        schemas.TRAIN,
        "user_id",
        pa.array([Decimal(2**63)], pa.decimal128(19, 0)),
        "decimal(19,0) (9223372036854775808 needs more than 64 bits)",
    ),
    "flag": (schemas.TRAIN, "user_id", pa.array([True]), "boolean"),
    "bytes": (schemas.TRAIN, "item_id", pa.array([b"x"]), "binary"),
    "large bytes": (schemas.RECOMMENDATIONS, "list_id", pa.array([b"x"], pa.large_binary()), "binary"),
    "rank": (schemas.RECOMMENDATIONS, "rank", pa.array([1.0], pa.float32()), "float"),
    "rank of decimals": (schemas.RECOMMENDATIONS, "rank", pa.array([Decimal("1.5")]), "decimal(2,1)"),
    "score": (schemas.RECOMMENDATIONS, "score", pa.array([[1.0]]), "array<double>"),
    "gain": (schemas.HELD_OUT, "gain", pa.array([DAY]), "date"),
    "value": (schemas.HELD_OUT, "value", pa.array([{"a": 1}]), "struct<a:bigint>"),
    "time": (schemas.HELD_OUT, "interacted_at", pa.array([True]), "boolean"),
    "day": (schemas.ITEMS, "published_at", pa.array([1]), "bigint"),
    "list": (schemas.ITEMS, "categories", pa.array([1], pa.int32()), "int"),
    "list of lists": (schemas.ITEMS, "vector", pa.array([[[1.0]]]), "array<array<double>>"),
    "list of days": (schemas.ITEMS, "vector", pa.array([[DAY]]), "array<date>"),
    "duration": (segments_schema(("band",)), "band", pa.array([1], pa.duration("us")), "duration[us]"),
}


@pytest.mark.parametrize("title", WRONG_TYPES)
def test_column_of_another_type_is_refused(title: str) -> None:
    schema, name, column, found = WRONG_TYPES[title]
    with pytest.raises(InputError) as raised:
        cells(name, column, schema)
    (fault,) = raised.value.faults
    assert (fault.where, fault.found) == (schema.name, f"column {name!r} of type {found} for {name}")


def test_whole_number_beyond_64_bits_is_refused_by_its_value() -> None:
    (fault,) = faults_of(
        schemas.TRAIN, pl.DataFrame({"user_id": [2**63], "item_id": ["a"]}, schema_overrides={"user_id": pl.UInt64})
    )
    assert fault.found.startswith("column 'user_id' of type uint64 (Integer value 9223372036854775808")
    assert fault.expected == "text or whole numbers"


def test_index_of_pandas_that_is_needed_is_to_become_a_column() -> None:
    faults = faults_of(schemas.TRAIN, pd.DataFrame(IDS).set_index("user_id"))
    assert [(fault.found, fault.fix) for fault in faults] == [
        ("no column 'user_id' among item_id", "call reset_index() on the frame: its index is no column")
    ]


def test_all_faults_are_reported_at_once() -> None:
    log = pa.table({"user": ["u"], "item_id": [1.5], "scores": [1.0]})
    assert [(fault.found, fault.fix) for fault in faults_of(schemas.RECOMMENDATIONS, log)] == [
        ("no column 'user_id' among user, item_id, scores", "did you mean 'user'? rename it to user_id"),
        ("column 'item_id' of type double for item_id", "cast it to text or to whole numbers"),
    ]
    (fault,) = faults_of(schemas.RECOMMENDATIONS, pd.DataFrame({**IDS, "scores": [1, 2]}))
    assert (fault.found, fault.fix) == ("neither a score nor a rank", "did you mean 'scores'?")


@pytest.mark.parametrize(
    "frame",
    [
        pa.Table.from_arrays([pa.array(["u"])] * 3, names=["user_id", "item_id", "item_id"]),
        pd.DataFrame([["u", "a", "a"]], columns=["user_id", "item_id", "item_id"]),
    ],
)
def test_column_that_is_there_twice_is_refused(frame: object) -> None:
    assert [fault.found for fault in faults_of(schemas.TRAIN, frame)] == ["column 'item_id' more than once"]


def test_column_of_several_types_is_explained() -> None:
    (fault,) = faults_of(schemas.TRAIN, pd.DataFrame({"user_id": ["u", 1], "item_id": [1, 2]}))
    assert fault.where == "train"
    assert "a pandas.DataFrame that Arrow cannot read (" in fault.found
    assert "column user_id" in fault.found
    assert fault.fix == "give each column values of one type"
    (fault,) = faults_of(schemas.TRAIN, pl.Series([1]))
    assert fault.found.startswith("a polars.Series that Arrow cannot read")


NO_TABLES: Final = {
    "a list": ([], "pandas.DataFrame or pyarrow.table makes one of rows or columns"),
    "a pyarrow.InMemoryDataset": (ds.dataset(pa.table(IDS)), "call to_table() on it"),
}


@pytest.mark.parametrize("found", NO_TABLES)
def test_what_is_no_table_is_refused(found: str) -> None:
    frame, fix = NO_TABLES[found]
    assert not is_table(frame)
    expected = "a table that Arrow can read: pandas, polars, pyarrow or DuckDB"
    assert faults_of(schemas.HELD_OUT, frame) == [Fault("held_out", found, expected, fix)]


def test_tables_are_known_by_their_stream() -> None:
    table = pa.table(IDS)
    assert all(is_table(make(table)) for make in LIBRARIES.values())
    assert not any(map(is_table, (None, IDS, 5, pd.Series([1]))))


def test_dataframe_of_spark_is_no_table_of_this_process() -> None:
    """It has ``__arrow_c_stream__`` too."""
    of_spark = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "__arrow_c_stream__": None})()
    assert not is_table(of_spark)
    (fault,) = faults_of(schemas.HELD_OUT, of_spark)
    assert fault.found == "a pyspark.DataFrame"
    assert "DataFrame of Spark" in fault.fix


def test_names_of_duckdb_are_quoted() -> None:
    relation = duckdb.sql("""SELECT 'u' AS user_id, 1 AS "a ""b", 2 AS "select" """)
    source = read(segments_schema(('a "b', "select")), relation)
    assert source.table.to_pydict() == {"user_id": ["u"], 'a "b': ["1"], "select": ["2"]}


def test_tables_of_other_libraries_are_read_without_pandas() -> None:
    """In a process of its own, because imports are remembered."""
    script = (
        "import sys, polars, duckdb\n"
        "from rankeval_spark import schemas\n"
        "from rankeval_spark.config.inputs import LogRows\n"
        "from rankeval_spark.inputs.arrow.reading import to_source\n"
        "log = polars.DataFrame({'user_id': ['u'], 'item_id': [1], 'score': [0.5], 'rank': [2**40]})\n"
        "to_source('recommendations', log, schemas.RECOMMENDATIONS, LogRows(ranks_from=0))\n"
        "to_source('held_out', duckdb.sql('SELECT 1 AS user_id, 2 AS item_id'), schemas.HELD_OUT)\n"
        "print(*sorted({'pandas', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []

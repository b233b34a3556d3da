"""Tables that this process reads as Spark does, and those that it leaves to Spark."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import allowed_folders
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import EnvironmentFaultError, Fault
from rankeval_spark.inputs.arrow import file_inputs
from rankeval_spark.inputs.arrow.file_inputs import open_inputs
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.nights import FIRST, Workspace

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.file_inputs import FileInput

LOG = [
    {name: value for name, value in row.items() if name != "day"}
    for row in nights.recommendations()
    if row["day"] == FIRST.isoformat()
]


def opened(workspace: Workspace, *overrides: str) -> dict[str, FileInput]:
    config = load_config(workspace.config, overrides)
    return {one.name: one for one in open_inputs(config, request_of(config, FIRST), FIRST)}


def with_log(workspace: Workspace, **columns: Any) -> Workspace:  # noqa: ANN401 - arrays, or values that Arrow takes
    """Write the log as Parquet, with some columns more, or other ones."""
    folder = workspace.folder / "inputs" / "log"
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pylist(LOG)
    for name, values in columns.items():
        cells = values if isinstance(values, pa.Array) else pa.array([values] * table.num_rows)
        place = table.column_names.index(name) if name in table.column_names else table.num_columns
        table = table.set_column(place, name, cells) if place < table.num_columns else table.append_column(name, cells)
    pq.write_table(table, folder / "part-0.parquet")
    workspace.change(inputs__recommendations={"format": "parquet", "path": "inputs/log"})
    return workspace


def test_what_is_recorded_of_a_table_is_what_spark_says(workspace: Workspace) -> None:
    found = opened(with_log(workspace, day=dt.date(2026, 1, 1), price=pa.array([1] * len(LOG), pa.decimal128(9, 2))))
    log, judged = found["recommendations"], found["held_out"]
    assert log.table_columns == (
        "model_id string, user_id string, item_id string, score double, day date, price decimal(9,2)"
    )
    assert (log.unread, log.n_columns, log.version, log.format) == (("day", "price"), 6, None, "parquet")
    assert (judged.version, judged.format, judged.unread) == (0, "delta", ())


def test_unsigned_numbers_and_uuids_are_recorded_as_spark_has_them(workspace: Workspace) -> None:
    log = LOG[0].keys()
    unsigned = {f"u{bits}": pa.array([1] * len(LOG), f"uint{bits}") for bits in (8, 16, 32, 64)}
    uuids = pa.array([bytes(16)] * len(LOG), pa.uuid())
    found = opened(with_log(workspace, **unsigned, uuid=uuids, bytes=uuids.storage))["recommendations"]
    kinds = dict(one.split(" ") for one in found.table_columns.split(", "))
    assert {name: kind for name, kind in kinds.items() if name not in log} == {
        **{"u8": "smallint", "u16": "int", "u32": "bigint", "u64": "decimal(20,0)"},
        **{"uuid": "binary", "bytes": "binary"},
    }


def test_hidden_files_of_a_folder_are_no_data(workspace: Workspace) -> None:
    folder = with_log(workspace).folder / "inputs" / "log"
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    assert opened(workspace)["recommendations"].table.count(None) == len(LOG)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"inputs__recommendations": {"format": "delta", "path": "inputs/nothing"}}, "no such file or folder"),
        ({"inputs__recommendations": {"format": "delta", "path": "inputs/*"}}, "a pattern"),
        ({"inputs__recommendations": {"format": "delta", "table": "logs.recommendations"}}, "a table of a catalog"),
        ({"inputs__recommendations": {"format": "delta", "path": "hdfs://host/log"}}, "not on a disk of this machine"),
        ({"inputs__recommendations__version": 7}, "version"),
        ({"inputs__recommendations__timestamp": "{date}"}, "the version of a time"),
        ({"inputs__recommendations__columns": {"score": "points"}}, "columns are missing"),
        ({"inputs__recommendations__types": {"user_id": "integer"}}, "one type for an id"),
        ({"inputs__recommendations__filters": [{"column": "when", "op": "=", "value": 1}]}, "no such column"),
        ({"inputs__recommendations__filters": [{"column": "score", "op": ">", "value": 1}]}, "type double"),
        ({"inputs__recommendations__filters": [{"column": "user_id", "op": ">", "value": 1}]}, "type string"),
        ({"policies": {"ties": "rank"}}, "no column 'rank'"),
    ],
)
def test_what_is_not_certain_is_left_to_spark(workspace: Workspace, change: dict[str, Any], why: str) -> None:
    workspace.change(**change)
    with pytest.raises(ForSparkError, match=why):
        opened(workspace)


@pytest.mark.parametrize(
    ("format_", "text", "why"),
    [
        ("csv", "user_id,item_id,score\nu,a\n", "Expected 3 columns, got 2"),
        ("csv", "user_id;item_id;score\nu;a;1\n", "headers that differ, or of one column"),
        ("csv", "", "Empty CSV file"),
        ("csv", 'user_id,item_id,score\nu,"a"b,1\n', "text behind the closing quote"),
        ("json", '{"user_id": ' + "[" * 100_000 + "\n", "recursion"),
        ("json", '{"user_id": "u", "item_id": "a", "score": 1.50}\n', "the number 1.50"),
        ("json", '{"user_id": "u", "item_id": ["a"], "score": 1}\n', "an object or an array"),
        ("json", "[1]\n", "a line that is no object"),
        ("json", "{\n", "Expecting property name"),
    ],
)
def test_text_of_another_form_is_left_to_spark(tmp_path: Path, format_: str, text: str, why: str) -> None:
    made = Workspace(tmp_path)
    made.write("recommendations", nights.recommendations(), format_)
    made.write("held_out", nights.held_out(), format_)
    made.configure(nights.config_of("recommendations", "held_out", format_=format_))
    assert opened(made)
    (tmp_path / "inputs" / "recommendations" / f"part-1.{format_}").write_text(text, encoding="utf-8")
    with pytest.raises(ForSparkError, match=why):
        opened(made)


@pytest.mark.parametrize("format_", ["csv", "json"])
@pytest.mark.parametrize("damage", ["cut", "overwritten", "of no gzip"])
def test_damaged_gzip_is_left_to_spark(tmp_path: Path, format_: str, damage: str) -> None:
    made = Workspace(tmp_path)
    for name, rows in (("recommendations", nights.recommendations()), ("held_out", nights.held_out())):
        made.write(name, rows, format_)
    made.configure(nights.config_of("recommendations", "held_out", format_=format_))
    plain = tmp_path / "inputs" / "recommendations" / f"part-0.{format_}"
    packed = gzip.compress(plain.read_bytes())
    plain.with_name(f"part-0.{format_}.gz").write_bytes(packed)
    plain.unlink()
    assert opened(made)
    kinds = {"cut": packed[:-12], "overwritten": packed[:15] + b"\xff" * 6 + packed[21:], "of no gzip": b"text"}
    plain.with_name(f"part-0.{format_}.gz").write_bytes(kinds[damage])
    with pytest.raises(ForSparkError):
        opened(made)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"extra": pa.array([{"a": 1}] * len(LOG))}, "columns extra struct<a: int64>"),
        ({"extra": pa.array([0] * len(LOG), pa.timestamp("ns"))}, "timestamp"),
        ({"extra": pa.array([0] * len(LOG), pa.time32("ms"))}, r"columns extra time32\[ms\]"),
        ({"SCORE": 1.0}, "differ by case only"),
        ({"user_id": 1.0}, "'user_id' of type double"),
        ({"user_id": 7}, "user_id of type"),  # text in the judgements
    ],
)
def test_types_that_arrow_and_spark_may_read_otherwise_are_left_to_spark(
    workspace: Workspace, columns: dict[str, Any], why: str
) -> None:
    with pytest.raises(ForSparkError, match=why):
        opened(with_log(workspace, **columns))


def test_times_of_the_old_kind_are_left_to_spark(workspace: Workspace) -> None:
    table = pa.Table.from_pylist([{**row, "at": dt.datetime(2026, 1, 1)} for row in LOG])
    folder = with_log(workspace).folder / "inputs" / "log"
    pq.write_table(table, folder / "part-0.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(ForSparkError, match="times of the old kind"):
        opened(workspace)


@pytest.mark.parametrize("place", ["day=2026-01-01/part-0.parquet", "more/part-0.parquet", "part-1.parquet"])
def test_folders_of_partitions_and_files_that_differ_are_left_to_spark(workspace: Workspace, place: str) -> None:
    file = with_log(workspace).folder / "inputs" / "log" / place
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist([{**row, "score": 1} for row in LOG]), file)
    with pytest.raises(ForSparkError, match=r"folders of partitions|files of different columns"):
        opened(workspace)


def test_damaged_files_are_left_to_spark(workspace: Workspace) -> None:
    file = with_log(workspace).folder / "inputs" / "log" / "part-0.parquet"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ForSparkError):
        opened(workspace)


def test_features_of_delta_that_readers_need_are_left_to_spark(workspace: Workspace) -> None:
    table = deltalake.DeltaTable(workspace.folder / "inputs" / "recommendations")
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"}, raise_if_not_exists=False)
    assert table.protocol().min_reader_version > 1
    with pytest.raises(ForSparkError, match="deletion vectors"):
        opened(workspace)


def test_folders_that_are_not_allowed_are_left_to_spark(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(allowed_folders.VARIABLE, str(workspace.folder))
    assert set(opened(workspace)) == {"recommendations", "held_out", "segments"}

    elsewhere = tmp_path_factory.mktemp("elsewhere") / "part-1.parquet"
    pq.write_table(pa.Table.from_pylist(LOG), elsewhere)
    (with_log(workspace).folder / "inputs" / "log" / "part-1.parquet").symlink_to(elsewhere)
    with pytest.raises(ForSparkError, match=r"part-1\.parquet"):
        opened(workspace)


def test_rows_that_need_much_memory_are_left_to_spark(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_inputs, "physical_bytes", lambda: 10_000.0)
    with pytest.raises(ForSparkError, match="54 rows, which are many for one process"):
        opened(workspace)


def test_a_session_that_does_not_start_is_no_fault_of_the_inputs(workspace: Workspace) -> None:
    starts = list[int]()

    def start() -> Any:  # noqa: ANN401 - never returns
        starts.append(1)
        raise EnvironmentFaultError(Fault("Delta jars", "two", "one", "remove one"))

    session = on_demand(start, why="chosen")
    for _ in range(2):
        with pytest.raises(EnvironmentFaultError, match="Delta jars: found two; expected one"):
            run_night(session, load_config(workspace.config), FIRST)
    assert starts == [1]


def test_session_is_started_where_a_night_takes_spark(workspace: Workspace) -> None:
    class Started(Exception):  # noqa: N818 - is none
        pass

    def start() -> Any:  # noqa: ANN401 - never returns
        raise Started

    config = load_config(workspace.config, ("inputs.recommendations.timestamp=2099-01-01",))
    with pytest.raises(Started):
        run_night(on_demand(start), config, FIRST)

"""Inputs that are missing, unreadable or do not fit: one readable message each, with the nearest fix."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import schemas
from rankeval_spark.config import EvaluationConfig, validate_model
from rankeval_spark.errors import ChecksFailedError, ConfigError, Fault, InputError
from rankeval_spark.inputs.spark.opening import explain
from rankeval_spark.inputs.spark.reading import read_all
from tests.support.frames import frame_of
from tests.support.spark_inputs import DATE, read, write_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession


def faults_of(spark: SparkSession, schema: schemas.Schema = schemas.HELD_OUT, **config: Any) -> list[Fault]:  # noqa: ANN401 - keys of the config
    """Read an input that cannot be read and return its faults."""
    with pytest.raises(InputError) as raised:
        read(spark, schema, **config)
    for fault in raised.value.faults:
        assert fault.where.startswith(f"inputs.{schema.name}")
        assert "\n" not in str(fault)
        assert "org.apache" not in str(fault)
    return [*raised.value.faults]


def fault_of(spark: SparkSession, schema: schemas.Schema = schemas.HELD_OUT, **config: Any) -> Fault:  # noqa: ANN401 - keys of the config
    """Read an input with exactly one fault and return it."""
    (fault,) = faults_of(spark, schema, **config)
    return fault


@pytest.mark.parametrize("form", ["delta", "parquet", "csv", "json"])
def test_pipe_or_device_is_refused_before_anybody_waits_for_its_end(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    os.mkfifo(tmp_path / "log.csv")
    for path, found in (
        ("/dev/zero", "/dev/zero"),
        (f"file:{tmp_path}/log.csv", f"{tmp_path}/log.csv"),
        (str(tmp_path), f"{tmp_path}/log.csv"),
    ):
        assert fault_of(spark, format=form, path=path).found == f"a pipe or a device: {found}"


@pytest.mark.parametrize("form", ["delta", "parquet", "csv", "json"])
def test_missing_path_suggests_the_nearest_name(spark: SparkSession, tmp_path: Path, form: str) -> None:
    (tmp_path / "held_out").mkdir()
    fault = fault_of(spark, format=form, path=str(tmp_path / "held_outs" / "x"))
    assert fault.found == f"{'no Delta table' if form == 'delta' else 'no such path'} at {tmp_path}/held_outs/x"
    assert "did you mean 'held_out'?" in fault.fix


def test_folder_that_is_no_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "h"))
    fault = fault_of(spark, format="delta", path=str(tmp_path / "h"))
    assert (fault.found, fault.fix) == (f"no Delta table at {tmp_path}/h", "did you mean format: parquet?")


def test_delta_folder_read_with_a_missing_version(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    frame_of(spark, [("u", "a")], "user_id string, item_id string").write.format("delta").save(path)
    fault = fault_of(spark, format="delta", path=path, version=7)
    assert (fault.found, fault.expected) == (f"no such version at {path}", "a Delta table with version 7")
    assert "no version as old as" in fault_of(spark, format="delta", path=path, timestamp="2020-01-01").found


@pytest.mark.parametrize("form", ["delta", "parquet", "table"])
def test_missing_table(spark: SparkSession, form: str) -> None:
    assert "at default.no_such_table" in fault_of(spark, format=form, table="default.no_such_table").found
    assert fault_of(spark, format=form, table="no_such_schema.t").found.startswith("no ")
    assert "at no_such_catalog.a.b" in fault_of(spark, format=form, table="no_such_catalog.a.b").found


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_folder_without_files_and_an_empty_file(spark: SparkSession, tmp_path: Path, form: str) -> None:
    (tmp_path / "h").mkdir()
    assert fault_of(spark, format=form, path=str(tmp_path / "h")).found.startswith("no ")
    path = write_lines(tmp_path / f"h.{form}")
    assert path in fault_of(spark, format=form, path=path).found


def test_file_of_another_format(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "h.csv", "user_id,item_id", "u,a")
    assert "files of another format" in fault_of(spark, format="parquet", path=path).found
    assert "no json object" in fault_of(spark, format="json", path=path).found


def test_another_separator_names_its_option(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "h.csv", "user_id;item_id", "u;a")

    assert fault_of(spark, format="csv", path=path).fix == 'write inputs.held_out.options: {sep: ";"}'
    source = read(spark, schemas.HELD_OUT, format="csv", path=path, options={"sep": ";"})
    assert {"user_id", "item_id"} <= source.given


def test_run_and_judgements_of_trec_that_are_swapped(spark: SparkSession, tmp_path: Path) -> None:
    run = write_lines(tmp_path / "run.txt", "", " # of all", "u Q0 a 1 0.5 als")
    qrels = write_lines(tmp_path / "qrels.txt", "u 0 a 1")

    assert fault_of(spark, format="trec", path=run).found == f"a run at {run}"
    fault = fault_of(spark, schemas.RECOMMENDATIONS, format="trec", path=qrels)
    assert (fault.found, fault.fix) == (f"judgements at {qrels}", "are the two files swapped?")


def write_parquet(path: Path, **columns: Sequence[Any]) -> str:
    """Write a Parquet file beside others and return their folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path.parent)


def test_times_in_nanoseconds_name_the_fix(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2026, 1, 2)], pa.timestamp("ns", "UTC"))
    path = str(tmp_path / "h.parquet")
    write_parquet(tmp_path / "h.parquet", user_id=["u"], item_id=["a"], interacted_at=times)

    fault = fault_of(spark, format="parquet", path=path)

    assert fault.found == f"times in nanoseconds, which Spark does not read at {path}"
    assert "coerce_timestamps='us'" in fault.fix


def test_parquet_files_that_do_not_fit_together_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    ids = {"user_id": ["u"], "item_id": ["a"]}
    folder = write_parquet(tmp_path / "h" / "2.parquet", **ids, gain=[1.0], note=["x"])

    write_parquet(tmp_path / "h" / "1.parquet", **ids)  # Spark would take its columns for those of all
    fault = fault_of(spark, format="parquet", path=folder)
    assert fault.found == "no column 'gain' in h/1.parquet, while h/2.parquet has it"
    assert fault.expected == "the same columns in all files"

    write_parquet(tmp_path / "h" / "1.parquet", **ids, gain=[1.0])  # and would read the gains of this one as NULL
    write_parquet(tmp_path / "h" / "3 b.parquet", user_id=["u"], item_id=["a"], extra=[1])
    fault = fault_of(spark, format="parquet", path=folder)
    assert fault.found == "no column 'gain' in h/3 b.parquet, while h/1.parquet has it"

    write_parquet(tmp_path / "h" / "3 b.parquet", user_id=[7], item_id=["a"], gain=[1])
    assert [fault.found for fault in faults_of(spark, format="parquet", path=folder)] == [
        "column 'user_id' of type bigint in h/3 b.parquet, and string in others",
        "column 'gain' of type bigint in h/3 b.parquet, and double in others",
    ]

    whole = (tmp_path / "h" / "2.parquet").read_bytes()
    (tmp_path / "h" / "3 b.parquet").write_bytes(whole[: len(whole) // 2])
    found = fault_of(spark, format="parquet", path=folder).found
    assert found.startswith("a file that cannot be read, h/3 b.parquet (")


def test_parquet_files_may_differ_in_what_is_not_read_and_in_what_spark_widens(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of a table with a folder a day, other days are left aside, but for the first, whose columns Spark takes."""
    days = tmp_path / "h"
    narrow = {"user_id": pa.array([7], "int32"), "item_id": ["a"], "gain": pa.array([1.0], "float32")}
    write_parquet(days / "day=2026-01-01" / "0.parquet", user_id=[6], item_id=["a"], gain=[1.0], note=["x"])
    write_parquet(days / f"day={DATE}" / "0.parquet", **narrow)
    write_parquet(days / "day=2026-01-03" / "0.parquet", user_id=["eight"], item_id=["a"])
    by_day = [{"column": "day", "op": "=", "value": "{date}"}]
    source = read(spark, schemas.HELD_OUT, format="parquet", path=str(days), filters=by_day)
    assert [tuple(row) for row in source.frame.select("user_id", "item_id", "gain").collect()] == [(7, "a", 1.0)]
    assert source.unread == ("note",)
    assert source.n_columns == 5


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_missing_column_lists_those_there_are(spark: SparkSession, tmp_path: Path, form: str) -> None:
    row = frame_of(spark, [("u", "a", 1)], "user_id string, itemid string, gain int")
    row.write.format(form).options(header=form == "csv").save(str(tmp_path / "h"))
    fault = fault_of(spark, format=form, path=str(tmp_path / "h"))
    assert fault.found == "no column 'item_id' among user_id, itemid, gain"
    assert fault.expected == "this column"
    assert fault.fix == "did you mean 'itemid'? write inputs.held_out.columns.item_id: itemid"


LAST: dict[str, Any] = {"column": "day", "op": "last", "value": "7d"}


@pytest.mark.parametrize(
    ("header", "config", "where", "fix"),
    [
        ("user_id,item_id,rating", {"columns": {"gain": "ratings"}}, "columns.gain", "did you mean 'rating'?"),
        (
            "user_id,item_id,day",
            {"filters": [{**LAST, "column": "days"}]},
            "filters[0].column",
            "did you mean 'day'?",
        ),
        (
            "user_id,item_id,day",
            {"filters": [LAST, {"column": "days", "op": "=", "value": "x"}]},  # as the config counts them
            "filters[1].column",
            "did you mean 'day'?",
        ),
    ],
)
def test_columns_that_the_config_names_must_be_there(
    spark: SparkSession, tmp_path: Path, header: str, config: dict[str, Any], where: str, fix: str
) -> None:
    fault = fault_of(spark, format="csv", path=write_lines(tmp_path / "h.csv", header, "u,a,1"), **config)
    assert (fault.where, fault.fix) == (f"inputs.held_out.{where}", fix)


def test_log_without_score_and_rank(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.csv", "user_id,item_id,scores", "u,a,1")
    fault = fault_of(spark, schemas.RECOMMENDATIONS, format="csv", path=path)
    assert (fault.found, fault.fix) == ("neither a score nor a rank", "did you mean 'scores'?")


@pytest.mark.parametrize(
    ("filters", "place"),
    [
        ([{"column": "n", "op": "!=", "value": 3}, {**LAST, "column": "n"}], 1),  # a window of days is one fault
        *(
            ([{"column": column, "op": "=", "value": value}], 0)
            for column, value in (
                *(("day", "2026-02-30"), ("day", 5), ("n", "x"), ("n", True), ("n", 2**70), ("at", "noon")),
                ("flag", "yes"),
            )
        ),
    ],
)
def test_filter_value_that_is_none_of_its_columns_type(
    spark: SparkSession, tmp_path: Path, filters: list[dict[str, Any]], place: int
) -> None:
    path = str(tmp_path / "h")
    columns = ["'u' user_id", "'a' item_id", "1 n", "current_date() day", "current_timestamp() at", "true flag"]
    spark.range(1).selectExpr(*columns).write.parquet(path)
    with pytest.raises(ConfigError, match=f"column '{filters[place]['column']}'") as raised:
        read(spark, schemas.HELD_OUT, format="parquet", path=path, filters=filters)
    assert [fault.where for fault in raised.value.faults] == [f"inputs.held_out.filters[{place}].value"]


def test_csv_header_with_a_name_twice(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "h.csv", "user_id,item_id,User_ID", "u,a,v")
    assert "a header with 'User_ID', 'user_id' more than once" in fault_of(spark, format="csv", path=path).found


def test_file_system_without_its_jar(spark: SparkSession) -> None:
    fault = fault_of(spark, format="csv", path="s3a://bucket/h.csv")
    assert fault.found == "a file system for which Spark has no jar at s3a://bucket/h.csv"


def test_ids_that_are_neither_text_nor_whole(spark: SparkSession, tmp_path: Path) -> None:
    frame_of(spark, [(1.0, "a")], "user_id double, item_id string").write.parquet(str(tmp_path / "h"))
    fault = fault_of(spark, format="parquet", path=str(tmp_path / "h"))
    assert fault.found == "column 'user_id' of type double for user_id"
    assert fault.fix == "write inputs.held_out.types: {user_id: string}"


def test_csv_files_with_different_headers_are_explained_when_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "h" / "1.csv", "user_id,item_id", "u,a")
    write_lines(tmp_path / "h" / "2.csv", "item_id,user_id", "a,u")
    source = read(spark, schemas.HELD_OUT, format="csv", path=str(tmp_path / "h"))
    with pytest.raises(Exception, match="CSV header") as raised:
        source.frame.collect()
    error = explain(raised.value, {source.name: source.location})
    assert error is not None
    assert f"inputs.held_out: found csv files with different headers, among them file://{tmp_path}/h/" in str(error)
    assert explain(ValueError("something else"), {}) is None


def evaluation(tmp_path: Path, **inputs: dict[str, Any]) -> EvaluationConfig:
    """Make a config around inputs."""
    values = {"evaluation": "e", "inputs": inputs, "measures": ["nDCG"], "results": {"root": str(tmp_path / "out")}}
    return validate_model(EvaluationConfig, values)


def test_all_faults_of_all_inputs_are_reported_at_once(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.csv", "uid,iid,score", "u,a,1")
    config = evaluation(
        tmp_path,
        recommendations={"format": "csv", "path": path},
        held_out={"format": "parquet", "path": str(tmp_path / "nowhere")},
    )
    with pytest.raises(InputError) as raised:
        read_all(spark, config, DATE)
    assert [fault.found.split(" at ")[0] for fault in raised.value.faults] == [
        "no column 'user_id' among uid, iid, score",
        "no column 'item_id' among uid, iid, score",
        "no such path",
    ]
    assert raised.value.exit_code == 4


def test_ids_of_two_types_are_refused_with_the_fix(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.csv", "user_id,item_id,score", "007,a,1")
    frame_of(spark, [(7, "a")], "user_id int, item_id string").write.parquet(str(tmp_path / "h"))
    log, truth = {"format": "csv", "path": path}, {"format": "parquet", "path": str(tmp_path / "h")}
    with pytest.raises(ChecksFailedError) as raised:
        read_all(spark, evaluation(tmp_path, recommendations=log, held_out=truth), DATE)
    (fault,) = raised.value.faults
    assert fault.found == "user_id of type integer, while inputs.recommendations has string"
    assert "write inputs.held_out.types: {user_id: string}" in fault.fix

    config = evaluation(tmp_path, recommendations={**log, "types": {"user_id": "integer"}}, held_out=truth)
    sources = read_all(spark, config, DATE)
    assert sources.segments is None
    assert [source.id_types["user_id"] for source in sources.all()] == ["bigint", "bigint"]

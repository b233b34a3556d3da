"""Inputs that are missing, unreadable or do not fit: one readable message each, with the nearest fix."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import schemas
from rankeval_spark.config import EvaluationConfig, HeldOutInput, InputConfig, RecommendationsInput, validate_model
from rankeval_spark.errors import ChecksFailedError, ConfigError, Fault, InputError
from rankeval_spark.inputs.spark import explain, from_frame, read_all, read_input
from tests.support.frames import frame_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

DATE = dt.date(2026, 1, 2)


def held_out_fault(spark: SparkSession, **config: Any) -> Fault:  # noqa: ANN401 - any keys of the config
    """Read an input with exactly one fault and return it."""
    return fault_of(spark, HeldOutInput, schemas.HELD_OUT, "held_out", config)


def recommendations_fault(spark: SparkSession, **config: Any) -> Fault:  # noqa: ANN401 - any keys of the config
    """Read an input with exactly one fault and return it."""
    return fault_of(spark, RecommendationsInput, schemas.RECOMMENDATIONS, "recommendations", config)


def fault_of(
    spark: SparkSession, model: type[InputConfig], schema: schemas.Schema, name: str, config: dict[str, Any]
) -> Fault:
    """Read an input with exactly one fault and return it."""
    with pytest.raises(InputError) as raised:
        read_input(spark, name, validate_model(model, config), schema, DATE)
    (fault,) = raised.value.faults
    assert fault.where.startswith(f"inputs.{name}")
    assert "\n" not in str(fault)
    assert "org.apache" not in str(fault)
    return fault


def write(path: Path, text: str) -> str:
    """Write a file and return its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


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
        assert held_out_fault(spark, format=form, path=path).found == f"a pipe or a device: {found}"


@pytest.mark.parametrize("form", ["delta", "parquet", "csv", "json"])
def test_missing_path_suggests_the_nearest_name(spark: SparkSession, tmp_path: Path, form: str) -> None:
    (tmp_path / "held_out").mkdir()
    fault = held_out_fault(spark, format=form, path=str(tmp_path / "held_outs" / "x"))
    assert fault.found == f"{'no Delta table' if form == 'delta' else 'no such path'} at {tmp_path}/held_outs/x"
    assert "did you mean 'held_out'?" in fault.fix


def test_folder_that_is_no_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "h"))
    fault = held_out_fault(spark, format="delta", path=str(tmp_path / "h"))
    assert (fault.found, fault.fix) == (f"no Delta table at {tmp_path}/h", "did you mean format: parquet?")


def test_delta_folder_read_with_a_missing_version(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    frame_of(spark, [("u", "a")], "user_id string, item_id string").write.format("delta").save(path)
    fault = held_out_fault(spark, format="delta", path=path, version=7)
    assert (fault.found, fault.expected) == (f"no such version at {path}", "a Delta table with version 7")
    assert "no version as old as" in held_out_fault(spark, format="delta", path=path, timestamp="2020-01-01").found


@pytest.mark.parametrize("form", ["delta", "parquet", "table"])
def test_missing_table(spark: SparkSession, form: str) -> None:
    fault = held_out_fault(spark, format=form, table="default.no_such_table")
    assert "at default.no_such_table" in fault.found
    assert held_out_fault(spark, format=form, table="no_such_schema.t").found.startswith("no ")
    assert "at no_such_catalog.a.b" in held_out_fault(spark, format=form, table="no_such_catalog.a.b").found


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_folder_without_files(spark: SparkSession, tmp_path: Path, form: str) -> None:
    (tmp_path / "h").mkdir()
    assert held_out_fault(spark, format=form, path=str(tmp_path / "h")).found.startswith("no ")


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_empty_file(spark: SparkSession, tmp_path: Path, form: str) -> None:
    path = write(tmp_path / f"h.{form}", "")
    assert path in held_out_fault(spark, format=form, path=path).found


def test_file_of_another_format(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "user_id,item_id\nu,a\n")
    assert "files of another format" in held_out_fault(spark, format="parquet", path=path).found
    assert "no json object" in held_out_fault(spark, format="json", path=path).found


def test_another_separator_names_its_option(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "user_id;item_id\nu;a\n")

    assert held_out_fault(spark, format="csv", path=path).fix == 'write inputs.held_out.options: {sep: ";"}'
    config = validate_model(HeldOutInput, {"format": "csv", "path": path, "options": {"sep": ";"}})
    assert {"user_id", "item_id"} <= read_input(spark, "held_out", config, schemas.HELD_OUT, DATE).given


def test_run_and_judgements_of_trec_that_are_swapped(spark: SparkSession, tmp_path: Path) -> None:
    run = write(tmp_path / "run.txt", "\n # of all\nu Q0 a 1 0.5 als\n")
    qrels = write(tmp_path / "qrels.txt", "u 0 a 1\n")

    assert held_out_fault(spark, format="trec", path=run).found == f"a run at {run}"
    fault = recommendations_fault(spark, format="trec", path=qrels)
    assert (fault.found, fault.fix) == (f"judgements at {qrels}", "are the two files swapped?")


def write_parquet(path: Path, **columns: Sequence[Any]) -> str:
    """Write a Parquet file beside others and return their folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path.parent)


def test_times_in_nanoseconds_name_the_fix(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2026, 1, 2)], pa.timestamp("ns", "UTC"))
    path = str(tmp_path / "h.parquet")
    pq.write_table(pa.table({"user_id": ["u"], "item_id": ["a"], "interacted_at": times}), path)

    fault = held_out_fault(spark, format="parquet", path=path)

    assert fault.found == f"times in nanoseconds, which Spark does not read at {path}"
    assert "coerce_timestamps='us'" in fault.fix


def test_parquet_files_that_do_not_fit_together_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    ids = {"user_id": ["u"], "item_id": ["a"]}
    folder = write_parquet(tmp_path / "h" / "2.parquet", **ids, gain=[1.0], note=["x"])

    write_parquet(tmp_path / "h" / "1.parquet", **ids)  # Spark would take its columns for those of all
    fault = held_out_fault(spark, format="parquet", path=folder)
    assert fault.found == "no column 'gain' in h/1.parquet, while h/2.parquet has it"
    assert fault.expected == "the same columns in all files"

    write_parquet(tmp_path / "h" / "1.parquet", **ids, gain=[1.0])  # and would read the gains of this one as NULL
    write_parquet(tmp_path / "h" / "3 b.parquet", user_id=["u"], item_id=["a"], extra=[1])
    fault = held_out_fault(spark, format="parquet", path=folder)
    assert fault.found == "no column 'gain' in h/3 b.parquet, while h/1.parquet has it"

    write_parquet(tmp_path / "h" / "3 b.parquet", user_id=[7], item_id=["a"], gain=[1])
    with pytest.raises(InputError) as raised:
        read_input(
            spark,
            "held_out",
            validate_model(HeldOutInput, {"format": "parquet", "path": folder}),
            schemas.HELD_OUT,
            DATE,
        )
    assert [fault.found for fault in raised.value.faults] == [
        "column 'user_id' of type bigint in h/3 b.parquet, and string in others",
        "column 'gain' of type bigint in h/3 b.parquet, and double in others",
    ]

    whole = (tmp_path / "h" / "2.parquet").read_bytes()
    (tmp_path / "h" / "3 b.parquet").write_bytes(whole[: len(whole) // 2])
    found = held_out_fault(spark, format="parquet", path=folder).found
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
    config = validate_model(HeldOutInput, {"format": "parquet", "path": str(days), "filters": by_day})
    source = read_input(spark, "held_out", config, schemas.HELD_OUT, DATE)
    assert [tuple(row) for row in source.frame.select("user_id", "item_id", "gain").collect()] == [(7, "a", 1.0)]
    assert source.unread == ("note",)
    assert source.n_columns == 5


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_missing_column_lists_those_there_are(spark: SparkSession, tmp_path: Path, form: str) -> None:
    row = frame_of(spark, [("u", "a", 1)], "user_id string, itemid string, gain int")
    row.write.format(form).options(header=form == "csv").save(str(tmp_path / "h"))
    fault = held_out_fault(spark, format=form, path=str(tmp_path / "h"))
    assert fault.found == "no column 'item_id' among user_id, itemid, gain"
    assert fault.expected == "this column"
    assert fault.fix == "did you mean 'itemid'? write inputs.held_out.columns.item_id: itemid"


def test_optional_column_that_is_named_must_be_there(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "user_id,item_id,rating\nu,a,1\n")
    fault = held_out_fault(spark, format="csv", path=path, columns={"gain": "ratings"})
    assert (fault.where, fault.fix) == ("inputs.held_out.columns.gain", "did you mean 'rating'?")


def test_log_without_score_and_rank(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "user_id,item_id,scores\nu,a,1\n")
    fault = recommendations_fault(spark, format="csv", path=path)
    assert (fault.found, fault.fix) == ("neither a score nor a rank", "did you mean 'scores'?")


def test_missing_filter_column(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "user_id,item_id,day\nu,a,1\n")
    fault = held_out_fault(spark, format="csv", path=path, filters=[{"column": "days", "op": "=", "value": "x"}])
    assert (fault.where, fault.fix) == ("inputs.held_out.filters[0].column", "did you mean 'day'?")


def test_faults_name_the_filter_as_the_config_counts(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "user_id,item_id,day\nu,a,1\n")
    window = {"column": "day", "op": "last", "value": "7d"}
    missing = {"column": "place", "op": "=", "value": "x"}
    assert held_out_fault(spark, format="csv", path=path, filters=[window, missing]).where.endswith("filters[1].column")
    fault = held_out_fault(spark, format="csv", path=path, filters=[{**window, "column": "days"}])
    assert (fault.where, fault.fix) == ("inputs.held_out.filters[0].column", "did you mean 'day'?")


def test_a_window_of_days_on_a_column_of_numbers_is_one_fault(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).selectExpr("'u' user_id", "'a' item_id", "1 n").write.parquet(str(tmp_path / "h"))
    filters = [{"column": "n", "op": "!=", "value": 3}, {"column": "n", "op": "last", "value": "7d"}]
    config = validate_model(HeldOutInput, {"format": "parquet", "path": str(tmp_path / "h"), "filters": filters})
    with pytest.raises(ConfigError) as raised:
        read_input(spark, "held_out", config, schemas.HELD_OUT, DATE)
    assert [fault.where for fault in raised.value.faults] == ["inputs.held_out.filters[1].value"]


def test_csv_header_with_a_name_twice(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "h.csv", "user_id,item_id,User_ID\nu,a,v\n")
    assert "a header with 'User_ID', 'user_id' more than once" in held_out_fault(spark, format="csv", path=path).found


def test_file_system_without_its_jar(spark: SparkSession) -> None:
    fault = held_out_fault(spark, format="csv", path="s3a://bucket/h.csv")
    assert fault.found == "a file system for which Spark has no jar at s3a://bucket/h.csv"


def test_ids_that_are_neither_text_nor_whole(spark: SparkSession, tmp_path: Path) -> None:
    row = frame_of(spark, [(1.0, "a")], "user_id double, item_id string")
    row.write.parquet(str(tmp_path / "h"))
    fault = held_out_fault(spark, format="parquet", path=str(tmp_path / "h"))
    assert fault.found == "column 'user_id' of type double for user_id"
    assert fault.fix == "write inputs.held_out.types: {user_id: string}"


def test_column_that_cannot_be_a_number(spark: SparkSession) -> None:
    frame = frame_of(spark, [("u", "a", DATE)], "user_id string, item_id string, gain date")
    with pytest.raises(InputError, match="held_out: found column 'gain' of type date for gain"):
        from_frame("held_out", frame, schemas.HELD_OUT)


def test_csv_files_with_different_headers_are_explained_when_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "h" / "1.csv", "user_id,item_id\nu,a\n")
    write(tmp_path / "h" / "2.csv", "item_id,user_id\na,u\n")
    config = validate_model(HeldOutInput, {"format": "csv", "path": str(tmp_path / "h")})
    source = read_input(spark, "held_out", config, schemas.HELD_OUT, DATE)
    with pytest.raises(Exception, match="CSV header") as raised:
        source.frame.collect()
    error = explain(raised.value, {source.name: source.location})
    assert error is not None
    assert f"inputs.held_out: found csv files with different headers, among them file://{tmp_path}/h/" in str(error)
    assert explain(ValueError("something else"), {}) is None


@pytest.mark.parametrize(
    ("column", "value"),
    [("day", "2026-02-30"), ("day", 5), ("n", "x"), ("n", True), ("n", 2**70), ("at", "noon"), ("flag", "yes")],
)
def test_filter_value_that_is_none_of_its_columns_type(
    spark: SparkSession, tmp_path: Path, column: str, value: object
) -> None:
    path = str(tmp_path / "h")
    columns = ["'u' user_id", "'a' item_id", "1 n", "current_date() day", "current_timestamp() at", "true flag"]
    spark.range(1).selectExpr(*columns).write.parquet(path)
    filters = [{"column": column, "op": "=", "value": value}]
    config = validate_model(HeldOutInput, {"format": "parquet", "path": path, "filters": filters})
    with pytest.raises(ConfigError, match=rf"inputs\.held_out\.filters\[0\]\.value.*column '{column}'"):
        read_input(spark, "held_out", config, schemas.HELD_OUT, DATE)


def evaluation(tmp_path: Path, **inputs: dict[str, Any]) -> EvaluationConfig:
    """Make a config around inputs."""
    values = {"evaluation": "e", "inputs": inputs, "measures": ["nDCG"], "results": {"root": str(tmp_path / "out")}}
    return validate_model(EvaluationConfig, values)


def test_all_faults_of_all_inputs_are_reported_at_once(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "uid,iid,score\nu,a,1\n")
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
    path = write(tmp_path / "r.csv", "user_id,item_id,score\n007,a,1\n")
    frame_of(spark, [(7, "a")], "user_id int, item_id string").write.parquet(str(tmp_path / "h"))
    log = {"format": "csv", "path": path}
    truth = {"format": "parquet", "path": str(tmp_path / "h")}
    with pytest.raises(ChecksFailedError) as raised:
        read_all(spark, evaluation(tmp_path, recommendations=log, held_out=truth), DATE)
    (fault,) = raised.value.faults
    assert fault.found == "user_id of type integer, while inputs.recommendations has string"
    assert "write inputs.held_out.types: {user_id: string}" in fault.fix

    config = evaluation(tmp_path, recommendations={**log, "types": {"user_id": "integer"}}, held_out=truth)
    sources = read_all(spark, config, DATE)
    assert sources.segments is None
    assert [source.id_types["user_id"] for source in sources.all()] == ["bigint", "bigint"]

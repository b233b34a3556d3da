"""Ids in the types that tables have: whole numbers, text and UUIDs, from files and from tables of a call."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.config import HeldOutInput, RecommendationsInput, validate_model
from rankeval_spark.errors import ChecksFailedError, Fault, InputError, RefusedCallError
from rankeval_spark.inputs.arrow import files
from rankeval_spark.inputs.arrow.canonical import Reading
from rankeval_spark.inputs.arrow.file_inputs import FileInput
from rankeval_spark.inputs.arrow.reading import to_source
from rankeval_spark.inputs.input_columns import check_id_types
from rankeval_spark.refusals import find_unreadable
from tests.support.id_columns import AS_TEXT, BYTES, READ, REFUSED, UUIDS

if TYPE_CHECKING:
    from rankeval_spark.inputs.arrow.reading import Source


def from_file(folder: Path, column: pa.Array, name: str = "held_out", **given: Any) -> Source:  # noqa: ANN401 - keys of the config
    """Read ids of users from a Parquet file, as a night in this process does."""
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({"user_id": column, "item_id": pa.array(range(len(column)))}), path)
    config = validate_model(HeldOutInput, {"format": "parquet", "path": str(path), **given})
    return FileInput(name, config, files.open_files(config, dt.date(2026, 1, 1)), schemas.HELD_OUT, None).read()


def from_call(column: Any, name: str = "held_out") -> Source:  # noqa: ANN401 - a column of any library
    items = pa.array(range(len(column)))
    return to_source(name, pa.table({"user_id": column, "item_id": items}), schemas.HELD_OUT)


@pytest.mark.parametrize("title", READ)
def test_ids_are_those_of_their_values(tmp_path: Path, title: str) -> None:
    column, ids = READ[title]
    expected = "string" if isinstance(ids[0], str) else "bigint"
    for source in (from_call(column), from_file(tmp_path, column)):
        assert (source.table["user_id"].to_pylist(), source.id_types["user_id"]) == (ids, expected)


@pytest.mark.parametrize("title", READ)
def test_items_in_arrays_are_those_of_their_values(tmp_path: Path, title: str) -> None:
    column, ids = READ[title]
    arrays = pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
    log = pa.table({"user_id": ["ann"], "item_id": arrays})
    assert to_source("recommendations", log, schemas.RECOMMENDATIONS).table["item_id"].to_pylist() == ids
    pq.write_table(log, tmp_path / "log.parquet")
    given = {"format": "parquet", "path": str(tmp_path / "log.parquet"), "nested": {"items": "item_id"}}
    config = validate_model(RecommendationsInput, given)
    table = files.open_files(config, dt.date(2026, 1, 1))
    read = FileInput("recommendations", config, table, schemas.RECOMMENDATIONS, None).read()
    assert read.table["item_id"].to_pylist() == ids


@pytest.mark.parametrize("title", REFUSED)
def test_ids_that_cannot_be_read_are_refused_with_what_helps(tmp_path: Path, title: str) -> None:
    column, kind, fix = REFUSED[title]
    where, expected = "inputs.held_out", "text or whole numbers"
    with pytest.raises(InputError) as refused:
        from_file(tmp_path, column)
    fault = Fault(where, f"column 'user_id' of type {kind} for user_id", expected, fix.format(where))
    assert refused.value.faults == (fault,)
    with pytest.raises(InputError, match=r"cast it to text, in the other tables too|write other ids as text"):
        from_call(column)


@pytest.mark.parametrize("title", AS_TEXT)
def test_ids_of_numbers_are_text_where_the_config_says_so(tmp_path: Path, title: str) -> None:
    column, ids = AS_TEXT[title]
    source = from_file(tmp_path, column, types={"user_id": "string"})
    assert (source.table["user_id"].to_pylist(), source.id_types["user_id"]) == (ids, "string")


def test_floats_are_whole_numbers_where_the_config_says_so(tmp_path: Path) -> None:
    floats = pa.array([7.0, float("nan"), None, 2.0**53])
    with pytest.raises(InputError, match=r"write inputs\.held_out\.types: \{user_id: string\}$"):
        from_file(tmp_path, floats)
    read = from_file(tmp_path, floats, types={"user_id": "integer"})
    assert read.table["user_id"].to_pylist() == [7, None, None, 2**53]
    for wrong, found in ((7.5, "7.5 is no whole number"), (2.0**53 + 2, "which is what floats hold exactly")):
        with pytest.raises(InputError, match=rf"{found}.*cast it to text or to whole numbers"):
            from_file(tmp_path, pa.array([7.0, wrong]), types={"user_id": "integer"})


def test_ids_of_lists_are_compared_as_the_numbers_that_they_are() -> None:
    decimals = pa.array([Decimal("1.00"), Decimal("2.00")], pa.decimal128(10, 2))
    log = {"user_id": ["ann"] * 2, "item_id": ["b", "c"], "score": [1, 1]}
    for listed, judged in ((decimals, [1, 2]), ([1.0, 2.0], [1, 2]), (pa.array(BYTES), list(UUIDS))):
        held_out = {"user_id": ["ann"] * 2, "item_id": ["b", "c"], "list_id": judged}
        result = evaluate(pa.table({**log, "list_id": listed}), pa.table(held_out), measures=["R"])
        assert result.user_metrics["r"].to_pylist() == [1, 1]


def test_uuids_of_every_library_join_with_their_text() -> None:
    held_out = pa.table({"user_id": [UUIDS[1]], "item_id": [8]})
    objects = [UUID(UUIDS[1])] * 2
    logs = [
        pd.DataFrame({"user_id": objects, "item_id": [7, 8], "score": [2, 1]}),
        pd.DataFrame({"user_id": [one.bytes for one in objects], "item_id": [7, 8], "score": [2, 1]}),
        pl.DataFrame({"user_id": [one.bytes for one in objects], "item_id": [7, 8], "score": [2, 1]}),
        pa.table({"user_id": pa.array([BYTES[1]] * 2, pa.uuid()), "item_id": [7, 8], "score": [2, 1]}),
    ]
    for log in logs:
        assert evaluate(log, held_out, measures=["RR"]).metrics["value"].to_pylist() == [1 / 2]


def test_decimals_of_every_library_join_with_whole_numbers() -> None:
    held_out = pd.DataFrame({"user_id": [7], "item_id": [8]})
    ids = {"user_id": [Decimal("7.0")] * 2, "item_id": [Decimal(9), Decimal(8)], "score": [2, 1]}
    for log in (pd.DataFrame(ids), pl.DataFrame(ids), pa.table(ids)):
        assert evaluate(log, held_out, measures=["RR"]).metrics["value"].to_pylist() == [1 / 2]


def test_other_types_of_ids_are_named_as_the_user_writes_them() -> None:
    log = pa.table({"user_id": ["7"], "item_id": ["a"], "score": [1]})
    with pytest.raises(RefusedCallError, match=r"user_id of type int64, while .* has str;"):
        evaluate(log, pa.table({"user_id": [7], "item_id": ["a"]}), measures=["RR"])
    with pytest.raises(
        ChecksFailedError, match=r"inputs\.b: found user_id of type integer, while inputs\.a has string"
    ):
        check_id_types({"a": from_call(pa.array(["7"]), "a").id_types, "b": from_call(pa.array([7]), "b").id_types})


def test_what_a_worker_refuses_is_found_in_the_text_of_its_job() -> None:
    reading = Reading("inputs.held_out", schemas.HELD_OUT)
    table = pa.table({"user_id": [Decimal("7.5")], "item_id": [b"ann"]})
    with pytest.raises(InputError) as refused:
        reading.read_rows(table)
    text = (
        f"org.apache.spark.SparkException: ...\n  rankeval_spark.errors.InputError: {refused.value}\n\n\tat org.apache"
    )
    found = find_unreadable(text)
    assert found is not None
    assert found.faults == refused.value.faults
    assert len(found.faults) == 2
    assert find_unreadable("org.apache.spark.SparkException: out of memory") is None

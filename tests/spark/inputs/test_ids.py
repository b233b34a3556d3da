"""Ids in the types that tables have, on Spark: the same as in this process, from files and from DataFrames."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import InputError
from rankeval_spark.spark.session import on_demand
from tests.support import spark_inputs
from tests.support.id_columns import AS_TEXT, BYTES, READ, REFUSED, UUIDS
from tests.support.nights import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.inputs.spark.reading import Source

DATE: Final = dt.date(2026, 1, 1)


def read(spark: SparkSession, path: Path, **given: Any) -> Source:  # noqa: ANN401 - keys of the config
    return spark_inputs.read(spark, schemas.HELD_OUT, date=DATE, format="parquet", path=str(path), **given)


def ids_of(source: Source) -> list[Any]:
    return [row.user_id for row in source.frame.orderBy("item_id").collect()]


def test_ids_of_files_are_those_of_their_values(spark: SparkSession, tmp_path: Path) -> None:
    for title, (column, ids) in READ.items():
        pq.write_table(pa.table({"user_id": column, "item_id": range(len(column))}), tmp_path / f"{title}.parquet")
        source = read(spark, tmp_path / f"{title}.parquet")
        assert ids_of(source) == ids, title
        assert source.id_types["user_id"] == ("string" if isinstance(ids[0], str) else "bigint")
    for title, (column, ids) in AS_TEXT.items():
        pq.write_table(pa.table({"user_id": column, "item_id": range(len(column))}), tmp_path / f"{title}.parquet")
        assert ids_of(read(spark, tmp_path / f"{title}.parquet", types={"user_id": "string"})) == ids, title


def test_uuids_in_arrays_and_in_folders_of_partitions_are_text(spark: SparkSession, tmp_path: Path) -> None:
    uuids = pa.array(BYTES, pa.uuid())
    (tmp_path / "held_out" / "day=2026-01-01").mkdir(parents=True)
    pq.write_table(pa.table({"user_id": uuids, "item_id": [0, 1]}), tmp_path / "held_out/day=2026-01-01/a.parquet")
    source = read(spark, tmp_path / "held_out", filters=[{"column": "day", "op": "=", "value": "{date}"}])
    assert (ids_of(source), source.table_columns) == ([*UUIDS], "user_id binary, item_id bigint, day date")
    arrays = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), uuids)
    pq.write_table(pa.table({"user_id": ["ann"], "recs": arrays}), tmp_path / "log.parquet")
    path = str(tmp_path / "log.parquet")
    log = spark_inputs.read(spark, schemas.RECOMMENDATIONS, format="parquet", path=path, nested={"items": "recs"})
    assert [row.item_id for row in log.frame.orderBy("rank").collect()] == [*UUIDS]


def test_decimals_and_bytes_of_frames_join_with_numbers_and_text(spark: SparkSession) -> None:
    log = spark.createDataFrame(
        [(bytearray(BYTES[0]), Decimal(8), 2.0), (bytearray(BYTES[0]), Decimal(9), 1.0)],
        "user_id binary, item_id decimal(38,0), score double",
    )
    held_out = spark.createDataFrame([(UUIDS[0], 9)], "user_id string, item_id bigint")
    assert [row.value for row in evaluate(log, held_out, measures=["RR"]).metrics.collect()] == [1 / 2]


@pytest.mark.parametrize("title", REFUSED)
def test_ids_that_cannot_be_read_end_a_night_alike(spark: SparkSession, tmp_path: Path, title: str) -> None:
    column, kind, fix = REFUSED[title]
    made = Workspace(tmp_path)
    (tmp_path / "inputs").mkdir()
    log = pa.table({"user_id": column, "item_id": range(len(column)), "score": [1.0] * len(column)})
    held_out = pa.table({"user_id": [UUIDS[0] if kind == "binary" else 7], "item_id": [0]})
    for name, table in (("recommendations", log), ("held_out", held_out)):
        pq.write_table(table, tmp_path / "inputs" / f"{name}.parquet")
    inputs = {name: {"format": "parquet", "path": f"inputs/{name}.parquet"} for name in ("recommendations", "held_out")}
    made.configure({"evaluation": "ids", "inputs": inputs, "measures": ["RR"], "results": {"root": "results"}})
    messages = []
    for session in (spark, on_demand(lambda: pytest.fail("a session was started"))):
        with pytest.raises(InputError) as refused:
            run_night(session, load_config(made.config), DATE)
        messages.append([str(fault) for fault in refused.value.faults])
    where = "inputs.recommendations"
    expected = f"{where}: found column 'user_id' of type {kind} for user_id; expected text or whole numbers"
    assert messages == [[f"{expected}; {fix.format(where)}"]] * 2

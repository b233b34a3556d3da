"""Roots of an older version, read and written by Spark: columns that its tables lack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow.compute as pc
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results, ResultsStore
from rankeval_spark.results.maintenance import Compacted
from tests.spark.results import nights
from tests.support.older_roots import LACKING, make_older
from tests.support.readers import READERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = (schemas.RUNS, *schemas.PUBLISHED)


@pytest.fixture
def of_spark(root: str) -> str:
    """Move an older root to a place that only Spark opens; this process still reads it at the old place."""
    make_older(root)
    moved = Path(root).rename(f"{root} [of Spark]")
    Path(root).symlink_to(moved)
    return str(moved)


def test_spark_reads_what_this_process_reads(spark: SparkSession, root: str) -> None:
    make_older(root)
    for schema in ALL:
        here, there = Results(root), Results(spark, root)
        read = there.runs() if schema is schemas.RUNS else there.published(schema.name)
        expected = here.runs() if schema is schemas.RUNS else here.published(schema.name)
        assert read.columns == expected.column_names
        assert read.schema["run_id"].metadata["comment"] == schema.field("run_id").comment
        assert nights.rows_of(read.toArrow(), without=()) == nights.rows_of(expected, without=())
        assert all(row[name] is None for row in read.collect() for name in LACKING[schema.name])
    assert Results(spark, root).metrics(quantile_error=0.0).isEmpty()
    with_old = Results(spark, root).user_values(date=nights.FIRST).collect()
    assert {row[C.VALUE] for row in with_old if row[C.USER_ID] == "ann"} == {1.0}
    made = Results(spark, root).register()
    assert all(spark.table(name).columns for name in made)


def test_spark_appends_a_night_to_an_older_root_and_maintains_it(spark: SparkSession, of_spark: str, root: str) -> None:
    before = {schema.name: nights.rows_of(Results(root).published(schema.name)) for schema in ALL[1:]}

    maintenance = ResultsStore.open(spark, of_spark, create=False).maintenance()
    assert maintenance.compact("metrics") == Compacted(0, 0)  # Spark writes the next night in several files
    nights.publish(spark, of_spark, nights.facts("second", nights.SECOND))

    after = {schema.name: Results(root).published(schema.name) for schema in ALL[1:]}
    first = {name: rows.filter(pc.field(C.EVALUATION_DATE) == nights.FIRST) for name, rows in after.items()}
    assert {name: nights.rows_of(rows) for name, rows in first.items()} == before
    assert maintenance.erase_user("ann")["user_metrics"] == 4
    assert "ann" not in Results(root).user_metrics()[C.USER_ID].to_pylist()
    Path(root).unlink()
    Path(of_spark).rename(root)  # Polars opens no folder with a blank in its name
    for schema in ALL:
        opened = deltalake.DeltaTable(f"{root}/{schema.name}")
        fields = {field.name: field for field in opened.schema().fields}
        assert set(fields) >= set(schema.field_names())
        assert fields[LACKING[schema.name][0]].metadata["comment"] == schema.field(LACKING[schema.name][0]).comment
        assert opened.protocol().min_reader_version == 1
        for name, read in READERS.items():
            n_rows = opened.to_pyarrow_table().num_rows
            assert len(read(f"{root}/{schema.name}", schema.field_names())) == n_rows, (name, schema.name)
    assert Results(root).metrics(date=nights.SECOND).num_rows == Results(root).metrics(date=nights.FIRST).num_rows

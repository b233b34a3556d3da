"""The shared session is the one that a local run gets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F

from rankeval_spark import errors
from rankeval_spark.config import spark_settings
from rankeval_spark.errors import ConfigError
from rankeval_spark.spark.session import build_session


def test_session_writes_and_reads_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "with space" / "numbers")

    spark.range(10).write.format("delta").save(path)

    assert spark.read.format("delta").load(path).count() == 10


def test_dates_of_a_session_of_ours_are_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_workers_run_the_python_of_the_driver(spark: SparkSession) -> None:
    def executable(batches):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  (runs in the worker, by value)
        import pyarrow as pa  # noqa: PLC0415 - as in a worker

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"executable": [sys.executable]})

    rows: DataFrame = spark.range(1).repartition(1).mapInArrow(executable, "executable string")

    assert [row.executable for row in rows.collect()] == [sys.executable]


def test_active_session_is_taken_and_keeps_what_it_was_given(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")

    session = build_session(settings={"spark.sql.shuffle.partitions": "3"})

    assert session is spark or session.sparkContext is spark.sparkContext
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"


def test_config_text_cannot_read_the_environment(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.variable.substitute") == "false"
    assert spark.sql("SELECT '${env:PATH}' AS text").collect()[0].text == "${env:PATH}"


def test_instants_are_written_as_parquet_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only this test needs it

    spark.range(1).select(F.current_timestamp().alias("at")).coalesce(1).write.parquet(str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.parquet")

    assert pq.read_schema(file).field("at").type.unit == "us"


@pytest.mark.usefixtures("spark")
def test_running_session_takes_no_value_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would write the value into its event log: what it hides was settled when it started."""
    monkeypatch.setattr(errors, "_hidden", set())
    key = "spark.sql.columnNameOfCorruptRecord"
    given = {key: "${env:LATE}", "spark.plain": "${env:LATE}"}
    filled = spark_settings.fill_environment(given, {"LATE": "hunter2-late"}, "x")
    with pytest.raises(ConfigError, match=rf"{key}: found a value from the environment") as raised:
        build_session(settings=filled)
    assert "hunter2" not in str(raised.value)
    assert "spark.plain" not in str(raised.value)  # nothing that a running session takes

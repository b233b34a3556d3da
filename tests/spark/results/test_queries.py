"""The queries of ``docs/queries`` give the same rows by Spark as by DuckDB."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from rankeval_spark import Results
from tests.support import query_night
from tests.support.cli import rankeval
from tests.support.query_night import QUERIES
from tests.support.readers import load_delta

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return query_night.published(tmp_path_factory.mktemp("queries") / "it's here").root


@pytest.fixture(scope="module")
def database(root: str) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        load_delta(connection)
        Results(root).register(connection)
        for name, rows in query_night.logs().items():
            connection.register(name, rows)
        yield connection


@contextmanager
def registered(spark: SparkSession, root: str) -> Iterator[None]:
    """Make the views for a block, and those of the logs; without generated code, Spark cannot list temporary views."""
    logs = query_night.logs()
    for name, rows in logs.items():
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    made = [*Results(root, spark).register(), *logs]
    try:
        yield
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def rows_of(table: pa.Table) -> list[list[Any]]:
    """Give the rows, without the times, which each library has in its own zone."""
    kept = table.drop_columns([name for name in ("recorded_at",) if name in table.column_names])
    return [[round(cell, 12) if isinstance(cell, float) else cell for cell in row.values()] for row in kept.to_pylist()]


def test_spark_and_duckdb_answer_alike(spark: SparkSession, root: str, database: duckdb.DuckDBPyConnection) -> None:
    with registered(spark, root):
        for query, text in QUERIES.items():
            here, there = database.execute(text).to_arrow_table(), spark.sql(text).toArrow()
            assert there.column_names == here.column_names, query
            assert rows_of(there) == rows_of(here), query
            assert here.num_rows, query


def test_views_in_a_schema_are_there_for_other_sessions(spark: SparkSession, root: str) -> None:
    spark.sql("CREATE SCHEMA evaluations")
    try:
        made = Results(root, spark).register(schema="evaluations")
        assert "evaluations.latest_metrics" in made
        assert spark.newSession().table("evaluations.nights").toArrow().num_rows == 4
        again = rankeval("register", root, "--for", "spark", "--schema", "evaluations")
        for statement in again.out.split(";\n"):
            if statement.strip():
                spark.sql(statement)
    finally:
        spark.sql("DROP SCHEMA evaluations CASCADE")

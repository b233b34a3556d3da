"""Results in a schema of Spark's catalog: tables that are registered there, and nights that are published at it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import Results, schemas
from tests.support.cli import rankeval, rankeval_process
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

PUBLISHED: Final = ("runs", "lists", "user_metrics", "metrics", "group_metrics", "checks")


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """Give a schema that is empty."""
    name = f"evaluations_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def test_registered_tables_are_those_of_the_root_with_their_comments(
    spark: SparkSession, published: Workspace, schema: str
) -> None:
    made = rankeval("register", published.root, "--tables", "--schema", schema)
    again = rankeval("register", f"{published.root}/", "--tables", "--schema", f"spark_catalog.{schema}")
    assert (made.code, again.code) == (0, 0), made.err + again.err
    assert {line.partition(".")[2] for line in made.out.splitlines()} >= {f"{name}: made" for name in PUBLISHED}
    assert {line.rpartition(": ")[2] for line in again.out.splitlines()} == {"there already"}
    assert "the catalog of this session is in memory" in made.err
    found = spark.newSession().table(f"{schema}.metrics")
    assert found.count() == Results(published.root).metrics().num_rows
    comments = {row["col_name"]: row["comment"] for row in spark.sql(f"DESCRIBE {schema}.metrics").collect()}
    assert comments["tie_share"] == schemas.METRICS.field("tie_share").comment
    assert (
        spark.catalog.getTable(f"{schema}.gates" if "gates" in made.out else f"{schema}.runs").tableType == "EXTERNAL"
    )
    spark.sql(f"DROP TABLE {schema}.metrics")
    assert Path(published.root, "metrics", "_delta_log").is_dir()  # the files are the root's


def test_a_table_or_view_of_another_place_is_refused_before_any_is_made(
    spark: SparkSession, published: Workspace, schema: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE {schema}.metrics (a int) USING delta LOCATION '{tmp_path / 'other'}'")
    spark.sql(f"CREATE VIEW {schema}.lists AS SELECT 1 AS a")
    refused = rankeval("register", published.root, "--tables", "--schema", schema)
    assert refused.code == 2
    assert f"--schema: found {schema}.metrics, file:{tmp_path}/other; expected no table of that name" in refused.message
    assert f"--schema: found {schema}.lists, VIEW; expected no table of that name" in refused.message
    assert {row["tableName"] for row in spark.sql(f"SHOW TABLES IN {schema}").collect()} == {"metrics", "lists"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--tables", "--schema", "no_such_schema"), "--schema: found no_such_schema (The schema `spark_catalog`"),
        (("--tables", "--schema", "a`b"), "--schema: found 'a`b'; expected letters, digits"),
        (("--tables", "--for", "spark"), "--for and --tables: found both; expected one of them"),
        ((), "--for and --tables: found neither of them; expected one of them"),
    ],
)
def test_what_cannot_be_registered_is_refused_with_its_place(
    published: Workspace, options: tuple[str, ...], told: str
) -> None:
    refused = rankeval("register", published.root, *options)
    assert (refused.code, told in refused.message) == (2, True), refused.message


def test_a_night_of_a_schema_is_published_at_its_location_and_registered(
    spark: SparkSession, own_copy: Workspace, tmp_path: Path
) -> None:
    name, place = f"nights_{uuid.uuid4().hex}", tmp_path / "with a space"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{place}'")
    own_copy.change(results={"schema": name, "lists": True})
    try:
        done = rankeval("run", own_copy.config, "--date", FIRST)
        more = rankeval("backfill", own_copy.config, "--from", SECOND, "--to", SECOND)
        assert (done.code, more.code) == (0, 0), done.err + more.err
        assert f"registered in {name}: {name}.runs, {name}." in done.err
        assert f"registered in {name}: nothing new" in more.err
        nights = spark.table(f"{name}.metrics").select("evaluation_date").distinct().toArrow()
        assert len(nights) == 2
        assert len(Results(str(place)).nights()) == 2
        checked = rankeval("validate", own_copy.config, "--date", FIRST)
        assert "would run on Spark: results.schema is of Spark's catalog" in checked.out
        spark.sql(f"DROP TABLE {name}.metrics")
        spark.sql(f"CREATE VIEW {name}.metrics AS SELECT 1 AS a")
        refused = rankeval("run", own_copy.config, "--date", FIRST)
        assert refused.code == 2
        assert f"results.schema: found {name}.metrics, VIEW; expected no table of that name" in refused.message
    finally:
        spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("results%41", "expected a schema whose location is a folder of this machine or in an object store"),
        (None, "expected a schema of Spark's catalog"),
    ],
)
def test_a_schema_that_is_no_root_is_refused_with_its_location(
    spark: SparkSession, own_copy: Workspace, tmp_path: Path, folder: str | None, told: str
) -> None:
    name = f"nights_{uuid.uuid4().hex}"
    if folder is not None:
        spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path / folder}'")
    own_copy.change(results={"schema": name})
    refused = rankeval("run", own_copy.config, "--date", FIRST)
    assert refused.code == 2
    assert f"results.schema: found {name}" in refused.message
    assert told in refused.message
    if folder is not None:
        assert f"found {name} at file:{tmp_path}/results%2541" in refused.message
        spark.sql(f"DROP SCHEMA {name}")


@pytest.mark.slow
def test_tables_in_a_metastore_are_there_for_the_next_process(own_copy: Workspace, tmp_path: Path) -> None:
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"{tmp_path}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={tmp_path}/derby.log",
    }
    own_copy.change(spark={"settings": settings})
    for told in ("made", "there already"):
        done = rankeval_process("register", own_copy.root, "--tables", "--config", own_copy.config)
        assert done.code == 0, done.err
        assert f"default.metrics: {told}" in done.out
        assert "in memory" not in done.err

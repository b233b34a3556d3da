"""Spark's numbers, read by others; and the long view of the wide table."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import ResultTable, schemas
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import Results, failpoints, tables
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.storage import Storage
from tests.spark.results import nights
from tests.support.plans import python_nodes
from tests.support.readers import READERS, sorted_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

COLUMNS = {
    "metrics": ("evaluation", "evaluation_date", "model_id", "slice", "slice_values", "measure", "k", "value"),
    "user_metrics": ("evaluation", "evaluation_date", "user_id", "k", "n_hits", "rr", "ap_denom_min"),
    "lists": ("user_id", "hit_ranks", "hit_gains", "judged_gains"),
    "checks": ("input", "share", "verdict", "sample_keys"),
    "runs": ("run_id", "status", "sample_share", "failed_checks"),
}


@pytest.mark.parametrize("table", COLUMNS)
def test_other_readers_see_what_spark_sees(spark: SparkSession, root: str, table: str) -> None:
    columns = COLUMNS[table]
    frame = spark.read.format("delta").load(f"{root}/{table}").select(*columns)
    expected = sorted_rows([tuple(row) for row in frame.collect()])
    for name, read in READERS.items():
        assert read(f"{root}/{table}", columns) == expected, name


def seen_by(results: Results[Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table and view, in a form that can be compared whatever read them."""
    frames = {schema.name: results.published(schema.name) for schema in nights.STAGED}
    frames |= {
        "runs": results.runs(),
        "user_values": results.user_values(),
        "of_a_night": results.lists(date=nights.FIRST),
    }
    read = {name: frame if isinstance(frame, ResultTable) else frame.toArrow() for name, frame in frames.items()}
    return {name: sorted(_rows(table), key=str) for name, table in read.items()}


def _rows(table: pa.Table | ResultTable) -> list[dict[str, Any]]:
    rows = table.to_pylist(maps_as_pydicts="strict")
    times = [name for name in ("recorded_at",) if name in table.column_names]
    return [{**row, **{name: row[name].astimezone(UTC) for name in times}} for row in rows]


def publish_until(failpoint: str, root: str) -> None:
    changed: nights.Ranks = {"ann": 2, "kim": 1}
    with failpoints.armed(failpoint), pytest.raises(failpoints.FailpointError):
        nights.publish(root, nights.facts("crashed"), changed)


def assert_only_runs_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert {**one, "runs": None} == {**other, "runs": None}


def test_both_readers_see_the_same_in_the_middle_of_a_publish(spark: SparkSession, root: str) -> None:
    first = seen_by(Results(root))
    publish_until("after_user_metrics", root)
    during = seen_by(Results(root))
    assert during == seen_by(Results(root, spark))
    assert_only_runs_differ(during, first)


def test_both_readers_leave_out_damaged_events_and_name_them(spark: SparkSession, root: str) -> None:
    first = seen_by(Results(root))["runs"]
    nights.publish(root, nights.facts("next", nights.SECOND), {"eve": 1})
    newest = max(Path(root, "runs").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:100])
    for results in (Results(root), Results(root, spark)):
        with pytest.warns(UserWarning, match=rf"left out: table runs, .*{newest.name}, which is cut off"):
            runs = results.runs()
        rows = _rows(runs if isinstance(runs, ResultTable) else runs.toArrow())
        assert sorted(rows, key=str) == first


def test_both_readers_see_the_same_at_every_moment(spark: SparkSession, root: str) -> None:
    """Pinned while others publish, at the end of a publish that died, and after the next run finished it."""
    early = Results(root), Results(root, spark)
    first = seen_by(early[0])
    assert first == seen_by(early[1])

    publish_until("before_marker", root)
    during = seen_by(Results(root))
    assert during == seen_by(Results(root, spark))
    assert_only_runs_differ(during, first)

    nights.publish(root, nights.facts("next", nights.SECOND), {"eve": 1})
    after = seen_by(Results(root))
    assert after == seen_by(Results(root, spark))
    assert after["user_metrics"] != first["user_metrics"]
    for name in ("metrics", "user_metrics", "lists", "checks"):
        frames = [getattr(results, name)(date=nights.FIRST) for results in early]
        rows = [frames[0].to_pylist(), [row.asDict() for row in frames[1].collect()]]
        assert rows[0]
        assert {row["run_id"] for each in rows for row in each} == {"first"}


def test_spark_reads_what_was_appended_before_and_after_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    tables.create_table(storage, schemas.RUNS)
    event = {"evaluation": "a", "evaluation_date": nights.FIRST, "status": "RUNNING", "recorded_at": 0}
    runs = [f"r{number}" for number in range(102)]
    for version, run in enumerate(runs):
        row = {**event, "run_id": run, "n_rows": {"lists": 1}}
        ResultTables(storage).append_events([row], tag=run, after=version)
    assert list(tmp_path.rglob("*.checkpoint.parquet"))
    found = spark.read.format("delta").load(f"{tmp_path}/runs").select("run_id", "n_rows").collect()
    assert {row["run_id"]: row["n_rows"] for row in found} == {key: {"lists": 1} for key in runs}


def test_the_long_view_has_a_row_for_every_measure_that_was_asked_for(spark: SparkSession, root: str) -> None:
    frame = Results(root, spark).user_values(user_id="bob")
    assert frame.columns[-6:] == ["model_id", "user_id", "list_id", "measure", "k", "value"]
    assert python_nodes(frame) == []
    values = frame.collect()
    assert sorted((row["measure"], row["k"], row["value"]) for row in values) == [
        ("AP(denom='min')", 2, 1 / 2),
        ("RR", 1, 0.0),
        ("RR", 2, 1 / 2),
    ]


def test_results_are_filtered_by_date_evaluation_and_any_column(spark: SparkSession, root: str) -> None:
    results = Results(root, spark)
    rows = results.metrics(date="2026-01-01", evaluation="nightly", measure="RR", k=2).collect()
    assert [row["value"] for row in rows] == [(1 + 1 / 2 + 0) / 3]
    with pytest.raises(ConfigError, match=r"found 2026-01-02; .*; the nearest is 2026-01-01"):
        results.metrics(date=nights.SECOND)
    assert results.user_values(measure="RR", k=1, user_id="ann").collect()[0]["value"] == 1.0


@pytest.mark.parametrize("filters", [{"date": "2026-13-01"}, {"modle_id": "als"}])
def test_a_filter_that_means_nothing_is_refused(spark: SparkSession, root: str, filters: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Results(root, spark).metrics(**filters)

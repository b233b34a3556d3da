"""The benchmark runs, and times what it says: every contender does its work on a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import in_process
from benchmarks.data import DataSettings, prepare
from benchmarks.families import Families
from benchmarks.report import Report
from benchmarks.timing import interleaved
from benchmarks.workloads import DEFAULT, EXCHANGE, FLOOR, HANDED_OVER, SIX, Workloads, accuracy

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_the_floor_and_the_default_call_are_timed_on_the_same_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path))
    settings = DataSettings(2_000, seed=3)
    workloads = Workloads(spark, prepare(spark, settings), tmp_path / "scratch")
    n_rows = workloads.log.count()

    timings = interleaved(workloads.main(), repeats=1, before_each=lambda: None)
    table = Report("bench", {}, timings, reference=FLOOR, n_rows=n_rows).as_table()

    assert list(timings) == [DEFAULT, FLOOR, EXCHANGE, HANDED_OVER]
    assert all(name in table for name in timings)
    lists = workloads.evaluated(["P@1000"]).user_metrics.collect()
    assert len(lists) == settings.n_users == 20
    lengths = [row["n_recommended"] for row in lists]
    once = workloads.log.select("user_id", "item_id").distinct().count()
    assert sum(lengths) == once
    assert 0 < n_rows - once < n_rows / 20
    assert workloads.hand_over() > n_rows
    ranks = workloads.floor()
    assert isinstance(ranks, list)
    rows_of_users = [row["count"] for row in workloads.log.groupBy("user_id").count().collect()]
    assert ranks[0][0] == sum(min(n, 100) * (min(n, 100) + 1) // 2 for n in rows_of_users)
    by_name = {one.name.strip(): one for one in workloads.extras()}
    assert by_name["rows of users as Parquet, and the means, inside cached()"].run() == len(SIX)
    assert set(SIX) <= set(accuracy())


def test_every_family_has_a_floor_and_text_ids_are_as_long_as_those_of_a_database(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path))
    workloads = Workloads(spark, prepare(spark, DataSettings(2_000, has_text_ids=True)), tmp_path / "scratch")
    families = Families(workloads)
    contenders = {one.name: one for one in families.contenders()}
    assert set(families.floors().values()) | set(families.floors()) == set(contenders)
    assert contenders["data quality"].run() == 2
    row = workloads.log.first()
    assert row is not None
    assert len(row["user_id"]) == len(row["item_id"]) == 36


def test_sql_by_hand_and_this_process_give_the_same_means(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path))
    tables = prepare(spark, DataSettings(2_000, seed=4))
    assert in_process.here(tables) == pytest.approx(in_process.by_hand(tables), abs=1e-12)

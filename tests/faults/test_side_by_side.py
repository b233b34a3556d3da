"""Processes that work on one root at the same time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND
from tests.support.processes import SETTINGS, held_at, rankeval_command, started
from tests.support.readers import read_with_duckdb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

pytestmark = pytest.mark.faults


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a workspace in which nothing was published."""
    return nights.workspace(tmp_path / "workspace", spark={"master": "local[1]", "settings": SETTINGS})


@pytest.mark.in_ci
def test_two_first_runs_of_one_date_publish_one_after_the_other(
    spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    """Neither finds a root: one makes it. Neither gives up: one waits."""
    command = rankeval_command("run", workspace.config, "--date", FIRST, "--set", "results.on_busy=wait")
    with started(command, tmp_path / "one") as one, started(command, tmp_path / "other") as other:
        ended = [one.finish(), other.finish()]

    assert [done.code for done in ended] == [0, 0], [done.err for done in ended]
    recorded = workspace.events()
    runs = [row[C.RUN_ID] for row in recorded if row["status"] == "PUBLISHED"]
    first, second = runs
    assert [(row[C.RUN_ID], row["status"]) for row in recorded] == [
        (run, status) for run in (first, second) for status in ("RUNNING", "PUBLISHING", "PUBLISHED")
    ]
    assert_one_run_a_date(spark, workspace.root, {FIRST: second})


def test_during_a_run_others_refuse_publish_maintain_or_wait_until_it_dies(
    spark: SparkSession, workspace: Workspace, tmp_path: Path
) -> None:
    command = rankeval_command("run", workspace.config, "--date", FIRST)
    with started(command, tmp_path / "held", held_at("after_staging")) as held:
        held.wait_until_it_says("failpoint after_staging holds")
        own = workspace.events()[0][C.RUN_ID]

        refused = rankeval("run", workspace.config, "--date", FIRST)
        assert refused.code == 5
        assert f"found run {own} (process {held.process.pid} on " in refused.message

        other = rankeval("run", workspace.config, "--date", SECOND)
        assert other.code == 0, other.err
        maintained = rankeval("maintain", workspace.root)
        assert maintained.code == 0, maintained.err
        assert "staging: 0 removed; 1 of live runs kept" in maintained.out

        threading.Timer(2, held.kill).start()
        waited = rankeval("run", workspace.config, "--date", FIRST, "--set", "results.on_busy=wait")
        assert waited.code == 0, waited.err

    recorded = [row for row in workspace.events() if row[C.EVALUATION] != "rankeval.maintain"]
    by_date = {day: [(row["status"]) for row in recorded if row[C.EVALUATION_DATE] == day] for day in (FIRST, SECOND)}
    assert by_date == {
        FIRST: ["RUNNING", "FAILED", "RUNNING", "PUBLISHING", "PUBLISHED"],
        SECOND: ["RUNNING", "PUBLISHING", "PUBLISHED"],
    }
    died = next(row for row in recorded if row["status"] == "FAILED")
    last = recorded[-1][C.RUN_ID]
    assert (died[C.RUN_ID], died["error"]["type"]) == (own, "Died")
    assert died["reason"] == f"died: its process was gone, or silent for too long, when run {last} took over"
    assert died["error"]["message"].startswith(f"run {own} (process {held.process.pid} on ")
    assert_one_run_a_date(spark, workspace.root, {FIRST: last, SECOND: recorded[3][C.RUN_ID]})
    assert list(Path(workspace.root, "_staging").iterdir()) == []


def assert_one_run_a_date(spark: SparkSession, root: str, expected: dict[object, str]) -> None:
    """Check the tables that every night has rows for, as anybody reads them and through the helper."""
    results = Results(root, spark)
    for schema in (schemas.USER_METRICS, schemas.METRICS, schemas.CHECKS):
        plain = list(map(str, read_with_duckdb(f"{root}/{schema.name}", schema.key)))
        assert len(set(plain)) == len(plain), f"{schema.name}: a key twice"
        night = (C.EVALUATION_DATE, C.RUN_ID)
        assert set(read_with_duckdb(f"{root}/{schema.name}", night)) == set(expected.items())
        assert {tuple(row) for row in results.published(schema.name).select(*night).collect()} == set(expected.items())

"""A command that is told to end: what it says, what it records, and that the next one goes on from there."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.spark.session import jars
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import submit_script
from tests.support import nights
from tests.support.cli import PROJECT, rankeval
from tests.support.cluster import spark_environment
from tests.support.mortal_workers import VARIABLE
from tests.support.nights import FIRST, SECOND
from tests.support.processes import SETTINGS, held_at, rankeval_command, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

pytestmark = pytest.mark.faults


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Let what is started hear Ctrl-C, also where these tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a workspace in which nothing was published."""
    return nights.workspace(tmp_path / "workspace", spark={"master": "local[2]", "settings": {**SETTINGS}})


@pytest.mark.in_ci
def test_sigterm_ends_a_backfill_in_the_middle_of_a_job(
    spark: SparkSession,  # noqa: ARG001 - serves the command that runs in this process
    workspace: Workspace,
    tmp_path: Path,
) -> None:
    """A worker of Python sleeps, so that the driver waits for Spark; the whole process group is told to end."""
    workspace.change(spark__settings={**SETTINGS, "spark.python.daemon.module": "tests.support.mortal_workers"})
    sign = tmp_path / "sign"
    command = rankeval_command("backfill", workspace.config, "--from", FIRST, "--to", SECOND)
    with started(command, tmp_path / "backfill", {VARIABLE: f"sleep:{sign}"}) as running:
        running.wait_until_it_says("stage=read")
        running.wait_until_gone(sign)
        running.stop()
        running.stop()  # is ignored while the first one is seen to
        done = running.finish()

    assert done.code == 143, done.err
    assert done.message == "stopped by SIGTERM"
    done.assert_readable()
    lines = [line for line in done.out.splitlines() if line.strip().startswith("2026-01-")]
    assert [line.split("│")[1].strip() for line in lines] == ["failed, code 143"], done.out + done.err
    assert done.out.splitlines()[-1] == "1 failed, 1 not reached"
    failed = workspace.events()
    assert [(row["evaluation_date"], row["status"]) for row in failed] == [(FIRST, "RUNNING"), (FIRST, "FAILED")]
    assert failed[-1]["error"]["stage"] in ("match", "score")
    assert (failed[-1]["error"]["type"], failed[-1]["error"]["message"]) == ("Stopped", "stopped by SIGTERM")
    assert list(Path(workspace.root).glob("_staging/*")) == []

    again = rankeval("backfill", workspace.config, "--missing", "--from", FIRST, "--to", SECOND)
    assert (again.code, again.out.splitlines()[-1]) == (0, "2 published")


def test_ctrl_c_in_the_middle_of_a_publish_leaves_it_to_the_next_run(
    spark: SparkSession,  # noqa: ARG001 - as above
    workspace: Workspace,
    tmp_path: Path,
) -> None:
    command = rankeval_command("run", workspace.config, "--date", FIRST)
    with started(command, tmp_path / "run", held_at("after_metrics")) as running:
        running.wait_until_it_says("failpoint after_metrics holds")
        running.stop(signal.SIGINT)
        done = running.finish()

    assert (done.code, done.message) == (130, "stopped by SIGINT"), done.err
    done.assert_readable()
    assert [row["status"] for row in workspace.events()] == ["RUNNING", "PUBLISHING", "FAILED"]
    assert workspace.events()[-1]["error"]["stage"] == "publish"

    again = rankeval("run", workspace.config, "--date", SECOND)
    assert again.code == 0, again.err
    statuses = [(row["evaluation_date"], row["status"]) for row in workspace.events()[3:]]
    assert statuses == [(SECOND, "RUNNING"), (FIRST, "PUBLISHED"), (SECOND, "PUBLISHING"), (SECOND, "PUBLISHED")]
    assert list(Path(workspace.root, "_staging").iterdir()) == []


def test_sigterm_after_the_driver_was_killed_still_ends_with_one_message(workspace: Workspace, tmp_path: Path) -> None:
    command = rankeval_command("run", workspace.config, "--date", FIRST)
    with started(command, tmp_path / "run", held_at("after_staging")) as running:
        running.wait_until_it_says("failpoint after_staging holds")
        running.kill_children()
        running.stop()
        done = running.finish()

    assert done.code == 143, done.err
    done.assert_readable()
    assert done.message == "stopped by SIGTERM"
    assert [row["status"] for row in workspace.events()] == ["RUNNING", "FAILED"]
    assert list(Path(workspace.root, "_staging").iterdir()) == []


def test_a_backfill_ends_with_the_date_of_which_the_driver_was_lost(workspace: Workspace, tmp_path: Path) -> None:
    command = rankeval_command("backfill", workspace.config, "--from", FIRST, "--to", SECOND)
    with started(command, tmp_path / "backfill") as running:
        running.wait_until_it_says("stage=read")
        running.kill_children()
        done = running.finish()

    assert done.code == 8, done.err
    assert "found its JVM gone in the" in done.out
    assert done.out.splitlines()[-1] == "1 failed, 1 not reached"


def test_sigterm_under_spark_submit_leaves_what_the_next_run_mends(
    spark: SparkSession,  # noqa: ARG001 - as above
    workspace: Workspace,
    tmp_path: Path,
) -> None:
    """The JVM is the parent there and hears the signal too: it may be gone before a row was written."""
    delta = ",".join(map(str, jars.delta_jars(find_java())))
    confs = (part for key, value in SETTINGS.items() for part in ("--conf", f"{key}={value}"))
    of_spark = ("--master", "local[2]", "--driver-memory", "1g", "--jars", delta, *confs)
    job = PROJECT / "jobs" / "evaluate.py"
    command = [submit_script(), *of_spark, job, "--config", workspace.config, "--date", FIRST]
    with started(command, tmp_path / "run", spark_environment() | held_at("after_metrics")) as running:
        running.wait_until_it_says("failpoint after_metrics holds")
        running.stop()
        done = running.finish()

    assert done.code == 143, done.err
    assert [row["status"] for row in workspace.events()][:2] == ["RUNNING", "PUBLISHING"]

    again = rankeval("run", workspace.config, "--date", SECOND)
    assert again.code == 0, again.err
    published = [row["evaluation_date"] for row in workspace.events() if row["status"] == "PUBLISHED"]
    assert published == [FIRST, SECOND]
    assert list(Path(workspace.root, "_staging").iterdir()) == []

"""Progress on a terminal: a line that moves with the stage, its tasks and its seconds."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.cli.terminal import Tasks, tasks_under_way
from tests.support.nights import FIRST
from tests.support.terminal import ENVIRONMENT, on_a_terminal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace

SHOWN = """
import time
from rankeval_spark.cli import terminal
from rankeval_spark.cli.terminal import Tasks
from rankeval_spark.cli.terminal import progress
terminal.tasks_under_way = lambda: Tasks(3, 8)
with progress("nightly [x]") as listener:
    listener.say("as many rows")
    listener.begin("check")
    time.sleep(1.3)
    listener.end("check", 1.3, 1200)
    listener.begin("score")
    listener.advance(250_000, 1_000_000)
    time.sleep(0.7)
"""


WAITED = """
import time
from rankeval_spark.cli.terminal import waiting
with waiting("starting Spark"):
    time.sleep(1.3)
"""


def test_a_terminal_shows_stage_tasks_and_seconds() -> None:
    said = on_a_terminal(SHOWN)

    assert "nightly [x]: check, 0 s" in said
    assert "nightly [x]: check, 3 of 8 tasks, 1 s" in said
    assert re.search(r"done check +1\.3 s +1,200 rows", said)
    assert "nightly [x]: score, 0 s" in said
    assert re.search(r"nightly \[x\]: score, 250,000 of 1,000,000 rows, \d s", said)
    assert "  as many rows" in said


def test_a_terminal_shows_what_is_waited_for_and_a_pipe_does_not() -> None:
    said = on_a_terminal(WAITED)
    assert "rankeval: starting Spark, 0 s" in said
    assert "rankeval: starting Spark, 1 s" in said
    piped = subprocess.run([sys.executable, "-c", WAITED], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert piped.stdout + piped.stderr == ""


@pytest.mark.slow
def test_a_run_shows_how_far_it_is(own_copy: Workspace) -> None:
    arguments = ["run", str(own_copy.config), "--date", FIRST.isoformat(), "--set", "spark.always=true"]
    said = on_a_terminal(f"from rankeval_spark.cli import main\nmain({arguments!r})\n")

    assert "nightly 2026-01-01: starting Spark, 1 s" in said
    assert re.search(r"nightly 2026-01-01: \w+, \d+ of \d+ tasks, \d+ s", said), said
    done = re.findall(r"done (\w+) +[\d.]+ s", said)
    assert done[0] == "read"
    assert done[-1] == "publish"
    assert "published nightly 2026-01-01" in said


def test_the_tasks_of_a_job_are_counted_while_it_runs(spark: SparkSession) -> None:
    def slow(batches):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  (runs in the worker, by value)
        time.sleep(1)
        yield from batches

    job = Thread(target=lambda: spark.range(8, numPartitions=8).mapInArrow(slow, "id long").collect())
    job.start()
    seen: set[Tasks] = set()
    while job.is_alive():
        if (tasks := tasks_under_way()) is not None:
            seen.add(tasks)
        time.sleep(0.1)

    assert len({tasks.n_done for tasks in seen if tasks.n_all == 8}) > 1

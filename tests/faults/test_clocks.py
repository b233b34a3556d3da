"""A clock that is set back while a run holds its locks, and files that age while a reader holds an old version."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from tests.spark.results import nights
from tests.support import nights as workspaces
from tests.support.clocks import COMPILER, Clock
from tests.support.processes import rankeval_command, started
from tests.support.readers import read_with_duckdb

pytestmark = [pytest.mark.faults, pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")]

BACK: Final = timedelta(hours=-1)
CHANGED: Final[nights.Ranks] = {"ann": 2, "kim": 1}

SESSION: Final = """
import sys, time
from pathlib import Path
from rankeval_spark.errors import ResultsBusyError
from rankeval_spark.results import Results, ResultsStore
from rankeval_spark.results.locks import LockTimes
from tests.spark.results import nights
root, sign = sys.argv[1], Path(sys.argv[2])
times = LockTimes(heartbeat=1, stale_after=5)
"""

HOLDER: Final = f"""{SESSION}
run = nights.facts("holder")
store = ResultsStore.open(root, times=times)
with store.run_lock(run.evaluation, run.evaluation_date, run.run_id):
    begun = store.start(run)
    nights.stage(begun, {CHANGED!r})
    begun.audit()
    print("staged", flush=True)
    while sign.exists():
        time.sleep(0.05)
    begun.publish()
nights.publish(root, nights.facts("next", nights.SECOND))
"""

CONTENDER: Final = f"""{SESSION}
store = ResultsStore.open(root, times=times)
until = time.monotonic() + 3 * times.stale_after
while time.monotonic() < until:
    try:
        with store.run_lock(nights.NIGHTLY, nights.FIRST, "contender"):
            sys.exit("took the lock of a run that lives")
    except ResultsBusyError as busy:
        message = str(busy)
    time.sleep(0.2)
print(message)
"""

READER: Final = f"""{SESSION}
results = Results(root)
before = nights.rows_of(results.user_metrics(), without=())
print("pinned", len(before), flush=True)
n_reads = 0
while sign.exists():
    assert nights.rows_of(results.user_metrics(), without=()) == before
    n_reads += 1
assert nights.rows_of(results.user_metrics(), without=()) == before
print("read", n_reads)
"""


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """Give a clock that is right at first."""
    return Clock.of(tmp_path / "clock")


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Give a root in which the first night was published."""
    nights.publish(str(tmp_path / "results"), nights.facts("first"))
    return str(tmp_path / "results")


def test_a_clock_set_back_between_two_heartbeats_takes_no_lock_and_no_order(
    root: str, clock: Clock, tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    sign.touch()
    with started([sys.executable, "-c", HOLDER, root, sign], tmp_path / "holder", clock.environment) as holder:
        holder.wait_until_it_says("staged")
        clock.set(BACK)
        command = [sys.executable, "-c", CONTENDER, root, sign]
        with started(command, tmp_path / "contender", clock.environment) as contender:
            refused = contender.finish()
        assert refused.code == 0, refused.err
        assert f"found run holder (process {holder.process.pid} on " in refused.out
        sign.unlink()
        done = holder.finish()
    assert done.code == 0, done.err

    recorded = workspaces.events(root)
    ahead = datetime.now(UTC) + BACK / 2
    published = [row for row in recorded if row["status"] in ("PUBLISHING", "PUBLISHED")]
    assert [(row[C.RUN_ID], row["status"]) for row in published] == [
        (run, status) for run in ("first", "holder", "next") for status in ("PUBLISHING", "PUBLISHED")
    ]
    begun = next(row for row in recorded if (row[C.RUN_ID], row["status"]) == ("next", "RUNNING"))
    assert begun["recorded_at"] < ahead  # the clock was set back, and what is published is later all the same
    times = [row["recorded_at"] for row in published]
    assert times == sorted(set(times))
    assert_whole(root, {nights.FIRST: "holder", nights.SECOND: "next"})
    assert list(Path(root, "_staging").iterdir()) == []


def test_files_are_kept_while_a_pinned_reader_may_need_them(root: str, clock: Clock, tmp_path: Path) -> None:
    """Nights are run again, small files merged and old files deleted, twenty days later, while somebody reads."""
    sign = tmp_path / "sign"
    sign.touch()
    with started([sys.executable, "-c", READER, root, sign], tmp_path / "reader") as reader:
        reader.wait_until_it_says("pinned 6")
        nights.publish(root, nights.facts("rerun"), CHANGED)
        nights.publish(root, nights.facts("next", nights.SECOND))
        pin_config = Results(root)
        rows = nights.rows_of(pin_config.user_metrics(), without=())
        before = files(root)
        nights.publish(root, nights.facts("again"))

        clock.set(timedelta(days=20))
        maintain(root, clock, tmp_path / "soon")
        assert files(root) >= before
        assert nights.rows_of(pin_config.user_metrics(), without=()) == rows
        reads_so_far = reader.out
        sign.unlink()
        done = reader.finish()
    assert done.code == 0, f"{reads_so_far} {done.err}"
    assert int(done.out.split()[-1]) > 0

    clock.set(timedelta(days=40))
    maintain(root, clock, tmp_path / "late")
    assert not files(root) >= before  # nobody reads a version of a month ago any more
    assert_whole(root, {nights.FIRST: "again", nights.SECOND: "next"})


def maintain(root: str, clock: Clock, folder: Path) -> None:
    """Merge small files and delete old ones, by the clock of a process of its own."""
    command = rankeval_command("maintain", root, "--vacuum")
    with started(command, folder, clock.environment) as running:
        done = running.finish()
    assert done.code == 0, done.err


def files(root: str) -> set[str]:
    """Files of rows of single users."""
    return {str(path) for path in Path(root, schemas.USER_METRICS.name).rglob("*.parquet")}


def assert_whole(root: str, expected: dict[object, str]) -> None:
    """Check that each night is of one run, through the helper and as anybody reads it."""
    results = Results(root)
    for schema in (schemas.LISTS, schemas.USER_METRICS, schemas.METRICS, schemas.CHECKS):
        night = (C.EVALUATION_DATE, C.RUN_ID)
        found = results.published(schema.name).select(night).to_pylist()
        assert {tuple(row.values()) for row in found} == set(expected.items())
        assert set(read_with_duckdb(f"{root}/{schema.name}", night)) == set(expected.items())
        plain = list(map(str, read_with_duckdb(f"{root}/{schema.name}", schema.key)))
        assert len(set(plain)) == len(plain)

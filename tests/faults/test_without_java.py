"""A night that its own process computes, killed and stopped in a process of its own: no JVM is there to be lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deltalake
import pytest

from tests.support.nights import FIRST, SECOND
from tests.support.processes import held_at, rankeval_command, started

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace

pytestmark = pytest.mark.faults

POINTS: Final = ("after_staging", "after_intent", "after_user_metrics", "before_marker")
"""Nothing announced, nothing but that done, half of it, all but the last row."""

WITHOUT_JAVA: Final = {"JAVA_HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Let what is started hear Ctrl-C, also where these tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def rankeval(folder: Path, *arguments: object) -> Finished:
    with started(rankeval_command(*arguments), folder, WITHOUT_JAVA) as running:
        return running.finish()


def runs_by_date(workspace: Workspace, table: str) -> dict[object, set[str]]:
    rows = deltalake.DeltaTable(f"{workspace.root}/{table}").to_pyarrow_table(columns=["evaluation_date", "run_id"])
    found: dict[object, set[str]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["evaluation_date"], set()).add(row["run_id"])
    return found


@pytest.mark.parametrize(
    "point",
    [pytest.param(point, marks=pytest.mark.in_ci) if point == "after_user_metrics" else point for point in POINTS],
)
def test_night_that_was_killed_is_finished_or_forgotten_by_the_next(
    workspace: Workspace, tmp_path: Path, point: str
) -> None:
    first = rankeval(tmp_path / "first", "run", workspace.config, "--date", FIRST)
    assert first.code == 0, first.err
    command = rankeval_command("run", workspace.config, "--date", FIRST)
    with started(command, tmp_path / "run", {**WITHOUT_JAVA, **held_at(point)}) as running:
        running.wait_until_it_says(f"failpoint {point} holds")
        running.kill()
    killed = workspace.events()[-1]["run_id"]

    done = rankeval(tmp_path / "next", "run", workspace.config, "--date", SECOND)
    assert done.code == 0, done.err
    is_announced = point != "after_staging"
    assert (killed in {row["run_id"] for row in workspace.events() if row["status"] == "PUBLISHED"}) == is_announced
    for table in ("lists", "user_metrics", "metrics", "group_metrics", "checks"):
        (of_first,) = runs_by_date(workspace, table)[FIRST]
        assert (of_first == killed) == is_announced, table

    again = rankeval(tmp_path / "again", "run", workspace.config, "--date", FIRST)
    assert again.code == 0, again.err
    assert list(Path(workspace.root, "_staging").iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_night_that_is_stopped_says_so_and_records_it(
    workspace: Workspace, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    command = rankeval_command("run", workspace.config, "--date", FIRST)
    with started(command, tmp_path / "run", {**WITHOUT_JAVA, **held_at("after_staging")}) as running:
        running.wait_until_it_says("failpoint after_staging holds")
        running.stop(number)
        done = running.finish()
    assert (done.code, done.message) == (code, f"stopped by {number.name}")
    done.assert_readable()
    assert [row["status"] for row in workspace.events()] == ["RUNNING", "FAILED"]
    assert workspace.events()[-1]["error"]["stage"] == "audit"
    assert list(Path(workspace.root, "_staging").iterdir()) == []


@pytest.mark.in_ci
def test_backfill_that_is_stopped_while_it_publishes_leaves_that_to_the_next_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    command = rankeval_command("backfill", workspace.config, "--from", FIRST, "--to", SECOND)
    with started(command, tmp_path / "backfill", {**WITHOUT_JAVA, **held_at("after_metrics")}) as running:
        running.wait_until_it_says("failpoint after_metrics holds")
        running.stop()
        done = running.finish()
    assert (done.code, done.message) == (143, "stopped by SIGTERM"), done.err
    done.assert_readable()
    announced = [(row["evaluation_date"], row["status"]) for row in workspace.events()]
    assert (FIRST, "PUBLISHING") in announced
    assert (SECOND, "FAILED") in announced

    again = rankeval(tmp_path / "again", "backfill", workspace.config, "--missing", "--from", FIRST, "--to", SECOND)
    assert again.code == 0, again.err
    assert {row["evaluation_date"] for row in workspace.events() if row["status"] == "PUBLISHED"} == {
        FIRST,
        SECOND,
    }
    assert list(Path(workspace.root, "_staging").iterdir()) == []

"""Commits that a power loss took, or left empty: whoever reads or writes says so, and nobody takes them for no rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark.results import Results, delta_log
from rankeval_spark.results.storage import Storage
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from tests.support.nights import Workspace

NEWEST: Final = f"{2:020d}.json"
"""The commit of the second night in each table."""

DATES: Final = ("--from", FIRST, "--to", SECOND)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Give a workspace with two published nights."""
    made = nights.workspace(tmp_path_factory.mktemp("published") / "workspace")
    done = rankeval("backfill", made.config, *DATES)
    assert done.code == 0, done.err
    return made


@pytest.fixture
def workspace(published: Workspace, tmp_path: Path) -> Workspace:
    return published.copy(tmp_path)


def log_of(workspace: Workspace, table: str) -> Path:
    return Path(workspace.root, table, "_delta_log")


def contents(workspace: Workspace) -> dict[Path, bytes]:
    """Read the logs of the tables, but that of the runs, which says that a run failed."""
    logs = Path(workspace.root).glob("*/_delta_log/*")
    return {path: path.read_bytes() for path in logs if "/runs/" not in str(path)}


@pytest.mark.parametrize("table", ["metrics", "user_metrics", "lists", "checks"])
@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "gone"])
def test_a_night_whose_commit_is_lost_is_no_empty_night(workspace: Workspace, table: str, *, is_empty: bool) -> None:
    commit = log_of(workspace, table) / NEWEST
    if is_empty:
        commit.write_bytes(b"")
    else:
        commit.unlink()
    before = contents(workspace)

    for command in (
        ("show", workspace.root, "--date", SECOND),
        ("show", workspace.root, "--date", FIRST),
        ("backfill", workspace.config, "--missing", *DATES),
        ("run", workspace.config, "--date", FIRST),
        ("maintain", workspace.root),
        ("maintain", workspace.root, "--erase-user", "ann"),
        ("show", workspace.root, "--date", SECOND),
    ):
        done = rankeval(*command)
        assert done.code == 2, (command, done.out, done.err)
        done.assert_readable()
        assert f"version 2 of table {table} is {'empty' if is_empty else 'gone'}" in done.message, command
        assert f"restore {table}/_delta_log from a backup, or publish the nights again" in done.message, command
    with pytest.raises(delta_log.LostCommitsError, match=f"version 2 of table {table}"):
        Results(workspace.root).metrics()
    assert contents(workspace) == before  # above all, no newer version took the number of the lost one


def test_an_earlier_commit_that_is_lost_is_found_too(workspace: Workspace) -> None:
    for content in (b"", None):
        commit = log_of(workspace, "metrics") / f"{1:020d}.json"
        commit.write_bytes(content) if content is not None else commit.unlink()
        done = rankeval("show", workspace.root, "--date", SECOND)
        assert done.code == 2
        assert "version 1 of table metrics is " in done.message


def test_a_table_that_is_gone_is_not_made_again_as_an_empty_one(workspace: Workspace) -> None:
    shutil.rmtree(Path(workspace.root, "metrics"))
    for command in (("run", workspace.config, "--date", FIRST), ("maintain", workspace.root)):
        done = rankeval(*command)
        assert done.code == 2, done.err
        assert "of table metrics is gone" in done.message
    assert rankeval("show", workspace.root).code == 2


def test_an_empty_commit_that_nothing_needs_is_named_by_who_writes(workspace: Workspace) -> None:
    torn = log_of(workspace, "metrics") / f"{3:020d}.json"
    torn.write_bytes(b"")
    assert rankeval("show", workspace.root, "--date", SECOND).code == 0
    done = rankeval("run", workspace.config, "--date", FIRST)
    assert done.code == 2
    assert f"restore metrics/_delta_log/{torn.name} from a backup, or remove it and run the last date" in done.message
    torn.unlink()
    assert rankeval("run", workspace.config, "--date", FIRST).code == 0


def test_an_empty_commit_of_runs_is_refused_and_can_be_removed(workspace: Workspace) -> None:
    commit = max(log_of(workspace, "runs").glob("*.json"))
    commit.write_bytes(b"")
    for command in (
        ("show", workspace.root),
        ("backfill", workspace.config, "--missing", *DATES),
        ("run", workspace.config, "--date", SECOND),
        ("maintain", workspace.root),
    ):
        done = rankeval(*command)
        assert done.code == 2, (command, done.err)
        assert f"restore runs/_delta_log/{commit.name} from a backup, or remove it" in done.message
    commit.unlink()
    assert rankeval("run", workspace.config, "--date", SECOND).code == 0
    assert rankeval("show", workspace.root, "--date", SECOND).code == 0


def test_commits_that_a_checkpoint_holds_may_be_gone(workspace: Workspace) -> None:
    storage = Storage(workspace.root)
    log = log_of(workspace, "metrics")
    (log / f"{1:020d}.checkpoint.parquet").write_bytes(b"a checkpoint")
    (log / f"{0:020d}.json").unlink()
    (log / f"{1:020d}.json").unlink()
    delta_log.require_whole(storage, "metrics", published=2)
    with pytest.raises(delta_log.LostCommitsError, match="version 3 of table metrics is gone"):
        delta_log.require_whole(storage, "metrics", published=3)
    with pytest.raises(delta_log.LostCommitsError, match="version 0 of table metrics is gone"):
        delta_log.require_whole(storage, "metrics", 0)

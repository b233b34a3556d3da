"""A planted secret reaches Spark and nothing that is printed, written or to be seen of the process."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support import nights
from tests.support.cli import rankeval_process
from tests.support.nights import FIRST, SECOND
from tests.support.processes import SETTINGS

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace

PLANTED = "hunter2-planted/secret+key"
COLUMNS = ("model_id", "slice", "slice_value", "measure", "k", "value", "std_error", "n_users")


def metrics(workspace: Workspace) -> list[tuple[Any, ...]]:
    """Means of the first date, sorted; to 12 digits, as partitions are added up in any order."""
    table = deltalake.DeltaTable(f"{workspace.root}/metrics").to_pyarrow_table().to_pylist()
    rows = (
        tuple(round(row[name], 12) if isinstance(row[name], float) else row[name] for name in COLUMNS)
        for row in table
        if (row["evaluation"], row["evaluation_date"]) == ("nightly", FIRST)
    )
    return sorted(rows, key=str)


def command_lines(running: Future[Finished]) -> set[bytes]:
    """Command lines of this machine's processes while a command runs, as every user can read them."""
    seen = set()
    while not running.done():
        for process in Path("/proc").glob("[0-9]*"):
            try:
                seen.add((process / "cmdline").read_bytes())
            except OSError:  # it has ended
                continue
        time.sleep(0.3)
    return seen


@pytest.mark.slow
def test_secret_is_nowhere_and_the_zone_of_the_machine_does_not_matter(
    published: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One date is published and one fails, with traces, in a process of its own in New York."""
    workspace = nights.workspace(tmp_path / "workspace")
    (workspace.folder / "inputs" / "held_out").rename(workspace.folder / "inputs" / f"held_out-{FIRST}")
    (tmp_path / "events").mkdir()
    settings = {
        "spark.hadoop.fs.s3a.secret.key": "${env:PLANTED}",
        "spark.hadoop.fs.azure.account.key.store.example": "${env:PLANTED}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        **SETTINGS,
    }
    workspace.change(
        inputs__held_out__path="inputs/held_out-{date}", spark={"master": "local[2]", "settings": settings}
    )
    monkeypatch.setenv("PLANTED", PLANTED)
    monkeypatch.setenv("TZ", "America/New_York")

    with ThreadPoolExecutor() as threads:
        run = ("backfill", workspace.config, "--from", FIRST, "--to", SECOND, "--debug")
        running = threads.submit(rankeval_process, *run)
        lines = command_lines(running)
    done = running.result()

    assert done.code == 4, done.err
    assert metrics(workspace) == metrics(published)
    assert [line for line in lines if b"spark.app.name=rankeval nightly" in line]
    assert [line for line in lines if PLANTED.encode() in line] == []
    assert PLANTED not in done.out + done.err
    runs = deltalake.DeltaTable(f"{workspace.root}/runs").to_pyarrow_table().to_pylist()
    assert {row["status"] for row in runs} == {"RUNNING", "PUBLISHING", "PUBLISHED", "FAILED"}
    assert PLANTED not in str(runs)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if PLANTED.encode() in path.read_bytes()] == []
    (events,) = [path for path in files if b"SparkListenerEnvironmentUpdate" in path.read_bytes()]
    assert b"account.key.store.example" in events.read_bytes()

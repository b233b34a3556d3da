"""Disks that take no more, roots that cannot be written, workers and executors that die."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deltalake
import pytest

from rankeval_spark import columns as C, schemas
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.mortal_workers import VARIABLE
from tests.support.nights import FIRST
from tests.support.processes import SETTINGS, rankeval_command, started

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.cli import Finished
    from tests.support.nights import Workspace

pytestmark = pytest.mark.faults

ROOM_KB: Final = 140
"""Room on the full disk beside what was published: the run begins, and cannot stage its tables."""

ON_SPARK: Final = {"master": "local[2]", "settings": SETTINGS}

MORTAL: Final = {**SETTINGS, "spark.python.daemon.module": "tests.support.mortal_workers"}


def has_namespaces() -> bool:
    """Tell whether this user may mount something that nobody else sees."""
    done = subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False)
    return done.returncode == 0


on_a_disk_of_its_own = pytest.mark.skipif(
    shutil.which("unshare") is None or not has_namespaces(), reason="mounting is not permitted here"
)


@on_a_disk_of_its_own
def test_a_full_disk_changes_nothing_and_is_reported_as_one(own_copy: Workspace, tmp_path: Path) -> None:
    before = own_copy.published_rows()

    done = run_on_a_mount(own_copy, tmp_path, f"size={size_kb(own_copy.root) + ROOM_KB}k", "true")

    assert done.code == 8, done.err
    done.assert_readable()
    assert "disk: found no room: No space left on device; expected room for staging" in done.message
    assert own_copy.published_rows() == before
    assert [event["status"] for event in own_copy.events()][-2:] == [
        "RUNNING",
        "FAILED",
    ]  # removing its staging made room for the row
    assert list(Path(own_copy.root, "_staging").iterdir()) == []


@on_a_disk_of_its_own
def test_a_root_that_is_mounted_read_only_is_reported_as_such(own_copy: Workspace, tmp_path: Path) -> None:
    before = own_copy.published_rows()

    done = run_on_a_mount(own_copy, tmp_path, "size=50m", "mount -o remount,ro {root}")

    assert done.code == 2, done.err
    done.assert_readable()
    assert "(Read-only file system); expected a folder that can be read and written" in done.message
    assert own_copy.published_rows() == before


def run_on_a_mount(
    workspace: Workspace, folder: Path, options: str, then: str, *, spark: Mapping[str, object] = ON_SPARK
) -> Finished:
    """Run the first date on a copy of the root in a file system of its own, and bring back what it left."""
    root = shlex.quote(workspace.root)
    workspace.change(spark=dict(spark))
    command = shlex.join(map(str, rankeval_command("run", workspace.config, "--date", FIRST)))
    kept = shlex.quote(str(folder / "kept"))
    script = f"""
        cp -a {root} {kept} && mount -t tmpfs -o {options} tmpfs {root} && cp -a {kept}/. {root} && rm -r {kept}
        {then.format(root=root)}
        {command}
        code=$?
        cp -a {root} {kept}
        exit $code
    """
    with started(["unshare", "-Urm", "sh", "-c", script], folder / "mounted") as running:
        done = running.finish()
    shutil.rmtree(workspace.root)
    shutil.move(folder / "kept", workspace.root)
    return done


def size_kb(root: str) -> int:
    """Room that the files of a folder take, in blocks of 4 KB."""
    files = [path for path in Path(root).rglob("*") if path.is_file()]
    return sum((path.stat().st_size + 4095) // 4096 * 4 for path in files)


@pytest.mark.parametrize(
    ("master", "end"),
    [
        pytest.param("local[2,3]", "worker", id="worker", marks=pytest.mark.in_ci),
        pytest.param("local-cluster[2,1,1024]", "executor", id="executor"),
    ],
)
def test_numbers_are_the_same_where_a_process_died(own_copy: Workspace, tmp_path: Path, master: str, end: str) -> None:
    before = {table: rows_of(own_copy, table) for table in tables()}
    sign = tmp_path / "sign"
    own_copy.change(spark={"master": master, "settings": MORTAL})

    command = rankeval_command("run", own_copy.config, "--date", FIRST)
    with started(command, tmp_path / "run", {VARIABLE: f"{end}:{sign}"}) as running:
        running.wait_until_it_says("stage=read")
        running.wait_until_gone(sign)
        done = running.finish()

    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    for table in tables():
        assert rows_of(own_copy, table) == before[table], table
    assert len(before[schemas.USER_METRICS.name]) > 0


def tables() -> list[str]:
    return [schema.name for schema in schemas.PUBLISHED]


def rows_of(workspace: Workspace, table: str) -> list[str]:
    """Rows of the first date without the run; numbers to twelve digits after the point."""
    only = [(C.EVALUATION, "=", "nightly"), (C.EVALUATION_DATE, "=", FIRST)]
    rows = deltalake.DeltaTable(f"{workspace.root}/{table}").to_pyarrow_table(filters=only).to_pylist()
    return sorted(str({name: rounded(value) for name, value in row.items() if name != C.RUN_ID}) for row in rows)


def rounded(value: object) -> object:
    return round(value, 12) if isinstance(value, float) else value


@on_a_disk_of_its_own
@pytest.mark.parametrize("room_kb", [8, 32, 64])
def test_a_run_on_a_full_disk_does_not_wait_for_its_own_lock(tmp_path: Path, room_kb: int) -> None:
    workspace = nights.workspace(tmp_path / "workspace")
    assert rankeval("run", workspace.config, "--date", FIRST).code == 0
    before, began = workspace.published_rows(), time.monotonic()

    done = run_on_a_mount(workspace, tmp_path, f"size={size_kb(workspace.root) + room_kb}k", "true", spark={})

    assert time.monotonic() - began < 60, done.err
    assert done.code in {1, 2}, done.err
    done.assert_readable()
    assert "No space left on device" in done.message
    assert workspace.published_rows() == before

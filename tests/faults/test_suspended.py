"""A command that is suspended before each commit for so long that another one takes its locks.

When it goes on, it must not commit anything: what it had announced was completed or set back by the other one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import PROJECT, rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    import pyarrow as pa

    from tests.support.nights import Workspace

pytestmark = pytest.mark.faults

RUN_FIRST: Final = ("run", "{config}", "--date", str(FIRST))
RUN_SECOND: Final = ("run", "{config}", "--date", str(SECOND))
MAINTAIN: Final = ("maintain", "{root}", "--keep-days", "1", "--date", "2026-01-03", "--vacuum")
ERASE: Final = ("maintain", "{root}", "--erase-user", "ann")

LINKED: Final = ("os.link",)
"""How a lock is taken, a file gets into a table, and a version is made."""

Commands = tuple[tuple[str, ...], ...]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Give a workspace whose two nights were published without a fault."""
    made = nights.workspace(tmp_path_factory.mktemp("clean") / "workspace")
    for day in (FIRST, SECOND):
        done = rankeval("run", made.config, "--date", day)
        assert done.code == 0, done.err
    return made


@pytest.mark.parametrize(
    ("is_published", "commands"),
    [
        pytest.param(False, (RUN_FIRST, RUN_SECOND, RUN_SECOND, RUN_FIRST), id="new-root", marks=pytest.mark.in_ci),
        pytest.param(False, (RUN_FIRST, RUN_FIRST, RUN_SECOND), id="new-root-same-night"),
        pytest.param(True, (RUN_FIRST, RUN_SECOND, RUN_SECOND), id="other-night"),
        pytest.param(True, (RUN_FIRST, RUN_FIRST, RUN_SECOND), id="same-night"),
        pytest.param(True, (RUN_FIRST, MAINTAIN, RUN_SECOND, RUN_FIRST), id="maintain"),
        pytest.param(True, (MAINTAIN, RUN_FIRST, RUN_SECOND, RUN_FIRST), id="while-maintaining"),
        pytest.param(True, (ERASE, RUN_FIRST, RUN_SECOND, RUN_FIRST), id="while-erasing"),
    ],
)
def test_a_command_that_was_suspended_commits_nothing_after_it_lost_its_locks(
    tmp_path: Path, clean: Workspace, is_published: bool, commands: Commands
) -> None:
    before = clean.copy(tmp_path) if is_published else nights.workspace(tmp_path / "workspace")
    before.folder.rename(tmp_path / "before")

    steps = suspended(tmp_path, commands)

    assert len(steps) > 10, steps
    for step in steps:
        where = f"step {step['step']}, before {step['change']}: {step['said']}"
        assert step["code"] in {0, 5}, where
        assert set(step["others"]) == {0}, where
        root = str(tmp_path / f"{step['step']:03d}" / "results")
        assert_whole(root, clean.root, where)


def suspended(folder: Path, commands: Commands) -> list[dict[str, Any]]:
    """Suspend the first command before each change while the second runs, then run the rest; return what happened."""
    task = json.dumps({"changes": LINKED, "commands": commands})
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.suspensions", str(folder), task],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_whole(root: str, clean: str, where: str) -> None:
    """Check that each table has one run a night, now and as published, and the rows of a root without a fault."""
    versions = Results(root).table_versions()
    runs: dict[object, set[str]] = {}
    for schema in schemas.PUBLISHED:
        for version in (None, versions[schema.name]):
            found = rows_of(f"{root}/{schema.name}", version)
            keys = Counter(map(str, found.select(schema.key).to_pylist()))
            assert set(keys.values()) <= {1}, f"{schema.name} at {version}: a key twice, {where}"
        for row in found.select([C.EVALUATION_DATE, C.RUN_ID]).to_pylist():
            runs.setdefault(row[C.EVALUATION_DATE], set()).add(row[C.RUN_ID])
        if schema is not schemas.CHECKS:  # which compare a night with those that were there before it
            assert texts(found) == texts(rows_of(f"{clean}/{schema.name}")), f"{schema.name}, {where}"
    assert all(len(of_night) == 1 for of_night in runs.values()), f"{runs}, {where}"


def rows_of(path: str, version: int | None = None) -> pa.Table:
    return deltalake.DeltaTable(path, version=version).to_pyarrow_table()


def texts(rows: pa.Table) -> list[str]:
    """Write rows without their run."""
    return sorted(str(row) for row in rows.drop_columns([C.RUN_ID]).to_pylist())

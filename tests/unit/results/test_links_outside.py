"""With RANKEVAL_ROOTS, no link leads out of the allowed folders: of a root or an input, at any level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import Results
from rankeval_spark.allowed_folders import VARIABLE
from rankeval_spark.errors import ConfigError
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from tests.support.nights import Workspace

NIGHT: Final = f"evaluation=nightly/evaluation_date={FIRST}"

LEVELS: Final = [
    "",
    "_delta_log",
    "_delta_log/00000000000000000001.json",
    "evaluation=nightly",
    NIGHT,
    f"{NIGHT}/*.parquet",
]
"""Within a table: itself, its log, a commit, folders of partitions, a data file."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = nights.workspace(tmp_path / "inside", gates=[{"measure": "nDCG@2", "at_least": 0.0}])
    assert rankeval("run", workspace.config, "--date", FIRST).code == 0
    return workspace


def move_outside(place: Path, outside: Path) -> None:
    """Let a link to another folder take the place of a file or a folder."""
    (found,) = place.parent.glob(place.name)
    outside.mkdir(exist_ok=True)
    found.rename(outside / found.name)
    found.symlink_to(outside / found.name)


@pytest.mark.parametrize("table", ["runs", "metrics"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_link_in_a_root_is_not_followed_out_of_the_allowed_folders(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, table: str
) -> None:
    if table == "runs" and NIGHT.startswith(level.partition("/")[0] or "-"):
        level = level.rpartition("/")[2] if level.endswith(".parquet") else "_delta_log"  # it has no partitions
    place = Path(workspace.root, table, level)
    if level == "*.parquet":
        place = min(place.parent.glob(level))
    move_outside(place, tmp_path / "outside")
    assert rankeval("show", workspace.root).code == 0  # links are fine where no folder is forbidden

    monkeypatch.setenv(VARIABLE, str(workspace.folder))
    for arguments in (
        ("show", workspace.root),
        ("gate", workspace.root),
        ("run", workspace.config, "--date", FIRST if table == "runs" else SECOND),
    ):
        if arguments[0] == "run" and level.startswith("evaluation="):
            continue  # it replaces the night, and reads none of its files
        done = rankeval(*arguments)
        assert done.code == 2, f"{arguments}: {done.err}"
        assert VARIABLE in done.message
    with pytest.raises(ConfigError, match=VARIABLE):
        Results(workspace.root).metrics()


@pytest.mark.parametrize("level", ["", "_delta_log", "_delta_log/00000000000000000000.json"])
def test_a_link_in_an_input_is_not_followed_out_of_the_allowed_folders(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    move_outside(Path(workspace.folder, "inputs", "recommendations", level), tmp_path / "outside")
    assert rankeval("validate", workspace.config, "--date", FIRST).code == 0
    monkeypatch.setenv(VARIABLE, str(workspace.folder))
    done = rankeval("validate", workspace.config, "--date", FIRST)
    assert done.code == 2, done.err
    assert VARIABLE in done.message


@pytest.mark.parametrize("is_limited", [True, False], ids=["limited", "not limited"])
def test_a_log_that_names_files_elsewhere_is_refused_not_read_as_empty(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_limited: bool
) -> None:
    table, outside = Path(workspace.root, "metrics"), tmp_path / "outside"
    for commit in table.glob("_delta_log/*.json"):
        commit.write_text(commit.read_text().replace('"path": "', f'"path": "{outside.as_uri()}/'))
    (table / "evaluation=nightly").rename(tmp_path / "outside")
    if is_limited:
        monkeypatch.setenv(VARIABLE, str(workspace.folder))
    done = rankeval("show", workspace.root)
    assert done.code == 2, done.err
    assert f"{outside}/{NIGHT}" in done.message
    assert (VARIABLE in done.message) == is_limited

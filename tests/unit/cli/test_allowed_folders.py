"""RANKEVAL_ROOTS: nothing outside of the allowed folders is read or written, whichever way it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace

VARIABLE = "RANKEVAL_ROOTS"


def assert_refused(done: Finished, *names: str) -> None:
    """Check that a command was refused for where something lies, and that what it names is said."""
    assert (done.code, f"{VARIABLE} says so" in done.message) == (2, True), done.err
    for name in names:
        assert name in done.message


def test_results_elsewhere_are_left_alone_by_every_command(
    own_copy: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "allowed"))
    root, link = own_copy.root, tmp_path / "allowed" / "results"
    link.parent.mkdir()
    link.symlink_to(root)
    before = sorted(Path(root).rglob("*"))
    for place in (root, link, f"file://{root}", f"{tmp_path}/allowed/../workspace/results"):
        for command in (
            ("show", place),
            ("show", place, "--gaps"),
            ("gate", place),
            ("runs", place),
            ("compare", place, "--against", "previous"),
            ("score", place, "--measures", "RR@1"),
            ("maintain", place),
            ("reproduce", place, "--run-id", "x"),
        ):
            assert_refused(rankeval(*command), "results root")
    assert_refused(rankeval("run", own_copy.config, "--date", FIRST), "results.root", "inputs.held_out.path")
    set_elsewhere = ("--set", f"results.root={root}", "--set", "inputs.segments.path=/etc")
    assert_refused(rankeval("run", own_copy.config, "--date", FIRST, *set_elsewhere), "/etc")
    assert sorted(Path(root).rglob("*")) == before


@pytest.mark.parametrize("linked", ["metrics", "_staging", "_locks"])
def test_folder_of_a_root_leads_nowhere_else(
    own_copy: Workspace, tmp_path: Path, linked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(own_copy.folder))
    place, target = Path(own_copy.root, linked), tmp_path / "elsewhere"
    if place.exists():
        place.rename(target)
    target.mkdir(exist_ok=True)
    place.symlink_to(target)
    before = sorted(target.rglob("*"))
    done = rankeval("run", own_copy.config, "--date", FIRST)
    assert_refused(done, f"results/{linked}")
    assert sorted(target.rglob("*")) == before


def test_table_of_a_root_names_no_file_elsewhere(own_copy: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, own_copy.root)
    assert rankeval("show", own_copy.root).code == 0
    outside = own_copy.folder / "outside"
    Path(own_copy.root, "metrics").rename(outside)
    log = Path(own_copy.root, "metrics", "_delta_log")
    log.mkdir(parents=True)
    for file in (outside / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for action in (one["add"] for one in actions if "add" in one):
            action["path"] = f"{outside.as_uri()}/{action['path']}"
        (log / file.name).write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    assert_refused(rankeval("show", own_copy.root), "results root, table metrics")

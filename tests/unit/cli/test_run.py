"""``rankeval run``: what it says, and what a dry run leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace


def test_run_says_what_it_published_and_how_to_look_at_it(published: Workspace, sampled: Finished) -> None:
    assert sampled.code == 0
    assert "published nightly.sample-0.75 2026-01-01, run 20" in sampled.out
    # In one line each, however long the path is: they are there to be copied.
    assert f"results in {published.root}; look at them with: rankeval show {published.root}" in sampled.out.splitlines()


def test_dry_run_says_what_would_happen_and_changes_nothing(tmp_path: Path) -> None:
    workspace = nights.workspace(tmp_path / "workspace")

    dry = rankeval("run", workspace.config, "--date", FIRST, "--dry-run", "--set", "evaluation=tried")

    assert dry.code == 0, dry.err
    read = {line.split("│")[0].strip(): line for line in dry.out.splitlines() if "│" in line}
    assert [cell.strip() for cell in read["recommendations"].split("│")[2:]] == ["delta", "0", "1", "24"]
    assert [cell.strip() for cell in read["held_out"].split("│")[2:]] == ["delta", "0", "1", "7"]
    assert "would compute 6 values a list: RR, nDCG, Success; at 1, 2" in dry.out
    assert "slices: country, and everyone" in dry.out
    assert f"would publish tried, 2026-01-01 to {workspace.root}; nothing was changed" in dry.out
    assert not Path(workspace.root).exists()


def test_dry_run_finds_the_same_faults_as_a_run(tmp_path: Path) -> None:
    workspace = nights.workspace(tmp_path / "workspace", inputs__held_out__path="inputs/heldout")

    dry = rankeval("run", workspace.config, "--date", FIRST, "--dry-run")

    assert dry.code == 4
    dry.assert_readable()
    assert not Path(workspace.root).exists()

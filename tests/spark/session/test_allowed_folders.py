"""RANKEVAL_ROOTS: nothing outside of the allowed folders is read or written, whichever way it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.inputs.spark.opening import open_table
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.arrow_frames import where
from tests.support.cli import rankeval
from tests.support.nights import FIRST
from tests.unit.cli.test_allowed_folders import VARIABLE, assert_refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.cli import Finished
    from tests.support.nights import Workspace


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Give a workspace whose folder is the allowed one; what is beside it lies outside."""
    made = nights.workspace(tmp_path / "allowed")
    monkeypatch.setenv(VARIABLE, f"s3a://bucket/x, {made.folder}")
    return made


def outside(workspace: Workspace, format_: str) -> Path:
    """Write the log outside of the allowed folder, without a column of dates that only a filter reads."""
    return nights.write_table(workspace.folder.parent / "outside" / format_, nights.recommendations(), format_)


def log_of(spark: SparkSession, workspace: Workspace, format_: str, path: str) -> DataFrame:
    """Open the log alone."""
    config = load_config(workspace.change(inputs__recommendations={"format": format_, "path": path}))
    return open_table(spark, "recommendations", config.inputs.recommendations, FIRST)[0]


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_pattern_over_a_link_leads_nowhere_else(spark: SparkSession, inside: Workspace, format_: str) -> None:
    place = outside(inside, format_)
    (inside.folder / "link").symlink_to(place)
    (inside.folder / "files").mkdir()
    for file in place.iterdir() if place.is_dir() else [place]:
        (inside.folder / "files" / file.name).symlink_to(file)
    run_within = nights.write_table(inside.folder / "within" / format_, nights.recommendations(), format_)
    (inside.folder / "good").symlink_to(run_within)

    for path in (
        "lin*",
        "lin[k]",
        "l?nk",
        "files",
        "files/*",
        str(inside.folder / "lin*"),
        f"file://{inside.folder}/li*",
    ):
        with pytest.raises(ConfigError, match=f"inputs.recommendations.path: .*; {VARIABLE} says so"):
            log_of(spark, inside, format_, path)
    for path in ("goo*", "within/*"):
        assert log_of(spark, inside, format_, path).count() >= len(nights.recommendations())  # a line more of csv


def test_published_run_is_not_reproduced_from_elsewhere(own_copy: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = where(Results(own_copy.root).runs(date=FIRST, evaluation="nightly"), status="PUBLISHED").to_pylist()
    reproduced = ("reproduce", own_copy.root, "--run-id", run["run_id"])
    recorded = Path(run["inputs"][0]["location"]).parent

    monkeypatch.setenv(VARIABLE, f"{own_copy.root},{recorded}")
    done = rankeval(*reproduced)  # in a temporary folder of its own, which nobody names
    assert done.code == 0, done.err
    assert_refused(rankeval(*reproduced, "--scratch", own_copy.folder / "scratch"), "results root")

    monkeypatch.setenv(VARIABLE, own_copy.root)
    assert_refused(rankeval(*reproduced), "inputs.recommendations.path", "inputs.held_out.path", str(recorded))


def plan(workspace: Workspace, format_: str, path: str) -> Finished:
    """Open the inputs, but compute nothing."""
    workspace.change(inputs__recommendations={"format": format_, "path": path})
    return rankeval("run", workspace.config, "--date", FIRST.isoformat(), "--dry-run")


@pytest.mark.usefixtures("spark")
def test_log_of_a_delta_table_names_no_file_elsewhere(inside: Workspace) -> None:
    place = outside(inside, "delta")
    clone = inside.folder / "clone" / "_delta_log"
    clone.mkdir(parents=True)
    lines = (place / "_delta_log" / f"{0:020d}.json").read_text(encoding="utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = (place / action["add"]["path"]).as_uri()
    (clone / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    (inside.folder / "half").mkdir()
    (inside.folder / "half" / "_delta_log").symlink_to(place / "_delta_log")

    assert_refused(plan(inside, "delta", "clone"), "outside/delta")
    assert_refused(plan(inside, "delta", "half"), "half/_delta_log")
    assert plan(inside, "delta", "inputs/recommendations").code == 0


def test_quarantine_of_a_root_leads_nowhere_else(
    own_copy: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(own_copy.folder))
    target = tmp_path / "elsewhere"
    target.mkdir()
    Path(own_copy.root, "_quarantine").symlink_to(target)
    rows = [*nights.recommendations(), {**nights.recommendations()[0], "user_id": None}]
    own_copy.write("recommendations", rows)  # a row for the quarantine
    done = rankeval("run", own_copy.config, "--date", FIRST, "--set", "results.quarantine=true")
    assert_refused(done, "results/_quarantine")
    assert list(target.iterdir()) == []

"""Nights with measures of a plugin: recorded with a hash of their code, and read without it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import Results
from rankeval_spark.config import load_config
from rankeval_spark.measures import registry
from rankeval_spark.measures.plugins import load_installed
from tests.support.arrow_frames import by
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from datetime import date

    from tests.support.nights import Workspace

MEASURES = ["nDCG@2", "first_rank@2", "halved@2", "halved(base=0.25)@2", "HalvedOfAll@2"]
TEAM = Path(__file__).parents[2] / "support" / "plugins" / "team"


def forget() -> None:
    """Know nothing of a plugin, as a process that starts."""
    registry.LOADED.clear()
    registry.RECORDED.clear()
    for name in ("team", "team.measures"):
        sys.modules.pop(name, None)


@pytest.fixture
def nights(workspace: Workspace, team_measures: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:  # noqa: ARG001 - the path of the package
    """Publish a night, and another one with another constant in the plugin, which is away afterwards."""
    gates = [{"measure": "first_rank@2", "at_most": 50}, {"measure": "halved@2", "at_least": 0}]
    workspace.change(plugins=["team.measures"], measures=MEASURES, cutoffs=[], gates=gates)
    workspace.change(comparisons={"baseline": "pop"}, policies={"population": "judged"})
    done = rankeval("run", str(workspace.config), "--date", FIRST)
    assert done.code in {0, 6}, done.err
    other = tmp_path / "changed"
    shutil.copytree(TEAM, other / "team")
    module = other / "team" / "measures.py"
    module.write_text(module.read_text().replace("BASE = 0.5", "BASE = 0.4"))
    forget()
    monkeypatch.syspath_prepend(other)
    done = rankeval("run", str(workspace.config), "--date", SECOND)
    assert done.code in {0, 6}, done.err
    forget()
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in {str(other), str(TEAM.parent)}])
    return workspace


def recorded(nights: Workspace, night: date) -> dict[str, Any]:
    rows = [row for event in nights.events() for row in event["measures"] if event["evaluation_date"] == night]
    return {row["measure"]: dict(row["own"] or {}) for row in rows}


def test_published_nights_are_read_without_the_plugin(nights: Workspace, tmp_path: Path) -> None:
    assert "team" not in sys.modules
    then, now = recorded(nights, FIRST), recorded(nights, SECOND)
    assert then["nDCG"] == {}
    assert then["first_rank"] == now["first_rank"]
    assert (then["first_rank"]["better"], then["first_rank"]["version"]) == ("lower", "1")
    assert then["halved"]["code"] != now["halved"]["code"]
    assert then["HalvedOfAll"]["code"] != now["HalvedOfAll"]["code"]

    results = Results(nights.root)
    board = by(results.leaderboard(date=FIRST), "model_id", value="first_rank@2")
    means = by(results.metrics(date=FIRST, measure="first_rank@2", slice="all"), "model_id", value="value")
    assert board == means
    assert results.metrics(measure="HalvedOfAll@2").num_rows > 0
    for command in (
        ("show", nights.root, "--date", FIRST),
        ("show", nights.root, "--date", FIRST, "-m", "first_rank@2"),
        ("gate", nights.root, "--date", FIRST),
        ("plan", nights.root, "-m", "first_rank@2"),
        ("compare", nights.root, "--against", "pop", "-m", "first_rank@2"),
        ("report", nights.root, "--date", SECOND, "--out", str(tmp_path / "report.html")),
    ):
        done = rankeval(*command)
        assert done.code in {0, 6}, (command, done.err)
    page = (tmp_path / "report.html").read_text()
    assert "Rank of the first relevant item." in page
    assert "lower is better" in page
    assert f"{SECOND}: the definition of HalvedOfAll@2" in page
    assert "code=" in page
    done = rankeval("compare", nights.root, "--against", "previous", "--json")
    assert done.code == 0, done.err
    compared = {row["measure"] for row in json.loads(done.out)}
    assert "first_rank" in compared
    assert not {"halved", "HalvedOfAll"} & compared
    assert "team" not in sys.modules


def test_lists_are_scored_with_another_measure_of_the_plugin(
    nights: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = ("explain", nights.root, "ann", "first_rank@2", "--model", "pop", "--date", FIRST)
    for command in (("score", nights.root, "-m", "halved@1", "--date", FIRST), explain, ("user", nights.root, "ann")):
        done = rankeval(*command)
        assert done.code == 2
        assert "plugins[0]: found 'team.measures', which fails: ModuleNotFoundError" in done.err
    monkeypatch.syspath_prepend(TEAM.parent)
    done = rankeval(*explain)
    assert "first_rank@2" in done.out, done.err
    done = rankeval("score", nights.root, "-m", "halved@1", "--date", FIRST)
    assert done.code == 0, done.err
    assert {1, 2} <= set(Results(nights.root).metrics(date=FIRST, measure="halved")["k"].to_pylist())


@pytest.mark.usefixtures("team_measures")
def test_measures_of_a_plugin_are_listed_and_explained(workspace: Workspace) -> None:
    workspace.change(plugins=["team.measures"], measures=["first_rank@2"])
    assert rankeval("validate", str(workspace.config)).code == 0
    forget()
    assert "first_rank" not in rankeval("measures").out
    listed = rankeval("measures", "--plugin", "team.measures").out
    assert "first_rank, halved, HalvedOfAll" in listed.replace("\n", " ")
    explained = rankeval("measures", "first_rank", "--plugin", "team.measures").out
    assert "Rank of the first relevant item." in explained
    assert rankeval("measures", "--plugin", "team.measures", "--search", "relevant item").out.startswith("first_rank")


@pytest.mark.usefixtures("team_measures")
def test_measures_of_an_installed_package_need_no_plugin(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "site" / "team-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: team\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[rankeval.measures]\nteam = team.measures\n")
    monkeypatch.syspath_prepend(metadata.parent)
    load_installed.cache_clear()
    workspace.change(measures=["nDCG@2"])
    assert rankeval("validate", str(workspace.config)).code == 0
    assert "team.measures" not in sys.modules
    workspace.change(measures=["First_Rank@2"])
    assert rankeval("validate", str(workspace.config)).code == 0
    assert "first_rank" in rankeval("measures").out
    (metadata / "entry_points.txt").write_text("[rankeval.measures]\nteam = team.absent\n")
    load_installed.cache_clear()
    refused = rankeval("validate", str(workspace.change(measures=["second_rank@2"])))
    assert "the entry point team of rankeval.measures, which fails: ModuleNotFoundError" in refused.message
    load_installed.cache_clear()


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        (["team.absent"], "plugins[0] (line 12): found 'team.absent', which fails: ModuleNotFoundError"),
        (["json"], "plugins[0] (line 12): found 'json' without a measure; expected a module that defines measures"),
        (["../x.py"], "found '../x.py'; expected the name of a module, such as team.measures; leave .py out"),
    ],
)
@pytest.mark.usefixtures("team_measures")
def test_plugin_that_cannot_be_used_is_refused(workspace: Workspace, plugins: list[str], message: str) -> None:
    workspace.change(plugins=plugins)
    done = rankeval("validate", str(workspace.config))
    assert done.code == 2
    assert message.partition(" (line")[0] in done.err.replace("\n", " ")


@pytest.mark.usefixtures("team_measures")
def test_config_of_a_recorded_night_imports_no_plugin(workspace: Workspace) -> None:
    workspace.change(plugins=["team.measures"], measures=["first_rank@2"])
    config = load_config(workspace.config)
    assert config.plugins == ("team.measures",)
    assert "team.measures" in sys.modules

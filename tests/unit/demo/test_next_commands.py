"""The commands that the demo ends with."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval_spark.cli.demo import SHOWN, next_commands, without_variants, workspace_overrides
from rankeval_spark.config import load_config
from tests.support.cli import PROJECT

if TYPE_CHECKING:
    import pytest


def test_the_config_of_the_demo_is_valid_with_the_changes_it_proposes() -> None:
    assert rerun_of("conf/demo.yaml") == (PROJECT / "conf/demo.yaml", ["cutoffs=[5,10]"])
    assert list(load_config(*rerun_of("conf/demo.yaml")).cutoffs) == [5, 10]


def test_the_last_words_of_a_demo_elsewhere_name_its_config_and_its_workspace(tmp_path: Path) -> None:
    workspace, path = tmp_path / "it's #1: a demo", PROJECT / "conf/demo.yaml"
    config = load_config(*rerun_of(str(path), *workspace_overrides(workspace, path)))

    assert config.results.location == str(workspace / "results")
    assert list(config.cutoffs) == [5, 10]


def test_the_config_of_the_demo_is_that_of_the_default_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the hash of its config, by which earlier nights are kept, is that of a plain run."""
    monkeypatch.chdir(PROJECT)
    assert workspace_overrides(Path("demo"), Path("conf/demo.yaml")) == []


def rerun_of(*rerun: str) -> tuple[Path, list[str]]:
    """Read the config and the overrides of the run that the last words propose."""
    commands = map(shlex.split, next_commands("demo/results", "1998-03-26", rerun))
    (words,) = (words for words in commands if "--set" in words)
    return PROJECT / words[2], [after for word, after in pairwise(words) if word == "--set"]


def test_the_tables_have_one_line_of_measures_that_are_alike() -> None:
    computed = load_config(PROJECT / "conf/demo.yaml").measure_set.labels
    rows = [{"measure": label, "model_id": "als"} for label in computed]
    assert [row["measure"] for row in without_variants(rows)] == [label for label in computed if label in SHOWN]
    assert set(SHOWN) < set(computed)
    others = [{"measure": "ERR", "model_id": "als"}]
    assert without_variants(others) == others

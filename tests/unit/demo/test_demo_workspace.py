"""``rankeval demo --workspace``: logs, results and report of the demo are all in its workspace."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from rankeval_spark import Results
from rankeval_spark.cli.demo import workspace_overrides
from rankeval_spark.config import load_config
from rankeval_spark.demo import DemoSettings, dataset
from rankeval_spark.demo.workspace import TABLES, DemoLogs, fingerprint_of, remember_logs
from tests.support.cli import PROJECT, rankeval

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIG = PROJECT / "conf/demo.yaml"
SETTINGS = DemoSettings()
DATES = SETTINGS.dates
USERS = ("1", "2", "3")
SEGMENTS = dict.fromkeys(("age_band", "gender", "occupation", "activity"), "a")
MODELS = ("popular", "item_knn", "als")


def write_logs(workspace: Path) -> None:
    """Leave logs as an earlier demo on the synthetic data would, so that nothing has to be trained."""
    rows = {
        "recommendations": [
            {"user_id": user, "item_id": item, "score": score, "model_id": model, "evaluation_date": day}
            for day in DATES
            for model in MODELS
            for user in USERS
            for item, score in (("10", 2.0), ("11", 1.0))
        ],
        "held_out": [
            {"user_id": user, "item_id": "11", "gain": 1.0, "evaluation_date": day} for day in DATES for user in USERS
        ],
        "segments": [{**SEGMENTS, "user_id": user, "evaluation_date": day} for day in DATES for user in USERS],
    }
    for name, own in rows.items():
        write_deltalake(workspace / "logs" / name, pa.Table.from_pylist(own), partition_by=["evaluation_date"])
    data = dataset.make_dataset()
    n_rows = {name: len(own) for name, own in rows.items()}
    logs = DemoLogs.describe(workspace / "logs", data, dates=DATES, n_rows=n_rows)
    remember_logs(logs, fingerprint_of(data, SETTINGS))


def test_everything_of_a_demo_is_in_its_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "a demo"
    write_logs(workspace)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    done = rankeval("demo", "--workspace", workspace.name, "--config", CONFIG)

    assert done.code == 0, done.err
    nights = Results(str(workspace / "results")).metrics(measure="RR", k=10, slice="all").to_pylist()
    found = {(row["evaluation_date"], row["model_id"], row["value"]) for row in nights}
    assert found == {(day, model, 1 / 2) for day in DATES for model in MODELS}
    assert (workspace / "report.html").is_file()
    assert f"tables in {workspace / 'results'}: " in done.out


def test_the_paths_of_the_workspace_take_the_place_of_those_of_the_config(tmp_path: Path) -> None:
    workspace = tmp_path / "it's #1: a demo"
    config = load_config(CONFIG, workspace_overrides(workspace, CONFIG))

    day = dt.date(2026, 1, 1)
    assert {name: one.location(day) for name, one in config.inputs.given.items()} == {
        name: str(workspace / "logs" / name) for name in TABLES
    }
    assert config.results.location == str(workspace / "results")

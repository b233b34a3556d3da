"""``rankeval demo --workspace``: logs, results and report of the demo are all in its workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from rankeval_spark import Results
from rankeval_spark.cli.demo import CONFIG
from rankeval_spark.demo import DemoSettings, dataset
from rankeval_spark.demo.workspace import DemoLogs, fingerprint_of, remember_logs
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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

    done = rankeval("demo", "--workspace", workspace.name)

    assert done.code == 0, done.err
    nights = Results(str(workspace / "results")).metrics(measure="RR", k=10, slice="all").to_pylist()
    found = {(row["evaluation_date"], row["model_id"], row["value"]) for row in nights}
    assert found == {(day, model, 1 / 2) for day in DATES for model in MODELS}
    assert (workspace / "report.html").is_file()
    assert f"tables in {workspace / 'results'}: " in done.out
    assert (workspace / "demo.yaml").read_bytes() == CONFIG.read_bytes()


def test_a_changed_config_of_a_demo_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo.yaml").write_text("evaluation: [mine]\n", encoding="utf-8")
    monkeypatch.setenv("RANKEVAL_CACHE", str(tmp_path / "cache"))

    done = rankeval("demo", "--workspace", tmp_path)

    assert done.code == 2
    assert "evaluation" in done.err

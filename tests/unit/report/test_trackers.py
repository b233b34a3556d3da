"""What experiment trackers are told: numbers by name, and runs of MLflow in a store on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlflow
import pandas as pd
import pytest
import yaml

from rankeval_spark import Evaluation, evaluate
from rankeval_spark.errors import ConfigError
from rankeval_spark.report import trackers
from tests.support import nights, two_nights
from tests.support.cli import json_of, rankeval
from tests.support.two_nights import NOW, values

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace

RULES = [
    {"measure": "RR@2", "at_least": 0.1, "models": ["als"]},
    {"measure": "RR@2", "at_least": 0.9, "models": ["pop"]},
]
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of an empty store, which the environment names too."""
    uri = f"file://{tmp_path}/mlruns"
    for name, text in {"ALLOW_FILE_STORE": "true", "DISABLE_TELEMETRY": "true", "TRACKING_URI": uri}.items():
        monkeypatch.setenv(f"MLFLOW_{name}", text)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")  # which set_experiment sets
    return uri


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = two_nights.workspace(tmp_path_factory.mktemp("log") / "workspace", nights.PARQUET)
    workspace.change(measures=["RR"], cutoffs=[2], gates=RULES)
    assert rankeval("run", workspace.config, "--date", NOW).code == 6
    return workspace


def two_models() -> Evaluation:
    rows = [
        ("als", "ann", "tea", 2.0),
        ("als", "ann", "jam", 1.0),
        ("knn", "ann", "jam", 1.0),
        ("knn", "bob", "jam", 1.0),
    ]
    log = pd.DataFrame(rows, columns=["model_id", "user_id", "item_id", "score"])
    held_out = pd.DataFrame([("ann", "jam"), ("bob", "tea")], columns=["user_id", "item_id"])
    return evaluate(log, held_out, measures=["RR", "AP(denom='min')@2", "P(agg='micro')@1"], baseline="knn")


def logged(store: str, experiment: str) -> dict[str, Any]:
    """Read the runs of an experiment, by the id of the model."""
    client = mlflow.MlflowClient(tracking_uri=store)
    known = client.get_experiment_by_name(experiment)
    assert known is not None
    runs = client.search_runs([known.experiment_id])
    found = {run.data.tags["rankeval.model_id"]: run for run in runs if "rankeval.model_id" in run.data.tags}
    assert len(found) == len([run for run in runs if "rankeval.model_id" in run.data.tags])
    return found


def log(root: str, *options: object) -> dict[str, str]:
    return {row["model_id"]: row["mlflow_run_id"] for row in json_of("log", root, *options)}


def test_flat_metrics_are_the_means_and_intervals_by_column_and_cutoff() -> None:
    result = two_models()
    found = result.flat_metrics()
    assert {name: found[name] for name in ("als/rr", "knn/rr", "als/ap_denom_min_2", "als/n_users")} == {
        "als/rr": 1 / 4,
        "knn/rr": 1 / 2,
        "als/ap_denom_min_2": 1 / 4,
        "als/n_users": 2,
    }
    rows = {(row["model_id"], row["measure"]): row for row in result.metrics.to_pylist()}
    micro = rows["knn", "P(agg='micro')"]
    assert [found[f"knn/p_agg_micro_1{end}"] for end in ("", ".low", ".high")] == [
        micro[name] for name in ("value", "ci_low", "ci_high")
    ]
    assert result.flat_metrics("knn") == {
        name.removeprefix("knn/"): value for name, value in found.items() if name.startswith("knn/")
    }
    assert {type(value) for value in found.values()} == {float}
    with pytest.raises(ConfigError, match=r"flat_metrics\(model=\): found 'kn'; expected .*'knn'"):
        result.flat_metrics("kn")


def test_a_call_is_logged_once_with_a_run_for_each_model(store: str) -> None:
    result = two_models()
    runs = result.log_to_mlflow()
    assert two_models().log_to_mlflow() == runs
    found = logged(store, "notebook")
    assert {model: run.info.run_id for model, run in found.items()} == runs
    als = found["als"]
    assert als.data.metrics == result.flat_metrics("als")
    assert (als.info.run_name, als.info.status, als.data.tags["rankeval.verdict"]) == ("als", "FINISHED", "not_judged")
    assert (als.data.params["baseline"], als.data.params["policies.ties"]) == ("knn", "item_asc")
    read = mlflow.artifacts.load_text
    assert read(f"{als.info.artifact_uri}/config.yaml") == result.to_config()
    assert read(f"{als.info.artifact_uri}/metrics.csv").count("\n") == 1 + result.metrics.num_rows


def test_runs_are_nested_in_the_active_one_and_in_its_experiment(store: str) -> None:
    mlflow.set_experiment("tea shop")
    with mlflow.start_run() as active:
        two_models().log_to_mlflow()
    mlflow.set_experiment(experiment_id="0")
    parents = {run.data.tags["mlflow.parentRunId"] for run in logged(store, "tea shop").values()}
    assert parents == {active.info.run_id}


def test_a_server_that_is_down_is_a_warning_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.warns(
        UserWarning, match=f"nothing was logged: MLflow at {NOBODY}: found .*; expected a tracking server"
    ):
        assert two_models().log_to_mlflow(tracking_uri=NOBODY) == {}


def test_a_night_is_logged_with_its_verdicts_config_and_report(made: Workspace, store: str) -> None:
    runs = log(made.root)
    found = logged(store, "nightly")
    assert {model: run.info.run_id for model, run in found.items()} == runs
    assert {model: run.data.tags["rankeval.verdict"] for model, run in found.items()} == {
        "als": "passed",
        "pop": "failed",
    }
    als = found["als"]
    assert als.data.metrics["rr_2"] == pytest.approx(sum(values("als", NOW).values()) / 80, rel=0, abs=1e-12)
    assert als.data.metrics["n_users"] == 80
    assert (als.data.tags["rankeval.date"], als.data.params["n_rows.held_out"]) == (NOW.isoformat(), "80")
    read = mlflow.artifacts.load_text
    assert yaml.safe_load(read(f"{als.info.artifact_uri}/config.yaml"))["gates"][0]["measure"] == "RR@2"
    assert "RR@2" in read(f"{als.info.artifact_uri}/report.html")
    stamps = mlflow.MlflowClient(tracking_uri=store).get_metric_history(runs["als"], "rr_2")
    assert [pd.Timestamp(one.timestamp, unit="ms").date() for one in stamps] == [NOW]


def test_a_night_is_in_mlflow_once_however_often_it_is_run_and_logged(
    made: Workspace, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = log(made.root, "--no-report")
    assert log(made.root, "--no-report") == first
    client = mlflow.MlflowClient(tracking_uri=store)
    client.update_run(first["als"], status="RUNNING")  # as one that broke off
    second = log(made.root, "--no-report", "--tracking-uri", store)
    assert second["pop"] == first["pop"]
    assert second["als"] != first["als"]
    assert rankeval("run", made.config, "--date", NOW).code == 6
    third = log(made.root, "--no-report")
    assert {*third.values()}.isdisjoint({*second.values()})
    assert {model: run.info.run_id for model, run in logged(store, "nightly").items()} == third

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    done = rankeval("log", made.root, "--no-report", "--tracking-uri", NOBODY)
    assert (done.code, f"MLflow at {NOBODY}" in done.message) == (8, True)
    monkeypatch.setenv("RANKEVAL_ROOTS", made.root)
    assert rankeval("log", made.root, "--no-report").code == 2


def test_rules_without_a_model_fail_every_model() -> None:
    rows = [{"model_id": "als", "verdict": "passed"}, {"model_id": "", "verdict": "no_match"}]
    assert trackers.verdicts(rows, ["als", "knn"]) == {"als": "failed", "knn": "failed"}

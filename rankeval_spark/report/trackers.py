"""Means of models as experiment trackers take them, and runs of MLflow, one a model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.allowed_folders import require_allowed
from rankeval_spark.errors import EnvironmentFaultError, Fault, first_line
from rankeval_spark.report.winner import FAILING, PASSED

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure
    from rankeval_spark.report.tables import Row

INSTALL: Final = 'pip install "rankeval-spark[mlflow]"'
_DATABASES: Final = "name a server by tracking_uri or MLFLOW_TRACKING_URI; for a database pip install mlflow"
TAG: Final = "rankeval."
"""Prefix of our tags: ``rankeval.evaluation``, ``.date``, ``.run_id``, ``.model_id`` and ``.verdict``."""

_MAX_METRICS: Final = 1000  # that MLflow takes in one request
_IN_FOLDERS: Final = ("file:", "sqlite:")  # stores of this machine
_PATIENCE: Final = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}
"""A server that is down costs seconds; with MLflow's own settings four minutes."""


def flatten_metrics(rows: Iterable[Row], measures: Iterable[Measure]) -> dict[str, dict[str, float]]:
    """Return the means over all users by model and name, such as ``{"als": {"ndcg_10": 0.31, "ndcg_10.low": 0.29}}``.

    ``rows`` are of ``metrics``. What is undefined is left out; ``n_users`` is the most users that a mean covers.
    """
    names = {
        (measure.label, measure.k): measure.column + (f"_{measure.k}" if measure.k else "") for measure in measures
    }
    found: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: (row[C.MODEL_ID], row[C.MEASURE], row[C.K])):
        name = names.get((row[C.MEASURE], row[C.K]))
        if row[C.SLICE] != C.ALL_USERS or name is None:
            continue
        numbers = found.setdefault(row[C.MODEL_ID], {"n_users": 0.0})
        numbers["n_users"] = max(numbers["n_users"], float(row["n_users"]))
        ends = {name: row[C.VALUE], f"{name}.low": row["ci_low"], f"{name}.high": row["ci_high"]}
        numbers |= {end: float(value) for end, value in ends.items() if value is not None}
    return found


def verdicts(gates: Iterable[Row], models: Iterable[str]) -> dict[str, str]:
    """Return failed, undecided, passed or not_judged of each model; a rule that matches no model fails all.

    >>> rows = [{"model_id": "als", "verdict": "passed"}, {"model_id": "als", "verdict": "undecided"}]
    >>> verdicts(rows, ["als", "knn"])
    {'als': 'undecided', 'knn': 'not_judged'}
    """
    rows, found = list(gates), {}
    for model in models:
        of_model = {row["verdict"] for row in rows if row[C.MODEL_ID] in (model, "")}
        known = [name for name in ("undecided", PASSED) if name in of_model]
        found[model] = "failed" if of_model & FAILING else (*known, "not_judged")[0]
    return found


def list_params(config: Mapping[str, Any]) -> dict[str, object]:
    """Return the preset, the baseline and the policies of a config with all its keys, flat.

    >>> list_params({"preset": "ranx", "policies": {"ties": "item_asc"}, "comparisons": {"baseline": "popular"}})
    {'preset': 'ranx', 'baseline': 'popular', 'policies.ties': 'item_asc'}
    """
    first = {"preset": config.get("preset"), "baseline": (config.get("comparisons") or {}).get("baseline")}
    policies = {f"policies.{name}": value for name, value in (config.get("policies") or {}).items()}
    return {name: value for name, value in {**first, **policies}.items() if value is not None}


def import_mlflow() -> Any:  # noqa: ANN401 - an extra, which need not be installed
    """Import MLflow; EnvironmentFaultError without it."""
    try:
        import mlflow  # noqa: PLC0415 - an extra, and it takes a second
    except ImportError as error:
        raise EnvironmentFaultError(Fault("MLflow", "no mlflow", "its client", INSTALL)) from error
    return mlflow


def log_to_mlflow(
    metrics: Mapping[str, Mapping[str, float]],  # of each model, as `flatten_metrics` returns them
    *,
    tags: Mapping[str, str],  # `evaluation`, `run_id` and, of a night, `date`
    verdict: Mapping[str, str],  # by model
    params: Mapping[str, object],
    artifacts: Mapping[str, str],  # texts by the name of their file
    experiment: str | None,
    tracking_uri: str | None,
) -> dict[str, str]:
    """Log each model as a run of MLflow and return the ids of the runs by model; EnvironmentFaultError if it fails.

    What is there complete with the same ``run_id`` is kept. Other runs of the same night are deleted, which MLflow can
    undo, once the new ones are complete: those of an earlier run of the night, and those that broke off.
    """
    mlflow = import_mlflow()
    uri = tracking_uri or mlflow.get_tracking_uri()
    if uri.startswith(_IN_FOLDERS) or "://" not in uri:
        require_allowed(("tracking_uri", uri.removeprefix("sqlite:///")))
    is_current = uri == mlflow.get_tracking_uri()  # what is active in this process is in that store alone
    try:
        with _patience():
            client, parent = mlflow.MlflowClient(tracking_uri=uri), mlflow.active_run() if is_current else None
            place = _find_experiment(client, experiment, tags["evaluation"], parent, is_current=is_current)
            earlier = _find_runs(client, place, tags)
            done = {
                run.data.tags[f"{TAG}model_id"]: run.info.run_id
                for run in earlier
                if run.data.tags[f"{TAG}run_id"] == tags["run_id"] and run.info.status == "FINISHED"
            }
            for model in metrics.keys() - done.keys():
                own = {**tags, "model_id": model, "verdict": verdict.get(model, "not_judged")}
                named = {f"{TAG}{name}": text for name, text in own.items()}
                if parent is not None and parent.info.experiment_id == place:
                    named["mlflow.parentRunId"] = parent.info.run_id
                run = client.create_run(place, tags=named, run_name=model)
                _fill(client, run.info.run_id, metrics[model], params, artifacts, tags.get("date"))
                done[model] = run.info.run_id
            for run in earlier:
                if run.info.run_id not in done.values():
                    client.delete_run(run.info.run_id)
    except Exception as error:  # of MLflow, of requests, of a driver that a store lacks, or of a plugin
        is_database = isinstance(error, ImportError) or uri.startswith("sqlite:")
        fix = _DATABASES if is_database else ""
        expected = "a tracking server or store that takes runs"
        raise EnvironmentFaultError(Fault(f"MLflow at {uri}", first_line(str(error)), expected, fix)) from error
    return {model: done[model] for model in metrics}


def _find_experiment(
    client: Any,  # noqa: ANN401 - of MLflow
    name: str | None,
    evaluation: str,
    parent: Any,  # noqa: ANN401 - a run of MLflow, or None
    *,
    is_current: bool,
) -> str:
    """Return the id of the experiment that is named, of the active run, of the environment, or the evaluation's."""
    if name is None and is_current:
        if parent is not None:
            return str(parent.info.experiment_id)
        if own := os.environ.get("MLFLOW_EXPERIMENT_ID"):  # also by `mlflow.set_experiment`
            return own
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or evaluation
    known = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if known is None else known.experiment_id)


def _find_runs(client: Any, experiment: str, tags: Mapping[str, str]) -> list[Any]:  # noqa: ANN401 - of MLflow
    """Return the runs of the same night, or of the same call, that were logged before."""
    key = "date" if "date" in tags else "run_id"
    found, token = [], None
    while True:
        page = client.search_runs([experiment], f"tags.`{TAG}{key}` = '{tags[key]}'", page_token=token)
        found += [run for run in page if run.data.tags.get(f"{TAG}evaluation") == tags["evaluation"]]
        token = page.token
        if not token:
            return found


def _fill(
    client: Any,  # noqa: ANN401 - of MLflow
    run_id: str,
    numbers: Mapping[str, float],
    params: Mapping[str, object],
    artifacts: Mapping[str, str],
    day: str | None,
) -> None:
    """Write what belongs to a run, and end it. A night's numbers are at its date, so that charts over time fit."""
    from mlflow.entities import Metric, Param  # noqa: PLC0415 - an extra, and it takes a second

    seconds = time.time() if day is None else datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()
    values = [Metric(name, value, int(seconds * 1000), 0) for name, value in numbers.items()]
    client.log_batch(run_id, params=[Param(name, str(value)) for name, value in params.items()])
    for start in range(0, len(values), _MAX_METRICS):
        client.log_batch(run_id, metrics=values[start : start + _MAX_METRICS])
    for name, text in artifacts.items():
        client.log_text(run_id, text, name)
    client.set_terminated(run_id)


@contextmanager
def _patience() -> Iterator[None]:
    """Wait less for a server than MLflow does, unless the environment says how long."""
    ours = {name: text for name, text in _PATIENCE.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)

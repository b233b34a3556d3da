"""A published night in MLflow: which of its rows, its config and its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.published.report import report_of
from rankeval_spark.errors import EnvironmentFaultError, warn_user
from rankeval_spark.report import trackers
from rankeval_spark.report.page import require_extra
from rankeval_spark.results import results_of

if TYPE_CHECKING:
    from rankeval_spark.apps.published_runs import PastNight


def log_night(
    root: str, night: PastNight, *, experiment: str | None, tracking_uri: str | None, has_report: bool
) -> dict[str, str]:
    """Log each model of a night as a run of MLflow, and return the ids of the runs by model."""
    trackers.import_mlflow()  # before anything is read
    where: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
    results, config = results_of(root), night.completed_config
    rows = results.arrow(schemas.METRICS.name, **where, slice=C.ALL_USERS).to_pylist()
    metrics = trackers.flatten_metrics(rows, night.measures.measures)
    artifacts = {"config.yaml": yaml.safe_dump(config, sort_keys=False, allow_unicode=True)}
    if has_report:
        try:
            require_extra()
            artifacts["report.html"] = report_of(root, evaluation=night.evaluation, day=night.evaluation_date)
        except EnvironmentFaultError as error:
            warn_user(f"{night}: logged without its report; {error.faults[0].fix}, or --no-report")
    return trackers.log_to_mlflow(
        metrics,
        tags={
            C.EVALUATION: night.evaluation,
            "date": night.evaluation_date.isoformat(),
            C.RUN_ID: str(night.row[C.RUN_ID]),
        },
        verdict=trackers.verdicts(results.arrow(schemas.GATES.name, **where).to_pylist(), metrics),
        params=trackers.list_params(config) | {f"n_rows.{name}": n_rows for name, n_rows in night.n_input_rows.items()},
        artifacts=artifacts,
        experiment=experiment,
        tracking_uri=tracking_uri,
    )

"""Stage what follows from the rows of users, on either host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rankeval_spark import schemas
from rankeval_spark.result_rows.groups.group_rows import has_groups, to_group_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import StagedRun


class ResultTables(Protocol):
    """What follows from the rows of users, each computed when it is used."""

    @property
    def metrics(self) -> DataFrame | pa.Table:
        """As ``schemas.METRICS`` from the first column after the run's on."""

    @property
    def comparisons(self) -> DataFrame | pa.Table | None:
        """As ``schemas.COMPARISONS``, likewise; None where nothing is compared."""


def stage_results(run: StagedRun, tables: ResultTables, request: Request, *, steps: Steps) -> None:
    """Stage what follows from the rows of users: means, statistics of groups and comparisons."""
    with steps.step("summarise") as step:
        run.stage(schemas.METRICS.name, tables.metrics)
        step.n_rows = run.n_rows[schemas.METRICS.name]
        metrics = run.rows(schemas.METRICS.name)
        if metrics is not None and has_groups(request):
            run.stage(schemas.GROUP_METRICS.name, to_group_table(metrics))
    if request.comparisons is None:
        return
    with steps.step("compare") as step:
        comparisons = tables.comparisons
        if comparisons is not None:
            run.stage(schemas.COMPARISONS.name, comparisons)
            step.n_rows = run.n_rows[schemas.COMPARISONS.name]

"""Stage what follows from the rows of users, on either host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark import schemas
from rankeval_spark.result_rows.group_rows import has_groups, to_group_table

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import StagedRun


def stage_results(
    run: StagedRun, metrics: pa.Table, comparisons: pa.Table | None, request: Request, *, steps: Steps
) -> None:
    """Stage what follows from the rows of users: means, statistics of groups and comparisons."""
    with steps.step("summarise") as step:
        run.stage(schemas.METRICS.name, metrics)
        step.n_rows = run.n_rows[schemas.METRICS.name]
        if has_groups(request):
            run.stage(schemas.GROUP_METRICS.name, to_group_table(metrics))
    if comparisons is None:
        return
    with steps.step("compare") as step:
        run.stage(schemas.COMPARISONS.name, comparisons)
        step.n_rows = run.n_rows[schemas.COMPARISONS.name]

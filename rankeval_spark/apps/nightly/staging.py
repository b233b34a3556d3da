"""Stage what is published of the scored rows, which are computed once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from pyspark import StorageLevel

from rankeval_spark import schemas
from rankeval_spark.result_rows.groups.group_rows import to_group_table
from rankeval_spark.spark import plans
from rankeval_spark.spark.rows import population

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rankeval_spark.apps.progress import Steps
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import StagedRun


def stage_users(run: StagedRun, scored: DataFrame, *, steps: Steps) -> None:
    """Stage the rows of users; where they are kept, this computes them for all results."""
    with steps.step("score") as step:
        run.stage(schemas.USER_METRICS.name, population.keep_population(scored))
        step.n_rows = run.n_rows[schemas.USER_METRICS.name]


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
        if metrics is not None and plans.has_groups(request):
            run.stage(schemas.GROUP_METRICS.name, to_group_table(metrics))
    if request.comparisons is None:
        return
    with steps.step("compare") as step:
        comparisons = tables.comparisons
        if comparisons is not None:
            run.stage(schemas.COMPARISONS.name, comparisons)
            step.n_rows = run.n_rows[schemas.COMPARISONS.name]


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame, once computed, until the block ends; what does not fit into memory goes to disk."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()

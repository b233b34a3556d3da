"""Stage what is published of the scored rows, which are computed once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from rankeval_spark import pipeline, schemas
from rankeval_spark.stages import population

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.app.progress import Steps
    from rankeval_spark.pipeline import Frames
    from rankeval_spark.results import StagedRun


def stage_users(run: StagedRun, scored: DataFrame, *, steps: Steps) -> None:
    """Stage the rows of users; where they are kept, this computes them for all results."""
    with steps.step("score") as step:
        run.stage(schemas.USER_METRICS.name, population.keep_population(scored))
        step.n_rows = run.n_rows[schemas.USER_METRICS.name]


def stage_results(run: StagedRun, frames: Frames, *, steps: Steps) -> None:
    """Stage what follows from the rows of users: means, statistics of groups and comparisons."""
    with steps.step("summarise") as step:
        metrics = run.stage(schemas.METRICS.name, frames.metrics)
        step.n_rows = run.n_rows[schemas.METRICS.name]
        if pipeline.has_groups(frames.request):
            run.stage(schemas.GROUP_METRICS.name, pipeline.to_group_metrics(metrics, request=frames.request))
    if frames.comparisons is not None:
        with steps.step("compare") as step:
            run.stage(schemas.COMPARISONS.name, frames.comparisons)
            step.n_rows = run.n_rows[schemas.COMPARISONS.name]


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame, once computed, until the block ends; what does not fit into memory goes to disk."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()

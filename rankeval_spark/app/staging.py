"""Compute the scored rows once and stage what is published of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from rankeval_spark import pipeline, schemas
from rankeval_spark.app.inputs import list_facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from rankeval_spark.app.progress import Steps
    from rankeval_spark.config.request import Request
    from rankeval_spark.results import StagedRun


def stage_scored(  # noqa: PLR0913 - what is staged, and what stands beside it
    run: StagedRun,
    scored: DataFrame,
    *,
    request: Request,
    has_one_list: bool,
    steps: Steps,
    exposures: DataFrame | None = None,
) -> list[Row]:
    """Compute the scored rows and stage what follows from them; return the facts that the checks judge.

    ``exposures`` are rows of ``metrics`` that no list has a part of its own in.
    """
    # Read up to 4x: user_metrics, metrics, facts, comparisons. A table in staging instead of the cache cost a write and
    # a read more.
    with cached(scored) as kept:
        frames = pipeline.Frames(kept, request=request, has_one_list=has_one_list, exposures=exposures)
        with steps.step("score") as step:
            run.stage(schemas.USER_METRICS.name, frames.user_metrics)
            step.n_rows = run.n_rows[schemas.USER_METRICS.name]
        with steps.step("summarise") as step:
            metrics = run.stage(schemas.METRICS.name, frames.metrics)
            step.n_rows = run.n_rows[schemas.METRICS.name]
            if pipeline.has_groups(request):
                run.stage(schemas.GROUP_METRICS.name, pipeline.to_group_metrics(metrics, request=request))
            facts = list_facts(kept, request).collect()
        if frames.comparisons is not None:
            with steps.step("compare") as step:
                run.stage(schemas.COMPARISONS.name, frames.comparisons)
                step.n_rows = run.n_rows[schemas.COMPARISONS.name]
        return facts


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame, once computed, until the block ends; what does not fit into memory goes to disk."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()

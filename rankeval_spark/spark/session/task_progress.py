"""How far the jobs of a session are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark import StatusTracker


class Tasks(NamedTuple):
    """Tasks of the stages that run at a time."""

    n_done: int
    n_all: int


def tasks_counter() -> Callable[[], Tasks | None]:
    """Return a function that counts the tasks of the active session, from any thread.

    It counts none without a session, nor through Spark Connect, which does not report tasks.
    """
    context = getattr(SparkSession.getActiveSession(), "sparkContext", None)
    return (lambda: None) if context is None else partial(_under_way, context.statusTracker())


def _under_way(tracker: StatusTracker) -> Tasks | None:
    """Count the tasks of the stages under way; None between two jobs."""
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    if not stages:
        return None
    return Tasks(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))

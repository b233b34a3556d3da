"""How far the jobs of the session of this process are."""

from __future__ import annotations

import sys
from typing import NamedTuple


class Tasks(NamedTuple):
    """Tasks of the stages that run at a time."""

    n_done: int
    n_all: int


def tasks_under_way() -> Tasks | None:
    """Count the tasks of the stages under way, from any thread; None between two jobs.

    It counts none without a session, nor through Spark Connect, which does not report tasks. A session that starts
    later is found too. Nothing is imported: whoever has no session need not wait for pyspark.
    """
    classes = sys.modules.get("pyspark.core.context")
    context = getattr(getattr(classes, "SparkContext", None), "_active_spark_context", None)
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    if not stages:
        return None
    return Tasks(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))

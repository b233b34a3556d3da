"""Python workers of a local run that start while the driver plans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from rankeval_spark.spark.session.settings import DAEMON_MODULE, WORKER_DAEMON

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_warmed: set[str] = set()
"""Applications whose workers were started."""


def warm_workers(spark: SparkSession) -> Thread | None:
    """Start a Python worker for each core in a thread, so that the first job with Python code finds them ready.

    Returns
    -------
    Thread or None
        The thread. None for a session whose workers were started before, and for one whose workers are not those of
        :mod:`~rankeval_spark.spark.session.worker_daemon`, such as a cluster's.
    """
    if spark.conf.get(DAEMON_MODULE, None) != WORKER_DAEMON or spark.sparkContext.applicationId in _warmed:
        return None
    _warmed.add(spark.sparkContext.applicationId)
    thread = Thread(target=_start, args=(spark,), name="warm workers", daemon=True)
    thread.start()
    return thread


def _start(spark: SparkSession) -> None:
    n_tasks = spark.sparkContext.defaultParallelism
    with suppress(Exception):  # the job that needs workers reports what is wrong with them
        spark.range(0, n_tasks, 1, n_tasks).mapInArrow(_unchanged, "id bigint").collect()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches

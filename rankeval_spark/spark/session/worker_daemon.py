"""The process that Spark's Python workers of a local run are forked from, with their libraries imported.

Spark starts one such process and forks a worker from it for each task that runs at a time. Imported here, numpy,
pyarrow, pandas and the engine cost every new worker nothing; each took 1.2 s of processor time for them before.
"""

from __future__ import annotations

import pandas as pd  # noqa: F401 - pyarrow imports it when a stage makes its first array
import pyspark.worker  # noqa: F401 - imported for the workers
from pyspark.daemon import manager

import rankeval_spark.engine.job
import rankeval_spark.result_rows.metric_rows  # noqa: F401 - imported for the workers

if __name__ == "__main__":
    manager()

"""The settings of Spark that rankeval runs under, each with its reason."""

from __future__ import annotations

import os
from pathlib import Path

from rankeval_spark.config import spark_settings

_GIGABYTE = 1 << 30
_LOCAL_HEAP_GIGABYTES = (1, 4)
_PARTITIONS_A_CORE = 8
_MOST_PARTITIONS = 200
_LEAST_MEGABYTES = 16
"""What all cores together should have to process, in the size of the files of a shuffle: some seconds of work."""


def job_settings() -> dict[str, str]:
    """Return what a session of our own has, on a cluster too; an evaluation needs none of it for its speed."""
    return {
        # A pyarrow that cannot be imported is an error, not a warning and a slower way without Arrow.
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The default is the zone of whichever machine runs the driver; dates would change with it.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        # Readers are pinned to the versions last published. Where nothing was published for longer than the retention,
        # and a publish is under way, these are neither new nor the newest; VACUUM keeps their files all the same, as
        # it goes by when a file was removed from the table, and Delta's refusal goes by the version's own age.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
        # ${env:NAME} in a path or a name from a config would print a variable of the driver.
        "spark.sql.variable.substitute": "false",
        # The default, INT96, is deprecated in Parquet and has no statistics for other readers to skip files by.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # What Spark hides in its event log and pages; its own pattern knows neither account keys nor private ones.
        "spark.redaction.regex": f"(?i:{spark_settings.CREDENTIAL_NAME})",
        # The terminal belongs to our own progress lines.
        "spark.ui.showConsoleProgress": "false",
        # Python's stack would be walked for every expression of every plan, for messages that ours replace; and with
        # it a module be looked for that is mostly not there. No setting of a running session: it is read once.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def local_settings(warehouse: Path, *, cores: int) -> dict[str, str]:
    """Return what a driver that is its own executor needs besides.

    `warehouse`: folder of managed tables; the default is one in whichever folder the job was started from. `cores`:
    tasks that run at a time.
    """
    return {
        # Nothing of a local run is open to the network.
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(warehouse),
        # One heap holds driver and executor, and the default of 1 GB was meant for a driver alone.
        "spark.driver.memory": f"{local_heap_gigabytes()}g",
        # Throughput matters, pauses do not: publishing four tables took 20 s, not 61, with this and the next.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        # Delta reads its log in 50 tasks by default: ten rows written and read took 24 s, with 1 task 10 s.
        "spark.databricks.delta.snapshotPartitions": "1",
        # A task costs 60 ms in Python before its first row. Eight a core, and fewer where the rows are few: adaptive
        # execution merges down to the least size, not to the advised one, below a cross join (users and models).
        # On 2 cores a million rows took 3.8 s with 32 of at least 1 MB, now 2.6; ten million gain a twentieth.
        "spark.sql.shuffle.partitions": str(min(_MOST_PARTITIONS, _PARTITIONS_A_CORE * cores)),
        "spark.sql.adaptive.coalescePartitions.minPartitionSize": f"{max(1, _LEAST_MEGABYTES // cores)}MB",
        # The package may be a folder or an archive that only the driver was started with.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[3]),
    }


def local_heap_gigabytes() -> int:
    """Return a quarter of this machine's memory, within bounds, in whole gigabytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    least, most = _LOCAL_HEAP_GIGABYTES
    return max(least, min(most, memory // 4 // _GIGABYTE))


DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

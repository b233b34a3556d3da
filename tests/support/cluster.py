"""A standalone cluster on this machine, started from the pip package: a master and its workers, each a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import find_spark_home
from tests.support.processes import SHORT_LIVED_JVM

START_SECONDS: Final = 120
_MASTER: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = re.compile(r"Successfully registered with master")
_PACKAGE: Final = "org.apache.spark.deploy"


class Cluster(NamedTuple):
    """A cluster that runs."""

    master: str  # its address
    folder: Path  # where its workers log, below ``work-*/app-*``

    def executor_logs(self) -> set[Path]:
        """Find what the executors wrote that there were."""
        return set(self.folder.glob("work-*/app-*/*/stderr"))


def spark_environment() -> dict[str, str]:
    """Return the variables that the daemons and ``spark-submit`` need; none of them is about this project."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_CONF_DIR")}
    return {
        **variables,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(find_spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED_JVM,
        "PYSPARK_PYTHON": sys.executable,
    }


@contextmanager
def standalone_cluster(folder: Path, *, n_workers: int, cores: int, memory: str) -> Iterator[Cluster]:
    """Start a master and workers with so many cores each, yield them, and end them."""
    with ExitStack() as running:
        log = running.enter_context(_daemon(folder, "master", f"{_PACKAGE}.master.Master", "--port", "0"))
        master = _said(log, _MASTER)
        workers = []
        for number in range(1, n_workers + 1):
            options = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder / f"work-{number}"))
            worker = _daemon(folder, f"worker-{number}", f"{_PACKAGE}.worker.Worker", *options, master)
            workers.append(running.enter_context(worker))
        for log in workers:
            _said(log, _REGISTERED)
        yield Cluster(master, folder)


@contextmanager
def _daemon(folder: Path, name: str, class_: str, *options: str) -> Iterator[Path]:
    """Run one process of the cluster and yield the file that it logs to."""
    log = folder / f"{name}.log"
    spark_class = str(find_spark_home() / "bin" / "spark-class")
    command = [spark_class, class_, "--host", "127.0.0.1", "--webui-port", "0", *options]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env=spark_environment(), cwd=folder, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(timeout=30)


def _said(log: Path, wanted: re.Pattern[str]) -> str:
    """Wait until a process has said something, and return the last group of it."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if found := wanted.search(log.read_text(errors="replace")):
            return found.group(wanted.groups)
        time.sleep(0.2)
    raise TimeoutError(log.read_text(errors="replace"))

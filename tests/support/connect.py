"""A Spark Connect server on this machine, started from the pip package: a process of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from rankeval_spark.spark.session import jars, settings as ours
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import submit_script
from tests.support.cli import PROJECT
from tests.support.cluster import spark_environment

START_SECONDS: Final = 120
_SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Start a server that has Delta, yield its address, and end it.

    Parameters
    ----------
    folder : Path
        Where it runs and logs to.
    settings : mapping of str to str
        Its settings; Delta's are added.
    """
    port = _free_port()
    given = {
        **settings,
        "spark.jars": ",".join(map(str, jars.delta_jars(find_java()))),
        "spark.sql.extensions": ours.DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": ours.DELTA_CATALOG,
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    confs = (part for key, value in given.items() for part in ("--conf", f"{key}={value}"))
    command = [str(submit_script()), "--class", _SERVER, "--master", "local[2]", *confs]
    log = folder / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            # Spark takes the memory of a server from here, not from its settings; workers find the package by the path.
            env={**spark_environment(), "SPARK_DAEMON_MEMORY": "1g", "PYTHONPATH": str(PROJECT)},
            cwd=folder,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        _wait(process, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise TimeoutError(log.read_text(errors="replace"))

"""Local workers without numpy or pyarrow are noticed before a job, with the setting that fixes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rankeval_spark.errors import EnvironmentFaultError
from rankeval_spark.spark.session.builder import require_packages


def session(executable: object, master: str = "local[2]") -> Any:  # noqa: ANN401 - what is looked at of a session
    conf = SimpleNamespace(get=lambda key, default=None: master if key == "spark.master" else default)
    return SimpleNamespace(conf=conf, sparkContext=SimpleNamespace(pythonExec=str(executable)))


def test_interpreter_without_packages_is_refused_with_the_remedy(bare_python: Path) -> None:
    with pytest.raises(EnvironmentFaultError) as refused:
        require_packages(session(bare_python))
    (fault,) = refused.value.faults
    assert fault.found == f"{bare_python} without numpy, pyarrow"
    assert fault.fix.startswith(f"set PYSPARK_PYTHON={sys.executable} ")


def test_python_of_the_driver_and_clusters_and_connect_are_let_through(bare_python: Path) -> None:
    require_packages(session(sys.executable))
    require_packages(session(bare_python, master="yarn"))
    require_packages(SimpleNamespace(conf=session(bare_python).conf))  # type: ignore[arg-type]  # of Spark Connect
    require_packages(session("/no/such/python"))


@pytest.mark.slow
def test_evaluate_refuses_a_plain_session_of_a_bare_python_before_any_job(bare_python: Path) -> None:
    code = (
        "from pyspark.sql import SparkSession\n"
        "from rankeval_spark import evaluate\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "log = spark.sql(\"SELECT 'u' AS user_id, 'a' AS item_id, 1.0D AS score\")\n"
        "evaluate(log, log.drop('score'), measures=['P@1'])\n"
    )
    environment = {**os.environ, "PYSPARK_PYTHON": str(bare_python)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f"{bare_python} without numpy, pyarrow" in run.stderr
    assert f"set PYSPARK_PYTHON={sys.executable}" in run.stderr

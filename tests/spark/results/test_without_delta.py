"""A reader in a session of the user's own, which has no Delta."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankeval_spark.config import load_config
from rankeval_spark.spark.session.java import find_java
from tests.support import nights
from tests.support.nights import FIRST
from tests.support.published import Root, frames_of

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from rankeval_spark import Results
from rankeval_spark.errors import ConfigError

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    Results(sys.argv[1], spark).metrics()
except ConfigError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_session_without_delta_is_refused_with_the_way_to_get_one(tmp_path: Path) -> None:
    """In a process of its own, since the session of the tests has Delta."""
    made = nights.workspace(tmp_path / "workspace")
    Root(made.root, load_config(made.config)).publish(FIRST, frames_of(FIRST), run_id="first")
    settings = {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, made.root],
        env={**os.environ, **settings},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "found a session without Delta; expected one with it" in run.stdout
    assert "rankeval_spark.build_session()" in run.stdout
    assert "Traceback" not in run.stderr

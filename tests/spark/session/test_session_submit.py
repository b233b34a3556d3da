"""Under spark-submit: its master and settings stand, and Delta is its to bring."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rankeval_spark.spark.session import jars
from rankeval_spark.spark.session.java import find_java
from rankeval_spark.spark.session.settings import find_spark_home, submit_script

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from rankeval_spark.errors import FaultsError
from rankeval_spark.spark.session import build_session

try:
    spark = build_session(settings={"spark.sql.shuffle.partitions": "3"})
except FaultsError as error:
    print(error)
    sys.exit(error.exit_code)
spark.range(5).write.format("delta").save(sys.argv[1])
for key in ("spark.master", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions", "spark.app.name"):
    print(spark.conf.get(key))
spark.stop()
"""


def submit(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the program by spark-submit, as a scheduler would."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    options = ("--driver-memory", "1g", "--conf", "spark.ui.enabled=false", *options)
    return subprocess.run(
        [submit_script(), *options, program, folder / "table"],
        env={
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(find_spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_settings_of_spark_submit_stay_and_settings_of_the_user_win(tmp_path: Path) -> None:
    given = ",".join(map(str, jars.delta_jars(find_java())))

    run = submit(
        tmp_path,
        *("--master", "local[2]", "--jars", given, "--name", "nightly"),
        *("--conf", "spark.sql.session.timeZone=Asia/Tokyo", "--conf", "spark.sql.shuffle.partitions=7"),
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["local[2]", "Asia/Tokyo", "3", "nightly"]


@pytest.mark.slow
def test_driver_without_delta_is_refused_with_the_option_to_add(tmp_path: Path) -> None:
    run = submit(tmp_path, "--master", "local[1]")

    assert run.returncode == 8
    assert f"add --packages {jars.pinned_build().package}" in run.stdout


@pytest.mark.slow
def test_a_driver_with_several_jars_of_delta_is_refused_with_those_to_remove(tmp_path: Path) -> None:
    own, storage = jars.delta_jars(find_java())
    other = tmp_path / own.name.replace(jars.DELTA, "4.3.0")
    shutil.copy(own, other)

    run = submit(tmp_path, "--master", "local[1]", "--jars", f"{own},{storage},{other}")

    assert run.returncode == 8
    assert f"Delta jars: found 2 on the class path: {other.name}, {own.name}; expected {own.name} alone" in run.stdout
    assert f"remove {other.name}: look at --jars" in run.stdout

"""The line of the README that submits a job, as it stands there, on a Spark without Delta."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import deltalake
import pytest

from rankeval_spark.spark.session.java import find_java
from tests.support import nights
from tests.support.cli import PROJECT

LINES = re.search(r"^make zip\nspark-submit .*?$", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.slow
def test_the_lines_of_the_readme_publish_a_night(tmp_path: Path) -> None:
    """Its first line, `make zip`, would make an environment in the copy: what it packs is packed here."""
    assert LINES is not None
    day = re.search(r"--date (\S+)", LINES[0])
    assert day is not None
    workspace = of_readme(tmp_path, date.fromisoformat(day[1]))
    (tmp_path / "jobs").symlink_to(PROJECT / "jobs")
    (tmp_path / "dist").mkdir()
    package = ["dist/rankeval_spark.zip", str(PROJECT / "rankeval_spark")]
    subprocess.run([sys.executable, "-m", "zipfile", "-c", *package], cwd=tmp_path, check=True)
    java = {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}

    done = subprocess.run(
        LINES[0].splitlines()[1],
        shell=True,
        env={**kept, **java, "PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"published nightly {day[1]}" in done.stdout
    metrics = deltalake.DeltaTable(f"{workspace}/results/metrics").to_pyarrow_table().to_pylist()
    assert {str(row["evaluation_date"]) for row in metrics} == {day[1]}


def of_readme(folder: Path, day: date) -> Path:
    """Write ``conf/nightly.yaml`` with inputs of a date; return its folder."""
    workspace = nights.Workspace(folder / "conf")
    workspace.write("recommendations", nights.recommendations({day: nights.LISTS[nights.FIRST]}))
    workspace.write("held_out", nights.held_out({day: nights.GAINS[nights.FIRST]}))
    workspace.configure(nights.config_of("recommendations", "held_out"))
    return workspace.folder

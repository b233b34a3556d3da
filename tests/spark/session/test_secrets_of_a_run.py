"""What the environment gives to settings is nowhere to be seen while a night runs, nor in anything that it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import PROJECT
from tests.support.nights import FIRST
from tests.support.processes import SETTINGS

SECRET = "s3cret/of+the (environment)"
OF_JAVA = "s3cret-of-java"

FROM_THE_ENVIRONMENT = {
    "spark.executorEnv.PLAIN": "${env:TEST_SECRET}",
    "spark.hadoop.my.plain": "${env:TEST_SECRET}",
    "spark.plain": "${env:TEST_SECRET}",
    "spark.driver.extraJavaOptions": "${env:TEST_JAVA_OPTIONS}",
}


def run(
    workspace: nights.Workspace, folder: Path, settings: dict[str, str]
) -> tuple[subprocess.CompletedProcess[str], set[bytes]]:
    """Run a night in a process of its own, and return with it every command line seen meanwhile that is of Java."""
    workspace.change(spark={"always": True, "settings": {**SETTINGS, **settings}})
    java_options = f"-Dmy.mode={OF_JAVA} {SETTINGS['spark.driver.extraJavaOptions']}"
    with (folder / "out").open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "rankeval_spark", "run", workspace.config, "--date", FIRST.isoformat(), "--debug"],
            env={
                **os.environ,
                "PYTHONPATH": str(PROJECT),
                "TEST_SECRET": SECRET,
                "TEST_JAVA_OPTIONS": java_options,
            },
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        seen: set[bytes] = set()
        while process.poll() is None:
            seen |= command_lines()
            time.sleep(0.01)
    said = (folder / "out").read_text(encoding="utf-8")
    return subprocess.CompletedProcess(process.args, process.returncode, said), seen


def command_lines() -> set[bytes]:
    """Read the command lines of all processes of this machine that are of Spark."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if b"spark" in line:
            found.add(line)
    return found


@pytest.mark.slow
def test_value_from_the_environment_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    workspace = nights.workspace(tmp_path / "workspace", format_=nights.PARQUET)
    events = tmp_path / "events"
    events.mkdir()
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(events), "spark.eventLog.compress": "false"}
    done, seen = run(workspace, tmp_path, {**FROM_THE_ENVIRONMENT, **logged})

    assert done.returncode == 0, done.stdout
    assert any(b"SparkSubmit" in line for line in seen)
    for secret in (SECRET, OF_JAVA):
        assert not [line for line in seen if secret.encode() in line]
        assert secret not in done.stdout
        assert secret not in str(Results(workspace.root).runs().to_pylist())

    (log,) = [file for file in events.rglob("*") if file.is_file() and "appstatus" not in file.name]
    text = log.read_text(encoding="utf-8")
    assert text.count("SparkListenerJobStart") > 5
    assert SECRET not in text
    assert OF_JAVA not in text
    # It did arrive: the settings are there, with Spark's word for what it hides.
    (started,) = [one for one in map(json.loads, text.splitlines()) if one["Event"].endswith("EnvironmentUpdate")]
    assert started["Spark Properties"]["spark.executorEnv.PLAIN"] == "*********(redacted)"
    assert started["Hadoop Properties"]["my.plain"] == "*********(redacted)"
    assert started["System Properties"]["my.mode"] == "*********(redacted)"
    assert started["Spark Properties"]["spark.sql.shuffle.partitions"] == "2"


@pytest.mark.slow
def test_value_from_the_environment_that_spark_refuses_is_not_repeated(tmp_path: Path) -> None:
    workspace = nights.workspace(tmp_path / "workspace", format_=nights.PARQUET)
    done, seen = run(workspace, tmp_path, {"spark.sql.shuffle.partitions": "${env:TEST_SECRET}"})

    assert done.returncode == 2, done.stdout
    assert "spark.sql.shuffle.partitions" in done.stdout
    assert "(hidden)" in done.stdout
    assert SECRET.casefold() not in done.stdout.casefold()
    assert not [line for line in seen if SECRET.encode() in line]

"""Values from the environment reach Spark, and nothing that is printed, written or to be seen of the process."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pytest

from tests.support import nights
from tests.support.cli import rankeval_process
from tests.support.nights import FIRST, SECOND
from tests.support.processes import SETTINGS

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace

PLANTED: Final = "s3cret/of+the (environment)"
OF_JAVA: Final = "s3cret-of-java"
FROM_THE_ENVIRONMENT: Final = {
    "spark.executorEnv.PLAIN": "${env:PLANTED}",
    "spark.hadoop.my.plain": "${env:PLANTED}",
    "spark.hadoop.fs.s3a.secret.key": "${env:PLANTED}",
    "spark.plain": "${env:PLANTED}",
    "spark.driver.extraJavaOptions": "${env:JAVA_OPTIONS_OF_TEST}",
}
COLUMNS: Final = ("model_id", "slice", "slice_value", "measure", "k", "value", "std_error", "n_users")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", PLANTED)
    monkeypatch.setenv("JAVA_OPTIONS_OF_TEST", f"-Dmy.mode={OF_JAVA} {SETTINGS['spark.driver.extraJavaOptions']}")
    monkeypatch.setenv("TZ", "America/New_York")


def watched(*command: object) -> tuple[Finished, set[bytes]]:
    """Run a command in a process of its own; return with it each command line of the machine that names Spark."""
    seen: set[bytes] = set()
    with ThreadPoolExecutor() as threads:
        running = threads.submit(rankeval_process, *command)
        while not running.done():
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    seen.add((process / "cmdline").read_bytes())
                except OSError:  # it has ended
                    continue
            time.sleep(0.02)
    return running.result(), {line for line in seen if b"spark" in line}


def metrics(workspace: Workspace) -> list[tuple[Any, ...]]:
    """Means of the first date, sorted; to 12 digits, as partitions are added up in any order."""
    table = deltalake.DeltaTable(f"{workspace.root}/metrics").to_pyarrow_table().to_pylist()
    rows = (
        tuple(round(row[name], 12) if isinstance(row[name], float) else row[name] for name in COLUMNS)
        for row in table
        if (row["evaluation"], row["evaluation_date"]) == ("nightly", FIRST)
    )
    return sorted(rows, key=str)


@pytest.mark.slow
def test_secret_is_nowhere_and_the_zone_of_the_machine_does_not_matter(published: Workspace, tmp_path: Path) -> None:
    """One date is published and one fails, with traces, in New York."""
    workspace = nights.workspace(tmp_path / "workspace")
    (workspace.folder / "inputs" / "held_out").rename(workspace.folder / "inputs" / f"held_out-{FIRST}")
    (tmp_path / "events").mkdir()
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
    }
    settings = {**SETTINGS, **FROM_THE_ENVIRONMENT, **logged}
    workspace.change(
        inputs__held_out__path="inputs/held_out-{date}", spark={"master": "local[2]", "settings": settings}
    )

    done, lines = watched("backfill", workspace.config, "--from", FIRST, "--to", SECOND, "--debug")

    assert done.code == 4, done.err
    assert metrics(workspace) == metrics(published)
    assert [line for line in lines if b"spark.app.name=rankeval nightly" in line]
    runs = deltalake.DeltaTable(f"{workspace.root}/runs").to_pyarrow_table().to_pylist()
    assert {row["status"] for row in runs} == {"RUNNING", "PUBLISHING", "PUBLISHED", "FAILED"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for secret in (PLANTED, OF_JAVA):
        assert [line for line in lines if secret.encode() in line] == []
        assert secret not in done.out + done.err + str(runs)
        assert [path for path in files if secret.encode() in path.read_bytes()] == []

    # It did arrive: the settings are there, with Spark's word for what it hides.
    (log,) = [path for path in files if b"SparkListenerEnvironmentUpdate" in path.read_bytes()]
    text = log.read_text(encoding="utf-8")
    assert text.count("SparkListenerJobStart") > 5
    (started,) = [event for event in map(json.loads, text.splitlines()) if event["Event"].endswith("EnvironmentUpdate")]
    assert started["Spark Properties"]["spark.executorEnv.PLAIN"] == "*********(redacted)"
    assert started["Hadoop Properties"]["my.plain"] == "*********(redacted)"
    assert started["System Properties"]["my.mode"] == "*********(redacted)"
    assert started["Spark Properties"]["spark.sql.shuffle.partitions"] == "2"


@pytest.mark.slow
def test_value_from_the_environment_that_spark_refuses_is_not_repeated(tmp_path: Path) -> None:
    refused = {**SETTINGS, "spark.sql.shuffle.partitions": "${env:PLANTED}"}
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET, spark={"always": True, "settings": refused})

    done, lines = watched("run", workspace.config, "--date", FIRST, "--debug")

    said = done.out + done.err
    assert done.code == 2, said
    assert "the configuration is not valid" in said
    assert "spark.sql.shuffle.partitions" in said
    assert "(hidden)" in said
    assert PLANTED.casefold() not in said.casefold()
    assert not [line for line in lines if PLANTED.encode() in line]

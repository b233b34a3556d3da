"""``jobs/evaluate.py`` by the line of README, on a cluster, with the package as a zip and a Spark without Delta."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deltalake
import pytest

from rankeval_spark import __version__
from rankeval_spark.spark.session.settings import submit_script
from tests.support.cli import JAVA_WORDS, PROJECT
from tests.support.cluster import spark_environment
from tests.support.nights import FIRST
from tests.support.processes import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from tests.support.cluster import Cluster
    from tests.support.nights import Workspace

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

((_, LINE),) = re.findall(r"^(make zip)\n(spark-submit .*?)$", (PROJECT / "README.md").read_text("utf-8"), re.MULTILINE)

SHIPPED: Final = f"{__version__}+from.zip"
"""Version of the package in the zip, so that a run can tell which copy of the code it was."""

MEASURED: Final = ("model_id", "user_id", "list_id", "k", "n_relevant", "n_hits", "rr", "ndcg", "success")
SUMMARISED: Final = ("model_id", "slice", "slice_value", "measure", "k", "n_users", "value", "ci_low", "ci_high")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the job, and what `make zip` leaves: a package that says so in its version."""
    place = tmp_path_factory.mktemp("package")
    (place / "jobs").symlink_to(PROJECT / "jobs")
    (place / "dist").mkdir()
    with zipfile.ZipFile(place / "dist" / "rankeval_spark.zip", "w") as archive:
        for file in sorted((PROJECT / "rankeval_spark").rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.writestr(str(file.relative_to(PROJECT)), _marked(file))
    return place


@pytest.fixture
def own_copy(own_copy_of_delta: Workspace) -> Workspace:
    """Give the workspace with the inputs of production."""
    return own_copy_of_delta


def test_job_on_a_cluster_publishes_the_numbers_of_a_run_in_process(
    own_copy: Workspace, cluster: Cluster, folder: Path
) -> None:
    own_copy.change(evaluation="submitted")

    done = submit(own_copy, cluster, folder)

    assert done.returncode == 0, done.stderr
    assert "published submitted 2026-01-01" in done.stdout
    assert rows(own_copy, "user_metrics", "submitted", MEASURED) == rows(own_copy, "user_metrics", "nightly", MEASURED)
    assert rows(own_copy, "metrics", "submitted", SUMMARISED) == rows(own_copy, "metrics", "nightly", SUMMARISED)
    assert rows(own_copy, "runs", "submitted", ("status", "code_version")) == [
        ("PUBLISHED", SHIPPED),
        ("PUBLISHING", SHIPPED),
        ("RUNNING", SHIPPED),
    ]


def test_workers_without_packages_are_named_before_a_row_is_read(
    own_copy: Workspace, cluster: Cluster, folder: Path, bare_python: Path
) -> None:
    python = {"spark.pyspark.python": str(bare_python), "spark.pyspark.driver.python": sys.executable}
    started = time.monotonic()
    done = submit(own_copy, cluster, folder, **python)
    assert done.returncode == 8, done.stderr
    assert "without numpy, pyarrow; expected numpy and pyarrow in the Python of every worker" in " ".join(
        done.stdout.split()
    )
    assert "make cluster-env" in done.stdout
    assert not [word for word in JAVA_WORDS if word in done.stdout]
    assert time.monotonic() - started < 120  # 222 s before, of tasks that are repeated


@pytest.mark.faults
def test_archive_of_make_cluster_env_is_all_that_workers_need(
    own_copy: Workspace, cluster: Cluster, folder: Path
) -> None:
    archive = PROJECT / "dist" / "environment.tar.gz"
    if not archive.exists():
        subprocess.run(["make", "cluster-env"], cwd=PROJECT, check=True)
    own_copy.change(evaluation="archived")
    python = {
        "spark.archives": f"{archive}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": sys.executable,
    }
    done = submit(own_copy, cluster, folder, **python)
    assert done.returncode == 0, done.stderr
    assert rows(own_copy, "metrics", "archived", SUMMARISED) == rows(own_copy, "metrics", "nightly", SUMMARISED)


def submit(workspace: Workspace, cluster: Cluster, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the line of README, on the cluster, for this config and the first date, where there is only what it names."""
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
        "spark.executor.extraJavaOptions": SHORT_LIVED_JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        # As in tests/conftest.py: three JVMs would generate and compile the code of every query, each for itself.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        **more,
    }
    confs = (part for key, value in settings.items() for part in ("--conf", f"{key}={value}"))
    script, *words = LINE.split()
    assert (script, words[-4], words[-2]) == ("spark-submit", "--config", "--date")
    words[-3], words[-1] = str(workspace.config), FIRST.isoformat()
    return subprocess.run(
        [str(submit_script()), "--master", cluster.master, "--driver-memory", "1g", *confs, *words],
        env={name: value for name, value in spark_environment().items() if name != "PYSPARK_PYTHON" or not more},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def rows(workspace: Workspace, table: str, evaluation: str, columns: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Rows of the first date, sorted; numbers to twelve digits after the point."""
    delta = deltalake.DeltaTable(f"{workspace.root}/{table}")
    only = [("evaluation", "=", evaluation), ("evaluation_date", "=", FIRST)]
    found = delta.to_pyarrow_table(filters=only, columns=list(columns)).to_pylist()
    return sorted((tuple(_rounded(row[name]) for name in columns) for row in found), key=str)


def _rounded(value: object) -> object:
    return round(value, 12) if isinstance(value, float) else value


def _marked(file: Path) -> bytes:
    content = file.read_bytes()
    if file.relative_to(PROJECT) != Path("rankeval_spark/__init__.py"):
        return content
    return content.replace(f'"{__version__}"'.encode(), f'"{SHIPPED}"'.encode())

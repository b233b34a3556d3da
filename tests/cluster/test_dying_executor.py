"""A night on a cluster, an executor of which is killed in the middle."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.cli import PROJECT, rankeval
from tests.support.mortal_workers import VARIABLE
from tests.support.nights import Workspace
from tests.support.processes import SETTINGS, rankeval_command, started

if TYPE_CHECKING:
    from tests.support.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

DAY: Final = date(2026, 1, 1)
LIST_LENGTH: Final = 100
N_FILES: Final = 8
KEY: Final = ("model_id", "user_id", "list_id", "k", "slice", "slice_value", "measure")
OF_THE_RUN: Final = ("run_id", "evaluation", "evaluation_date")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("n_rows", "n_executors"), [(100_000, 2), pytest.param(10_000_000, 4, marks=pytest.mark.faults)]
)
def test_a_night_is_the_same_though_an_executor_was_killed(
    tmp_path: Path, cluster: Cluster, n_rows: int, n_executors: int
) -> None:
    made = workspace(tmp_path / "workspace", n_users=n_rows // LIST_LENGTH)
    sign, before = tmp_path / "sign", cluster.executor_logs()
    assert rankeval("run", made.config, "--date", DAY, "--set", "evaluation=here").code == 0

    made.change(spark={"master": cluster.master, "settings": settings(sign, n_executors)})
    with started(rankeval_command("run", made.config, "--date", DAY), tmp_path / "run") as running:
        running.wait_until_it_says("stage=read")
        running.wait_until_gone(sign)
        running.process.wait(timeout=900)
    assert running.process.returncode == 0, running.err

    assert len(cluster.executor_logs() - before) > n_executors, "one in place of the one that was killed"
    for table in ("metrics", "user_metrics"):
        expected, found = (rows_of(made, table, evaluation) for evaluation in ("here", "nightly"))
        assert found.num_rows == expected.num_rows > 0
        for name in expected.column_names:
            assert_same(found[name], expected[name])


def workspace(folder: Path, *, n_users: int) -> Workspace:
    """Make a workspace with lists and judgements of so many users, by two segments."""
    random, made = np.random.default_rng(1), Workspace(folder)
    names = ("recommendations", "held_out", "segments")
    for name in names:
        (folder / "inputs" / name).mkdir(parents=True)
    for place, users in enumerate(np.array_split(np.arange(n_users), N_FILES)):
        listed, judged = np.repeat(users, LIST_LENGTH), np.repeat(users, LIST_LENGTH // 5)
        tables: dict[str, dict[str, Any]] = {
            "recommendations": {"user_id": listed, "score": random.random(len(listed))},
            "held_out": {"user_id": judged, "gain": random.integers(0, 4, len(judged)).astype(np.float64)},
            "segments": {"user_id": users, "country": [f"country {user % 20}" for user in users.tolist()]},
        }
        for name, columns in tables.items():
            if name != "segments":
                columns["item_id"] = random.integers(0, 1000, len(columns["user_id"]))
            pq.write_table(pa.table(columns), folder / "inputs" / name / f"part-{place}.parquet")
    made.configure(
        {
            "evaluation": "nightly",
            "inputs": {name: {"format": "parquet", "path": f"inputs/{name}"} for name in names},
            "measures": ["RR", "nDCG", "Success"],
            "cutoffs": [5, 20],
            "slices": ["country"],
            "results": {"root": "results"},
        }
    )
    return made


def settings(sign: Path, n_executors: int) -> dict[str, str]:
    """Return the settings of a session with so many executors; one ends once the file is there."""
    return {
        **SETTINGS,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.cores": "1",
        "spark.cores.max": str(n_executors),
        "spark.executor.memory": "900m",
        "spark.executor.extraJavaOptions": SETTINGS["spark.driver.extraJavaOptions"],
        "spark.executorEnv.PYTHONPATH": str(PROJECT),
        f"spark.executorEnv.{VARIABLE}": f"executor:{sign}",
        "spark.python.daemon.module": "tests.support.mortal_workers",
        "spark.pyspark.python": sys.executable,
        "spark.sql.shuffle.partitions": "8",
    }


def rows_of(made: Workspace, table: str, evaluation: str) -> pa.Table:
    """Return the rows of a published table, in the order of their key, without the columns of their run."""
    only = [("evaluation", "=", evaluation)]
    rows = deltalake.DeltaTable(f"{made.root}/{table}").to_pyarrow_table(filters=only)
    rows = rows.drop_columns([name for name in OF_THE_RUN if name in rows.column_names])
    return rows.sort_by([(name, "ascending") for name in KEY if name in rows.column_names])


def assert_same(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> None:
    """Check that two columns are equal, numbers to twelve digits after the point."""
    if pa.types.is_floating(expected.type):
        assert found.is_null().equals(expected.is_null())
        np.testing.assert_allclose(pc.fill_null(found, 0), pc.fill_null(expected, 0), rtol=0, atol=1e-12)
    else:
        assert found.combine_chunks().equals(expected.combine_chunks())

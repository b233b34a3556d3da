"""On a Spark Connect server, where there is neither a JVM at hand nor an RDD, the results are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
import pytest

from rankeval_spark import Results, evaluate, register_functions, windows
from rankeval_spark.spark.list_functions import FUNCTIONS
from tests.support import query_night
from tests.support.sections import sections

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

OVER_LISTS: Final = [f"{name}(hit_ranks, hit_gains, judged_gains, 10) AS {name}" for name in FUNCTIONS]

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from tests.spark.session.test_connect import results_on
from tests.support.processes import SETTINGS
settings = {**SETTINGS, "spark.ui.enabled": "false"}
spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
found = results_on(spark, sys.argv[1])
spark.stop()
print("found:" + json.dumps([type(spark).__module__, found]))
"""


def results_on(spark: SparkSession, lists: str) -> dict[str, list[list[Any]]]:
    """Evaluate two lists, and give the rows of every kind of result, in order; and values of published ``lists``."""
    rows = [("als", "u", "a", 2.0), ("als", "u", "b", 1.0), ("als", "v", "b", 1.0), ("pop", "u", "b", 3.0)]
    log = spark.createDataFrame(rows, "model_id string, user_id string, item_id string, score double")
    judged = spark.createDataFrame([("u", "a"), ("v", "a")], "user_id string, item_id string")
    segments = spark.createDataFrame([("u", "DE"), ("v", "AT")], "user_id string, country string")
    options: dict[str, Any] = {"segments": segments, "slices": ["country"], "baseline": "pop", "min_slice_size": 1}

    def own(items: list[str], ranks: list[int]) -> float:
        return len(items) + len(ranks)

    asked = ["P@1", "nDCG@2", "ItemCoverage@1", own]
    result = evaluate(log, judged, **sections(measures=asked, train=judged, **options))
    frames = {
        "metrics": result.metrics.select("model_id", "slice_value", "measure", "k", "value", "n_users"),
        "group_metrics": result.group_metrics.select("model_id", "measure", "k", "value"),
        "user_metrics": result.user_metrics.select("model_id", "user_id", "k", "p", "ndcg", "own"),
        "ranked_items": result.ranked_items,
        "comparisons": result.comparisons.select("model_id", "slice_value", "measure", "delta"),
        "leaderboard": result.leaderboard(),
        "checks": result.checks.select("input", "check", "count"),
        "windows": windows.user_metrics(log, judged, cutoffs=[1, "all"], ties="optimistic"),
    }
    register_functions(spark)
    spark.read.parquet(lists).createOrReplaceTempView("lists")
    frames |= {"lists": spark.sql(f"SELECT model_id, user_id, {', '.join(OVER_LISTS)} FROM lists")}
    return {name: sorted(map(list, frame.collect()), key=str) for name, frame in frames.items()}


@pytest.mark.slow
def test_results_are_those_of_a_session_with_a_jvm(
    spark: SparkSession, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    root: Path = pytestconfig.rootpath
    night = query_night.published(tmp_path / "night").root
    lists = str(tmp_path / "lists.parquet")
    pq.write_table(Results(night).lists(date=query_night.THIRD).to_arrow(), lists)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(root)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, lists],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    line = next(line for line in run.stdout.splitlines() if line.startswith("found:"))
    module, found = json.loads(line.removeprefix("found:"))
    assert module == "pyspark.sql.connect.session"
    here = results_on(spark, lists)
    assert found.keys() == here.keys()
    for name, rows in here.items():
        assert found[name] == json.loads(json.dumps(rows)), name
    of_night = Results(night).user_metrics(date=query_night.THIRD, k=10).to_pylist()
    values = {(row[0], row[1]): row[2] for row in found["lists"]}
    expected = {(row["model_id"], row["user_id"]): row["ndcg"] for row in of_night}
    assert {key: values[key] for key in expected} == pytest.approx(expected, rel=0, abs=1e-12)
    assert len(expected) == 4

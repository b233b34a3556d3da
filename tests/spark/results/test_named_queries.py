"""The named queries say the same by Spark as in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import Results, ResultTable
from rankeval_spark.config import load_config
from tests.support import nights as small
from tests.support.nights import FIRST, SECOND
from tests.support.published import Root, frames_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES: dict[str, Callable[[Results[Any]], Any]] = {
    "latest": lambda results: results.latest(slice="all"),
    "leaderboard": lambda results: results.leaderboard(date=FIRST),
    "history": lambda results: results.history("RR@2"),
    "worst_users": lambda results: results.worst_users("RR@2", model_id="als", n=3, date=FIRST),
    "against_a_model": lambda results: results.user_differences("RR@2", model_id="als", against="pop", date=FIRST),
    "against_a_night": lambda results: results.user_differences("RR@2", model_id="als", against="previous"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    workspace = small.workspace(tmp_path_factory.mktemp("named") / "workspace", measures=["RR", "Personalization"])
    root = Root(workspace.root, load_config(workspace.config))
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"run-{day}")
    return root.root


@pytest.mark.parametrize("query", QUERIES)
def test_both_readers_answer_alike(spark: SparkSession, root: str, query: str) -> None:
    here = QUERIES[query](Results(root))
    there = QUERIES[query](Results(root, spark)).toArrow()
    assert isinstance(here, ResultTable)
    assert there.column_names == here.column_names
    rows = [table.to_pylist() for table in (there, here)]
    if query == "latest":  # in no order
        rows = [sorted(each, key=str) for each in rows]
    assert rows[0] == rows[1]
    assert rows[0]

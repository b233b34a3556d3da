"""Blocks of Python in the pages that need Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import evaluate
from tests.support import query_night
from tests.support.pages import ON_SPARK, Block, blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "block", [one for one in blocks("python") if one.begins_as_one_of(ON_SPARK)], ids=lambda b: b.place
)
def test_python_of_a_page_runs_on_spark(spark: SparkSession, block: Block) -> None:
    frames: dict[str, Any] = {name: spark.createDataFrame(rows) for name, rows in query_night.logs().items()}
    users = frames["users"].selectExpr("*", "'phone' AS device")
    names = {**frames, "users": users, "segments": users, "evaluate": evaluate}
    exec(block.text, names)
    assert names["result"].leaderboard().count() == 2

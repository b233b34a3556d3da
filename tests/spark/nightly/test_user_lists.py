"""The lists of a user of a published night, where only Spark reads the inputs: as this process reads them elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.published.user_lists import UserLists, user_lists
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.config import load_config
from tests.support import nights
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


def lists_of(spark: SparkSession, workspace: Workspace) -> UserLists:
    run_night(spark, load_config(workspace.config), FIRST)
    (night,) = published_nights(workspace.root)
    return user_lists(spark, workspace.root, night, ["bob", "kim"])


def test_both_hosts_show_the_same_of_a_user(spark: SparkSession, tmp_path: Path) -> None:
    here = lists_of(spark, nights.workspace(tmp_path / "parquet", format_=nights.PARQUET))
    there = lists_of(spark, nights.workspace(tmp_path / "csv").rewritten("csv"))

    for name in ("ranked", "judged", "values"):
        one, other = (getattr(found, name).to_pylist() for found in (here, there))
        assert sorted(map(repr, one)) == sorted(map(repr, other)), name
    assert {row["user_id"] for row in here.ranked.to_pylist()} == {"bob", "kim"}

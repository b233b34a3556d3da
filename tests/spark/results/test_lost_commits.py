"""Commits that a store lost, or left empty, noticed by those who read it through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import Results
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.results.delta_log import LostCommitsError
from tests.support import nights, query_night
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = nights.workspace(tmp_path_factory.mktemp("published"))
    for day in (FIRST, SECOND):
        query_night.run(workspace, day)
    return workspace


@pytest.fixture
def workspace(published: Workspace, tmp_path: Path) -> Workspace:
    return published.copy(tmp_path)


@pytest.mark.parametrize("table", ["metrics", "checks", "runs"])
@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "gone"])
def test_a_lost_commit_is_no_empty_night_to_spark(
    spark: SparkSession, workspace: Workspace, table: str, *, is_empty: bool
) -> None:
    log = Path(workspace.root, table, "_delta_log")
    *_, earlier, newest = sorted(log.glob("*.json"))
    lost = newest if is_empty or table != "runs" else earlier  # the newest event may be any, or none
    if is_empty:
        lost.write_bytes(b"")
        lost.with_name(f".{lost.name}.crc").unlink(missing_ok=True)
    else:
        lost.unlink()

    found = f"version {int(lost.stem)} of table {table} is {'empty' if is_empty else 'gone'}"
    with pytest.raises(LostCommitsError, match=found):
        Results(workspace.root, spark).metrics(date=SECOND)
    with pytest.raises(LostCommitsError, match=found):
        published_nights(workspace.root)

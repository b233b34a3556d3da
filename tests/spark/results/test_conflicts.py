"""Somebody writes to a table without the lock: Delta refuses one of the two commits, and ours is tried again."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake

from rankeval_spark.results import Results
from rankeval_spark.results.staging import Staging
from tests.spark.results import nights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    import pytest
    from pyspark.sql import DataFrame, SparkSession

CHANGED: nights.Ranks = {"ann": 2, "kim": 1}


def test_a_commit_that_was_overtaken_is_made_again(
    spark: SparkSession, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "overtaken"
    read = Staging.read

    def read_and_be_overtaken(staging: Staging, table: str) -> DataFrame:
        frame = read(staging, table)
        if table != "metrics":
            return frame
        return frame.mapInArrow(delete_once(f"{root}/metrics", marker), frame.schema)

    before = deltalake.DeltaTable(f"{root}/metrics").version()
    monkeypatch.setattr(Staging, "read", read_and_be_overtaken)
    versions = nights.publish(spark, root, nights.facts("overtaken"), CHANGED)
    monkeypatch.undo()
    assert marker.exists()
    assert versions["metrics"] == before + 2  # the stranger's commit, then ours
    metrics = Results(spark, root).metrics()
    assert {row["run_id"] for row in metrics.collect()} == {"overtaken"}
    assert metrics.count() == len(nights.metric_rows(CHANGED))


def delete_once(table: str, marker: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Pass rows on; on the first, while Spark's transaction is open, delete what it is about to replace.

    Tasks run side by side, and of two strangers at a time one would get the conflict that is meant for Spark: whoever
    makes the marker deletes, and no other.
    """

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with contextlib.suppress(FileExistsError):
                marker.touch(exist_ok=False)
                deltalake.DeltaTable(table).delete()
            yield batch

    return pass_on

"""Somebody writes to a table without the lock: one of the two commits is refused, and ours is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import deltalake

from rankeval_spark.results import Results, delta_log
from tests.spark.results import nights

if TYPE_CHECKING:
    import pytest

    from rankeval_spark.results.storage import Storage

CHANGED: nights.Ranks = {"ann": 2, "kim": 1}


def test_a_commit_that_was_overtaken_is_made_again(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = delta_log.commit
    overtaken: list[str] = []

    def commit_and_be_overtaken(storage: Storage, table: str, *args: Any, **options: Any) -> None:  # noqa: ANN401 - of the log
        if table == "metrics" and not overtaken:
            overtaken.append(table)
            deltalake.DeltaTable(f"{root}/metrics").delete()  # we looked at the table before
        commit(storage, table, *args, **options)

    before = deltalake.DeltaTable(f"{root}/metrics").version()
    monkeypatch.setattr(delta_log, "commit", commit_and_be_overtaken)
    versions = nights.publish(root, nights.facts("overtaken"), CHANGED)
    monkeypatch.undo()

    assert overtaken
    assert versions["metrics"] == before + 2  # the stranger's commit, then ours
    metrics = Results(root).metrics()
    assert set(metrics["run_id"].to_pylist()) == {"overtaken"}
    assert metrics.num_rows == len(nights.metric_rows(CHANGED))

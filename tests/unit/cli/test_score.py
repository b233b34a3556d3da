"""``rankeval score`` where there is nothing to compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankeval_spark.results import delta_log
from rankeval_spark.results.storage import Storage
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path


def test_measures_that_are_published_are_shown_and_not_published_again(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")
    assert rankeval("run", made.config, "--date", FIRST).code == 0
    before = delta_log.latest_version(Storage(made.root), "runs")

    done = rankeval("score", made.root, "--measure", "nDCG@2", "--measure", "RR@1")

    assert done.code == 0, done.err
    assert done.out.startswith("nightly, 2026-01-01: published already, nothing to score\n")
    assert "nDCG@2" in done.out
    assert delta_log.latest_version(Storage(made.root), "runs") == before

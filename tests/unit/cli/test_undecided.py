"""What a run says where its rules could not be judged: on the first night there is nothing to compare with."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from rankeval_spark.apps.nightly.backfill import DateOutcome
from rankeval_spark.apps.nightly.night import NightResult
from rankeval_spark.cli import run
from rankeval_spark.cli.terminal import quietly
from rankeval_spark.config import load_config
from tests.support.cli import PROJECT

if TYPE_CHECKING:
    import pytest

RESULT = NightResult(
    "movielens",
    date(2026, 1, 1),
    "run",
    {},
    {},
    gates=({"gate": 1, "verdict": "no_baseline", "explanation": "no night before: not judged.", "model_id": "als"},),
)
PASSED = replace(RESULT, gates=({**RESULT.gates[0], "verdict": "passed"},))


def shown(result: NightResult, monkeypatch: pytest.MonkeyPatch) -> str:
    """Show a result to a user who wants results and faults only."""
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    with quietly(True):
        run.show_result(result, load_config(PROJECT / "rankeval_spark" / "demo" / "demo.yaml"))
    return out.getvalue()


def test_a_quiet_run_says_that_no_rule_could_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(RESULT, monkeypatch)
    assert "no night before: not judged." in text
    assert text.splitlines()[-1].startswith("Not decided. The rule could not be judged. The exit code is 0")
    assert shown(PASSED, monkeypatch) == ""


def test_the_summary_of_a_backfill_says_it_of_the_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    outcomes = [DateOutcome(one.evaluation_date, one) for one in (RESULT, PASSED)]
    run._show_summary(outcomes, n_dates=2)
    assert out.getvalue().count("no rule could be judged") == 1

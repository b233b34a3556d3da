"""Measures of which the lower value is the better one: verdicts, leaderboards and the group that is served worst."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.measures import Measure, registry
from tests.support.arrow_frames import dicts, table

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

USERS: Final = [f"u{n:02}" for n in range(40)]
LOWER: Final = {"Calibration", "Freshness", "Gini", "ILS", "LogLoss", "MAE", "MSE", "PopREO", "PopRSP", "RMSE"}
"""Distances, errors, ages and how unequal something is."""


def test_measures_of_which_the_lower_value_is_the_better_one() -> None:
    assert {entry.name for entry in registry.entries() if entry.better(entry.defaults) == "lower"} == LOWER
    assert Measure.parse("Freshness(stat='share')@5").better == "higher"


def evaluation_of(measures: list[str]) -> Evaluation[Any]:
    """Show every user one drama and one crime by `good`, two dramas by `bad`; they have both, and `bad` is older."""
    shown = {"good": ("d0", "c0"), "bad": ("d0", "d1")}
    log = [
        (model, user, item, 2.0 - place)
        for model, items in shown.items()
        for user in USERS
        for place, item in enumerate(items)
    ]
    days = {"d0": date(2026, 1, 1), "c0": date(2026, 1, 9), "d1": date(2025, 6, 1)}
    items = [(item, ["drama" if item[0] == "d" else "crime"], day) for item, day in days.items()]
    catalogue = table("item_id categories published_at", *items)
    train = table("user_id item_id", *((user, item) for user in USERS for item in ("d1", "c0")))
    return evaluate(
        table("model_id user_id item_id score", *log),
        table("user_id item_id gain", *((user, "d0", 1.0) for user in USERS)),
        measures=measures,
        baseline="good",
        items=catalogue,
        train=train,
        evaluation_date=date(2026, 1, 10),
    )


@pytest.mark.parametrize(
    ("measure", "verdict"),
    [("Calibration@2", "worse"), ("Freshness@2", "worse"), ("Freshness(stat='share')@2", "worse")],
)
def test_verdicts_take_the_lower_value_for_the_better_one(measure: str, verdict: str) -> None:
    (row,) = [row for row in dicts(evaluation_of([measure]).comparisons) if row["model_id"] == "bad"]
    assert row["verdict"] == verdict


def test_the_leaderboard_begins_with_the_lowest_value() -> None:
    board = dicts(evaluation_of(["Calibration@2"]).leaderboard())
    assert [row["model_id"] for row in board] == ["good", "bad"]

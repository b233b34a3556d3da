"""Measures of which the lower value, or neither, is the better one: verdicts, leaderboards and the worst group."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from rankeval_spark.measures import Measure, registry
from rankeval_spark.measures.arrays import FloatMatrix, divide_or_nan
from rankeval_spark.measures.definition import Definition
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import resolve_for_options
from tests.support import oracles
from tests.support.arrow_frames import dicts, table
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

USERS: Final = [f"u{n:02}" for n in range(40)]
LOWER: Final = {
    "Calibration",
    "Freshness",
    "Gini",
    "HitRank",
    "ILS",
    "LogLoss",
    "MAE",
    "MSE",
    "PopREO",
    "PopRSP",
    "RMSE",
}
"""Distances, errors, ages and how unequal something is."""
NEITHER: Final = {
    *(
        "ACLT",
        "APLT",
        "ARP",
        "BiasDisparity",
        "IDCG",
        "ImportanceWeight",
        "Jaccard",
        "Judged",
        "MeanPopRank",
        "Overlap",
    ),
    *("PopLift", "RBO", "RBPResidual", "RecallCeiling", "unj"),
}
"""What lists are like, what is known of them, and what is best in between."""


def test_measures_of_which_the_lower_value_is_the_better_one() -> None:
    assert {
        entry.name for entry in registry.entries() if resolve_for_options(entry.better, entry.defaults) == "lower"
    } == LOWER
    assert Measure.parse("Freshness(stat='share')@5").better == "higher"


def test_measures_of_which_neither_side_is_better() -> None:
    assert {
        entry.name for entry in registry.entries() if resolve_for_options(entry.better, entry.defaults) == "neither"
    } == NEITHER


def mean_rank(cut: CutLists) -> FloatMatrix:
    """Mean rank of the hits; NaN without one."""
    return divide_or_nan(cut.sum_hits(cut.lists.hit_rank.astype(np.float64)), cut.hits(1))


def rank_measure(**fields: Any) -> Measure:  # noqa: ANN401 - fields of the definition
    """Define a measure of which less is better."""
    texts = {"name": "RankOfHits", "formula": "", "undefined": "no hit", "source": "test", "bounds": (1, math.inf)}
    definition = Definition(**{**texts, **fields})
    definition(mean_rank)
    definition.register()
    return Measure.parse("RankOfHits")


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("better", ["lower", "neither", lambda **_: "lower"])
def test_measure_that_is_not_better_higher_says_the_value_of_users_without_one(better: Any) -> None:  # noqa: ANN401 - a side or a function
    with pytest.raises(ValueError, match=r"RankOfHits: found better=.* and no value of a user without one; expected"):
        rank_measure(better=better)
    worst = rank_measure(better=better, without_relevant=100.0)
    assert worst.without_relevant == 100.0
    assert math.isnan(rank_measure(better=better, without_relevant=math.nan).without_relevant)


def test_no_user_without_a_value_has_the_best_one() -> None:
    for entry in registry.entries("list"):
        if entry.better != "higher":
            assert entry.without_relevant is not None, entry.name
        for measure in oracles.variants(entry, (1, 0)):
            value = measure.without_relevant
            if measure.better == "lower":
                assert math.isnan(value) or value == entry.bounds[1], measure


@pytest.mark.usefixtures("own_registry")
def test_user_served_perfectly_has_the_least_value_where_less_is_better() -> None:
    assert rank_measure(better="lower", without_relevant=100.0).at_best == 1
    assert Measure.parse("P@1").at_best == 1


def evaluation_of(measures: list[str], **arguments: Any) -> Evaluation[Any]:  # noqa: ANN401 - of evaluate
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
    return measured(
        table("model_id user_id item_id score", *log),
        table("user_id item_id gain", *((user, "d0", 1.0) for user in USERS)),
        measures=measures,
        baseline="good",
        items=catalogue,
        evaluation_date=date(2026, 1, 10),
        **{"train": train, **arguments},
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


def test_a_difference_of_which_neither_side_is_better_is_only_different() -> None:
    train = table("user_id item_id", *((user, "d1") for user in USERS), *((user, "c0") for user in USERS[:20]))
    found = evaluation_of(["ARP@2"], train=train)
    (row,) = dicts(found.comparisons)
    assert (row["delta"], row["verdict"]) == ((0 + 40) / 2 - (0 + 20) / 2, "different")
    assert [row["model_id"] for row in dicts(found.leaderboard())] == ["bad", "good"]  # the higher value is first


def test_no_group_is_served_worst_where_neither_side_is_better() -> None:
    segments = table("user_id country", *((user, "DE" if user < "u20" else "FR") for user in USERS))
    sizes = {"min_slice_size": 5, "segments": segments, "slices": ["country"]}
    rows = dicts(evaluation_of(["ARP@2", "P@2"], **sizes).group_metrics)
    worst = {row["measure"]: row["value"] for row in rows if row["model_id"] == "bad" and "Worst" in row["measure"]}
    assert worst == {"WorstGroup(ARP)": None, "WorstGroup(P)": 1 / 2}

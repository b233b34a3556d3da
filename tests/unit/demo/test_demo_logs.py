"""The demo's logs, from a data set that is small enough to train on in seconds."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from rankeval_spark.demo import DemoLogs, DemoSettings, dataset, prepare
from rankeval_spark.demo.dataset import rolling_cuts
from rankeval_spark.demo.models import AlsSettings

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

DATA = dataset.make_dataset(n_users=40, n_items=200, n_interactions=440, n_least=6)
SETTINGS = DemoSettings(
    dates=(dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
    window=4,
    n_recommendations=20,
    n_neighbours=10,
    als=AlsSettings(rank=4, iterations=2),
)
TYPES = {
    "recommendations": {
        "user_id": "string",
        "item_id": "string",
        "score": "double",
        "model_id": "string",
        "evaluation_date": "date",
    },
    "held_out": {"user_id": "string", "item_id": "string", "gain": "double", "evaluation_date": "date"},
    "segments": {
        "user_id": "string",
        "age_band": "string",
        "gender": "string",
        "occupation": "string",
        "activity": "string",
        "evaluation_date": "date",
    },
}


def prepared(workspace: Path, settings: DemoSettings = SETTINGS) -> tuple[DemoLogs, list[str]]:
    """Prepare the logs; return them with what was said."""
    said: list[str] = []
    return prepare(workspace, said.append, settings=settings, dataset=DATA), said


def test_logs_hold_unseen_items_of_every_model_and_date(tmp_path: Path) -> None:
    logs, said = prepared(tmp_path / "a demo")
    frames = {name: DeltaTable(logs.table(name)).to_pandas() for name in TYPES}
    recommendations = frames["recommendations"]

    assert {name: types_of(logs.table(name)) for name in TYPES} == TYPES
    assert len(recommendations) == logs.n_recommendations
    assert not recommendations.duplicated(["evaluation_date", "model_id", "user_id", "item_id"]).any()
    assert recommendations.groupby(["evaluation_date", "model_id", "user_id"]).size().max() == 20
    assert any("without a past" in line for line in said)
    for cut in rolling_cuts(DATA.interactions, dates=SETTINGS.dates, window=SETTINGS.window):
        on_date = recommendations[recommendations["evaluation_date"] == cut.date]
        assert pairs(on_date).isdisjoint(pairs(cut.train))
        liked_something = set(cut.train.loc[cut.train["rating"] >= 4, "user_id"].astype(str))
        assert users_of(on_date, "popular") == set(DATA.users["user_id"].astype(str))
        assert users_of(on_date, "als") == liked_something
        assert users_of(on_date, "item_knn") <= liked_something


def test_some_users_of_the_data_above_start_without_a_past() -> None:
    first = rolling_cuts(DATA.interactions, dates=SETTINGS.dates, window=SETTINGS.window)[0]

    assert set(first.held_out["user_id"]) - set(first.train["user_id"])


def types_of(table: Path) -> dict[str, str]:
    """Type of each column of a Delta table."""
    return {field.name: field.type.type for field in DeltaTable(table).schema().fields}


def pairs(frame: pd.DataFrame) -> set[tuple[str, str]]:
    """User and item of each row, as strings."""
    return set(zip(frame["user_id"].astype(str), frame["item_id"].astype(str), strict=True))


def users_of(recommendations: pd.DataFrame, model_id: str) -> set[str]:
    """Users to whom a model gave a list."""
    return set(recommendations.loc[recommendations["model_id"] == model_id, "user_id"])


def test_logs_are_kept_until_the_settings_change(tmp_path: Path) -> None:
    first, _ = prepared(tmp_path)
    again, said = prepared(tmp_path)
    changed, _ = prepared(tmp_path, replace(SETTINGS, n_recommendations=5))

    assert (first.was_reused, again.was_reused, changed.was_reused) == (False, True, False)
    assert again == replace(first, was_reused=True)
    assert "kept" in said[-1]
    assert DeltaTable(changed.table("recommendations")).count() == changed.n_recommendations < first.n_recommendations

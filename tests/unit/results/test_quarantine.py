"""Folders of rows that could not be used go when their night does."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from rankeval_spark.results import staging
from rankeval_spark.results.file_store import LocalStorage
from rankeval_spark.results.run_record import NightKey

DAYS = (date(2026, 1, 1), date(2026, 1, 2))
NIGHTS = [NightKey(name, day) for name in ("nightly", "nightly.sample-0.5") for day in DAYS]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    for night in NIGHTS:
        (tmp_path / staging.QUARANTINE_FOLDER / night.slug).mkdir(parents=True)
    return LocalStorage(str(tmp_path))


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, []),
        ({"before": DAYS[1]}, [NIGHTS[1], NIGHTS[3]]),
        ({"evaluation": "nightly"}, [NIGHTS[2], NIGHTS[3]]),
        ({"evaluation": "nightly", "before": DAYS[1]}, NIGHTS[1:]),
    ],
)
def test_rows_of_old_nights_and_of_one_evaluation_are_removed(
    storage: LocalStorage, limits: dict[str, object], kept: list[NightKey]
) -> None:
    removed = staging.remove_quarantined(storage, **limits)  # type: ignore[arg-type] # passed on as it came
    assert sorted(removed) == sorted({night.slug for night in NIGHTS} - {night.slug for night in kept})
    assert storage.names(staging.QUARANTINE_FOLDER) == sorted(night.slug for night in kept)


def test_a_night_without_such_rows_leaves_none_of_its_last_run(storage: LocalStorage) -> None:
    staging.replace_quarantined(storage, NIGHTS[0], None)
    assert NIGHTS[0].slug not in storage.names(staging.QUARANTINE_FOLDER)
    assert staging.quarantine_path(storage, NIGHTS[1]).endswith(f"{staging.QUARANTINE_FOLDER}/{NIGHTS[1].slug}")

"""Maintenance before a table is touched: retention, requests, and folders of rows that could not be used."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.apps.maintenance import Maintained, MaintenanceOptions
from rankeval_spark.cli.published import maintenance_lines
from rankeval_spark.errors import ConfigError
from rankeval_spark.results import published_results, staging
from rankeval_spark.results.maintenance import (
    RETENTION,
    Compacted,
    DeletedNights,
    Staged,
    length_of,
    require_retention,
)
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import Storage
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path

DAY = date(2026, 1, 1)
NIGHT = ("nightly", DAY)
NIGHTS = [NightKey(name, day) for name in ("nightly", "nightly.sample-0.5") for day in (DAY, date(2026, 1, 2))]


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("interval 30 days", timedelta(days=30)),
        ("INTERVAL 1 WEEK", timedelta(days=7)),
        ("168 hours", timedelta(days=7)),
        ("interval 1 month", None),
        ("", None),
    ],
)
def test_a_retention_is_read_as_delta_writes_it(text: str, length: timedelta | None) -> None:
    assert length_of(text) == length


@pytest.mark.parametrize("text", ["interval 0 hours", "interval 6 days 23 hours", "for ever"])
def test_a_retention_shorter_than_the_longest_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"table lists, property delta\.deletedFileRetentionDuration"):
        require_retention("lists", {RETENTION: text})


def test_options_that_would_do_nothing_are_refused_without_spark() -> None:
    done = rankeval("maintain", "nowhere", "--date", "2026-01-01", "--evaluation", "nightly", "--erase-user", " ")
    assert done.code == 2
    done.assert_readable()
    for part in ("--date: found 2026-01-01; expected --keep-days", "--erase-user: found ' '"):
        assert part in done.message
    assert "--keep-days" in rankeval("maintain", "nowhere", "--keep-days", "0").message


def event(status: str, run_id: str, *names: str) -> dict[str, object]:
    about = {"evaluation": "nightly", "evaluation_date": DAY, "run_id": run_id}
    return {**about, "status": status, "n_rows": dict.fromkeys(names, 1)}


def test_a_night_is_gone_once_its_deletion_was_published_and_until_it_is_run_again() -> None:
    published = event("PUBLISHED", "first", "lists", "user_metrics", "metrics")
    deletion = [event("MAINTAINING", "m", "lists"), event("MAINTAINED", "m", "lists")]
    assert published_results._deleted([published, deletion[0]]) == {}
    assert published_results._deleted([published, *deletion]) == {NIGHT: {"lists"}}
    assert published_results._deleted([published, *deletion, event("PUBLISHED", "again", "lists")]) == {}


def test_a_night_that_was_rolled_back_is_not_gone() -> None:
    assert published_results._deleted([event("MAINTAINED", "crashed", "lists", "checks")]) == {}


def test_what_was_done_is_reported_without_the_id_of_the_user() -> None:
    done = Maintained(
        staging=Staged(("a",), ("b", "c")),
        deleted=DeletedNights(DAY, (NightKey("nightly", date(2025, 12, 1)),)),
        erased={"lists": 2, "user_metrics": 4},
        compacted={"lists": Compacted(4, 1), "metrics": Compacted(0, 0)},
        unneeded={"lists": 4, "metrics": 0},
    )
    told = list(maintenance_lines(done, MaintenanceOptions(keep_days=30, erase_user="ann-marie")))
    assert told[0] == "staging: 1 removed; 2 of live runs kept"
    assert told[1].endswith("before 2026-01-01 deleted: 1 nights (nightly, 2025-12-01 to nightly, 2025-12-01)")
    assert told[2].startswith("one user erased, rows: lists 2, user_metrics 4")
    assert told[-2:] == [
        "small files merged: lists 4 -> 1",
        "files that no version within the retention needs: lists 4; --vacuum deletes them",
    ]
    assert "ann-marie" not in "".join(told)


def test_an_unknown_user_is_not_said_to_be_erased() -> None:
    told = list(
        maintenance_lines(Maintained(erased={"lists": 0, "checks": 0}), MaintenanceOptions(erase_user="ann-marie"))
    )
    assert told[0] == "no row of this user was found in lists, checks: is the id right?"
    assert not any("erased" in line for line in told)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for night in NIGHTS:
        (tmp_path / staging.QUARANTINE_FOLDER / night.slug).mkdir(parents=True)
    return Storage(str(tmp_path))


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, []),
        ({"before": NIGHTS[1].evaluation_date}, [NIGHTS[1], NIGHTS[3]]),
        ({"evaluation": "nightly"}, [NIGHTS[2], NIGHTS[3]]),
        ({"evaluation": "nightly", "before": NIGHTS[1].evaluation_date}, NIGHTS[1:]),
    ],
)
def test_rows_of_old_nights_and_of_one_evaluation_are_removed(
    storage: Storage, limits: dict[str, object], kept: list[NightKey]
) -> None:
    removed = staging.remove_quarantined(storage, **limits)  # type: ignore[arg-type] # passed on as it came
    assert sorted(removed) == sorted({night.slug for night in NIGHTS} - {night.slug for night in kept})
    assert storage.names(staging.QUARANTINE_FOLDER) == sorted(night.slug for night in kept)


def test_a_night_without_such_rows_leaves_none_of_its_last_run(storage: Storage) -> None:
    staging.replace_quarantined(storage, NIGHTS[0], None)
    assert NIGHTS[0].slug not in storage.names(staging.QUARANTINE_FOLDER)
    assert staging.quarantine_path(storage, NIGHTS[1]).endswith(f"{staging.QUARANTINE_FOLDER}/{NIGHTS[1].slug}")

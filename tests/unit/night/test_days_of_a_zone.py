"""A night of a time zone: which events its windows select, and what is recorded of the zone."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import HeldOutInput, load_config, validate_model
from rankeval_spark.errors import ConfigError
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.nights import FIRST, Workspace, no_session

if TYPE_CHECKING:
    from pathlib import Path

ITEMS: Final = "abcdef"
"""The list of als is of these, and each is clicked at one of the moments below."""


def night_of(folder: Path, zone: str, day: dt.date, times: pa.Array, *, window: str = "last") -> Workspace:
    """Make a night with one user, whose events are at times."""
    made = Workspace(folder)
    log = [{"user_id": "ann", "item_id": item, "score": -float(place)} for place, item in enumerate(ITEMS)]
    made.write("recommendations", log, "parquet")
    (folder / "inputs" / "held_out").mkdir(parents=True)
    events = pa.table({"user_id": ["ann"] * len(times), "item_id": [*ITEMS][: len(times)], "at": times})
    pq.write_table(events, folder / "inputs" / "held_out" / "events.parquet")
    inputs = nights.config_of("recommendations", "held_out", format_="parquet")["inputs"]
    inputs["recommendations"].pop("filters")
    inputs["held_out"]["filters"] = [{"column": "at", "op": window, "value": "1d"}]
    config = nights.config_of("recommendations", "held_out", format_="parquet")
    made.configure({**config, "inputs": {**inputs, "time_zone": zone}, "slices": []})
    run_night(on_demand(no_session), load_config(made.config), day)
    return made


def judged(workspace: Workspace) -> list[str]:
    """Items that were judged, by their ranks in the list."""
    (row,) = workspace.rows("lists")
    return [ITEMS[rank - 1] for rank in row["hit_ranks"]]


@pytest.mark.parametrize("has_zone", [True, False], ids=["moments", "clocks"])
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("Asia/Tokyo", dt.date(2026, 1, 1)),
        ("Europe/Berlin", dt.date(2026, 3, 29)),
        ("America/New_York", dt.date(2026, 11, 1)),
        ("America/Sao_Paulo", dt.date(2018, 11, 4)),
    ],
)
def test_window_of_a_night_is_the_day_of_its_zone(tmp_path: Path, zone: str, day: dt.date, has_zone: bool) -> None:
    """The second before it, its first and last second, and the second after it: the day of Sao Paulo begins at one."""
    first = 1 if zone == "America/Sao_Paulo" else 0
    shown = [
        dt.datetime.combine(day - dt.timedelta(days=1), dt.time(23, 59, 59)),
        dt.datetime.combine(day, dt.time(first)),
        dt.datetime.combine(day, dt.time(23, 59, 59)),
        dt.datetime.combine(day + dt.timedelta(days=1), dt.time()),
    ]
    moments = [each.replace(tzinfo=ZoneInfo(zone)) for each in shown]
    times = pa.array(moments, pa.timestamp("us", "UTC")) if has_zone else pa.array(shown, pa.timestamp("us"))
    assert judged(night_of(tmp_path / "last", zone, day, times)) == ["b", "c"]
    before = night_of(tmp_path / "next", zone, day - dt.timedelta(days=1), times, window="next")
    assert judged(before) == ["b", "c"]


def test_zone_of_a_night_is_recorded_with_it(tmp_path: Path) -> None:
    times = pa.array([dt.datetime(2026, 1, 1, 8)], pa.timestamp("us"))
    tokyo = night_of(tmp_path, "Asia/Tokyo", FIRST, times)
    assert {json.loads(row["config"])["inputs"]["time_zone"] for row in tokyo.rows("runs")} == {"Asia/Tokyo"}
    hashes = [load_config(tokyo.config, [f"inputs.time_zone={zone}"]).config_hash for zone in ("UTC", "Asia/Tokyo")]
    assert len({*hashes}) == 2
    keys = _keys(tokyo)
    del keys["inputs"]["time_zone"]
    tokyo.configure(keys)
    assert load_config(tokyo.config).config_hash == hashes[0]


def _keys(workspace: Workspace) -> nights.Config:
    keys: nights.Config = json.loads(load_config(workspace.config).public_json(without_defaults=True))
    return keys


def test_zone_that_is_none_is_refused_with_the_nearest(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path, inputs__time_zone="Europe/Berln")
    with pytest.raises(ConfigError, match=r"\(line \d+\): found 'Europe/Berln'.*did you mean 'Europe/Berlin'\?"):
        load_config(made.config)


def test_version_of_a_time_is_that_of_the_clocks_of_the_zone(tmp_path: Path) -> None:
    version = {"format": "delta", "timestamp": "{date} 06:00:00"}
    made = nights.workspace(
        tmp_path, inputs__time_zone="America/New_York", inputs__held_out__timestamp="{date} 06:00:00"
    )
    given = load_config(made.config).inputs.held_out
    assert given.moment(dt.date(2026, 3, 8)) == dt.datetime(2026, 3, 8, 10, tzinfo=dt.UTC)
    alone = validate_model(HeldOutInput, {**version, "path": "events"})
    assert alone.moment(FIRST) == dt.datetime(2026, 1, 1, 6, tzinfo=dt.UTC)
    zoned = alone.model_copy(update={"timestamp": "{date} 06:00:00+09:00"})
    zoned.set_time_zone("America/New_York")
    assert zoned.moment(FIRST) == dt.datetime(2025, 12, 31, 21, tzinfo=dt.UTC)

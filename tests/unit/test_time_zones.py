"""When the clocks of a zone show a time, what they show at a moment, and which names are zones."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark.time_zones import clock_of, moment_of, to_local, to_utc, zone_fault
from tests.support.code import ROOT

ZONES: Final = (
    *("Asia/Tokyo", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Cairo", "Asia/Kolkata"),
    *("Australia/Lord_Howe", "America/St_Johns", "America/Havana", "Asia/Beirut", "Pacific/Apia", "Africa/Freetown"),
    *("America/Noronha", "Asia/Kathmandu", "Europe/Dublin", "Africa/Casablanca", "Etc/GMT-9", "Etc/UTC"),
)


CLOCKS: Final = {
    "always ahead": ("Asia/Tokyo", "2026-01-31T00:00", "2026-01-30T15:00"),
    "half an hour": ("Asia/Kolkata", "2026-01-31T00:00", "2026-01-30T18:30"),
    "skipped": ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00"),
    "shown twice": ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30"),
    "no midnight": ("America/Sao_Paulo", "2018-11-04T00:00", "2018-11-04T03:00"),
    "after no midnight": ("America/Sao_Paulo", "2018-11-04T00:30", "2018-11-04T03:00"),
    "no midnight in Cairo": ("Africa/Cairo", "2026-04-24T00:00", "2026-04-23T22:00"),
    "two midnights": ("America/Havana", "2026-11-01T00:30", "2026-11-01T04:30"),
    "a day that never was": ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00"),
    "beyond 2038": ("America/New_York", "2050-07-01T00:00", "2050-07-01T04:00"),
    "summer of a week": ("America/Noronha", "2000-10-10T00:00", "2000-10-10T01:00"),
    "UTC": ("UTC", "2026-01-31T00:00", "2026-01-31T00:00"),
}


@pytest.mark.parametrize(("zone", "local", "moment"), CLOCKS.values(), ids=CLOCKS)
def test_clocks_show_a_time_at_a_moment(zone: str, local: str, moment: str) -> None:
    expected = dt.datetime.fromisoformat(f"{moment}+00:00")
    assert moment_of(dt.datetime.fromisoformat(local), zone) == expected


def test_clocks_go_forth_and_back() -> None:
    """Between 02:00 and 03:00 Berlin's clocks show each time twice in autumn, and none in spring."""
    moments = [dt.datetime(2026, *parts, tzinfo=dt.UTC) for parts in ((10, 25, 0), (10, 25, 1), (3, 29, 0), (3, 29, 1))]
    shown = [clock_of(moment, "Europe/Berlin").hour for moment in moments]
    assert shown == [2, 2, 1, 3]


@pytest.mark.parametrize("zone", ZONES)
def test_every_change_of_clocks_is_that_of_another_implementation(zone: str) -> None:
    """Arrow's, which knows no summer after 2037; at random half hours, and a microsecond around each of them."""
    half, (first, last) = (
        1_800_000_000,
        (np.datetime64(f"{year}-01-01", "us").astype(np.int64) for year in (1900, 2037)),
    )
    drawn = np.random.default_rng(len(zone)).integers(first // half, last // half, 100_000) * half
    micros = (drawn[:, None] + np.array([-1, 0, 1])).ravel()
    local = pa.array(micros).view(pa.timestamp("us"))
    there = pc.assume_timezone(local, timezone=zone, ambiguous="earliest", nonexistent="latest")
    np.testing.assert_array_equal(to_utc(micros, zone), there.cast(pa.int64()).to_numpy())
    shown = pc.local_timestamp(pa.array(micros).view(pa.timestamp("us", zone)))
    np.testing.assert_array_equal(to_local(micros, zone), shown.cast(pa.int64()).to_numpy())


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("Tokyo", "did you mean 'Asia/Tokyo'?"),
        ("Asia/Tokio", "did you mean 'Asia/Tokyo'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("New York", "did you mean 'America/New_York'?"),
        ("+09:00", "name a city, whose clocks may change; 'Etc/GMT-9' is always at that offset"),
        ("UTC-3", "name a city, whose clocks may change; 'Etc/GMT+3' is always at that offset"),
        ("+05:30", "name a city, whose clocks may change"),
        ("JST", "name a city, because an abbreviation is used for several zones"),
        *((name, "") for name in ("localtime", "../etc/passwd", "Mars/Olympus")),
    ],
)
def test_name_that_is_no_zone_is_told_with_the_nearest(name: str, fix: str) -> None:
    fault = zone_fault(name)
    assert fault is not None
    assert (fault.found, fault.fix) == (repr(name), fix)
    assert fault.expected == "a zone of the IANA database, such as UTC, Asia/Tokyo or Europe/Berlin"


def test_machine_without_data_of_its_own_takes_that_of_the_package() -> None:
    """As in slim containers, in which Arrow knows no zone; without the package too, UTC is left."""
    script = """
import sys, zoneinfo
zoneinfo.reset_tzpath([])
if {is_bare}: sys.modules["tzdata"] = None
import datetime as dt
from rankeval_spark.time_zones import moment_of, zone_fault
print(zone_fault("UTC"), zone_fault("Asia/Tokyo"), moment_of(dt.datetime(2026, 1, 1), "UTC").hour)
"""
    told = []
    for bare in (False, True):
        command = [sys.executable, "-c", script.format(is_bare=bare)]
        told.append(subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True))
    assert told[0].stdout.strip() == "None None 0"
    assert "'Asia/Tokyo', on a machine without data about time zones" in told[1].stdout
    assert "run: pip install tzdata" in told[1].stdout

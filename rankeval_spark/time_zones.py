"""Time zones: the moment at which clocks show a time, and what they show at a moment.

Everything follows from Python's data about zones, so that both hosts agree: those of Arrow and of Java may be of
another year, and slim containers have none for Arrow.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from rankeval_spark.errors import Fault

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntVector: TypeAlias = NDArray[np.integer[Any]]

UTC: Final = "UTC"
DAY: Final = 86_400_000_000  # microseconds

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND: Final = 1_000_000
_SECONDS: Final = 86_400
_STEP: Final = 3
_ORDINAL: Final = _EPOCH.toordinal()
# Days between which changes of clocks are known; before and after them, clocks never change.
_DAYS: Final = (dt.date(1850, 1, 1).toordinal(), dt.date(2200, 1, 1).toordinal())

_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])0?(\d{1,2}?)(?::?(\d{2}))?", re.IGNORECASE)
_ABBREVIATION: Final = re.compile("[A-Z]{2,5}")
_NO_CITY: Final = ("localtime", "Factory")  # names of the data that are no zone, or another on each machine


def to_utc(local: IntVector, zone: str) -> IntVector:
    """Return when the clocks of a zone show times, in microseconds since 1970.

    A time that they show twice is the first of the two; one that they skip is the moment at which they do.

    >>> hour = 3_600_000_000
    >>> (to_utc(np.array([9 * hour]), "Asia/Tokyo") // hour).tolist()
    [0]
    """
    if zone == UTC:
        return local
    starts, offsets = _offset_changes(zone)
    place = np.searchsorted(starts[1:] + offsets[:-1], local, side="right")
    moments: IntVector = np.maximum(local - offsets[place], starts[place])
    return moments


def to_local(moments: IntVector, zone: str) -> IntVector:
    """Return what the clocks of a zone show at moments, both in microseconds since 1970."""
    if zone == UTC:
        return moments
    starts, offsets = _offset_changes(zone)
    return moments + offsets[np.searchsorted(starts[1:], moments, side="right")]


def moment_of(local: dt.datetime, zone: str) -> dt.datetime:
    """Return when the clocks of a zone show a time without a zone, as :func:`to_utc`.

    >>> moment_of(dt.datetime(2018, 11, 4), "America/Sao_Paulo").isoformat()
    '2018-11-04T03:00:00+00:00'
    """
    micros = (local - _EPOCH.replace(tzinfo=None)) // dt.timedelta(microseconds=1)
    return _EPOCH + dt.timedelta(microseconds=int(to_utc(np.array([micros]), zone)[0]))


def clock_of(moment: dt.datetime, zone: str) -> dt.datetime:
    """Return what the clocks of a zone show at a moment, without a zone.

    >>> clock_of(dt.datetime(2026, 1, 31, 18, tzinfo=dt.UTC), "Asia/Kolkata").isoformat()
    '2026-01-31T23:30:00'
    """
    micros = (moment - _EPOCH) // dt.timedelta(microseconds=1)
    shown = dt.timedelta(microseconds=int(to_local(np.array([micros]), zone)[0]))
    return _EPOCH.replace(tzinfo=None) + shown


@cache
def _offset_changes(zone: str) -> tuple[IntVector, IntVector]:
    """Return when each offset of a zone begins, and the offsets: int64, shape (n_offsets,), microseconds.

    Offsets are looked up every three days, because clocks have changed and changed back in four; where two differ, the
    second of the change is searched.
    """
    info = ZoneInfo(zone)

    def offset(second: int) -> int:
        there = (_EPOCH + dt.timedelta(seconds=second)).astimezone(info).utcoffset() or dt.timedelta()
        return there // dt.timedelta(seconds=1)

    days = range(*_DAYS, _STEP)
    looked_up = [info.utcoffset(dt.datetime.fromordinal(day)) for day in days]
    starts, offsets = [np.iinfo(np.int64).min], [offset((days[0] - _ORDINAL) * _SECONDS)]
    for day, is_same in zip(days, map(operator.eq, looked_up, looked_up[1:]), strict=False):
        low, high = ((end - _ORDINAL) * _SECONDS for end in (day - 1, day + _STEP + 1))
        while not is_same and offsets[-1] != offset(high):
            before, after = max(low, starts[-1] // _SECOND), high
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if offset(middle) == offsets[-1] else (before, middle)
            starts.append(after * _SECOND)
            offsets.append(offset(after))
    return np.array(starts, np.int64), np.array(offsets, np.int64) * _SECOND


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones; empty where the machine has no data about them."""
    return frozenset(available_timezones()) - {*_NO_CITY}


def zone_fault(name: str) -> Fault | None:
    """Return what is wrong with the name of a zone; None for a zone.

    >>> zone_fault("Tokyo").fix, zone_fault("UTC+9").fix
    ("did you mean 'Asia/Tokyo'?", "name a city, whose clocks may change; 'Etc/GMT-9' is always at that offset")
    """
    if name == UTC or name in zone_names():
        return None
    expected = "a zone of the IANA database, such as UTC, Asia/Tokyo or Europe/Berlin"
    if not zone_names():
        return Fault("", f"{name!r}, on a machine without data about time zones", expected, "run: pip install tzdata")
    return Fault("", repr(name), expected, _zone_fix(name))


def _zone_fix(name: str) -> str:
    """Return advice for a name that is no zone: name a city, the fixed zone of an offset, or the closest name."""
    if offset := _OFFSET.fullmatch(name):
        fixed = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{offset[2]}"
        is_whole = offset[3] in (None, "00") and fixed in zone_names()
        same = f"; {fixed!r} is always at that offset" if is_whole else ""
        return f"name a city, whose clocks may change{same}"
    if _ABBREVIATION.fullmatch(name):
        return "name a city, because an abbreviation is used for several zones"
    by_city = {zone.rpartition("/")[2].casefold(): zone for zone in sorted(zone_names(), reverse=True)}
    city = re.sub(r"[\s-]+", "_", name.strip()).rpartition("/")[2].casefold()
    close = [city] if city in by_city else get_close_matches(city, by_city, n=1, cutoff=0.7)
    return f"did you mean {by_city[close[0]]!r}?" if close else ""

"""Lengths of time as a config writes them: ``7d``, ``36h``, ``30m``, ``90s``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

from rankeval_spark.config.sections.base import fault_error
from rankeval_spark.errors import Fault

_MICROSECONDS: Final[Mapping[str, int]] = {
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""Microseconds of the units."""

_LONGEST_DAYS: Final = 36_500


def microseconds(text: str) -> int:
    """Return a length of time such as ``7d`` in microseconds; raise ValueError for other text.

    Examples
    --------
    >>> microseconds("36h")
    129600000000
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _MICROSECONDS or not (number.isascii() and number.isdigit()):
        raise ValueError(text)
    return int(number) * _MICROSECONDS[unit]


def duration_text(length: object) -> object:
    """Write a timedelta as a config does; anything else is returned as it is.

    Examples
    --------
    >>> duration_text(timedelta(days=7)), duration_text(timedelta(hours=36)), duration_text("90s")
    ('7d', '36h', '90s')
    """
    if not isinstance(length, timedelta):
        return length
    micros = length // timedelta(microseconds=1)
    unit = next((unit for unit in "dhms" if not micros % _MICROSECONDS[unit]), None)
    return f"{length.total_seconds()}s" if unit is None else f"{micros // _MICROSECONDS[unit]}{unit}"


def duration(text: str, *, least: int) -> str:
    """Return the text of a length of time, which is at least so many microseconds; refuse other text."""
    try:
        length = microseconds(text)
    except ValueError:
        length = -1
    if not least <= length <= _LONGEST_DAYS * _MICROSECONDS["d"]:
        number = "a whole number above 0" if least else "a whole number"
        expected = f"{number} and one of the units s, m, h, d, such as 7d; {_LONGEST_DAYS}d at most"
        raise fault_error(Fault("", repr(text), expected))
    return text


Grace = Annotated[str, StringConstraints(min_length=1, max_length=20), AfterValidator(partial(duration, least=0))]

MOST_DAYS: Final = 3660
"""The longest window of whole days: ten years."""
DAYS_PATTERN: Final = "[1-9][0-9]{0,3}d"
"""How a number of days is written; some of these are above the most."""

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_DAYS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("", "d", "day", "days"), 1),
    **dict.fromkeys(("h", "hour", "hours"), 1 / 24),
    **dict.fromkeys(("w", "week", "weeks"), 7),
    **dict.fromkeys(("month", "months"), 30),
    **dict.fromkeys(("y", "year", "years"), 365),
}
"""Days of the units that people may write; ``m`` is left out, which is minutes for some and months for others."""


def whole_days(value: object) -> int:
    """Return the number of days of a window such as ``7d``, 1 to 3660; raise ValueError for anything else.

    Examples
    --------
    >>> whole_days("7d")
    7
    """
    if not isinstance(value, str) or not re.fullmatch(DAYS_PATTERN, value) or int(value[:-1]) > MOST_DAYS:
        raise ValueError(value)
    return int(value[:-1])


def nearest_window(value: object) -> str:
    """Say how to write the window of whole days that a value may mean.

    Examples
    --------
    >>> nearest_window(7), nearest_window("2 weeks"), nearest_window("36h"), nearest_window("0d")
    ('write 7d', 'write 14d', 'write 2d', 'write 1d')
    >>> nearest_window("5000d"), nearest_window("a week")
    ('write 3660d', 'write the number of days, such as 7d')
    """
    found = _LENGTH.search(str(value).lower())
    if found is None or found[2] not in _DAYS:
        return "write the number of days, such as 7d"
    days = min(float(found[1]) * _DAYS[found[2]], MOST_DAYS)
    return f"write {max(1, math.ceil(days))}d"

"""How long a table keeps files that its newest version does not need: readers hold older versions."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from rankeval_spark.errors import ConfigError, Fault

PROPERTY: Final = "delta.deletedFileRetentionDuration"

LEAST: Final = timedelta(days=7)
"""Shortest retention under which VACUUM runs: a reader may have pinned a version a week ago."""

DELTA_DEFAULT: Final = "interval 1 week"

_PART: Final = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)


def require_enough(table: str, retention: str) -> timedelta:
    """Return the retention of a table; one that is shorter than :data:`LEAST` or cannot be read is an error.

    Examples
    --------
    >>> require_enough("lists", "interval 30 days").days
    30
    """
    length = length_of(retention)
    if length is None or length < LEAST:
        raise ConfigError(
            Fault(
                f"table {table}, property {PROPERTY}",
                repr(retention),
                f"at least {LEAST.days} days, such as 'interval 30 days': readers hold older versions",
                "set the property of the table",
            )
        )
    return length


def length_of(retention: str) -> timedelta | None:
    """Read an interval as Delta writes it; None where it is something else.

    Examples
    --------
    >>> length_of("interval 1 week 12 hours")
    datetime.timedelta(days=7, seconds=43200)
    """
    text = retention.strip().lower().removeprefix("interval").strip()
    if not text or _PART.sub("", text).strip():
        return None
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in _PART.findall(text)), timedelta())

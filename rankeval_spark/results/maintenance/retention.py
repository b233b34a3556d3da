"""How long a table keeps files that its newest version does not need: readers hold older versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from rankeval_spark.errors import ConfigError, Fault

PROPERTY: Final = "delta.deletedFileRetentionDuration"

LEAST: Final = timedelta(days=7)
"""Shortest retention under which files are deleted: a reader may have pinned a version a week ago."""

_DELTA_DEFAULT: Final = "interval 1 week"
_PART: Final = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)


def require_enough(table: str, properties: Mapping[str, str]) -> None:
    """Refuse a table whose retention is shorter than :data:`LEAST`, or cannot be read."""
    found = properties.get(PROPERTY, _DELTA_DEFAULT)
    length = length_of(found)
    if length is None or length < LEAST:
        expected = f"at least {LEAST.days} days, such as 'interval 30 days': readers hold older versions"
        fix = "set the property of the table"
        raise ConfigError(Fault(f"table {table}, property {PROPERTY}", repr(found), expected, fix))


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

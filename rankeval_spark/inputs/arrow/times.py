"""Times and days in UTC, of what Arrow holds and of text; as the Spark side reads both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.inputs.arrow.texts import trimmed
from rankeval_spark.inputs.input_columns import LAST_SECOND

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector

TIMES: Final = pa.timestamp("us", "UTC")
_SECOND: Final = 1_000_000
_END_OF_MONTHS: Final = 13
_LAST_YEAR: Final = 294_246
"""The last one of which 64 bits hold every microsecond."""

_DAY: Final = r"(?P<year>\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_DAY_PATTERN: Final = f"(?s)^{_DAY}(?:[ T].*)?)?)?$"
_TIME_PATTERN: Final = (
    f"^{_DAY}"
    r"(?:[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?)?"
    r" *(?P<zone>[A-Za-z+-][\w:+/-]*)?)?)?)?$"
)
_UTC: Final = ("", "Z", "UTC", "GMT", "UT")
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_MAX_OFFSET: Final = 18 * 3600


def to_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bring days and times to microseconds in UTC, in which what has no zone is.

    Parameters
    ----------
    column : date or timestamp, of any unit and zone
    """
    return pc.cast(column, options=pc.CastOptions(TIMES, allow_time_truncate=True))


def to_days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give the days of times in UTC."""
    is_time = pa.types.is_timestamp(column.type) and column.type.tz is not None
    return (column.cast(pa.timestamp(column.type.unit)) if is_time else column).cast(pa.date32())


def from_seconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read seconds of Unix; numbers beyond the year 9999, such as milliseconds, become NULL.

    Parameters
    ----------
    column : integer, float or decimal
    """
    is_null = to_numpy(column.is_null())
    if pa.types.is_integer(column.type):
        seconds: IntVector = to_numpy(column.cast(pa.int64()), null=0)
        is_near = (seconds >= -LAST_SECOND) & (seconds <= LAST_SECOND)
        return _times(np.where(is_near, seconds, 0) * _SECOND, is_null=is_null | ~is_near)
    numbers = to_numpy(column.cast(pa.float64(), safe=False), null=0)
    is_near = np.abs(numbers) <= LAST_SECOND  # false for NaN
    micros = np.where(is_near, numbers, 0) * _SECOND
    micros = np.rint(micros) if pa.types.is_decimal(column.type) else micros  # a double has few digits more
    return _times(micros.astype(np.int64), is_null=is_null | ~is_near)


def read_times(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read times from text: each by its own zone, or in UTC where it has none; what is none becomes NULL.

    Examples
    --------
    >>> read_times(pa.chunked_array([["2026-01-31", "2026-01-31 05:00 +05:30", "noon"]])).cast(pa.string()).to_pylist()
    ['2026-01-31 00:00:00.000000Z', '2026-01-30 23:30:00.000000Z', None]
    """
    parts = _parts(texts, _TIME_PATTERN)
    days, is_day = _days(parts)
    hour, minute, second = (_digits(parts, name) for name in ("hour", "minute", "second"))
    fraction = _numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(parts.field("fraction"), 6, "0"), 0, 6))
    micros = (((days * 24 + hour) * 60 + minute) * 60 + second) * _SECOND + fraction
    is_time = is_day & (hour < 24) & (minute < 60) & (second < 60)  # noqa: PLR2004 - of clocks
    shifted, is_zone = _in_utc(micros, parts.field("zone"))
    return _times(shifted, is_null=~(is_time & is_zone))


def read_days(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read days from text, where a time may follow; what is none becomes NULL.

    Examples
    --------
    >>> read_days(pa.chunked_array([["2026-01-31", " 2026-1-3T05:00", "2026-02-30"]])).cast(pa.string()).to_pylist()
    ['2026-01-31', '2026-01-03', None]
    """
    days, is_day = _days(_parts(texts, _DAY_PATTERN))
    return pa.chunked_array([to_arrow(days.astype(np.int32), is_null=~is_day).view(pa.date32())])


def _parts(texts: pa.ChunkedArray, pattern: str) -> pa.StructArray:
    return in_one_piece(pc.extract_regex(trimmed(texts), pattern=pattern))


def _digits(parts: pa.StructArray, name: str, *, default: str = "0") -> IntVector:
    return _numbers(pc.utf8_lpad(parts.field(name), 1, default))


def _numbers(digits: pa.Array) -> IntVector:
    numbers: IntVector = to_numpy(digits.cast(pa.int64()), null=0)
    return numbers


def _days(parts: pa.StructArray) -> tuple[IntVector, BoolVector]:
    """Count the days since 1970, and return which dates exist."""
    year = _digits(parts, "year")
    month, day = (_digits(parts, name, default="1") for name in ("month", "day"))
    is_day = to_numpy(parts.is_valid()) & (year <= _LAST_YEAR) & (month >= 1) & (month < _END_OF_MONTHS)
    months = np.where(is_day, (year - 1970) * 12 + month - 1, 0)
    first = _first_days(months)
    is_day &= (day >= 1) & (day <= _first_days(months + 1) - first)
    return np.where(is_day, first + day - 1, 0), is_day


def _first_days(months: IntVector) -> IntVector:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _in_utc(micros: IntVector, zones: pa.Array) -> tuple[IntVector, BoolVector]:
    """Move times from their zones to UTC, one zone at a time, and return which zones exist."""
    coded = zones.dictionary_encode()
    code = to_numpy(coded.indices, null=0)
    shifted, is_known = micros.copy(), np.ones(len(micros), dtype=np.bool_)
    for number, zone in enumerate(coded.dictionary.to_pylist()):
        if zone in _UTC:
            continue
        chosen = np.flatnonzero(code == number)
        moved = _from_zone(micros[chosen], zone)
        is_known[chosen] = moved is not None
        shifted[chosen] = 0 if moved is None else moved
    return shifted, is_known


def _from_zone(micros: IntVector, zone: str) -> IntVector | None:
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        sign, *parts = offset.groups()
        hours, minutes, seconds = (int(part or 0) for part in parts)
        distance = (hours * 60 + minutes) * 60 + seconds
        is_offset = max(minutes, seconds) < 60 and distance <= _MAX_OFFSET  # noqa: PLR2004 - of clocks
        return micros - int(f"{sign}{distance}") * _SECOND if is_offset else None
    local = to_arrow(micros).view(pa.timestamp("us"))
    try:  # an hour that clocks repeat is the first of the two; one that they skip is the moment they do
        there = pc.assume_timezone(local, timezone=zone, ambiguous="earliest", nonexistent="latest")
    except pa.ArrowInvalid:
        return None
    moved: IntVector = to_numpy(there.view(pa.int64()))
    return moved


def _times(micros: IntVector, *, is_null: BoolVector) -> pa.ChunkedArray:
    return pa.chunked_array([to_arrow(micros, is_null=is_null).view(TIMES)])

"""Text that is read as numbers, times, days or lists, and values that are written as text: as Spark does both."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.arrays import combine_chunks, list_column, parent_indices, to_arrow, to_numpy, to_texts
from rankeval_spark.inputs.arrow.arrow_types import is_text
from rankeval_spark.inputs.input_columns import LAST_SECOND, is_bigint
from rankeval_spark.time_zones import DAY, UTC, to_local, to_utc, zone_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark.measures.arrays import BoolVector, IntVector

_BLANKS: Final = "".join(map(chr, (*range(33), 127)))
"""Characters around a number or a time that do not count."""

_NUMBER: Final = r"^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?|[+-]?(?i:inf|infinity)|(?i:nan))$"
_SUFFIX: Final = r"([\d.])[dDfF]$"
_WHOLE: Final = r"^[+-]?0*\d{1,19}$"
_SIGN_AND_DIGITS: Final = r"^(?:\+|(-))?0*(\d{1,19})$"

_JSON: Final = json.JSONDecoder(parse_constant='"{}"'.format)
"""As Spark's: NaN is no number, and what follows the array does not count."""

_SINGLE_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'((?:[^'\\]|\\.)*)'", re.DOTALL)

_MIN_PLAIN: Final = 1e-3
_MAX_PLAIN: Final = 1e7
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

_MAX_DIGITS: Final = 76  # of a decimal of any type
_BITS_OF_DOUBLE: Final = 53
_BYTES_OF_UUID: Final = 16
_HEX: Final = np.array([b"%02x" % byte for byte in range(256)])
_LENGTH_OF_UUID: Final = 36
_DIGITS_OF_UUID: Final = [place for place in range(_LENGTH_OF_UUID) if place not in (8, 13, 18, 23)]

TIMES: Final = pa.timestamp("us", "UTC")
_SECOND: Final = 1_000_000
_END_OF_MONTHS: Final = 13
_LAST_YEAR: Final = 294_246
"""Last year whose microseconds since 1970 all fit into 64 bits."""

_DAY: Final = r"(?P<year>\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_DAY_PATTERN: Final = f"(?s)^{_DAY}(?:[ T].*)?)?)?$"
_TIME_PATTERN: Final = (
    f"^{_DAY}"
    r"(?:[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?)?"
    r" *(?P<zone>[A-Za-z+-][\w:+/-]*)?)?)?)?$"
)
_UTC: Final = ("Z", "UTC", "GMT", "UT")
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_MAX_OFFSET: Final = 18 * 3600


def trim(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove the blanks around texts."""
    return pc.ascii_trim(texts, characters=_BLANKS)


def null_unless(column: pa.ChunkedArray, is_kept: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace the values that are not kept by NULL."""
    return pc.if_else(is_kept, column, pa.nulls(1, column.type)[0])


def to_doubles(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read numbers; any other text becomes NULL.

    >>> to_doubles(pa.chunked_array([[" 1.5", "+2d", "1e999", "nan", "x"]])).to_pylist()
    [1.5, 2.0, inf, nan, None]
    """
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    else:
        if not pc.any(pc.is_nan(numbers)).as_py():  # Arrow reads nan(1) too
            return numbers
    texts = trim(texts)
    numbers = null_unless(texts, pc.match_substring_regex(texts, pattern=_NUMBER))
    return pc.replace_substring_regex(numbers, pattern=_SUFFIX, replacement=r"\1").cast(pa.float64())


def to_whole(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read whole numbers as int64; other text, and what 64 bits do not hold, becomes NULL.

    >>> to_whole(pa.chunked_array([[" 7", "+007", "-1", "1.0", "0x10", "9223372036854775808"]])).to_pylist()
    [7, 7, -1, None, None, None]
    """

    def to_int64(distinct: pa.Array) -> pa.Array:
        numbers = [int(text) for text in distinct.to_pylist()]
        kept = np.array([number if is_bigint(number) else 0 for number in numbers], dtype=np.int64)
        return to_arrow(kept, is_null=np.array([not is_bigint(number) for number in numbers], dtype=np.bool_))

    texts = trim(texts)
    digits = null_unless(texts, pc.match_substring_regex(texts, pattern=_WHOLE))
    digits = pc.replace_substring_regex(digits, pattern=_SIGN_AND_DIGITS, replacement=r"\1\2")
    try:
        return digits.cast(pa.int64())
    except pa.ArrowInvalid:  # above 64 bits
        return _map_distinct(digits, to_int64)


def split(texts: pa.ChunkedArray, separator: str) -> pa.ChunkedArray:
    """Split texts at a separator into lists, without the blanks around elements and without empty elements.

    >>> split(pa.chunked_array([["rock.| blues||", "", None]]), "|").to_pylist()
    [['rock.', 'blues'], [], None]
    """
    lists = combine_chunks(pc.split_pattern(texts, pattern=separator))
    elements = pc.ascii_trim(pc.list_flatten(lists), characters=" ")
    is_kept = to_numpy(pc.not_equal(elements, ""))
    lengths = np.bincount(parent_indices(lists)[is_kept], minlength=len(lists))
    kept = elements.filter(to_arrow(is_kept))
    return pa.chunked_array([list_column(lengths, kept, is_null=to_numpy(lists.is_null()))])


def to_text_lists(
    texts: pa.ChunkedArray, field: str | None = None, *, broken: list[str | None] | None = None
) -> pa.ChunkedArray:
    """Read JSON arrays as lists of text, or one field of their objects; any other text becomes `broken`.

    >>> to_text_lists(pa.chunked_array([['["rock", 1]', "['blues']", "[]", "rock"]])).to_pylist()
    [['rock', '1'], ['blues'], [], None]
    >>> to_text_lists(pa.chunked_array([['[{"id": 7}, {"id": null}, {}]', "[7]"]]), "id").to_pylist()
    [['7', None, None], None]
    """

    def to_lists(distinct: pa.Array) -> pa.Array:
        read = (_json_list(text, field) for text in distinct.to_pylist())
        lists = [broken if each is None else each for each in read]
        lengths = np.array([len(each or ()) for each in lists], dtype=np.int64)
        is_null = np.array([each is None for each in lists], dtype=np.bool_)
        return list_column(lengths, to_texts(element for each in lists for element in each or ()), is_null=is_null)

    return _map_distinct(texts, to_lists)


def _json_list(text: str, field: str | None) -> list[str | None] | None:
    """Read a JSON array; as for Spark, a text in it may be in single quotes, as Python writes it."""

    def in_double_quotes(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        return '"' + found[1].replace("\\'", "'").replace('"', '\\"') + '"'

    def as_text(element: Any) -> str | None:  # noqa: ANN401 - any JSON
        is_text = element is None or isinstance(element, str)
        return element if is_text else json.dumps(element, ensure_ascii=False, separators=(",", ":"))

    try:
        try:
            found = _JSON.raw_decode(text.lstrip())[0]
        except ValueError:
            found = _JSON.raw_decode(_SINGLE_QUOTED.sub(in_double_quotes, text).lstrip())[0]
        if not isinstance(found, list):
            return None
        if field is not None:
            found = [None if element is None else element.get(field) for element in found]
        return [as_text(element) for element in found]
    except (AttributeError, ValueError, RecursionError):  # an element is no object; or the text is no JSON
        return None


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:  # noqa: PLR0911 - a kind of value each
    """Write values as text, as Spark's ``cast(string)`` does in UTC; None where the type has no such text.

    >>> to_text(pa.chunked_array([[1.0, 1e7, 1e-5, None]])).to_pylist()
    ['1.0', '1.0E7', '1.0E-5', None]
    """

    def java_number(value: np.floating[Any]) -> str:  # 1.0E-5, and without an exponent from 1.0E-3 to below 1.0E7
        if not np.isfinite(value):
            return _NOT_FINITE[str(value)]
        if value == 0 or _MIN_PLAIN <= abs(value) < _MAX_PLAIN:
            return np.format_float_positional(value, trim="0")
        digits, _, exponent = np.format_float_scientific(value, trim="0").partition("e")
        return f"{digits}E{int(exponent)}"

    def without_zeros(times: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.replace_substring_regex(times.cast(pa.string()), pattern=r"\.?0+$", replacement="")

    kind = column.type
    if pa.types.is_float16(kind):
        return to_text(column.cast(pa.float32()))
    if pa.types.is_floating(kind):
        return _map_distinct(column, lambda distinct: to_texts(map(java_number, to_numpy(distinct))))
    if pa.types.is_decimal(kind):
        return _map_distinct(column, lambda distinct: to_texts(f"{number:f}" for number in distinct.to_pylist()))
    if pa.types.is_timestamp(kind):
        return without_zeros(column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.timestamp("us")))
    if pa.types.is_time(kind):
        return without_zeros(column.cast(pa.time64("us"), safe=False))
    if pa.types.is_date64(kind):
        return to_text(column.cast(pa.date32()))
    is_plain = is_text(kind) or pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    return column.cast(pa.string()) if is_plain or pa.types.is_date32(kind) else None


def id_texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Write ids as text, whole numbers without a point whatever their type; None where the type has no text.

    NaN, which pandas has in place of a missing number, is NULL.

    >>> id_texts(pa.chunked_array([[7.0, 7.5, float("nan"), 1e15]])).to_pylist()
    ['7', '7.5', None, '1000000000000000']
    """
    text = to_text(column)
    if not (pa.types.is_decimal(column.type) or pa.types.is_floating(column.type)):
        return text
    numbers = _exact_numbers(column)
    whole = null_unless(numbers, _is_whole(numbers))
    exact = pa.int64() if pa.types.is_floating(whole.type) else pa.decimal256(_MAX_DIGITS, 0)
    return null_unless(pc.coalesce(whole.cast(exact).cast(pa.string()), text), numbers.is_valid())


def whole_ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read whole numbers of 64 bits from decimals or floats; NaN is NULL.

    Raises ArrowInvalid, with the first number that is not whole, that 64 bits do not hold, or that a float does not.

    >>> whole_ids(pa.chunked_array([[7.0, float("nan")]])).to_pylist()
    [7, None]
    """
    numbers = _exact_numbers(column)
    wrong = numbers.filter(pc.invert(_is_whole(numbers)))
    if len(wrong):
        message = f"{wrong[0].as_py()} is no whole number"
        if pa.types.is_floating(wrong.type):
            message += f" up to 2^{_BITS_OF_DOUBLE}, which is what floats hold exactly"
        raise pa.ArrowInvalid(message)
    try:
        return numbers.cast(pa.int64())
    except pa.ArrowInvalid:
        first = next(number for number in numbers.unique().to_pylist() if not (number is None or is_bigint(number)))
        message = f"{first} needs more than 64 bits"
        raise pa.ArrowInvalid(message) from None


def _exact_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals of 128 or 256 bits as they are, and others as such or as doubles without NaN."""
    kind = column.type
    if not pa.types.is_floating(kind):
        is_narrow = kind.bit_width < 128  # noqa: PLR2004 - Arrow computes with decimals from there
        return column.cast(pa.decimal128(kind.precision, kind.scale)) if is_narrow else column
    numbers = column.cast(pa.float64())
    return null_unless(numbers, pc.invert(pc.is_nan(numbers)))


def _is_whole(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which numbers are whole; of doubles, those that no other whole number rounds to."""
    is_whole = pc.equal(pc.trunc(numbers), numbers)
    if not pa.types.is_floating(numbers.type):
        return is_whole
    largest = to_arrow(np.array([2.0**_BITS_OF_DOUBLE]))[0]
    return pc.and_(is_whole, pc.less_equal(pc.abs(numbers), largest))


def uuid_texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Write UUIDs of 16 bytes as text; None where a value has another length.

    >>> uuid_texts(pa.chunked_array([[bytes(range(16)), None]])).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f', None]
    """

    def written(chunk: pa.Array) -> pa.Array | None:
        given = chunk.drop_null().cast(pa.large_binary())
        if not len(given):
            return pa.nulls(len(chunk), pa.string())
        if (to_numpy(pc.binary_length(given)) != _BYTES_OF_UUID).any():
            return None
        fixed = given.cast(pa.binary(_BYTES_OF_UUID))
        first, n_bytes = fixed.offset * _BYTES_OF_UUID, len(fixed) * _BYTES_OF_UUID
        codes = np.frombuffer(fixed.buffers()[1], np.uint8)[first : first + n_bytes]  # (ids * 16,)
        digits = np.full((len(fixed), _LENGTH_OF_UUID), ord("-"), dtype=np.uint8)
        digits[:, _DIGITS_OF_UUID] = _HEX[codes].view(np.uint8).reshape(len(fixed), -1)  # (ids, 32)
        data = [None, pa.py_buffer(digits)]
        text = pa.Array.from_buffers(pa.binary(_LENGTH_OF_UUID), len(fixed), data).cast(pa.binary()).cast(pa.string())
        is_there = to_numpy(chunk.is_valid())
        return pc.take(text, to_arrow(np.maximum(np.cumsum(is_there) - 1, 0), is_null=~is_there))

    chunks = [written(chunk) for chunk in column.chunks]
    return None if any(chunk is None for chunk in chunks) else pa.chunked_array(chunks, pa.string())


def _map_distinct(column: pa.ChunkedArray, change: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Apply a function to the distinct values of a column, for what cannot be vectorised."""
    coded = combine_chunks(column).dictionary_encode()
    return pa.chunked_array([pc.take(change(coded.dictionary), coded.indices)])


def to_times(column: pa.ChunkedArray, time_zone: str = UTC) -> pa.ChunkedArray:
    """Convert days and times of any unit to microseconds in UTC; those without a zone are in the given one."""
    times = pc.cast(column, options=pc.CastOptions(TIMES, allow_time_truncate=True))
    if time_zone == UTC or _has_zone(column.type):
        return times
    return _to_time_column(to_utc(_to_micros(times), time_zone), is_null=to_numpy(times.is_null()))


def to_days(column: pa.ChunkedArray, time_zone: str = UTC) -> pa.ChunkedArray:
    """Return the days of times, in the time zone where they have one of their own."""
    if not _has_zone(column.type):
        return column.cast(pa.date32())
    times = to_times(column)
    shown = _to_time_column(to_local(_to_micros(times), time_zone), is_null=to_numpy(times.is_null()))
    return shown.cast(pa.timestamp("us")).cast(pa.date32())


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _to_micros(times: pa.ChunkedArray) -> IntVector:
    micros: IntVector = to_numpy(times.cast(pa.int64()), null=0)
    return micros


def from_seconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read seconds of Unix from numbers; those beyond the year 9999, such as milliseconds, become NULL."""
    is_null = to_numpy(column.is_null())
    if pa.types.is_integer(column.type):
        seconds: IntVector = to_numpy(column.cast(pa.int64()), null=0)
        is_near = (seconds >= -LAST_SECOND) & (seconds <= LAST_SECOND)
        return _to_time_column(np.where(is_near, seconds, 0) * _SECOND, is_null=is_null | ~is_near)
    numbers = to_numpy(column.cast(pa.float64(), safe=False), null=0)
    is_near = np.abs(numbers) <= LAST_SECOND  # false for NaN
    micros = np.where(is_near, numbers, 0) * _SECOND
    micros = np.rint(micros) if pa.types.is_decimal(column.type) else micros  # a double has few digits more
    return _to_time_column(micros.astype(np.int64), is_null=is_null | ~is_near)


def read_times(texts: pa.ChunkedArray, time_zone: str = UTC) -> pa.ChunkedArray:
    """Read times from text: each by its own zone, or in the one that is given; what is no time becomes NULL.

    >>> read_times(pa.chunked_array([["2026-01-31", "2026-01-31 05:00 +05:30", "noon"]])).cast(pa.string()).to_pylist()
    ['2026-01-31 00:00:00.000000Z', '2026-01-30 23:30:00.000000Z', None]
    """
    parts = _match_parts(texts, _TIME_PATTERN)
    days, is_day = _count_days(parts)
    hour, minute, second = (_part_numbers(parts, name) for name in ("hour", "minute", "second"))
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(parts.field("fraction"), 6, "0"), 0, 6)
    fraction = to_numpy(digits.cast(pa.int64()), null=0)
    micros = (((days * 24 + hour) * 60 + minute) * 60 + second) * _SECOND + fraction
    is_time = is_day & (hour < 24) & (minute < 60) & (second < 60)  # noqa: PLR2004 - of clocks
    shifted, is_zone = _shift_to_utc(micros, parts.field("zone"), time_zone)
    return _to_time_column(shifted, is_null=~(is_time & is_zone))


def read_days(texts: pa.ChunkedArray, time_zone: str = UTC) -> pa.ChunkedArray:
    """Read days from text, where a time may follow; any other text becomes NULL.

    The day of a time with a zone of its own is that of the time zone.

    >>> read_days(pa.chunked_array([["2026-01-31", " 2026-1-3T05:00", "2026-02-30"]])).cast(pa.string()).to_pylist()
    ['2026-01-31', '2026-01-03', None]
    """
    days, is_day = _count_days(_match_parts(texts, _DAY_PATTERN))
    zones = _match_parts(texts, _TIME_PATTERN).field("zone")
    if pc.any(pc.not_equal(zones, "")).as_py():
        times = read_times(texts, time_zone)
        has_zone = to_numpy(pc.not_equal(zones, ""), null=0).astype(np.bool_) & to_numpy(times.is_valid())
        days = np.where(has_zone, to_local(_to_micros(times), time_zone) // DAY, days)
    return pa.chunked_array([to_arrow(days.astype(np.int32), is_null=~is_day).view(pa.date32())])


def _match_parts(texts: pa.ChunkedArray, pattern: str) -> pa.StructArray:
    """Return the named groups of a pattern in each text; NULL where it does not match."""
    return combine_chunks(pc.extract_regex(trim(texts), pattern=pattern))


def _part_numbers(parts: pa.StructArray, name: str, default: str = "0") -> IntVector:
    numbers: IntVector = to_numpy(pc.utf8_lpad(parts.field(name), 1, default).cast(pa.int64()), null=0)
    return numbers


def _count_days(parts: pa.StructArray) -> tuple[IntVector, BoolVector]:
    """Count the days from 1970 to each date, 0 for one that does not exist, and return which dates exist."""

    def first_days(months: IntVector) -> IntVector:
        return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)

    year, month, day = (
        _part_numbers(parts, name, default) for name, default in (("year", "0"), ("month", "1"), ("day", "1"))
    )
    is_day = to_numpy(parts.is_valid()) & (year <= _LAST_YEAR) & (month >= 1) & (month < _END_OF_MONTHS)
    months = np.where(is_day, (year - 1970) * 12 + month - 1, 0)
    first = first_days(months)
    is_day &= (day >= 1) & (day <= first_days(months + 1) - first)
    return np.where(is_day, first + day - 1, 0), is_day


def _shift_to_utc(micros: IntVector, zones: pa.Array, time_zone: str) -> tuple[IntVector, BoolVector]:
    """Move times from their zones, or that of all others, to UTC, a zone at a time, and return which zones exist."""
    coded = zones.dictionary_encode()
    code = to_numpy(coded.indices, null=0)
    shifted, is_known = micros.copy(), np.ones(len(micros), dtype=np.bool_)
    for number, written in enumerate(coded.dictionary.to_pylist()):
        zone = written or time_zone
        if zone in _UTC:
            continue
        chosen = np.flatnonzero(code == number)
        offset = _OFFSET.fullmatch(zone)
        if offset is not None:
            sign, *parts = offset.groups()
            hours, minutes, seconds = (int(part or 0) for part in parts)
            distance = (hours * 60 + minutes) * 60 + seconds
            is_offset = max(minutes, seconds) < 60 and distance <= _MAX_OFFSET  # noqa: PLR2004 - of clocks
            moved = micros[chosen] - int(f"{sign}{distance}") * _SECOND if is_offset else None
        else:
            moved = to_utc(micros[chosen], zone) if zone in zone_names() else None
        is_known[chosen] = moved is not None
        shifted[chosen] = 0 if moved is None else moved
    return shifted, is_known


def _to_time_column(micros: IntVector, *, is_null: BoolVector) -> pa.ChunkedArray:
    return pa.chunked_array([to_arrow(micros, is_null=is_null).view(TIMES)])

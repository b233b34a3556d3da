"""Text that is read as numbers, times, days or lists, and values that are written as text: as Spark does both."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.inputs.arrow.arrow_types import is_text

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANKS: Final = "".join(map(chr, (*range(33), 127)))
"""Characters around a number or a time that do not count."""

_NUMBER: Final = r"^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?|[+-]?(?i:inf|infinity)|(?i:nan))$"
_SUFFIX: Final = r"([\d.])[dDfF]$"
_WHOLE: Final = r"^[+-]?0*\d{1,10}$"
_SIGN_AND_DIGITS: Final = r"^(?:\+|(-))?0*(\d{1,10})$"

_JSON: Final = json.JSONDecoder(parse_constant='"{}"'.format)
"""As Spark's: NaN is no number, and what follows the array does not count."""

_SINGLE_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'((?:[^'\\]|\\.)*)'", re.DOTALL)

_MIN_PLAIN: Final = 1e-3
_MAX_PLAIN: Final = 1e7
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def trimmed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Leave out the blanks around texts."""
    return pc.ascii_trim(texts, characters=_BLANKS)


def null_unless(column: pa.ChunkedArray, is_kept: pa.ChunkedArray) -> pa.ChunkedArray:
    """Make NULL of the values that are not kept."""
    return pc.if_else(is_kept, column, pa.nulls(1, column.type)[0])


def to_doubles(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read numbers; what is none becomes NULL.

    Examples
    --------
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
    texts = trimmed(texts)
    numbers = null_unless(texts, pc.match_substring_regex(texts, pattern=_NUMBER))
    return pc.replace_substring_regex(numbers, pattern=_SUFFIX, replacement=r"\1").cast(pa.float64())


def to_whole(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read whole numbers of up to ten digits as int64; what is none becomes NULL.

    Examples
    --------
    >>> to_whole(pa.chunked_array([[" 7", "+007", "-1", "1.0", "0x10"]])).to_pylist()
    [7, 7, -1, None, None]
    """
    texts = trimmed(texts)
    digits = null_unless(texts, pc.match_substring_regex(texts, pattern=_WHOLE))
    return pc.replace_substring_regex(digits, pattern=_SIGN_AND_DIGITS, replacement=r"\1\2").cast(pa.int64())


def to_text_lists(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read JSON arrays as lists of text; what is none becomes NULL.

    Examples
    --------
    >>> to_text_lists(pa.chunked_array([['["rock", 1]', "['blues']", "[]", "rock"]])).to_pylist()
    [['rock', '1'], ['blues'], [], None]
    """
    return _by_distinct(texts, _json_lists)


def _json_lists(distinct: pa.Array) -> pa.Array:
    lists = [_json_list(text) for text in distinct.to_pylist()]
    ends = np.cumsum([0, *(len(each or ()) for each in lists)], dtype=np.int32)
    is_missing = np.array([each is None for each in lists], dtype=np.bool_)
    elements = to_texts(element for each in lists for element in each or ())
    return pa.ListArray.from_arrays(to_arrow(ends), elements, mask=to_arrow(is_missing))


def _json_list(text: str) -> list[str | None] | None:
    """Read a JSON array; as for Spark, a text in it may be in single quotes, as Python writes it."""
    try:
        found = _JSON.raw_decode(_SINGLE_QUOTED.sub(_in_double_quotes, text).lstrip())[0]
    except (ValueError, RecursionError):
        return None
    return [_json_text(element) for element in found] if isinstance(found, list) else None


def _in_double_quotes(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    return '"' + found[1].replace("\\'", "'").replace('"', '\\"') + '"'


def _json_text(element: Any) -> str | None:  # noqa: ANN401 - any JSON
    if element is None or isinstance(element, str):
        return element
    return json.dumps(element, ensure_ascii=False, separators=(",", ":"))


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:  # noqa: PLR0911 - a kind of value each
    """Write values as text, as Spark's ``cast(string)`` does in UTC; None where the type has no such text.

    Parameters
    ----------
    column : pa.ChunkedArray
        Text, truth values, numbers, days or times.

    Examples
    --------
    >>> to_text(pa.chunked_array([[1.0, 1e7, 1e-5, None]])).to_pylist()
    ['1.0', '1.0E7', '1.0E-5', None]
    """
    kind = column.type
    if pa.types.is_float16(kind):
        return to_text(column.cast(pa.float32()))
    if pa.types.is_floating(kind):
        return _by_distinct(column, lambda distinct: to_texts(map(_java_number, to_numpy(distinct))))
    if pa.types.is_decimal(kind):
        return _by_distinct(column, lambda distinct: to_texts(f"{one:f}" for one in distinct.to_pylist()))
    if pa.types.is_timestamp(kind):
        return _without_zeros(column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.timestamp("us")))
    if pa.types.is_time(kind):
        return _without_zeros(column.cast(pa.time64("us"), safe=False))
    if pa.types.is_date64(kind):
        return to_text(column.cast(pa.date32()))
    is_plain = is_text(kind) or pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    return column.cast(pa.string()) if is_plain or pa.types.is_date32(kind) else None


def _java_number(value: np.floating[Any]) -> str:
    """Write a number as Java does: 1.0E-5, and without an exponent from 1.0E-3 to below 1.0E7."""
    if not np.isfinite(value):
        return _NOT_FINITE[str(value)]
    if value == 0 or _MIN_PLAIN <= abs(value) < _MAX_PLAIN:
        return np.format_float_positional(value, trim="0")
    digits, _, exponent = np.format_float_scientific(value, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"


def _without_zeros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(times.cast(pa.string()), pattern=r"\.?0+$", replacement="")


def _by_distinct(column: pa.ChunkedArray, change: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Change each value that there is once, for what cannot be vectorised."""
    coded = in_one_piece(column).dictionary_encode()
    return pa.chunked_array([pc.take(change(coded.dictionary), coded.indices)])

"""Numbers of users become a few values: by given edges, or by quantiles of the users.

The numbers are those that :mod:`rankeval_spark.spark.rows.bands` computes on Spark, to the last bit. For quantiles,
numbers are rounded to four digits of their range or to three of their own, whichever is finer.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.batch.arrays import to_arrow, to_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.config.sections.bands import Band
    from rankeval_spark.measures.arrays import FloatVector, IntVector

_DIGITS_OF_SPREAD: Final = 4
_DIGITS_OF_NUMBER: Final = 3

_MOST_PLACES: Final = 300
"""Decimal places beyond which a power of ten is no number any more."""

_MOST_WHOLE: Final = 2.0**53
"""Whole numbers below this are exact, and written without an exponent."""

_LEAST_POWER, _MOST_POWER = -323, 308
_POWERS: Final = np.array([float(f"1e{power}") for power in range(_LEAST_POWER, _MOST_POWER + 1)])

_PLAIN: Final = (1e-3, 1e7)
"""Numbers from the one to below the other are written without an exponent, as Java does."""


def edges_of(numbers: FloatVector, band: Band) -> FloatVector:
    """Give the edges of the bands: as they are given, or quantiles of the finite numbers; none without any number.

    Parameters
    ----------
    numbers : float64, shape (n_users,)
        NaN where unknown.
    """
    if band.edges is not None:
        return np.array(band.edges, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return np.zeros(0)
    with np.errstate(over="ignore"):
        spread = float(finite.max() - finite.min())
    return rounded(_percentiles(np.sort(rounded(finite, spread)), band.shares), spread)


def labels_of(numbers: FloatVector, edges: FloatVector, band: Band) -> pa.Array:
    """Name the band of each number; NULL where there is none, or no edge.

    Parameters
    ----------
    numbers : float64, shape (n_users,)
        NaN where unknown.
    edges : float64, shape (n_edges,)
        Those of :func:`edges_of`; a band holds its lower edge.
    """
    names = _names_of(edges) if band.names is None else band.names
    place = np.searchsorted(np.sort(edges), numbers, side="right")
    is_unknown = np.isnan(numbers) | (len(edges) == 0)
    return pc.take(to_texts(names), to_arrow(np.where(is_unknown, 0, place), is_null=is_unknown))


def rounded(numbers: FloatVector, spread: float) -> FloatVector:
    """Round to so many digits of the spread, or of each number where these are finer.

    As it is where all numbers are the same, and where a number is 0. Powers of ten are multiplied or divided by, which
    leaves 0.1 what it is.
    """
    if spread == 0:
        return numbers
    of_number = _DIGITS_OF_NUMBER - 1 - _magnitudes(np.abs(numbers))
    places = np.minimum(np.maximum(of_number, _places_of(spread)), _MOST_PLACES)
    power = _POWERS[np.abs(places) - _LEAST_POWER]
    with np.errstate(over="ignore", invalid="ignore"):  # a number far from 0 and a small spread: it stays as it is
        whole = np.where(places >= 0, numbers * power, numbers / power)
        nearest = _half_up(whole)
        result = np.where(places >= 0, nearest / power, nearest * power)
    return np.where((numbers == 0) | (np.abs(whole) >= _MOST_WHOLE), numbers, result)


def number_text(number: float) -> str:
    """Write a number as Spark casts it to a string; a whole one below 2**53 without a fraction.

    Examples
    --------
    >>> number_text(40.0), number_text(0.5), number_text(0.00001), number_text(1.5e300)
    ('40', '0.5', '1.0E-5', '1.5E300')
    """
    if abs(number) < _MOST_WHOLE and number == int(number):
        return str(int(number))
    sign, digits, exponent = Decimal(_shortest(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1
    low, high = _PLAIN
    if low <= abs(number) < high:
        written = f"0.{'0' * (-power - 1)}{text}" if power < 0 else f"{text[: power + 1]}.{text[power + 1 :] or '0'}"
    else:
        written = f"{text[0]}.{text[1:] or '0'}E{power}"
    return f"{'-' if sign else ''}{written}"


def _shortest(number: float) -> str:
    """Write the fewest digits that name a number; two where one would do, the nearest two."""
    text = repr(number)
    return f"{number:.1e}" if len(Decimal(text).as_tuple().digits) == 1 else text


def _names_of(edges: FloatVector) -> list[str]:
    """Write the bounds of each band; the first has no lower one, the last no upper one."""
    texts = [number_text(edge) for edge in edges.tolist()]
    if not texts:
        return [""]
    inside = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return [f"< {texts[0]}", *inside, f">= {texts[-1]}"]


def _percentiles(numbers: FloatVector, shares: Sequence[float]) -> FloatVector:
    """Interpolate between the sorted numbers, with the operations of Spark's exact ``percentile``."""
    position = (len(numbers) - 1) * np.array(shares)
    lower, upper = np.floor(position), np.ceil(position)
    low, high = (numbers[place.astype(np.int64)] for place in (lower, upper))
    with np.errstate(over="ignore"):
        between = (upper - position) * low + (position - lower) * high
    found: FloatVector = np.where((lower == upper) | (low == high), low, between)
    return found


def _magnitudes(sizes: FloatVector) -> IntVector:
    """Exponent of the power of ten at or below each number: int64; that of 0 is of no use.

    A number whose logarithm rounds to a whole one has that exponent, as with Java's logarithm.
    """
    with np.errstate(divide="ignore"):
        near = np.floor(np.log10(sizes))
    power = np.clip(near, _LEAST_POWER, _MOST_POWER - 1).astype(np.int64)
    power += sizes >= _POWERS[power + 1 - _LEAST_POWER]
    return power


def _places_of(spread: float) -> int:
    """Decimal places of the digits that a spread has; its logarithm is that of Java, the nearest double."""
    if np.isinf(spread):
        return -_MOST_POWER
    return _DIGITS_OF_SPREAD - 1 - int(np.floor(float(Decimal(spread).log10())))


def _half_up(numbers: FloatVector) -> FloatVector:
    """Round to whole numbers, halves away from 0."""
    whole = np.trunc(numbers)
    nearest: FloatVector = whole + np.copysign(np.abs(numbers - whole) >= 0.5, numbers)  # noqa: PLR2004 - one half
    return nearest

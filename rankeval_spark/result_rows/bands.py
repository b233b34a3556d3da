"""Bands of users' numbers: by given edges, or by quantiles of the users.

For quantiles, numbers are rounded to four digits of their range or to three of their own, whichever is finer: so few
distinct ones are left that they fit into any memory, whatever the partitioning. Digits of the numbers alone would give
all years one value, digits of the range alone all users where one has a million interactions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark.engine.arrays import to_arrow, to_numpy, to_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rankeval_spark.config.slicing import Band
    from rankeval_spark.measures.arrays import FloatVector, IntVector

_DIGITS_OF_SPREAD: Final = 4
_DIGITS_OF_NUMBER: Final = 3

_MOST_PLACES: Final = 300  # decimal places beyond which a power of ten is no number any more
_MOST_WHOLE: Final = 2.0**53  # whole numbers below this are exact, and written without an exponent

_LEAST_POWER, _MOST_POWER = -323, 308
_POWERS: Final = np.array([float(f"1e{power}") for power in range(_LEAST_POWER, _MOST_POWER + 1)])

_PLAIN: Final = (1e-3, 1e7)  # numbers from the one to below the other are written without an exponent, as Java does


def find_edges(numbers: FloatVector, band: Band) -> FloatVector:
    """Return the edges of a band: the given ones, or quantiles of the finite numbers; none without any number."""
    if band.edges is not None:
        return np.array(band.edges, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    with np.errstate(over="ignore"):
        spread = float(finite.max() - finite.min()) if len(finite) else math.nan
    return _quantiles(*np.unique(round_numbers(finite, spread), return_counts=True), spread, band.shares)


def band_names(edges: FloatVector, band: Band) -> list[str]:
    """Return the names of the bands, the lowest first: as they are called, or by their bounds."""
    if band.names is not None:
        return list(band.names)
    texts = [number_text(edge) for edge in edges.tolist()]
    if not texts:
        return [""]
    inside = [f"[{low}, {high})" for low, high in pairwise(texts)]
    return [f"< {texts[0]}", *inside, f">= {texts[-1]}"]


def label_numbers(
    numbers: FloatVector,  # (n_users,), NaN where unknown
    edges: FloatVector,  # (n_edges,), those of `find_edges`; a band holds its lower edge
    band: Band,
) -> pa.Array:
    """Return the name of each number's band; NULL where there is no number, or no edge."""
    place = np.searchsorted(np.sort(edges), numbers, side="right")
    is_unknown = np.isnan(numbers) | (len(edges) == 0)
    return pc.take(to_texts(band_names(edges, band)), to_arrow(np.where(is_unknown, 0, place), is_null=is_unknown))


def edge_lists(edges: FloatVector, band: Band) -> dict[str, list[Any]]:
    """Return ``edges``, the ``names`` of the bands, and the edges as ``texts``."""
    numbers = edges.tolist()
    return {"edges": numbers, "names": band_names(edges, band), "texts": list(map(number_text, numbers))}


@dataclass(frozen=True)
class Quantiles:
    """Computes the edges of bands by quantiles on the workers of Spark."""

    bands: Mapping[int, Band]  # by their places among all bands

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the finite numbers of users once they are rounded: ``band``, ``spread``, ``number`` and ``n``.

        A band at place 0 is read from ``_number_0`` and, the same in all rows, ``_spread_0``.
        """
        for batch in (batch for batch in batches if batch.num_rows):
            for place in self.bands:
                numbers, spread = to_numpy(batch[f"_number_{place}"]), float(to_numpy(batch[f"_spread_{place}"])[0])
                found, n = np.unique(round_numbers(numbers[np.isfinite(numbers)], spread), return_counts=True)
                same = {"band": np.full(len(n), place, dtype=np.int32), "spread": np.full(len(n), spread)}
                columns = {**same, "number": found, "n": n.astype(np.int64)}
                yield pa.RecordBatch.from_pydict({name: to_arrow(column) for name, column in columns.items()})

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build the columns of :func:`edge_lists`, such as ``_edges_0``, from a row with a list of all these rows."""
        for batch in batches:
            band, spread, number, n = (to_numpy(column) for column in batch.column(0).flatten().flatten())
            row: dict[str, Any] = {}
            for place, wanted in self.bands.items():
                rows = np.flatnonzero(band == place)
                rows = rows[np.argsort(number[rows])]
                band_spread = float(spread[rows][0]) if len(rows) else math.nan
                edges = _quantiles(number[rows], n[rows], band_spread, wanted.shares)
                row |= {f"_{name}_{place}": found for name, found in edge_lists(edges, wanted).items()}
            types = {name: pa.list_(pa.float64() if name.startswith("_edges") else pa.string()) for name in row}
            yield pa.RecordBatch.from_pylist([row], pa.schema(types))


def _quantiles(numbers: FloatVector, n: IntVector, spread: float, shares: Sequence[float]) -> FloatVector:
    """Return quantiles of ascending numbers, ``n`` users each, rounded by the spread; empty without a number."""
    if not len(numbers):
        return np.zeros(0)
    ends = np.cumsum(n)
    position = (ends[-1] - 1) * np.array(shares)
    lower, upper = np.floor(position), np.ceil(position)
    low, high = (numbers[np.searchsorted(ends, place, side="right")] for place in (lower, upper))
    with np.errstate(over="ignore"):
        between = (upper - position) * low + (position - lower) * high
    return round_numbers(np.where((lower == upper) | (low == high), low, between), spread)


def round_numbers(numbers: FloatVector, spread: float) -> FloatVector:
    """Round to 4 digits of the spread, or to 3 of each number where these are finer; 0 and equal numbers stay."""
    if spread == 0 or not len(numbers):
        return numbers
    # Exponent of the power of ten at or below each number; one whose logarithm rounds to a whole one has that exponent,
    # as with Java's logarithm.
    sizes = np.abs(numbers)
    with np.errstate(divide="ignore"):
        near = np.floor(np.log10(sizes))
    exponent = np.clip(near, _LEAST_POWER, _MOST_POWER - 1).astype(np.int64)
    exponent += sizes >= _POWERS[exponent + 1 - _LEAST_POWER]
    of_number = _DIGITS_OF_NUMBER - 1 - exponent
    if np.isinf(spread):
        of_spread = -_MOST_POWER
    else:  # its logarithm is that of Java, the nearest double
        of_spread = _DIGITS_OF_SPREAD - 1 - int(np.floor(float(Decimal(spread).log10())))
    places = np.minimum(np.maximum(of_number, of_spread), _MOST_PLACES)
    power = _POWERS[np.abs(places) - _LEAST_POWER]
    with np.errstate(over="ignore", invalid="ignore"):  # a number far from 0 and a small spread: it stays as it is
        whole = np.where(places >= 0, numbers * power, numbers / power)
        cut = np.trunc(whole)
        nearest = cut + np.copysign(np.abs(whole - cut) >= 0.5, whole)  # noqa: PLR2004 - halves away from 0
        result = np.where(places >= 0, nearest / power, nearest * power)
    return np.where((numbers == 0) | (np.abs(whole) >= _MOST_WHOLE), numbers, result)


def number_text(number: float) -> str:
    """Write a number as Spark casts it to a string; a whole one below 2**53 without a fraction.

    >>> number_text(40.0), number_text(0.5), number_text(0.00001), number_text(1.5e300)
    ('40', '0.5', '1.0E-5', '1.5E300')
    """
    if abs(number) < _MOST_WHOLE and number == int(number):
        return str(int(number))
    shortest = repr(number)
    if len(Decimal(shortest).as_tuple().digits) == 1:
        shortest = f"{number:.1e}"  # two digits where one would do, the nearest two
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1
    low, high = _PLAIN
    if low <= abs(number) < high:
        written = f"0.{'0' * (-power - 1)}{text}" if power < 0 else f"{text[: power + 1]}.{text[power + 1 :] or '0'}"
    else:
        written = f"{text[0]}.{text[1:] or '0'}E{power}"
    return f"{'-' if sign else ''}{written}"

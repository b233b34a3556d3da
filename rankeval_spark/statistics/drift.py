"""Does a published mean lie outside the band of the nights before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.limits import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values

LEAST_NIGHTS: Final = 7
"""Number of earlier nights below which there is no band."""

_TO_STD_DEV: Final = 1.4826
"""Standard deviation of a normal distribution in units of its median absolute deviation."""


class DriftBand(NamedTuple):
    """Band of each row: median of the earlier nights, ends, and the number of nights with a value."""

    centre: Values
    low: Values
    high: Values
    n_nights: NDArray[np.int64]


def band_of(values: Values, std_errors: Values) -> DriftBand:
    """Compute the band in which the next night is expected: ``median -+ max(4 * 1.4826 MAD, 2 median se)``.

    Parameters
    ----------
    values, std_errors : float64, shape (n_rows, n_nights)
        The measure on earlier nights and its standard error; NaN where a night has none.

    Notes
    -----
    The first term is four robust standard deviations between nights, because nights differ by more than their users
    alone explain. The second keeps the band open where the nights were equal by chance. One or two unusual nights move
    neither.

    Examples
    --------
    >>> band = band_of(np.array([[0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.28]]), np.full((1, 7), 0.001))
    >>> [round(float(each[0]), 4) for each in band]
    [0.3, 0.2407, 0.3593, 7.0]
    """
    n_nights = (~np.isnan(values)).sum(axis=1)
    centre = _medians(values)
    spread = _TO_STD_DEV * _medians(np.abs(values - centre[:, None]))
    half = np.fmax(4 * spread, 2 * _medians(std_errors))
    centre, half = (np.where(n_nights >= LEAST_NIGHTS, each, np.nan) for each in (centre, half))
    return DriftBand(centre, centre - half, centre + half, n_nights.astype(np.int64))


def has_drifted(values: Values, band: DriftBand) -> NDArray[np.bool_]:
    """Whether each value lies outside its band, but for the rounding of its sum; False without a band or a value."""
    slack = ROUNDING * np.fmax(np.abs(values), np.fmax(np.abs(band.low), np.abs(band.high)))
    return (values < band.low - slack) | (values > band.high + slack)


def _medians(values: Values) -> Values:
    """Median of each row without its NaN; NaN where there is nothing else."""
    ordered = np.sort(values, axis=1)
    n = (~np.isnan(values)).sum(axis=1)
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    below, above = (np.maximum(n - 1, 0) // 2)[:, None], (n // 2)[:, None]
    places = (np.minimum(place, values.shape[1] - 1) for place in (below, above))
    middle = np.hstack([np.take_along_axis(ordered, place, axis=1) for place in places])
    medians: Values = middle.mean(axis=1)
    return medians

"""How far groups of users lie apart: the gap between the extremes, with an interval that knows they were picked."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from rankeval_spark.statistics.intervals import Values

_MOST_FREEDOM: Final = 1000
"""Degrees of freedom from which on the quantile does not change in the third digit."""


class Gap(NamedTuple):
    """Differences between the groups of one slicing; NaN where there is none.

    Attributes
    ----------
    gap : float
        Greatest value minus least.
    low, high : float
        Simultaneous interval of the gap.
    ratio : float
        Least value over greatest; NaN where the greatest is not above 0.
    mad : float
        Mean over all pairs of groups of the absolute difference.
    """

    gap: float
    low: float
    high: float
    ratio: float
    mad: float


def gap_of(values: Values, std_errors: Values, freedom: Values, level: float) -> Gap:
    """Compare groups of users.

    Parameters
    ----------
    values, std_errors : float64, shape (n_groups,)
        The measure in each group, and its standard error; NaN where there is none, and then there is no interval.
    freedom : float64, shape (n_groups,)
        Degrees of freedom of each standard error.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    Gap
        All NaN with fewer than two groups.

    Notes
    -----
    Games & Howell (1976): over all pairs at once ``|D| -+ q se``, ``se^2 = (se_g^2 + se_h^2) / 2``, q the quantile of
    the studentized range of so many groups; the gap lies between the greatest lower and the greatest upper end. The two
    extremes alone would seldom seem equal: 21 groups of 100 users that are the same have a mean gap of 0.115. The
    degrees of freedom are the least of all pairs (Welch), rounded down to two digits so that few quantiles are
    computed; both widen the interval.

    Examples
    --------
    >>> found = gap_of(np.array([0.2, 0.5, 0.4]), np.array([0.02, 0.02, 0.02]), np.array([99.0, 99.0, 99.0]), 0.95)
    >>> [round(float(each), 3) for each in found]
    [0.3, 0.233, 0.367, 0.4, 0.2]
    """
    n = len(values)
    if n < 2:  # noqa: PLR2004 - a difference takes two
        return Gap(np.nan, np.nan, np.nan, np.nan, np.nan)
    one, other = np.triu_indices(n, 1)
    distance = np.abs(values[one] - values[other])
    high, low = values.max(), values.min()
    half = _half_width(std_errors[one], std_errors[other], freedom[one], freedom[other], n, level)
    return Gap(
        float(high - low),
        float(np.maximum((distance - half).max(), 0.0)),  # NaN stays
        float((distance + half).max()),
        float(low / high) if high > 0 else np.nan,
        float(distance.mean()),
    )


def ratio_interval(values: Values, std_errors: Values, freedom: Values, level: float) -> tuple[float, float]:
    """Bound the ratio of the least to the greatest of the groups' true values.

    Parameters
    ----------
    values, std_errors, freedom : float64, shape (n_groups,)
        As for :func:`gap_of`; values of at least 0.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    low, high : float
        In [0, 1]; NaN with fewer than two groups, without an error, or where the greatest value is not above 0.

    Notes
    -----
    All groups lie at once in ``value -+ t_{1 - (1 - level) / (2 k)} se`` (Bonferroni, k groups). Then the least true
    value lies between the least lower and the least upper bound, the greatest likewise, and the ratio between the
    quotients ``min lower / max upper`` and ``min upper / max lower``.

    Examples
    --------
    >>> low, high = ratio_interval(np.array([0.2, 0.5]), np.array([0.02, 0.02]), np.array([99.0, 99.0]), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.283, 0.54)
    """
    if len(values) < 2 or not values.max() > 0:  # noqa: PLR2004 - a ratio takes two
        return np.nan, np.nan
    lower, upper = _simultaneous(values, std_errors, freedom, level)
    least = np.maximum(lower.min(), 0.0)  # NaN stays
    greatest = lower.max()
    high = np.minimum(upper.min() / greatest, 1.0) if greatest > 0 else np.where(np.isnan(greatest), np.nan, 1.0)
    return float(least / upper.max()), float(high)


def worst_interval(values: Values, std_errors: Values, freedom: Values, level: float) -> tuple[float, float]:
    """Bound the true value of the worst group, whichever it is.

    Returns
    -------
    low, high : float
        NaN without groups or without an error.

    Notes
    -----
    From the bounds of :func:`ratio_interval`, which hold for all groups at once: the least true value lies between the
    least lower and the least upper bound. The interval of the group that came out worst alone lies too low, for it was
    picked.

    Examples
    --------
    >>> low, high = worst_interval(np.array([0.2, 0.21]), np.array([0.02, 0.005]), np.array([99.0, 99.0]), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.154, 0.221)
    """
    if not len(values):
        return np.nan, np.nan
    lower, upper = _simultaneous(values, std_errors, freedom, level)
    return float(lower.min()), float(upper.min())


def _simultaneous(values: Values, std_errors: Values, freedom: Values, level: float) -> tuple[Values, Values]:
    half = stats.t.ppf(1 - (1 - level) / (2 * len(values)), freedom) * std_errors
    return values - half, values + half


def _half_width(  # noqa: PLR0913, PLR0917 - both groups of each pair
    one: Values, other: Values, freedom_one: Values, freedom_other: Values, n: int, level: float
) -> Values:
    squares = one**2 + other**2
    if np.isnan(squares).any() or not squares.any():
        return np.sqrt(squares)  # without spread there is no doubt, without errors no interval
    apart = one**4 / freedom_one + other**4 / freedom_other
    welch = np.divide(squares**2, apart, out=np.full_like(squares, np.inf), where=apart > 0)
    width: Values = _quantile(n, _rounded_down(float(welch.min())), level) * np.sqrt(squares / 2)
    return width


def _rounded_down(freedom: float) -> int:
    """Keep the first two digits of a number above 1.

    Examples
    --------
    >>> _rounded_down(158.7), _rounded_down(31.9), _rounded_down(np.inf)
    (150, 31, 1000)
    """
    whole = int(min(freedom, _MOST_FREEDOM))
    step = int(10 ** max(len(str(whole)) - 2, 0))
    return max(whole // step * step, 1)


@lru_cache(maxsize=1024)
def _quantile(n_groups: int, freedom: int, level: float) -> float:
    return float(stats.studentized_range.ppf(level, n_groups, freedom))

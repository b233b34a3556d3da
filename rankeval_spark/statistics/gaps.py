"""How far groups of users lie apart: the gap between the extremes, with an interval that accounts for their choice.

Every function takes arrays of shape (..., n_groups), a row for each measure, and answers for all rows at once; a group
that a row leaves out has the value NaN.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import special

from rankeval_spark.statistics import intervals, studentized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values

_MOST_FREEDOM: Final = 1000
"""Degrees of freedom from which on the quantile does not change in the third digit."""

_FEWEST: Final = 2
"""Groups that a difference takes."""


class Gap(NamedTuple):
    """Differences between the groups of one slicing, of shape (...,); NaN where there is none.

    Attributes
    ----------
    gap : float64
        Greatest value minus least.
    low, high : float64
        Simultaneous interval of the gap.
    ratio : float64
        Least value over greatest; NaN where the greatest is not above 0 or the least is below it.
    mad : float64
        Mean over all pairs of groups of the absolute difference.
    """

    gap: Values
    low: Values
    high: Values
    ratio: Values
    mad: Values


def gap_of(
    values: Values, std_errors: Values, freedom: Values, level: float, *, is_share: NDArray[np.bool_] | bool = False
) -> Gap:
    """Compare groups of users.

    Parameters
    ----------
    values, std_errors : float64, shape (..., n_groups)
        The measure in each group, and its standard error; NaN where there is none, and then there is no interval.
    freedom : float64, shape (..., n_groups)
        Degrees of freedom of each standard error.
    level : float
        Nominal coverage, in (0, 1).
    is_share : bool, shape (...,)
        Whether the values are shares, means of users' 0 and 1. A group in which all users are alike then has the
        standard error of Agresti & Coull's share, for so many users may be alike by chance.

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
    is_alike = _broadcast(is_share, values) & (std_errors == 0)
    std_errors = np.where(is_alike, _agresti_coull(values, freedom), std_errors)
    ordered = np.sort(values, axis=-1)  # NaN last
    n = np.sum(~np.isnan(ordered), axis=-1)
    high, low = _greatest(ordered), _least(ordered)
    lower, upper = _of_pairs(values, std_errors, freedom, n, level)
    found = Gap(high - low, np.maximum(lower, 0.0), upper, _ratio(low, high), _mean_difference(ordered, n))
    return Gap(*(np.where(n < _FEWEST, np.nan, each)[()] for each in found))


def ratio_interval(
    values: Values, std_errors: Values, freedom: Values, level: float, *, is_share: NDArray[np.bool_] | bool = False
) -> tuple[Values, Values]:
    """Bound the ratio of the least to the greatest of the groups' true values.

    Parameters
    ----------
    values, std_errors, freedom : float64, shape (..., n_groups)
        As for :func:`gap_of`.
    level : float
        Nominal coverage, in (0, 1).
    is_share : bool, shape (...,)
        Whether the values are shares, means of users' 0 and 1, whose bounds then are Wilson's.

    Returns
    -------
    low, high : float64, shape (...,)
        In [0, 1]; NaN with fewer than two groups, without an error, or where there is no ratio.

    Notes
    -----
    All groups lie at once in ``value -+ t_{1 - (1 - level) / (2 k)} se``, or in Wilson's interval of the same level
    (Bonferroni, k groups). Then the least true value lies between the least lower and the least upper bound, the
    greatest likewise, and the ratio between the quotients ``min lower / max upper`` and ``min upper / max lower``.

    Examples
    --------
    >>> low, high = ratio_interval(np.array([0.2, 0.5]), np.array([0.02, 0.02]), np.array([99.0, 99.0]), 0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.283, 0.54)
    """
    found = _bounds(values, std_errors, freedom, level, is_share)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(found.least_lower, 0.0) / found.greatest_upper
        high = np.minimum(found.least_upper / found.greatest_lower, 1.0)
    high = np.where(found.greatest_lower <= 0, 1.0, high)
    has_ratio = ~np.isnan(_ratio(_least(values), _greatest(values)))
    is_there = has_ratio & (np.sum(~np.isnan(values), axis=-1) >= _FEWEST)
    return np.where(is_there, low, np.nan)[()], np.where(is_there, high, np.nan)[()]


def worst_interval(  # noqa: PLR0913 - options by keyword
    values: Values,
    std_errors: Values,
    freedom: Values,
    level: float,
    *,
    is_greatest: NDArray[np.bool_] | bool = False,
    is_share: NDArray[np.bool_] | bool = False,
) -> tuple[Values, Values]:
    """Bound the true value of the worst group, whichever it is.

    Parameters
    ----------
    values, std_errors, freedom : float64, shape (..., n_groups)
        As for :func:`gap_of`.
    level : float
        Nominal coverage, in (0, 1).
    is_greatest : bool, shape (...,)
        Whether the worst value is the greatest, as of an error.
    is_share : bool, shape (...,)
        As for :func:`ratio_interval`.

    Returns
    -------
    low, high : float64, shape (...,)
        NaN without groups or without an error.

    Notes
    -----
    From the bounds of :func:`ratio_interval`, which hold for all groups at once: the least true value lies between the
    least lower and the least upper bound. The interval of the group that came out worst alone lies too low, for it was
    picked.

    Examples
    --------
    >>> low, high = worst_interval(np.array([0.2, 0.21]), np.array([0.02, 0.005]), np.array([99.0, 99.0]), 0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.154, 0.221)
    """
    found = _bounds(values, std_errors, freedom, level, is_share)
    low = np.where(is_greatest, found.greatest_lower, found.least_lower)
    high = np.where(is_greatest, found.greatest_upper, found.least_upper)
    return low[()], high[()]


class _Bounds(NamedTuple):
    """Extremes of the simultaneous bounds of the groups of each row; NaN where there are none."""

    least_lower: Values
    greatest_lower: Values
    least_upper: Values
    greatest_upper: Values


def _bounds(
    values: Values, std_errors: Values, freedom: Values, level: float, is_share: NDArray[np.bool_] | bool
) -> _Bounds:
    is_in = ~np.isnan(values)
    tail = (1 - level) / (2 * np.maximum(is_in.sum(axis=-1, keepdims=True), 1))
    half = special.stdtrit(freedom, 1 - tail) * std_errors
    n = np.where(np.isnan(std_errors), np.nan, freedom + 1)
    of_share = _broadcast(is_share, values)
    shares = np.where(of_share, values, np.nan)
    wilson = intervals.wilson_interval(n, shares, std_errors**2 * n * freedom, 1 - 2 * tail)
    lower, upper = (
        np.where(of_share, share, mean) for share, mean in zip(wilson, (values - half, values + half), strict=True)
    )
    is_bounded = is_in.any(axis=-1) & ~(is_in & np.isnan(lower)).any(axis=-1)
    extremes = (_least(lower), _greatest(lower), _least(upper), _greatest(upper))
    return _Bounds(*(np.where(is_bounded, each, np.nan)[()] for each in extremes))


def _broadcast(is_share: NDArray[np.bool_] | bool, values: Values) -> NDArray[np.bool_]:
    """Say of each group of a row what is said of the row."""
    return np.broadcast_to(np.asarray(is_share)[..., None], values.shape)


def _agresti_coull(shares: Values, freedom: Values) -> Values:
    """Compute the standard error of shares with two more users who have 1 and two more who have 0."""
    n = freedom + 1
    share = np.clip((shares * n + 2) / (n + 4), 0.0, 1.0)
    error: Values = np.sqrt(share * (1 - share) / (n + 4))
    return error


def _greatest(values: Values) -> Values:
    """Return the greatest value of each row that is not NaN; -inf where there is none."""
    greatest: Values = np.fmax.reduce(values, axis=-1, initial=-np.inf)
    return greatest


def _least(values: Values) -> Values:
    """Return the least value of each row that is not NaN; inf where there is none."""
    least: Values = np.fmin.reduce(values, axis=-1, initial=np.inf)
    return least


def _ratio(low: Values, high: Values) -> Values:
    has_ratio = (high > 0) & (low >= 0) & np.isfinite(high)
    ratio: Values = np.divide(low, high, out=np.full(np.shape(low), np.nan), where=has_ratio)
    return ratio


def _mean_difference(ordered: Values, n: NDArray[np.int_]) -> Values:
    """Average the differences of all pairs: each step between neighbours is part of as many as lie on its two sides."""
    steps = np.nan_to_num(np.diff(ordered, axis=-1))
    below = np.arange(1, ordered.shape[-1])
    above = np.maximum(n[..., None] - below, 0)
    mean: Values = (steps * below * above).sum(axis=-1) / np.maximum(n * (n - 1) / 2, 1)
    return mean


def _of_pairs(
    values: Values, std_errors: Values, freedom: Values, n: NDArray[np.int_], level: float
) -> tuple[Values, Values]:
    """Return the greatest lower and the greatest upper end of the differences of all pairs of each row."""
    is_in = ~np.isnan(values)
    errors = np.where(is_in, std_errors, np.nan)
    has_errors = ~(is_in & np.isnan(errors)).any(axis=-1)
    q = _quantiles(n, _least_freedom(errors, freedom), level)
    lower, upper = np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    for one in range(values.shape[-1] - 1):  # a group with all after it: as much memory as there are groups, not pairs
        distance = np.abs(values[..., one + 1 :] - values[..., one, None])
        half = q[..., None] * np.sqrt((errors[..., one + 1 :] ** 2 + errors[..., one, None] ** 2) / 2)
        lower = np.fmax(lower, np.fmax.reduce(distance - half, axis=-1))
        upper = np.fmax(upper, np.fmax.reduce(distance + half, axis=-1))
    return np.where(has_errors, lower, np.nan), np.where(has_errors, upper, np.nan)


def _least_freedom(errors: Values, freedom: Values) -> Values:
    """Return the least of Welch's degrees of freedom of all pairs; infinite where no pair has any spread."""
    squares = errors**2
    apart = np.divide(squares**2, freedom, out=np.full(squares.shape, np.nan), where=freedom > 0)
    least = np.full(errors.shape[:-1], np.inf)
    for one in range(errors.shape[-1] - 1):
        both = squares[..., one + 1 :] + squares[..., one, None]
        below = apart[..., one + 1 :] + apart[..., one, None]
        welch = np.divide(both**2, below, out=np.full(both.shape, np.inf), where=below > 0)
        least = np.fmin(least, np.fmin.reduce(welch, axis=-1))
    return least


def _quantiles(n: NDArray[np.int_], freedom: Values, level: float) -> Values:
    found = [
        _quantile(n_groups, _rounded_down(least), level) if n_groups >= _FEWEST else np.nan
        for n_groups, least in zip(n.ravel().tolist(), freedom.ravel().tolist(), strict=True)
    ]
    return np.array(found, dtype=np.float64).reshape(n.shape)


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


@lru_cache(maxsize=4096)
def _quantile(n_groups: int, freedom: int, level: float) -> float:
    return studentized.quantile(level, n_groups, freedom)

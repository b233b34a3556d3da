"""How far groups of users lie apart: the gap between the extremes, with an interval that accounts for their choice.

Every function takes :class:`GroupMeans`, one row per measure, and answers for all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import special

from rankeval_spark.statistics import distributions, intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values

_MOST_FREEDOM: Final = 1000
"""Degrees of freedom above which the quantile does not change in the third digit."""

_FEWEST: Final = 2
"""Groups that a difference needs."""


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """A measure in each group, for each of several measures.

    Parameters
    ----------
    values, std_errors, freedom : float64, shape (..., n_groups)
        The measure, its standard error and the error's degrees of freedom; NaN for a group that the row leaves out. A
        value without an error leaves its row without an interval.
    level : float
        Nominal coverage, in (0, 1).
    is_share : bool, shape (...,)
        Whether the values are means of users' 0 and 1, which have Wilson's bounds.
    bounds : pair of float64, shape (...,)
        Least and greatest value that a user can have; NaN where the values are no means over users. They allow for a
        group in which all users are equal by chance: Agresti & Coull's error for the gap, for the others bounds by the
        share of users who may have another value. Without a finite range such a group leaves its row without an
        interval.
    """

    values: Values
    std_errors: Values
    freedom: Values
    level: float
    is_share: NDArray[np.bool_] | bool = False
    bounds: tuple[Values | float, Values | float] = (np.nan, np.nan)

    @property
    def range_by_group(self) -> tuple[Values, Values]:
        """Least and greatest value of a user, repeated for each group: 0 and 1 of shares."""
        least, greatest = (np.asarray(end, dtype=np.float64)[..., None] for end in self.bounds)
        is_share = self.is_share_by_group
        return np.where(is_share, 0.0, least), np.where(is_share, 1.0, greatest)

    @property
    def are_users_equal(self) -> NDArray[np.bool_]:
        """Whether all users of a group have the same value, shape (..., n_groups)."""
        n = self.freedom + 1
        is_mean = ~np.isnan(self.range_by_group[0])
        return is_mean & intervals.are_equal(n, self.values, self.std_errors**2 * n * self.freedom)

    @property
    def is_share_by_group(self) -> NDArray[np.bool_]:
        """``is_share`` repeated for each group."""
        return np.broadcast_to(np.asarray(self.is_share)[..., None], self.values.shape)


class Gap(NamedTuple):
    """Differences between the groups of one slicing, of shape (...,); NaN with fewer than two groups.

    Attributes
    ----------
    gap, low, high : float64
        Greatest value minus least, and its simultaneous interval.
    ratio : float64
        Least value over greatest; NaN where the greatest is not above 0 or the least is below it.
    mad : float64
        Mean absolute difference over all pairs of groups.
    """

    gap: Values
    low: Values
    high: Values
    ratio: Values
    mad: Values


class ExtremeBounds(NamedTuple):
    """Bounds of the least and of the greatest true value, of shape (...,); NaN without groups or without an error."""

    least_lower: Values
    greatest_lower: Values
    least_upper: Values
    greatest_upper: Values


def gap_of(groups: GroupMeans) -> Gap:
    """Compare groups of users: gap with its interval, ratio, mean absolute difference.

    Notes
    -----
    Games & Howell (1976): over all pairs at once ``|D| -+ q se``, ``se^2 = (se_g^2 + se_h^2) / 2``, q the quantile of
    the studentized range of so many groups. The gap lies between the greatest lower and the greatest upper end. The two
    extremes alone would seldom seem equal: 21 equal groups of 100 users have a mean gap of 0.115. The degrees of
    freedom are the least of all pairs (Welch), rounded down to two digits so that few quantiles are computed; both
    widen the interval.

    Examples
    --------
    >>> found = gap_of(GroupMeans(np.array([0.2, 0.5, 0.4]), np.full(3, 0.02), np.full(3, 99.0), 0.95))
    >>> [round(float(each), 3) for each in found]
    [0.3, 0.233, 0.367, 0.4, 0.2]
    """
    errors = np.where(groups.are_users_equal, _agresti_coull(groups), groups.std_errors)
    ordered = np.sort(groups.values, axis=-1)  # NaN last
    n = np.sum(~np.isnan(ordered), axis=-1)
    high, low = _greatest(ordered), _least(ordered)
    lower, upper = _greatest_ends(groups, errors, n)
    found = Gap(high - low, np.maximum(lower, 0.0), upper, _ratio(low, high), _mean_difference(ordered, n))
    return Gap(*(np.where(n < _FEWEST, np.nan, each)[()] for each in found))


def ratio_interval(groups: GroupMeans) -> tuple[Values, Values]:
    """Interval, within [0, 1], of the ratio of the least to the greatest true value; NaN where there is no ratio.

    From :func:`extreme_bounds`: between ``min lower / max upper`` and ``min upper / max lower``.

    Examples
    --------
    >>> low, high = ratio_interval(GroupMeans(np.array([0.2, 0.5]), np.full(2, 0.02), np.full(2, 99.0), 0.95))
    >>> round(float(low), 3), round(float(high), 3)
    (0.283, 0.54)
    """
    bounds = extreme_bounds(groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(bounds.least_lower, 0.0) / bounds.greatest_upper
        high = np.minimum(bounds.least_upper / bounds.greatest_lower, 1.0)
    high = np.where(bounds.greatest_lower <= 0, 1.0, high)
    has_ratio = ~np.isnan(_ratio(_least(groups.values), _greatest(groups.values)))
    has_ratio &= np.sum(~np.isnan(groups.values), axis=-1) >= _FEWEST
    return np.where(has_ratio, low, np.nan)[()], np.where(has_ratio, high, np.nan)[()]


def worst_interval(groups: GroupMeans, *, is_greatest: NDArray[np.bool_] | bool = False) -> tuple[Values, Values]:
    """Interval of the true value of the worst group; the worst value is the greatest where ``is_greatest``.

    From :func:`extreme_bounds`. The interval of the observed worst group alone lies too low, because it was chosen.

    Examples
    --------
    >>> groups = GroupMeans(np.array([0.2, 0.21]), np.array([0.02, 0.005]), np.array([99.0, 99.0]), 0.95)
    >>> [round(float(end), 3) for end in worst_interval(groups)]
    [0.154, 0.221]
    """
    bounds = extreme_bounds(groups)
    low = np.where(is_greatest, bounds.greatest_lower, bounds.least_lower)
    high = np.where(is_greatest, bounds.greatest_upper, bounds.least_upper)
    return low[()], high[()]


def extreme_bounds(groups: GroupMeans) -> ExtremeBounds:
    """Bound the least and the greatest true value.

    Notes
    -----
    All k groups lie at once in ``value -+ t_{1 - (1 - level) / (2 k)} se``, or in Wilson's interval of the same level
    (Bonferroni), or, where all users are equal, in that of :func:`intervals.equal_values_interval`. So the least true
    value lies between the least lower and the least upper bound; likewise the greatest.
    """
    values, errors = groups.values, groups.std_errors
    is_in = ~np.isnan(values)
    tail = (1 - groups.level) / (2 * np.maximum(is_in.sum(axis=-1, keepdims=True), 1))
    half = special.stdtrit(groups.freedom, 1 - tail) * errors
    n = np.where(np.isnan(errors), np.nan, groups.freedom + 1)
    shares = np.where(groups.is_share_by_group, values, np.nan)
    wilson = intervals.wilson_interval(n, shares, errors**2 * n * groups.freedom, 1 - 2 * tail)
    of_equal = intervals.equal_values_interval(n, values, groups.range_by_group, 1 - 2 * tail)
    lower, upper = (
        np.where(groups.is_share_by_group, share, np.where(groups.are_users_equal, equal, mean))
        for share, equal, mean in zip(wilson, of_equal, (values - half, values + half), strict=True)
    )
    is_bounded = is_in.any(axis=-1) & ~(is_in & np.isnan(lower)).any(axis=-1)
    extremes = (_least(lower), _greatest(lower), _least(upper), _greatest(upper))
    return ExtremeBounds(*(np.where(is_bounded, each, np.nan)[()] for each in extremes))


def _agresti_coull(groups: GroupMeans) -> Values:
    """Error of a mean of equal values, after adding two users with the least value and two with the greatest.

    A share that all users have is a mean of zeros and ones.
    """
    n, (least, greatest) = groups.freedom + 1, groups.range_by_group
    width = np.where(np.isfinite(least) & np.isfinite(greatest), greatest - least, np.nan)
    own = np.clip((groups.values - least) / width, 0.0, 1.0)
    mean, mean_square = ((n * each + 2) / (n + 4) for each in (own, np.where(groups.is_share_by_group, own, own**2)))
    return width * np.sqrt(np.maximum(mean_square - mean**2, 0.0) / (n + 4))


def _greatest(values: Values) -> Values:
    """Greatest value of each row that is not NaN; -inf where there is none."""
    greatest: Values = np.fmax.reduce(values, axis=-1, initial=-np.inf)
    return greatest


def _least(values: Values) -> Values:
    """Least value of each row that is not NaN; inf where there is none."""
    least: Values = np.fmin.reduce(values, axis=-1, initial=np.inf)
    return least


def _ratio(low: Values, high: Values) -> Values:
    has_ratio = (high > 0) & (low >= 0) & np.isfinite(high)
    ratio: Values = np.divide(low, high, out=np.full(np.shape(low), np.nan), where=has_ratio)
    return ratio


def _mean_difference(ordered: Values, n: NDArray[np.int_]) -> Values:
    """Average the differences of all pairs: a step between neighbours is part of every pair that lies across it."""
    steps = np.nan_to_num(np.diff(ordered, axis=-1))
    below = np.arange(1, ordered.shape[-1])
    above = np.maximum(n[..., None] - below, 0)
    mean: Values = (steps * below * above).sum(axis=-1) / np.maximum(n * (n - 1) / 2, 1)
    return mean


def _greatest_ends(groups: GroupMeans, std_errors: Values, n: NDArray[np.int_]) -> tuple[Values, Values]:
    """Greatest lower and greatest upper end of the differences of all pairs of each row."""
    values = groups.values
    is_in = ~np.isnan(values)
    errors = np.where(is_in, std_errors, np.nan)
    has_errors = ~(is_in & np.isnan(errors)).any(axis=-1)
    q = _quantiles(n, _least_freedom(errors, groups.freedom), groups.level)
    lower, upper = np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    for one in range(values.shape[-1] - 1):  # a group with all after it: memory grows with groups, not pairs
        distance = np.abs(values[..., one + 1 :] - values[..., one, None])
        half = q[..., None] * np.sqrt((errors[..., one + 1 :] ** 2 + errors[..., one, None] ** 2) / 2)
        lower = np.fmax(lower, np.fmax.reduce(distance - half, axis=-1))
        upper = np.fmax(upper, np.fmax.reduce(distance + half, axis=-1))
    return np.where(has_errors, lower, np.nan), np.where(has_errors, upper, np.nan)


def _least_freedom(errors: Values, freedom: Values) -> Values:
    """Least of Welch's degrees of freedom of all pairs; infinite where no pair has any spread."""
    squares = errors**2
    terms = np.divide(squares**2, freedom, out=np.full(squares.shape, np.nan), where=freedom > 0)
    least = np.full(errors.shape[:-1], np.inf)
    for one in range(errors.shape[-1] - 1):
        both = squares[..., one + 1 :] + squares[..., one, None]
        below = terms[..., one + 1 :] + terms[..., one, None]
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
    """Keep the first two digits of a number above 1."""
    whole = int(min(freedom, _MOST_FREEDOM))
    step = int(10 ** max(len(str(whole)) - 2, 0))
    return max(whole // step * step, 1)


@lru_cache(maxsize=4096)
def _quantile(n_groups: int, freedom: int, level: float) -> float:
    return distributions.studentized_range_quantile(level, n_groups, freedom)

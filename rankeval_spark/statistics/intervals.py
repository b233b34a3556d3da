"""Intervals of means over users from their moments, also of logarithms or squares; jackknife intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rankeval_spark.statistics import distributions
from rankeval_spark.statistics.moments import SQUARES, nan_if_beyond_doubles

Values: TypeAlias = NDArray[np.float64]

MIN_NONZERO: Final = 10  # users with a value other than 0, or by squared skewness, for a certain interval
_ROUNDING: Final = 1e-12  # standard deviation up to which values count as all equal: rounding of values of the order 1

# By link, the published value of a mean of linked values: GMAP averages logarithms, RMSE squares.
PUBLISHED: Final[Mapping[str, Callable[[Values], Values]]] = {
    "identity": lambda means: means,
    "log": np.exp,
    "square": lambda means: np.sqrt(np.maximum(means, 0.0)),
}
_LINKS: Final[Mapping[str, Callable[[Values], Values]]] = {"log": np.log, "square": np.square}


class Spread(NamedTuple):
    """Standard error and interval of each row."""

    std_error: Values
    low: Values
    high: Values


def t_interval(n: ArrayLike, mean: ArrayLike, m2: ArrayLike, level: float) -> tuple[Values, Values]:
    """Return Student's interval of a mean, from the sum of squared deviations ``m2``; NaN below two users.

    ``mean -+ t_{n-1, (1 + level) / 2} sqrt(m2 / (n - 1) / n)``. Values 1, 2 and 3: 2 -+ 4.3027 / sqrt(3).

    >>> low, high = t_interval(3, 2.0, 2.0, 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (-0.4841, 4.4841)
    """
    n, mean, m2 = _as_arrays(n, mean, m2)
    has_spread = n > 1
    freedom = np.where(has_spread, n - 1, np.nan)
    half = _t_quantile(freedom, (1 + level) / 2) * np.sqrt(m2 / freedom / np.where(has_spread, n, np.nan))
    return mean - half, mean + half


def skewed_interval(
    n: ArrayLike,
    mean: ArrayLike,
    m2: ArrayLike,  # sum of squared deviations from the mean
    m3: ArrayLike,  # sum of cubed deviations
    bounds: tuple[ArrayLike, ArrayLike],  # least and greatest value that a user can have; may be infinite
    level: float,
    *,
    lean: ArrayLike = 0.0,  # that of `ratios.skewness_terms` where the means are ratios of sums
) -> tuple[Values, Values]:
    """Return Hall's interval of a mean, which allows for skewness, in the range of the values; NaN below two users.

    Student's T of a mean of skewed values is skewed, and ``g(T) = T + a T^2 + a^2 T^3 / 3 + s / (6 sqrt n)`` is not,
    with s the skewness of the values and ``a = s / (3 sqrt n)`` (Hall 1992). The interval is that of all means with
    ``|g(T)| <= t_{n-1}``; without skewness it is Student's. T of a ratio of sums also grows with its square, by ``h =
    lean / sqrt(n (n - 1) m2)``; there ``a - h`` takes the place of a.

    Of values in a finite range none vary more than least and greatest values of the same mean do. So the interval ends
    where that of a share of n users ends, which is Wilson's with the quantile of t.

    One of four users has 1, the others 0. Student's interval is -0.55 to 1.05.

    >>> low, high = skewed_interval(4, 0.25, 0.75, 0.375, (0.0, 1.0), 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (0.0211, 0.8373)
    """
    n, mean, m2, m3, lean, least, greatest = _as_arrays(n, mean, m2, m3, lean, *bounds)
    many = np.where(n > 1, n, np.nan)
    std_error = np.sqrt(m2 / (many - 1) / many)
    relative = skewness(n, m2, m3) / np.sqrt(many)
    bend = relative - 3 * np.divide(lean, many * (many - 1) * std_error, out=np.zeros_like(mean), where=std_error > 0)
    quantile = _t_quantile(many - 1, (1 + level) / 2)
    # T with g(T) = end, without the difference of (cbrt(1 + bend end) - 1) / a, which loses the digits of a small a.
    ends = [end - relative / 6 for end in (quantile, -quantile)]
    roots = [np.cbrt(1 + bend * end) for end in ends]
    low, high = (mean - std_error * (3 * end / (1 + root + root**2)) for end, root in zip(ends, roots, strict=True))
    width = np.where(np.isfinite(greatest - least), greatest - least, np.nan)
    shares = _wilson_limits(np.clip((mean - least) / width, 0.0, 1.0), many, quantile**2)
    floor, ceiling = (
        np.where(np.isnan(width), end, least + width * share) for end, share in zip(bounds, shares, strict=True)
    )
    return np.minimum(np.maximum(low, floor), mean), np.maximum(np.minimum(high, ceiling), mean)


def skewness(n: ArrayLike, m2: ArrayLike, m3: ArrayLike) -> Values:
    """Return the skewness ``sqrt(n) m3 / m2^1.5``, at most ``(n - 2) / sqrt(n - 1)``; 0 without spread.

    >>> float(skewness(4, 0.75, 0.375).round(4))
    1.1547
    """
    n, m2, m3 = _as_arrays(n, m2, m3)
    m2 = np.where(m2 >= SQUARES[0], m2, np.nan)
    most = np.maximum(n - 2, 0.0) / np.sqrt(np.maximum(n - 1, 1.0))
    return np.nan_to_num(np.clip(np.sqrt(n / m2) * (m3 / m2), -most, most), posinf=0.0, neginf=0.0)


def are_uncertain(n: Values, m2: Values, m3: Values, n_nonzero: Values) -> NDArray[np.bool_]:
    """Return where so few users decide about an interval that it may miss its mean more often than its level says.

    Fewer than 10 users have a value other than 0; or the values are so skewed that ``n / skewness^2`` is below 10, as
    it is where fewer than about 10 users have a 1 and the others a 0 (Cochran 1977, Sampling techniques, 2.15).
    """
    return (n_nonzero < MIN_NONZERO) | (n < MIN_NONZERO * skewness(n, m2, m3) ** 2)


def wilson_interval(n: ArrayLike, mean: ArrayLike, m2: ArrayLike, level: ArrayLike) -> tuple[Values, Values]:
    """Return Wilson's interval of a share, or a mean of shares; NaN below two users or outside [0, 1].

    Arguments are those of :func:`t_interval`; ``level`` may differ by row. Where users have 0 or 1, ``m2 / n = mean (1
    - mean)`` and this is Wilson's interval (1927) for n trials. Values in between (several lists per user) vary less,
    which counts as more trials: ``n_eff = n mean (1 - mean) / (m2 / n)``, and n where all values are equal. The same
    formula serves a linearised mean over the lists of users. 7 of 10 users have a hit:

    >>> low, high = wilson_interval(10, 0.7, 10 * 0.7 * 0.3, 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (0.3968, 0.8922)
    """
    n, mean, m2 = _as_arrays(n, mean, m2)
    is_share = (mean >= -_ROUNDING) & (mean <= 1 + _ROUNDING)
    n = np.where((n > 1) & is_share, n, np.nan)
    variance = m2 / n
    is_constant = ~(variance > _ROUNDING**2)  # trials that are as certain as one user's value: 1 if all are equal
    trials = n * np.where(is_constant, 1.0, mean * (1 - mean) / np.where(is_constant, 1.0, variance))
    return _wilson_limits(mean, trials, special.ndtri((1 + np.asarray(level)) / 2) ** 2)


def are_equal(n: ArrayLike, mean: ArrayLike, m2: ArrayLike) -> NDArray[np.bool_]:
    """Return where all values, at least two, are equal but for rounding; arguments are those of `t_interval`."""
    n, mean, m2 = _as_arrays(n, mean, m2)
    with np.errstate(over="ignore"):
        return (n > 1) & (nan_if_beyond_doubles(m2, mean) <= n * (_ROUNDING * mean) ** 2)


def equal_values_interval(
    n: ArrayLike, value: ArrayLike, bounds: tuple[ArrayLike, ArrayLike], level: ArrayLike
) -> tuple[Values, Values]:
    """Return the interval of a mean over n users with the same value; NaN below two or outside a finite range.

    Student's interval would be a point. But at most a share u of all users has another value, with u Wilson's upper
    bound of none in n, and each of these is in the range. So the mean lies between ``value - u (value - least)`` and
    ``value + u (greatest - value)``. None of 38 users has a hit:

    >>> low, high = equal_values_interval(38, 0.0, (0.0, 1.0), 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (0.0, 0.0918)
    """
    n, value, least, greatest = _as_arrays(n, value, *bounds)
    is_within = np.isfinite(greatest - least) & (value >= least - _ROUNDING) & (value <= greatest + _ROUNDING)
    most = np.where(is_within, wilson_interval(n, 0.0, 0.0, level)[1], np.nan)
    return value - most * (value - least), value + most * (greatest - value)


def jackknife(
    value: Values,  # (n_rows,), the statistic over all users
    without: Values,  # (n_rows, n_groups), the statistic without the users of each group
    n_users: NDArray[np.int64],  # (n_rows, n_groups), users of each group; groups without users are left out
    level: float,
    bounds: tuple[float, float],  # range of the statistic, to which the interval is cut
) -> Spread:
    """Return the jackknife interval of a statistic that is no mean; NaN below two groups or if a `without` is NaN.

    The delete-m jackknife for groups of unequal size (Busing, Meijer & van der Leeden 1999): with G groups and h_g =
    n / n_g, ``se^2 = 1/G sum_g (p_g - p)^2 / (h_g - 1)``, where ``p_g = h_g t - (h_g - 1) t_g`` and ``p = sum_g p_g /
    h_g``, and ``t -+ t_{G-1} se``. The mean of 1, 2 and 3, each a group: the error is that of a mean, sqrt(1 / 3).

    >>> without = np.array([[2.5, 2.0, 1.5]])
    >>> spread = jackknife(np.array([2.0]), without, np.ones((1, 3), int), 0.95, (0, 10))
    >>> [float(each[0].round(4)) for each in spread]
    [0.5774, 0.0, 4.4841]
    """
    has_users = n_users > 0
    n_groups = has_users.sum(axis=1).astype(np.float64)
    n_groups = np.where(n_groups > 1, n_groups, np.nan)
    share = n_users / np.maximum(n_users.sum(axis=1, keepdims=True), 1)  # 1 / h
    left = np.where(has_users, value[:, None] - (1 - share) * without, 0.0)  # p_g / h_g
    scaled = np.divide(left, share, out=np.zeros(left.shape), where=has_users) - left.sum(axis=1, keepdims=True)
    squares = np.where(has_users, scaled**2 * share / np.where(share < 1, 1 - share, np.nan), 0.0).sum(axis=1)
    std_error = np.sqrt(squares / n_groups)
    half = distributions.t_quantile((1 + level) / 2, n_groups - 1) * std_error
    low, high = bounds
    return Spread(std_error, np.clip(value - half, low, high), np.clip(value + half, low, high))


def to_published(link: str, means: Values) -> Values:
    """Return the published value of a linked mean, or of its interval's end; 0 for squares below 0."""
    with np.errstate(over="ignore"):  # the end of a wide interval of logarithms is infinite
        return PUBLISHED[link](means)


def to_linked(link: str, values: Values) -> Values:
    """Compute the linked values that are averaged from published ones, or from their bounds."""
    return _LINKS[link](values) if link in _LINKS else values


def to_published_error(link: str, values: Values, std_errors: Values) -> Values:
    """Compute the standard error of a published value from that of the linked mean, by the delta method."""
    if link == "log":
        return std_errors * values
    if link == "square":
        slope: Values = 1 / (2 * np.where(values > 0, values, np.nan))
        return std_errors * slope
    return std_errors


def _wilson_limits(share: Values, trials: Values, quantile_squared: Values) -> tuple[Values, Values]:
    """Return Wilson's interval of a share in ``trials`` trials."""
    centre = (share + quantile_squared / (2 * trials)) / (1 + quantile_squared / trials)
    spread = np.sqrt(quantile_squared * (share * (1 - share) / trials + quantile_squared / (4 * trials**2)))
    half = spread / (1 + quantile_squared / trials)
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def _t_quantile(freedom: Values, probability: float) -> Values:
    """Return the quantile at each number of degrees of freedom; computed once for each distinct one."""
    distinct, position = np.unique(freedom, return_inverse=True)
    quantiles: Values = distributions.t_quantile(probability, distinct)
    return quantiles[position].reshape(freedom.shape)


def _as_arrays(*values: ArrayLike) -> tuple[Values, ...]:
    """Broadcast numbers to float64 arrays of one shape."""
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))

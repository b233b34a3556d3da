"""Intervals of a mean over users, from its moments."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval_spark.statistics import distributions

Values: TypeAlias = NDArray[np.float64]

_ROUNDING: Final = 1e-12
"""Standard deviation up to which values count as all equal: rounding of values of the order 1."""


def t_interval(n: ArrayLike, mean: ArrayLike, m2: ArrayLike, level: float) -> tuple[Values, Values]:
    """Student's interval of a mean.

    Parameters
    ----------
    n : int
        Users.
    mean : float64
        Mean of their values.
    m2 : float64
        Sum of squared deviations from the mean.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    low, high : float64
        Of the common shape of the inputs; NaN below two users.

    Notes
    -----
    ``mean -+ t_{n-1, (1 + level) / 2} sqrt(m2 / (n - 1) / n)``.

    Examples
    --------
    Values 1, 2 and 3: 2 -+ 4.3027 / sqrt(3).

    >>> low, high = t_interval(3, 2.0, 2.0, 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (-0.4841, 4.4841)
    """
    n, mean, m2 = _as_arrays(n, mean, m2)
    has_spread = n > 1
    freedom = np.where(has_spread, n - 1, np.nan)
    half = _t_quantile(freedom, (1 + level) / 2) * np.sqrt(m2 / freedom / np.where(has_spread, n, np.nan))
    return mean - half, mean + half


def wilson_interval(n: ArrayLike, mean: ArrayLike, m2: ArrayLike, level: ArrayLike) -> tuple[Values, Values]:
    """Wilson's interval of a share, or of the mean of users' shares.

    Parameters
    ----------
    n : int
        Users.
    mean : float64
        Mean of their values, each in [0, 1].
    m2 : float64
        Sum of squared deviations from the mean.
    level : float
        Nominal coverage, in (0, 1); one for all, or of a shape that goes with the others.

    Returns
    -------
    low, high : float64
        In [0, 1], of the common shape of the inputs; NaN below two users and where the mean is outside [0, 1].

    Notes
    -----
    Wilson (1927), Probable inference, the law of succession, and statistical inference. Where users have 0 or 1,
    ``m2 / n = mean (1 - mean)`` and this is Wilson's interval for n trials. Values in between (several lists a user)
    vary less, which counts as more trials: ``n_eff = n mean (1 - mean) / (m2 / n)``, and n where all values are equal.
    Of a mean over the lists of clusters, linearised, this is ``mean (1 - mean) / variance`` too, the variance without
    its factor ``n / (n - 1)``, so that single lists give Wilson's n; unequal clusters may count as fewer trials than n.

    Examples
    --------
    7 of 10 users have a hit:

    >>> low, high = wilson_interval(10, 0.7, 10 * 0.7 * 0.3, 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (0.3968, 0.8922)
    """
    n, mean, m2 = _as_arrays(n, mean, m2)
    is_share = (mean >= -_ROUNDING) & (mean <= 1 + _ROUNDING)
    n = np.where((n > 1) & is_share, n, np.nan)
    trials = n * _trials_a_user(mean, m2 / n)
    z_squared = distributions.normal_quantile((1 + np.asarray(level)) / 2) ** 2
    centre = (mean + z_squared / (2 * trials)) / (1 + z_squared / trials)
    spread = np.sqrt(z_squared * (mean * (1 - mean) / trials + z_squared / (4 * trials**2)))
    half = spread / (1 + z_squared / trials)
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def _trials_a_user(mean: Values, variance: Values) -> Values:
    """Zeros and ones that would be as certain as one user's value; of means of users at least 1."""
    is_constant = ~(variance > _ROUNDING**2)
    return np.where(is_constant, 1.0, mean * (1 - mean) / np.where(is_constant, 1.0, variance))


def _t_quantile(freedom: Values, probability: float) -> Values:
    """Quantile at each number of degrees of freedom; computed once for each distinct one."""
    distinct, position = np.unique(freedom, return_inverse=True)
    quantiles: Values = distributions.t_quantile(probability, distinct)
    return quantiles[position].reshape(freedom.shape)


def _as_arrays(*values: ArrayLike) -> tuple[Values, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))

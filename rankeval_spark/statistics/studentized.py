"""Tails of the studentized range, for many rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from rankeval_spark.statistics import distributions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankeval_spark.statistics.intervals import Values

_Z, _Z_WEIGHTS = np.polynomial.legendre.leggauss(96)
_S, _S_WEIGHTS = np.polynomial.legendre.leggauss(48)
_FAR: Final = 8.5
"""Standard deviations beyond which the normal density counts for nothing in doubles."""

_POINTS: Final = _FAR * _Z
_BELOW: Final = special.ndtr(_POINTS)
_OUTER: Final = _FAR * _Z_WEIGHTS * distributions.normal_density(_POINTS)

_ROWS_AT_ONCE: Final = 256

_LEAST_FREEDOM: Final = 4
"""Degrees of freedom below which the density has too long a tail for so few points."""


def upper_tail(q: ArrayLike, n_groups: int, freedom: ArrayLike) -> Values:
    """Probability that the studentized range of ``n_groups`` means exceeds q.

    Parameters
    ----------
    q : float64, shape (n_rows,)
        At least 0; NaN stays NaN.
    n_groups : int
        Means whose range it is, at least 2.
    freedom : float64, shape (n_rows,)
        Degrees of freedom of the error, at least 4.

    Returns
    -------
    float64, shape (n_rows,)
        To within 1e-9.

    Notes
    -----
    ``1 - int f(s) P(range < q s) ds``, f the density of ``chi / sqrt(freedom)``, ``P(range < w) = k int phi(z) (Phi(z)
    - Phi(z - w))^(k - 1) dz``, both by Gauss-Legendre; the density is
    divided by its own integral. scipy's adaptive integration takes tens of milliseconds a row.

    Examples
    --------
    The range of two is sqrt(2) |t|:

    >>> float(upper_tail(np.array([2.0 * np.sqrt(2)]), 2, np.array([30.0]))[0].round(8))
    0.05462504
    >>> float((2 * distributions.t_above(2.0, 30)).round(8))
    0.05462504
    """
    q, freedom = np.broadcast_arrays(np.asarray(q, dtype=np.float64), np.asarray(freedom, dtype=np.float64))
    blocks = (slice(start, start + _ROWS_AT_ONCE) for start in range(0, len(q), _ROWS_AT_ONCE))
    tails = [_of_rows(q[block], n_groups, freedom[block]) for block in blocks]
    return np.concatenate(tails) if tails else np.zeros(0)


def quantile(level: float, n_groups: int, freedom: float) -> float:
    """Value that the studentized range of ``n_groups`` means exceeds with probability 1 - level.

    Parameters
    ----------
    level : float
        In (0, 1).
    n_groups : int
        At least 2.
    freedom : float
        Degrees of freedom; below 4 scipy is used, which takes a hundred times as long.

    Examples
    --------
    >>> from scipy import stats
    >>> round(quantile(0.95, 3, 20), 6), round(float(stats.studentized_range.ppf(0.95, 3, 20)), 6)
    (3.577935, 3.577935)
    """
    from scipy import optimize, stats  # noqa: PLC0415 - 0.6 s, which every Python worker would pay

    if freedom < _LEAST_FREEDOM:
        return float(stats.studentized_range.ppf(level, n_groups, freedom))
    s, density = _scales(np.array([freedom]))
    weights = density[0] / density.sum()

    def above(q: float) -> float:
        return float(weights @ _range_below(q * s[0], n_groups)) - level

    end = 4.0
    while above(end) < 0:
        end *= 2
    return float(optimize.brentq(above, 0.0, end, xtol=1e-10))


def _of_rows(q: Values, n_groups: int, freedom: Values) -> Values:
    s, density = _scales(freedom)
    below = (density * _range_below(q[:, None] * s, n_groups)).sum(axis=1) / density.sum(axis=1)
    tails: Values = np.clip(1.0 - below, 0.0, 1.0)
    return tails


def _scales(freedom: Values) -> tuple[Values, Values]:
    """Give points of chi / sqrt(freedom) for each row, and weights of them in proportion to its density."""
    ends = special.gammaincinv(freedom / 2, 1e-14), special.gammainccinv(freedom / 2, 1e-14)  # a gamma is half a chi2
    low, high = (np.sqrt(2 * end / freedom) for end in ends)
    half = (high - low)[:, None] / 2
    s: Values = (high + low)[:, None] / 2 + half * _S
    logarithm = freedom[:, None] * (np.log(s) - s**2 / 2) - np.log(s)
    density: Values = np.exp(logarithm - logarithm.max(axis=1, keepdims=True)) * half * _S_WEIGHTS
    return s, density


def _range_below(width: Values, n_groups: int) -> Values:
    inner = _BELOW - special.ndtr(_POINTS - width[..., None])
    below: Values = n_groups * ((inner ** (n_groups - 1)) @ _OUTER)
    return below

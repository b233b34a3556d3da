"""Tail probabilities and quantiles of distributions, from ``scipy.special``.

``scipy.stats`` has the same formulas, but its import takes 0.6 s in every Python worker instead of 0.05 s.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Values: TypeAlias = Any  # float64, of the shape to which the arguments broadcast

_Z, _Z_WEIGHTS = np.polynomial.legendre.leggauss(96)
_S, _S_WEIGHTS = np.polynomial.legendre.leggauss(48)
_FAR: Final = 8.5  # standard deviations beyond which the normal density is 0 in double precision
# Points z of the outer integral, each (96,): Phi(z), and the weights of a sum that stands for int phi(z) ... dz
_POINTS: Final = _FAR * _Z
_PHI: Final = special.ndtr(_POINTS)
_DENSITY_WEIGHTS: Final = _FAR * _Z_WEIGHTS * (np.exp(-np.square(_POINTS) / 2) / np.sqrt(2 * np.pi))
_ROWS_AT_ONCE: Final = 256
_MIN_FREEDOM: Final = 4  # degrees of freedom below which the tail of the density is too long for 48 points


def t_quantile(probability: ArrayLike, freedom: ArrayLike) -> Values:
    """Return the quantile of Student's t; NaN without degrees of freedom.

    >>> float(t_quantile(0.975, 10).round(6))
    2.228139
    """
    freedom = np.asarray(freedom, dtype=np.float64)
    return special.stdtrit(np.where(freedom > 0, freedom, np.nan), probability)


def t_tails(t: ArrayLike, freedom: ArrayLike) -> tuple[Values, Values, Values]:
    """Return p-values of Student's t: two-sided, lower tail, upper tail; NaN without degrees of freedom."""
    freedom = np.asarray(freedom, dtype=np.float64)
    freedom = np.where(freedom > 0, freedom, np.nan)
    lower, upper = special.stdtr(freedom, t), special.stdtr(freedom, np.negative(t))
    return 2 * special.stdtr(freedom, -np.abs(t)), lower, upper


def fair_coin_cdf(n_heads: ArrayLike, n_tosses: ArrayLike) -> Values:
    """Return the probability that ``n_tosses`` of a fair coin give at most ``n_heads`` heads.

    >>> float(fair_coin_cdf(1, 3))
    0.5
    """
    heads, tosses = np.asarray(n_heads, dtype=np.float64), np.asarray(n_tosses, dtype=np.float64)
    # The incomplete beta function keeps its digits for a million tosses, where special.bdtr loses half of them.
    return np.where(heads >= tosses, 1.0, special.betainc(np.maximum(tosses - heads, 1), heads + 1, 0.5))


def studentized_range_tail(
    q: ArrayLike,  # (n_rows,), at least 0
    n_groups: int,
    freedom: ArrayLike,  # (n_rows,), degrees of freedom of the error, at least 4
) -> NDArray[np.float64]:
    """Return the probability that the studentized range of ``n_groups`` means exceeds each ``q``, to within 1e-9.

    ``1 - int f(s) P(range < q s) ds``, with f the density of ``chi / sqrt(freedom)`` and ``P(range < w) = k int phi(z)
    (Phi(z) - Phi(z - w))^(k - 1) dz``. Both integrals are Gauss-Legendre sums; the density is divided by its own
    integral. scipy integrates adaptively, which takes tens of milliseconds a row. The range of two is sqrt(2) |t|:

    >>> float(studentized_range_tail(np.array([2.0 * np.sqrt(2)]), 2, np.array([30.0]))[0].round(8))
    0.05462504
    >>> float(t_tails(2.0, 30)[0].round(8))
    0.05462504
    """
    q, freedom = np.broadcast_arrays(np.asarray(q, dtype=np.float64), np.asarray(freedom, dtype=np.float64))
    tails = np.zeros(len(q))
    for start in range(0, len(q), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        s, density = _chi_points(freedom[block])
        below = (density * _range_cdf(q[block, None] * s, n_groups)).sum(axis=1) / density.sum(axis=1)
        tails[block] = np.clip(1.0 - below, 0.0, 1.0)
    return tails


@lru_cache(maxsize=4096)
def studentized_range_quantile(level: float, n_groups: int, freedom: float) -> float:
    """Return the value that the studentized range of ``n_groups`` means exceeds with probability ``1 - level``.

    Below 4 degrees of freedom scipy computes it, which takes a hundred times as long.

    >>> from scipy import stats
    >>> round(studentized_range_quantile(0.95, 3, 20), 6), round(float(stats.studentized_range.ppf(0.95, 3, 20)), 6)
    (3.577935, 3.577935)
    """
    from scipy import optimize, stats  # noqa: PLC0415 - 0.6 s, which every Python worker would pay

    if freedom < _MIN_FREEDOM:
        return float(stats.studentized_range.ppf(level, n_groups, freedom))
    s, density = _chi_points(np.array([freedom]))
    weights = density[0] / density.sum()

    def above(q: float) -> float:
        return float(weights @ _range_cdf(q * s[0], n_groups)) - level

    end = 4.0
    while above(end) < 0:
        end *= 2
    return float(optimize.brentq(above, 0.0, end, xtol=1e-10))


def _chi_points(freedom: Values) -> tuple[Values, Values]:
    """Return points of ``chi / sqrt(freedom)`` for each row, and weights in proportion to its density."""
    ends = special.gammaincinv(freedom / 2, 1e-14), special.gammainccinv(freedom / 2, 1e-14)  # a gamma is half a chi2
    low, high = (np.sqrt(2 * end / freedom) for end in ends)
    half = (high - low)[:, None] / 2
    s = (high + low)[:, None] / 2 + half * _S
    logarithm = freedom[:, None] * (np.log(s) - s**2 / 2) - np.log(s)
    return s, np.exp(logarithm - logarithm.max(axis=1, keepdims=True)) * half * _S_WEIGHTS


def _range_cdf(width: Values, n_groups: int) -> Values:
    """Return P(range < width) of ``n_groups`` standard normal numbers, see :func:`studentized_range_tail`."""
    others_within = _PHI - special.ndtr(_POINTS - width[..., None])  # (..., 96): Phi(z) - Phi(z - w)
    return n_groups * ((others_within ** (n_groups - 1)) @ _DENSITY_WEIGHTS)

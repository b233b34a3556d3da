"""Power of Student's t test: the difference that it would find, and the users and nights that a difference takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from rankeval_spark.statistics import distributions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankeval_spark.statistics import Correction
    from rankeval_spark.statistics.distributions import Values

POWER: Final = 0.8  # probability of finding a difference of the size that is called detectable
MIN_USERS: Final = 2
_STEPS: Final = 100


def detectable(std_error: ArrayLike, freedom: ArrayLike, *, tail: ArrayLike, power: float = POWER) -> Values:
    """Return the true difference that a test of a mean finds with the probability ``power``; NaN without spread.

    ``tail`` is the one-sided level, half the level of a two-sided test. Of the critical value c the difference is
    ``(c (1 - 1 / 4f) + z_power sqrt(1 + c^2 / 2f)) se`` with f degrees of freedom, the approximation of Johnson and
    Welch (1940) to the noncentral t: from 9 degrees on, the power is within .003 of what is asked, at any level.

    >>> float(detectable(0.01, 29, tail=0.025).round(5))
    0.02899
    """
    freedom, std_error = np.asarray(freedom, dtype=np.float64), np.asarray(std_error, dtype=np.float64)
    critical = distributions.t_quantile(1 - np.asarray(tail), freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(1 + critical**2 / (2 * freedom))
        found = critical * (1 - 1 / (4 * freedom)) + special.ndtri(power) * spread
    return np.where(std_error > 0, found * std_error, np.nan)


def strictest_tail(alpha: float, family_size: ArrayLike, correction: Correction) -> Values:
    """Return the one-sided level at the strictest step of a correction, of a family of two-sided tests.

    >>> float(strictest_tail(0.05, 5, "holm")), float(strictest_tail(0.05, 5, "none"))
    (0.005, 0.025)
    """
    n_tests = np.maximum(family_size, 1) if correction != "none" else np.ones_like(family_size)
    return np.asarray(alpha / (2 * n_tests), dtype=np.float64)


def users_needed(gain: float, std_dev: float, *, tail: float, power: float = POWER) -> int:
    """Return the fewest users with whom :func:`detectable` is at most ``gain``, of differences with ``std_dev``.

    >>> users_needed(0.5, 1.0, tail=0.025)
    34
    """
    ratio = std_dev / abs(gain)

    def least_at(n: float) -> float:
        return float(detectable(ratio / math.sqrt(n), n - 1, tail=tail, power=power))

    found = float(MIN_USERS + 1)
    for _ in range(_STEPS):  # a contraction: each step changes the critical value less
        found, before = max(found * least_at(found) ** 2, MIN_USERS + 1), found
        if abs(found - before) < 0.1:  # noqa: PLR2004 - of a user
            break
    n = math.ceil(found)
    while least_at(n) > 1:
        n += 1
    while n > MIN_USERS and least_at(n - 1) <= 1:
        n -= 1
    return n


def nights_needed(n_users: float, n_needed: float, correlation: float) -> float:
    """Return over how many nights a mean is as precise as with ``n_needed`` users; infinite if over none.

    The mean of N nights has the variance ``v (1 + (N - 1) correlation) / N``, if that of each is v, and any two nights
    have this correlation. With the same users every night it approaches ``v correlation``. A correlation below 0 counts
    as 0: no more than two nights can all be apart, so below 0 it is chance.

    >>> nights_needed(100, 300, 0.0), nights_needed(100, 300, 0.25), nights_needed(100, 300, 0.5)
    (3, 9, inf)
    >>> nights_needed(100, 300, -0.1)
    3
    """
    share, correlation = n_users / n_needed, max(correlation, 0.0)  # share of the variance of a night
    if share >= 1:
        return 1
    return math.inf if share <= correlation else math.ceil(round((1 - correlation) / (share - correlation), 9))

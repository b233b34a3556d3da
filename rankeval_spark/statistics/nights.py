"""One night against another: means over users that are only partly the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Moments
    from rankeval_spark.statistics.ratios import Ratios


class Shift(NamedTuple):
    """Change from one night to the next, each attribute of the shape of the moments; NaN below two users on either.

    Attributes
    ----------
    delta, std_error, low, high : float64
        Difference of the means, its standard error and interval.
    freedom : float64
        Degrees of freedom.
    p, p_less, p_greater : float64
        Two-sided; that the mean fell; that it rose. 1 where nothing changed and nothing varies.
    """

    delta: Values
    std_error: Values
    low: Values
    high: Values
    freedom: Values
    p: Values
    p_less: Values
    p_greater: Values


def compare(now: Moments, before: Moments, common: Ratios, *, level: float) -> Shift:
    """Compare the means of two nights that share some users.

    Parameters
    ----------
    now, before : Moments
        All users of each night.
    common : Ratios
        Users with a value on both nights: that of now as numerator, that of before as denominator.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    Shift

    Notes
    -----
    ``se^2 = se_1^2 + se_2^2 - 2 sum_common (x - mean x)(y - mean y) / (n_1 n_2)``, with the means of all users of each
    night. It is not the paired comparison: users of one night only count too. The degrees of freedom are those of the
    smaller night, n - 1, which is the paired test's number where all users are common, and cautious elsewhere.

    Examples
    --------
    Without common users this is the comparison of two samples:

    >>> from rankeval_spark.statistics import moments, ratios
    >>> nobody = ratios.by_group(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, dtype=np.int64), 1)
    >>> everyone = np.zeros(3, dtype=np.int64)
    >>> now, before = (moments.by_group(np.array([[x], [x + 1], [x + 2]]), everyone, 1) for x in (1.5, 1.0))
    >>> found = compare(now, before, nobody, level=0.95)
    >>> float(found.delta[0, 0]), float(found.std_error[0, 0].round(4)), float(found.p[0, 0].round(4))
    (0.5, 0.8165, 0.6026)
    """
    delta = now.mean - before.mean
    together = np.maximum(now.n * before.n, 1)
    squares = now.std_error**2 + before.std_error**2 - 2 * _products(now, before, common) / together
    std_error = np.sqrt(np.maximum(squares, 0.0))
    fewest = np.minimum(now.n, before.n)
    freedom = np.where(fewest > 1, fewest - 1.0, np.nan)
    half = stats.t.ppf((1 + level) / 2, freedom) * std_error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where((delta == 0) & (std_error == 0), 0.0, delta / std_error)
    same = (delta == 0) & (std_error == 0)
    sides = (2 * stats.t.sf(np.abs(t), freedom), stats.t.cdf(t, freedom), stats.t.sf(t, freedom))
    p, p_less, p_greater = (np.where(same & ~np.isnan(freedom), 1.0, side) for side in sides)
    return Shift(delta, std_error, delta - half, delta + half, freedom, p, p_less, p_greater)


def _products(now: Moments, before: Moments, common: Ratios) -> Values:
    """Sum over common users of the products of their distances from each night's mean.

    That of the distances from the means of the common users, and n times the product of how far those means lie off.
    """
    off_now = np.nan_to_num(common.numerator.mean - now.mean)
    off_before = np.nan_to_num(common.denominator.mean - before.mean)
    products: Values = common.cross + common.numerator.n * off_now * off_before
    return products

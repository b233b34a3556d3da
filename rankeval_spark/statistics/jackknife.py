"""Delete-a-group jackknife: the spread of a statistic that is no mean over users."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankeval_spark.statistics import distributions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values


class Spread(NamedTuple):
    """Standard error and the ends of the interval, each of shape (n_rows,); NaN where there is none."""

    std_error: Values
    low: Values
    high: Values


def delete_a_group(
    value: Values, without: Values, has_users: NDArray[np.bool_], level: float, bounds: tuple[float, float]
) -> Spread:
    """Spread of a statistic, from its values without each group of users.

    Parameters
    ----------
    value : float64, shape (n_rows,)
        The statistic over all users.
    without : float64, shape (n_rows, n_groups)
        The statistic without the users of each group.
    has_users : bool, shape (n_rows, n_groups)
        Whether the group has users at all; those without any are left out.
    level : float
        Nominal coverage, in (0, 1).
    bounds : (float, float)
        Range of the statistic, to which the interval is cut.

    Returns
    -------
    Spread
        NaN with fewer than two groups, or where the statistic is undefined without one of them.

    Notes
    -----
    Shao & Tu (1995), The jackknife and bootstrap, section 5.2.2: with G groups, ``se^2 = (G - 1) / G sum_g (t_g -
    mean t)^2``, and ``t -+ t_{G-1} se``. The groups should be of about equal size, as hashed ones are.

    Examples
    --------
    The mean of 1, 2 and 3, each a group: the error is that of a mean, sqrt(1 / 3).

    >>> without = np.array([[2.5, 2.0, 1.5]])
    >>> spread = delete_a_group(np.array([2.0]), without, np.array([[True] * 3]), 0.95, (0, 10))
    >>> [float(each[0].round(4)) for each in spread]
    [0.5774, 0.0, 4.4841]
    """
    n = has_users.sum(axis=1).astype(np.float64)
    n = np.where(n > 1, n, np.nan)
    mean = np.where(has_users, without, 0.0).sum(axis=1) / n
    squares = np.where(has_users, (without - mean[:, None]) ** 2, 0.0).sum(axis=1)
    std_error = np.sqrt((n - 1) / n * squares)
    half = distributions.t_quantile((1 + level) / 2, n - 1) * std_error
    low, high = bounds
    return Spread(std_error, np.clip(value - half, low, high), np.clip(value + half, low, high))

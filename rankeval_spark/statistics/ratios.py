"""A ratio of two sums over users: moments of both that merge, and what they say of the ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval_spark.statistics import moments

if TYPE_CHECKING:
    from rankeval_spark.statistics.moments import Matrix, Moments

Values: TypeAlias = NDArray[np.float64]

_ROUNDING: Final = 8 * np.finfo(np.float64).eps
"""Share of the terms of a sum below which it is what rounding left of them."""


@dataclass(frozen=True, eq=False)
class Ratios:
    """Central moments of numerators and denominators of several ratios in each group of users.

    Parameters
    ----------
    numerator, denominator : Moments
        Of shape (n_groups, n_columns).
    cross : float64, shape (n_groups, n_columns)
        Sum of the products of their deviations from their means.

    Examples
    --------
    Users with 1 of 2 and 3 of 4, then one with 2 of 3:

    >>> left = by_group(np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]]), np.array([0, 0]), 1)
    >>> right = by_group(np.array([[2.0]]), np.array([[3.0]]), np.array([0]), 1)
    >>> left.merge(right).cross
    array([[2.]])
    """

    numerator: Moments
    denominator: Moments
    cross: Matrix

    def merge(self, other: Ratios) -> Ratios:
        """Moments of both sets of users together; the products merge as the squares do."""
        n = self.numerator.n + other.numerator.n
        weight = np.where(n > 0, self.numerator.n * other.numerator.n / np.maximum(n, 1), 0.0)
        apart = np.nan_to_num(other.numerator.mean - self.numerator.mean) * np.nan_to_num(
            other.denominator.mean - self.denominator.mean
        )
        return Ratios(
            self.numerator.merge(other.numerator),
            self.denominator.merge(other.denominator),
            self.cross + other.cross + apart * weight,
        )

    def at(self, places: NDArray[np.integer]) -> Ratios:
        """Moments of the groups at these places, in this order."""
        return Ratios(self.numerator.at(places), self.denominator.at(places), self.cross[places])

    def united(self, group: NDArray[np.integer], n_groups: int) -> Ratios:
        """Moments of all rows of each group together; ``group`` ascends, as for :meth:`Moments.united`."""
        above, below = (moments.deviations_of(each, group, n_groups) for each in (self.numerator, self.denominator))
        products = self.cross + self.numerator.n * above * below
        return Ratios(
            self.numerator.united(group, n_groups),
            self.denominator.united(group, n_groups),
            moments.membership_of(group, n_groups) @ products,
        )


def by_group(numerator: Matrix, denominator: Matrix, group: NDArray[np.integer], n_groups: int) -> Ratios:
    """Moments of each pair of columns in each group.

    Parameters
    ----------
    numerator, denominator : float64, shape (n_rows, n_columns)
        NaN, both of them, where undefined.
    group : int, shape (n_rows,)
        Group of each row, from 0 to ``n_groups - 1``.
    n_groups : int
        Number of groups.
    """
    above, below = (moments.by_group(values, group, n_groups) for values in (numerator, denominator))
    products = np.nan_to_num((numerator - above.mean[group]) * (denominator - below.mean[group]))
    return Ratios(above, below, moments.membership_of(group, n_groups) @ products)


def linearised(
    mean: ArrayLike, m2: ArrayLike, denominator_mean: ArrayLike, denominator_m2: ArrayLike, cross: ArrayLike
) -> tuple[Values, Values]:
    """Turn the moments into a ratio and its squared deviations, as if it were a mean.

    Parameters
    ----------
    mean, m2
        Mean and squared deviations of the numerators.
    denominator_mean, denominator_m2
        Those of the denominators.
    cross
        Sum of the products of their deviations.

    Returns
    -------
    ratio : float64
        Sum of the numerators divided by that of the denominators; NaN where the latter is 0.
    m2 : float64
        Sum over users of ``((numerator - ratio denominator) / denominator_mean)^2``.

    Notes
    -----
    The delta method with the user as the unit: with U users, the interval of a mean that has this ``m2`` has the
    variance ``U / (U - 1) sum (numerator - ratio denominator)^2 / (sum denominator)^2`` and U - 1 degrees of freedom.

    Examples
    --------
    1 of 2 and 3 of 4 are 4 of 6, off by -1/3 and 1/3 at a mean of 3:

    >>> ratio, m2 = linearised(2.0, 2.0, 3.0, 2.0, 2.0)
    >>> float(ratio.round(4)), float(m2.round(4))
    (0.6667, 0.0247)
    """
    mean, m2, below, below_m2, cross = np.broadcast_arrays(
        *(np.asarray(each, dtype=np.float64) for each in (mean, m2, denominator_mean, denominator_m2, cross))
    )
    below = np.where(below > 0, below, np.nan)
    ratio = mean / below
    terms = (m2, -2 * ratio * cross, ratio**2 * below_m2)
    left = terms[0] + terms[1] + terms[2]
    size = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2])
    # Of equal numerators even the first term is rounding, that of their mean.
    is_rounding = left <= _ROUNDING * (size + _ROUNDING * mean**2)
    return ratio, np.where(is_rounding, 0.0, left) / below**2

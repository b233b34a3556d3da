"""A ratio of two sums over users (micro average): moments of both that merge, and the ratio's spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval_spark.statistics import moments
from rankeval_spark.statistics.moments import Moments

if TYPE_CHECKING:
    from rankeval_spark.statistics.moments import Matrix, Places

Values: TypeAlias = NDArray[np.float64]

_ROUNDING: Final = 8 * np.finfo(np.float64).eps
"""Share of its terms below which a sum is only rounding."""


@dataclass(frozen=True, eq=False)
class Ratios:
    """Central moments of numerators and denominators, and the sum of products of their deviations.

    All of shape (n_groups, n_columns).
    """

    numerator: Moments
    denominator: Moments
    cross: Matrix

    @classmethod
    def of(cls, n: NDArray[np.number], *numbers: Matrix) -> Ratios:
        """Combine what :attr:`numbers` gave."""
        mean, m2, below_mean, below_m2, cross = numbers
        users = n.astype(np.int64)
        return cls(Moments(users, mean, m2), Moments(users, below_mean, below_m2), cross)

    @property
    def numbers(self) -> tuple[NDArray[np.int64], Matrix, Matrix, Matrix, Matrix, Matrix]:
        """Users, mean and squared deviations of the numerators, those of the denominators, and the products."""
        return (*self.numerator.numbers, self.denominator.mean, self.denominator.m2, self.cross)

    def merge(self, other: Ratios) -> Ratios:
        """Moments of both sets of users together; the products merge as the squares do."""
        n = self.numerator.n + other.numerator.n
        weight = np.where(n > 0, self.numerator.n * other.numerator.n / np.maximum(n, 1), 0.0)
        distances = np.nan_to_num(other.numerator.mean - self.numerator.mean) * np.nan_to_num(
            other.denominator.mean - self.denominator.mean
        )
        return Ratios(
            self.numerator.merge(other.numerator),
            self.denominator.merge(other.denominator),
            self.cross + other.cross + distances * weight,
        )

    def at(self, places: Places) -> Ratios:
        """Moments at these places, in this order."""
        return Ratios(self.numerator.at(places), self.denominator.at(places), self.cross[places])

    def placed(self, slots: NDArray[np.integer], size: int) -> Ratios:
        """Put each group into its slot of so many; see :meth:`Moments.placed`."""
        cross = np.zeros((size, self.cross.shape[1]))
        cross[slots] = self.cross
        return Ratios(self.numerator.placed(slots, size), self.denominator.placed(slots, size), cross)

    def united(self, group: NDArray[np.integer], n_groups: int) -> Ratios:
        """Merge all rows of each group; ``group`` ascends, as for :meth:`Moments.united`."""
        above, below = (moments.deviations_of(each, group, n_groups) for each in (self.numerator, self.denominator))
        products = self.cross + self.numerator.n * above * below
        return Ratios(
            self.numerator.united(group, n_groups),
            self.denominator.united(group, n_groups),
            moments.membership_of(group, n_groups) @ products,
        )


def ratio_moments_by_group(numerator: Matrix, denominator: Matrix, group: NDArray[np.integer], n_groups: int) -> Ratios:
    """Moments of each pair of columns in each group; both are NaN where undefined."""
    above, below = (moments.moments_by_group(values, group, n_groups) for values in (numerator, denominator))
    products = np.nan_to_num((numerator - above.mean[group]) * (denominator - below.mean[group]))
    return Ratios(above, below, moments.membership_of(group, n_groups) @ products)


def linearised(
    mean: ArrayLike, m2: ArrayLike, denominator_mean: ArrayLike, denominator_m2: ArrayLike, cross: ArrayLike
) -> tuple[Values, Values]:
    """Express a ratio as a mean: the ratio, and the squared deviations of a mean with the same spread.

    Arguments are those of :class:`Ratios`; ``mean`` and ``m2`` are of the numerators. NaN where the sum of the
    denominators is 0.

    Notes
    -----
    The delta method with the user as the unit: ``m2 = sum ((numerator - ratio denominator) / denominator_mean)^2``.
    With U users, the interval of a mean with this ``m2`` has the variance ``U / (U - 1) sum (numerator - ratio
    denominator)^2 / (sum denominator)^2`` and U - 1 degrees of freedom.

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
    # Where all numerators are equal, even the first term is only the rounding of their mean.
    is_rounding = left <= _ROUNDING * (size + _ROUNDING * mean**2)
    return ratio, np.where(is_rounding, 0.0, left) / below**2

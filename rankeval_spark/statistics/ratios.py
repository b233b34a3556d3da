"""A ratio of two sums over users (micro average): moments of both that merge, and the ratio's spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval_spark.statistics import moments
from rankeval_spark.statistics.moments import Columns, Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.statistics.moments import Matrix, Places

Values: TypeAlias = NDArray[np.float64]

_ROUNDING: Final = 8 * np.finfo(np.float64).eps  # share of its terms below which a sum is only rounding


@dataclass(frozen=True, eq=False)
class Ratios:
    """Central moments of numerators and denominators, and products of their deviations a and b."""

    numerator: Moments
    denominator: Moments
    cross: Matrix  # (n_groups, n_columns), sum of `a b`
    cubes: tuple[Matrix, ...] = ()  # sums of `a a b` and `a b b`, if the moments have cubed deviations

    @classmethod
    def from_numbers(cls, n: NDArray[np.number], *numbers: Matrix) -> Ratios:
        """Build from :attr:`numbers`."""
        mean, m2, denominator_mean, denominator_m2, cross, *cubed = numbers
        users, (m3, denominator_m3, *cubes) = n.astype(np.int64), cubed or (None, None)
        denominator = Moments(users, denominator_mean, denominator_m2, denominator_m3)
        return cls(Moments(users, mean, m2, m3), denominator, cross, tuple(cubes))

    @property
    def numbers(self) -> tuple[NDArray[Any], ...]:
        """Arrays for :meth:`from_numbers`: n; mean and squares of numerator, denominator; products; cubes if any."""
        (n, mean, m2, *m3), (_, below_mean, below_m2, *below_m3) = self.numerator.numbers, self.denominator.numbers
        return (n, mean, m2, below_mean, below_m2, self.cross, *m3, *below_m3, *self.cubes)

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, other: Ratios) -> Ratios:
        """Return the moments of both sets of users together.

        With x and y the steps from the means of this set to those of the other, ``ab = ab_1 + ab_2 + x y w`` and
        ``aab = aab_1 + aab_2 + x (x y v + 2 c) + y s``, where ``w = n_1 n_2 / n``, ``v = w (n_1 - n_2) / n``,
        ``c = (n_1 ab_2 - n_2 ab_1) / n``, and s is as c, of the squares of a.
        """
        n = self.numerator.n + other.numerator.n
        own_share, other_share = (each.numerator.n / np.maximum(n, 1) for each in (self, other))
        numerator_step = np.nan_to_num(other.numerator.mean - self.numerator.mean)
        denominator_step = np.nan_to_num(other.denominator.mean - self.denominator.mean)
        weight = own_share * other.numerator.n
        cubes: tuple[Matrix, ...] = ()
        if self.cubes and other.cubes:
            apart = weight * (own_share - other_share)
            cross_term, numerator_term, denominator_term = (
                own_share * after - other_share * before
                for before, after in (
                    (self.cross, other.cross),
                    (self.numerator.m2, other.numerator.m2),
                    (self.denominator.m2, other.denominator.m2),
                )
            )
            mixed = numerator_step * denominator_step * apart + 2 * cross_term
            cubes = (
                self.cubes[0] + other.cubes[0] + numerator_step * mixed + denominator_step * numerator_term,
                self.cubes[1] + other.cubes[1] + denominator_step * mixed + numerator_step * denominator_term,
            )
        return Ratios(
            self.numerator.merge(other.numerator),
            self.denominator.merge(other.denominator),
            self.cross + other.cross + numerator_step * denominator_step * weight,
            cubes,
        )

    @property
    def as_means(self) -> tuple[Values, Values]:
        """Ratio and squared deviations of a mean with the same spread, see :func:`linearise`."""
        above, below = self.numerator, self.denominator
        return linearise(above.mean, above.m2, below.mean, below.m2, self.cross)

    def take(self, places: Places) -> Ratios:
        """Return the moments at these places, in this order."""
        cubes = tuple(each[places] for each in self.cubes)
        return Ratios(self.numerator.take(places), self.denominator.take(places), self.cross[places], cubes)

    def place_in_slots(self, slots: NDArray[np.integer], size: int) -> Ratios:
        """Return ratios of `size` groups: each group in its slot, the other slots empty."""
        products = np.zeros((1 + len(self.cubes), size, self.cross.shape[1]))
        products[:, slots] = self.cross, *self.cubes
        above, below = self.numerator.place_in_slots(slots, size), self.denominator.place_in_slots(slots, size)
        return Ratios(above, below, products[0], tuple(products[1:]))

    def merge_rows(self, group: NDArray[np.integer], n_groups: int) -> Ratios:
        """Merge all rows of each group; ``group`` ascends, as for :meth:`Moments.merge_rows`.

        With x and y the steps from a group's means to those of a row of n users: ``ab`` grows by ``n x y``, ``aab`` by
        ``x (2 ab + n x y) + y aa``, and ``abb`` by ``y (2 ab + n x y) + x bb``.
        """
        sums = moments.membership_matrix(group, n_groups)
        cubes: tuple[Matrix, ...] = ()
        both = (self.numerator, self.denominator)
        numerator_step, denominator_step = (moments.deviations_and_means(each, group, sums)[0] for each in both)
        with np.errstate(over="ignore", invalid="ignore"):
            products = self.cross + self.numerator.n * numerator_step * denominator_step
            if self.cubes:
                twice_cross = self.cross + products
                cubes = (
                    sums @ (self.cubes[0] + numerator_step * twice_cross + denominator_step * self.numerator.m2),
                    sums @ (self.cubes[1] + denominator_step * twice_cross + numerator_step * self.denominator.m2),
                )
        numerator, denominator = (each.merge_rows(group, n_groups) for each in both)
        return Ratios(numerator, denominator, sums @ products, cubes)


def ratio_moments_by_group(
    numerator: Matrix, denominator: Matrix, group: NDArray[np.integer], n_groups: int, *, has_cubes: bool = False
) -> Ratios:
    """Return the moments of each pair of columns in each group, both NaN where undefined; with cubes on request."""
    numerator_moments, denominator_moments = (
        Columns.from_values(values).by_group(group, n_groups, has_cubes=has_cubes)
        for values in (numerator, denominator)
    )
    sums = moments.membership_matrix(group, n_groups)
    with np.errstate(over="ignore", invalid="ignore"):
        from_means = numerator - numerator_moments.mean[group], denominator - denominator_moments.mean[group]
        products = np.nan_to_num(from_means[0] * from_means[1])
        cubes = [sums @ (products * np.nan_to_num(each)) for each in from_means] if has_cubes else []
    return Ratios(numerator_moments, denominator_moments, sums @ products, tuple(cubes))


def linearise(
    mean: ArrayLike, m2: ArrayLike, denominator_mean: ArrayLike, denominator_m2: ArrayLike, cross: ArrayLike
) -> tuple[Values, Values]:
    """Express a ratio as a mean: the ratio, and the squared deviations of a mean with the same spread.

    Arguments are those of :class:`Ratios`; ``mean`` and ``m2`` are of the numerators. NaN where the sum of the
    denominators is 0. The squares are NaN where they leave the range of a double. The delta method with the user as the
    unit: ``m2 = sum ((numerator - ratio denominator) / denominator_mean)^2``. 1 of 2 and 3 of 4 are 4 of 6, off by -1/3
    and 1/3 at a mean of 3:

    >>> ratio, m2 = linearise(2.0, 2.0, 3.0, 2.0, 2.0)
    >>> float(ratio.round(4)), float(m2.round(4))
    (0.6667, 0.0247)
    """
    mean, m2, below, below_m2, cross = np.broadcast_arrays(
        *(np.asarray(each, dtype=np.float64) for each in (mean, m2, denominator_mean, denominator_m2, cross))
    )
    below = np.where(below > 0, below, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = mean / below
        ratio = np.where(np.isinf(ratio), np.nan, ratio)
        m2, below_m2 = moments.nan_if_beyond_doubles(m2, mean), moments.nan_if_beyond_doubles(below_m2, below)
        terms = (m2, -2 * ratio * cross, ratio**2 * below_m2)
        sum_of_terms = terms[0] + terms[1] + terms[2]
        size = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2])
        # Where all numerators are equal, even the first term is only the rounding of their mean.
        is_rounding = sum_of_terms <= _ROUNDING * (size + _ROUNDING * mean**2)
        square = below**2
        is_lost = ~(np.isfinite(sum_of_terms) & np.isfinite(square))
        return ratio, np.where(is_lost, np.nan, np.where(is_rounding, 0.0, sum_of_terms) / square)


def skewness_terms(
    mean: Values, denominator_mean: Values, denominator_m2: Values, cross: Values, cubes: Sequence[Values]
) -> tuple[Values, Values]:
    """Compute `m3` and `lean`, on which the skewness of a ratio's T depends; NaN if the denominators' sum is 0.

    :func:`linearise` squares the terms ``e = (numerator - ratio denominator) / mean b``. `m3` is the sum over users of
    ``e^3``, and `lean` that of ``e b / mean b``, which is 0 where all denominators are equal. ``cubes`` are the sums of
    ``a a a``, ``b b b``, ``a a b`` and ``a b b``, with a and b the deviations as in :class:`Ratios`.

    1 of 2, 3 of 4 and 0 of 1 are 4 of 7, off by -1/7, 5/7 and -4/7 at a mean of 7/3:

    >>> above, below = np.array([[1.0], [3.0], [0.0]]), np.array([[2.0], [4.0], [1.0]])
    >>> found = ratio_moments_by_group(above, below, np.zeros(3, dtype=np.int64), 1, has_cubes=True)
    >>> _, mean, _, below_mean, below_m2, cross, *cubes = found.numbers
    >>> m3, lean = skewness_terms(mean, below_mean, below_m2, cross, cubes)
    >>> [round(each.item(), 9) for each in (m3 * (7 / 3) ** 3 * 7**3, lean * (7 / 3) ** 2 * 7)]
    [60.0, 14.0]
    """
    below = np.where(denominator_mean > 0, denominator_mean, np.nan)
    ratio = mean / below
    of_above, of_below, squared_above, squared_below = cubes
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        m3 = of_above - 3 * ratio * squared_above + 3 * ratio**2 * squared_below - ratio**3 * of_below
        return m3 / below**3, (cross - ratio * denominator_m2) / below**2

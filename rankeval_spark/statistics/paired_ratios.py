"""Two models compared by a ratio of sums over users (micro average): the delta method for their difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.columns import MIN_USERS
from rankeval_spark.statistics import distributions, intervals
from rankeval_spark.statistics.moments import SQUARES, may_lose_squares, membership_matrix, weighted_means
from rankeval_spark.statistics.paired_tests import (
    OUT_OF_RANGE,
    Change,
    equal_differences_p,
    subtract,
    why_untested_counts,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics import FewDifferences
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix

N_PARTS: Final = 4  # per user and column: differences of numerators and denominators, and both of the baseline
N_NUMBERS: Final = 2 + N_PARTS + N_PARTS**2  # numbers of a group and column, as `RatioPairs.to_bytes` writes them
_ROUNDING: Final = 8 * np.finfo(np.float64).eps  # share of its terms below which a sum is only rounding
_ONE: Final = 1e-9  # standard deviation of the denominators, relative to their mean, within which they are all equal


@dataclass(frozen=True, eq=False)
class RatioPairs:
    """Means of the four parts by group and column, and products of their deviations.

    Differences replace the model's own numbers: where two models are nearly the same, nothing is lost.
    """

    n: NDArray[np.int64]  # (n_groups, n_columns), users with all four
    n_different: NDArray[np.int64]  # those of them whose numerator or denominator differs between the models
    means: Values  # (n_groups, n_columns, 4), NaN without users
    cross: Values  # (n_groups, n_columns, 4, 4), sums of the products of the deviations from the means

    def merge(self, other: RatioPairs) -> RatioPairs:
        """Merge both sets of users, as ``Moments.merge`` does."""
        n = self.n + other.n
        share = other.n / np.maximum(n, 1)
        means = np.where((self.n > 0)[..., None], self.means, other.means)
        both = (self.n > 0) & (other.n > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.where(both[..., None], other.means - means, 0.0)
            products = distance[..., :, None] * distance[..., None, :] * (self.n * share)[..., None, None]
        n_different = self.n_different + other.n_different
        return RatioPairs(n, n_different, means + distance * share[..., None], self.cross + other.cross + products)

    @property
    def products(self) -> Values:
        """Products of the deviations; NaN where squares leave the range of a double."""
        squares = np.diagonal(self.cross, axis1=-2, axis2=-1)
        differs = ((self.means != 0) | (squares != 0))[..., : N_PARTS // 2].any(axis=-1)
        is_lost = (may_lose_squares(squares, self.means) | ~(squares <= SQUARES[1])).any(axis=-1)
        is_lost |= (self.n_different > 0) & ~differs
        return np.where(is_lost[..., None, None], np.nan, self.cross)

    @property
    def ratios(self) -> tuple[Values, Values]:
        """Ratio of the model and of the baseline; NaN where a denominator is not above 0."""
        above, below = self.means[..., 0] + self.means[..., 2], self.means[..., 1] + self.means[..., 3]
        baseline = np.where(self.means[..., 3] > 0, self.means[..., 3], np.nan)
        return above / np.where(below > 0, below, np.nan), self.means[..., 2] / baseline

    @property
    def has_one_denominator(self) -> NDArray[np.bool_]:
        """True where all users have the same denominator under both models, to within 1e-9 of it for rounding.

        The ratios are then means over users. False where squares are beyond the range of a double.
        """
        _, difference, _, below = range(N_PARTS)
        is_same = (self.means[..., difference] == 0) & (self.cross[..., difference, difference] == 0)
        with np.errstate(over="ignore", under="ignore"):
            spread = self.n * (_ONE * self.means[..., below]) ** 2
        is_in_range = (spread > 0) & np.isfinite(spread)
        has_one: NDArray[np.bool_] = is_same & is_in_range & (self.cross[..., below, below] <= spread)
        return has_one

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        cross = self.cross.reshape(*self.n.shape, N_PARTS**2)
        counts = np.stack([self.n, self.n_different], axis=-1)
        states = np.concatenate([counts, self.means, cross], axis=-1, dtype=np.float64)
        return [state.tobytes() for state in states]

    @classmethod
    def from_bytes(cls, state: bytes) -> RatioPairs:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns, ...)."""
        numbers = np.frombuffer(state).reshape(1, -1, N_NUMBERS)
        counts, means, cross = np.split(numbers, (2, 2 + N_PARTS), axis=-1)
        n, n_different = np.moveaxis(counts.astype(np.int64), -1, 0)
        return cls(n, n_different, means, cross.reshape(*n.shape, N_PARTS, N_PARTS))


class RatioComparison(NamedTuple):
    """A model compared with a baseline, each attribute of shape (n_groups, n_columns)."""

    n: NDArray[np.int64]
    delta: Values  # difference of the ratios
    std_error: Values
    low: Values
    high: Values
    p: Values  # two-sided; 1 where no user differs
    change: Change  # difference as a share of the baseline's ratio
    reason: NDArray[np.str_]  # why there is no p-value, of `why_untested_counts`; a ratio can be undefined too


def ratio_pairs_by_group(
    model: tuple[Matrix, Matrix], baseline: tuple[Matrix, Matrix], group: NDArray[np.integer], n_groups: int
) -> RatioPairs:
    """Aggregate the numerators and denominators of users under two models; users with a NaN are left out."""
    differences = [subtract(*each) for each in zip(model, baseline, strict=True)]
    parts = np.stack([*differences, *baseline], axis=-1)
    is_defined: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(parts), axis=-1)
    width = parts.shape[1] * N_PARTS
    membership = membership_matrix(group, n_groups)
    is_different = is_defined & (parts[..., : N_PARTS // 2] != 0).any(axis=-1)
    n, n_different = (
        np.rint(membership @ each.astype(np.float64)).astype(np.int64) for each in (is_defined, is_different)
    )
    parts = np.where(is_defined[..., None], parts, 0.0)
    shape = (n_groups, *parts.shape[1:])
    means = weighted_means(membership, parts.reshape(len(parts), width), np.repeat(n, N_PARTS, axis=1)).reshape(shape)
    means = np.where(n[..., None] > 0, means, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.where(is_defined[..., None], parts - means[group], 0.0)
        products = (deviations[..., :, None] * deviations[..., None, :]).reshape(len(parts), width * N_PARTS)
    return RatioPairs(n, n_different, means, (membership @ products).reshape(*shape, N_PARTS))


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def compare_ratios(
    pairs: RatioPairs, *, level: float, least_users: int = MIN_USERS, few: FewDifferences = "exact"
) -> RatioComparison:
    """Compare the ratios of two models on the same users, merged over all users.

    The delta method with the user as the unit. Let a, b be the sums of numerators and denominators of the model, and c,
    d those of the baseline. A user moves the difference ``a/b - c/d`` by ``(a_u - (a/b) b_u) / b - (c_u - (c/d) d_u) /
    d``. Interval and p follow from the variance of these terms and Student's t with n - 1 degrees of freedom. Where all
    terms are equal, p is that of equal differences, ``2^(1 - n)``. Users whose numerator and denominator are the same
    under both models are not among the differences that a test needs.

    Half of the users find one more of their four relevant items:

    >>> found, relevant = np.array([[1.0], [2.0]] * 20), np.full((40, 1), 4.0)
    >>> users = np.zeros(40, dtype=np.int64)
    >>> pairs = ratio_pairs_by_group((found + [[1.0], [0.0]] * 20, relevant), (found, relevant), users, 1)
    >>> compared = compare_ratios(pairs, level=0.95)
    >>> float(compared.delta[0, 0]), float(compared.std_error[0, 0].round(5))
    (0.125, 0.02002)
    """
    ratio, below = pairs.ratios
    # Gradient of each ratio by the means of the four parts, (..., 4).
    by_model, by_baseline = (
        1 / np.where(each > 0, each, np.nan)
        for each in (pairs.means[..., 1] + pairs.means[..., 3], pairs.means[..., 3])
    )
    zero = np.zeros_like(ratio)
    model = np.stack([by_model, -ratio * by_model, by_model, -ratio * by_model], axis=-1)
    baseline = np.stack([zero, zero, by_baseline, -below * by_baseline], axis=-1)
    delta = subtract(ratio, below)
    delta, m2 = np.where(np.isinf(delta), np.nan, delta), _squares_along(pairs.products, model - baseline)
    many = np.where(pairs.n > 1, pairs.n, np.nan)
    std_error = np.sqrt(m2 / (many - 1) / many)
    low, high = intervals.t_interval(pairs.n, delta, m2, level)
    t = np.where((delta == 0) & (m2 == 0), 0.0, delta / std_error)
    reason = why_untested_counts(pairs.n, pairs.n_different, least_users=least_users, few=few)
    is_beyond = np.isinf(ratio) | np.isinf(below) | (~np.isnan(delta) & np.isnan(m2))
    reason = np.where((reason == "") & is_beyond, OUT_OF_RANGE, reason)
    is_tested = (reason == "") & ~np.isnan(delta)
    alike, *_ = equal_differences_p(pairs.n, delta)
    p = np.where(is_tested, np.where(m2 == 0, alike, distributions.t_tails(t, many - 1)[0]), np.nan)
    unit = np.where(below > 0, below, np.nan)
    share = ratio / unit
    change_m2 = _squares_along(pairs.products, (model - share[..., None] * baseline) / unit[..., None])
    change_ends = intervals.t_interval(pairs.n, share - 1, change_m2, level)
    change = Change(share - 1, np.sqrt(change_m2 / (many - 1) / many), *change_ends)
    return RatioComparison(pairs.n, delta, std_error, low, high, p, change, reason)


def _squares_along(cross: Values, gradient: Values) -> Values:
    """Sum the squared deviations ``(gradient . x)^2`` of users from ``cross``, the sums of products ``x_i x_j``.

    ``cross`` has shape (..., 4, 4), the gradient (..., 4). 0 if the sum is rounding, NaN if squares overflow.
    """
    squares = gradient[..., :, None] * gradient[..., None, :]
    terms = np.where(np.isfinite(squares), cross * squares, np.nan)
    total = terms.sum(axis=(-1, -2))
    m2: Values = np.where(total <= _ROUNDING * np.abs(terms).sum(axis=(-1, -2)), 0.0 * total, total)
    return m2

"""Two models on a ratio of sums over users (micro average): the delta method for their difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.statistics import distributions, intervals
from rankeval_spark.statistics.differences import difference_of
from rankeval_spark.statistics.least import LEAST_USERS
from rankeval_spark.statistics.moments import membership_of
from rankeval_spark.statistics.paired import Change, of_equal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix

N_PARTS: Final = 4
"""Of each user and column: difference of the numerators, of the denominators, and both of the baseline."""

N_NUMBERS: Final = 1 + N_PARTS + N_PARTS**2
"""Numbers of a group and column, as :meth:`RatioPairs.to_bytes` writes them."""

_ROUNDING: Final = 8 * np.finfo(np.float64).eps
"""Share of the terms of a sum below which it is what rounding left of them."""


@dataclass(frozen=True, eq=False)
class RatioPairs:
    """Means and products of deviations of the four parts of each column in each group of users.

    Parameters
    ----------
    n : int64, shape (n_groups, n_columns)
        Users with all four.
    means : float64, shape (n_groups, n_columns, 4)
        NaN without users.
    cross : float64, shape (n_groups, n_columns, 4, 4)
        Sums of the products of the deviations from the means.

    Notes
    -----
    The model's own numerators and denominators are left out, for the sums of the two: where the models are nearly the
    same, or have the same denominators, nothing is lost in a difference of large numbers.
    """

    n: NDArray[np.int64]
    means: Values
    cross: Values

    def merge(self, other: RatioPairs) -> RatioPairs:
        """Merge both sets of users, as ``Moments.merge`` does."""
        n = self.n + other.n
        share = other.n / np.maximum(n, 1)
        means = np.where((self.n > 0)[..., None], self.means, other.means)
        both = (self.n > 0) & (other.n > 0)
        apart = np.where(both[..., None], other.means - means, 0.0)
        products = apart[..., :, None] * apart[..., None, :] * (self.n * share)[..., None, None]
        return RatioPairs(n, means + apart * share[..., None], self.cross + other.cross + products)

    @property
    def baseline_ratio(self) -> Values:
        """Ratio of the baseline; NaN where its denominator is not above 0."""
        return _ratios(self.means)[1]

    @property
    def has_one_denominator(self) -> NDArray[np.bool_]:
        """Whether all users have the same denominator under both models: the ratios then are means of the users'."""
        _, apart, _, below = range(N_PARTS)
        is_same = (self.means[..., apart] == 0) & (self.cross[..., apart, apart] == 0)
        has_one: NDArray[np.bool_] = is_same & (self.cross[..., below, below] == 0)
        return has_one

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group, to be merged elsewhere; whole numbers are exact as doubles."""
        cross = self.cross.reshape(*self.n.shape, N_PARTS**2)
        states = np.concatenate([self.n[..., None], self.means, cross], axis=-1, dtype=np.float64)
        return [state.tobytes() for state in states]

    @classmethod
    def from_bytes(cls, state: bytes) -> RatioPairs:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns, ...)."""
        numbers = np.frombuffer(state).reshape(1, -1, N_NUMBERS)
        n, means, cross = np.split(numbers, (1, 1 + N_PARTS), axis=-1)
        return cls(n[..., 0].astype(np.int64), means, cross.reshape(*n.shape[:2], N_PARTS, N_PARTS))


class RatioComparison(NamedTuple):
    """A model against a baseline, each attribute of shape (n_groups, n_columns); NaN where undefined.

    Attributes
    ----------
    n : int64
        Users.
    delta, std_error, low, high : float64
        Difference of the ratios and its interval.
    p, p_less, p_greater : float64
        Two-sided; that the difference is below 0; that it is above. 1 where the users do not differ at all.
    change : Change
        Difference in units of the baseline's ratio.
    """

    n: NDArray[np.int64]
    delta: Values
    std_error: Values
    low: Values
    high: Values
    p: Values
    p_less: Values
    p_greater: Values
    change: Change


def by_group(
    model: tuple[Matrix, Matrix], baseline: tuple[Matrix, Matrix], group: NDArray[np.integer], n_groups: int
) -> RatioPairs:
    """Aggregate the numerators and denominators of users under two models.

    Parameters
    ----------
    model, baseline : (float64, float64), each of shape (n_users, n_columns)
        Numerators and denominators; NaN where undefined, and such users are left out of the column.
    group : int, shape (n_users,)
        Group of each user, from 0 to ``n_groups - 1``.
    n_groups : int
        Number of groups.
    """
    differences = [difference_of(*each) for each in zip(model, baseline, strict=True)]
    parts = np.stack([*differences, *baseline], axis=-1)
    is_defined: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(parts), axis=-1)
    width = parts.shape[1] * N_PARTS
    membership = membership_of(group, n_groups)
    n = np.rint(membership @ is_defined.astype(np.float64)).astype(np.int64)
    parts = np.where(is_defined[..., None], parts, 0.0)
    shape = (n_groups, *parts.shape[1:])
    sums = (membership @ parts.reshape(len(parts), width)).reshape(shape)
    means = sums / np.where(n > 0, n, np.nan)[..., None]
    off = np.where(is_defined[..., None], parts - means[group], 0.0)
    products = (off[..., :, None] * off[..., None, :]).reshape(len(parts), width * N_PARTS)
    return RatioPairs(n, means, (membership @ products).reshape(*shape, N_PARTS))


def compare(pairs: RatioPairs, *, level: float, least_users: int = LEAST_USERS) -> RatioComparison:
    """Compare the ratios of two models on the same users.

    Parameters
    ----------
    pairs : RatioPairs
        Merged over all users.
    level : float
        Nominal coverage of the interval, in (0, 1).
    least_users : int
        Users below which there is no p.

    Notes
    -----
    The delta method with the user as the unit: with a, b the sums of numerators and denominators of the model, c, d
    those of the baseline, a user moves the difference ``a/b - c/d`` by ``(a_u - (a/b) b_u) / b - (c_u - (c/d) d_u) /
    d``. The variance of these terms and Student's t with n - 1 degrees of freedom give interval and p; where all terms
    are alike, the p is that of equal differences, ``2^(1 - n)``.

    Examples
    --------
    Half of the users find one more of their four relevant items:

    >>> found, relevant = np.array([[1.0], [2.0]] * 20), np.full((40, 1), 4.0)
    >>> pairs = by_group((found + [[1.0], [0.0]] * 20, relevant), (found, relevant), np.zeros(40, dtype=np.int64), 1)
    >>> compared = compare(pairs, level=0.95)
    >>> float(compared.delta[0, 0]), float(compared.std_error[0, 0].round(5))
    (0.125, 0.02002)
    """
    model, baseline = _gradients(pairs.means)
    ratio, below = _ratios(pairs.means)
    delta, m2 = difference_of(ratio, below), _variation(pairs.cross, model - baseline)
    many = np.where(pairs.n > 1, pairs.n, np.nan)
    std_error = np.sqrt(m2 / (many - 1) / many)
    low, high = intervals.t_interval(pairs.n, delta, m2, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where((delta == 0) & (m2 == 0), 0.0, delta / std_error)
    is_tested = (pairs.n >= least_users) & ~np.isnan(delta)
    sides = distributions.t_tails(t, many - 1)
    alike = of_equal(pairs.n, delta)
    p, p_less, p_greater = (
        np.where(is_tested, np.where(m2 == 0, equal, side), np.nan) for equal, side in zip(alike, sides, strict=True)
    )
    change = _change(pairs, ratio, below, model, baseline, level)
    return RatioComparison(pairs.n, delta, std_error, low, high, p, p_less, p_greater, change)


def _ratios(means: Values) -> tuple[Values, Values]:
    """Ratio of the model and of the baseline; NaN where a denominator is not above 0."""
    above, below = means[..., 0] + means[..., 2], means[..., 1] + means[..., 3]
    return above / np.where(below > 0, below, np.nan), means[..., 2] / np.where(
        means[..., 3] > 0, means[..., 3], np.nan
    )


def _gradients(means: Values) -> tuple[Values, Values]:
    """Change of either ratio with the means of the four parts, of shape (..., 4)."""
    ratio, below = _ratios(means)
    model, baseline = (1 / np.where(each > 0, each, np.nan) for each in (means[..., 1] + means[..., 3], means[..., 3]))
    nothing = np.zeros_like(ratio)
    return (
        np.stack([model, -ratio * model, model, -ratio * model], axis=-1),
        np.stack([nothing, nothing, baseline, -below * baseline], axis=-1),
    )


def _variation(cross: Values, gradient: Values) -> Values:
    """Squared deviations of the users' terms; 0 where rounding is all that is left."""
    terms = cross * gradient[..., :, None] * gradient[..., None, :]
    total = terms.sum(axis=(-1, -2))
    m2: Values = np.where(total <= _ROUNDING * np.abs(terms).sum(axis=(-1, -2)), 0.0 * total, total)
    return m2


def _change(  # noqa: PLR0913, PLR0917 - two ratios and their gradients
    pairs: RatioPairs, ratio: Values, below: Values, model: Values, baseline: Values, level: float
) -> Change:
    unit = np.where(below > 0, below, np.nan)
    value = ratio / unit - 1
    m2 = _variation(pairs.cross, (model - (ratio / unit)[..., None] * baseline) / unit[..., None])
    many = np.where(pairs.n > 1, pairs.n, np.nan)
    low, high = intervals.t_interval(pairs.n, value, m2, level)
    return Change(value, np.sqrt(m2 / (many - 1) / many), low, high)

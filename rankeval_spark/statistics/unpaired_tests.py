"""Models that serve different users, such as the arms of an A/B test: unpaired tests, covariates, shares of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy import special

from rankeval_spark.columns import MIN_USERS, UNPAIRED
from rankeval_spark.statistics import distributions, moments
from rankeval_spark.statistics.intervals import MIN_NONZERO
from rankeval_spark.statistics.paired_tests import OUT_OF_RANGE, Change, equal_differences_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values

_ROUNDING: Final = 1e-13  # share of the values up to which a difference or a standard error is only rounding
_COLLINEAR: Final = 1e-10  # share of the greatest eigenvalue below which covariates say the same
MIN_EXPECTED: Final = 5.0  # users expected of a model below which its share is tested exactly
NO_USERS: Final = "no_users"  # reason of an unpaired test without a p: no user of one of the models has a value


@dataclass(frozen=True, eq=False)
class PartMoments:
    """Means of some numbers of each user by group and column, and products of their deviations."""

    n: NDArray[np.int64]  # (n_groups, n_columns), users with all of the numbers
    means: Values  # (n_groups, n_columns, n_parts), 0 without users
    cross: Values  # (n_groups, n_columns, n_parts, n_parts), sums of the products of the deviations from the means

    @classmethod
    def by_group(cls, parts: Values, group: NDArray[np.integer], n_groups: int) -> PartMoments:
        """Aggregate parts, (n_users, n_columns, n_parts); a user with a NaN is left out of the column."""
        is_known: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(parts), axis=-1)
        sums = moments.membership_matrix(group, n_groups)
        n = np.rint(sums @ is_known.astype(np.float64)).astype(np.int64)
        known, (n_users, n_columns, n_parts) = np.where(is_known[..., None], parts, 0.0), parts.shape
        with np.errstate(over="ignore", invalid="ignore"):
            totals = (sums @ known.reshape(n_users, n_columns * n_parts)).reshape(*n.shape, n_parts)
            means = totals / np.maximum(n, 1)[..., None]
            off = np.where(is_known[..., None], known - means[group], 0.0)
            products = (off[..., :, None] * off[..., None, :]).reshape(n_users, n_columns * n_parts**2)
            cross = (sums @ products).reshape(*n.shape, n_parts, n_parts)
        return cls(n, means, cross)

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, other: PartMoments) -> PartMoments:
        """Merge two sets of users, as ``Moments.merge`` does."""
        n = self.n + other.n
        share = other.n / np.maximum(n, 1)
        step = np.where(((self.n > 0) & (other.n > 0))[..., None], other.means - self.means, 0.0)
        means = np.where((self.n > 0)[..., None], self.means + step * share[..., None], other.means)
        apart = step[..., :, None] * step[..., None, :] * (self.n * share)[..., None, None]
        return PartMoments(n, means, self.cross + other.cross + apart)

    @property
    def numbers(self) -> Values:
        """All numbers of each group and column in a row: (n_groups, n_columns, 1 + n_parts + n_parts^2)."""
        shape = *self.n.shape, -1
        return np.concatenate([self.n[..., None], self.means, self.cross.reshape(shape)], axis=-1, dtype=np.float64)

    @classmethod
    def from_numbers(cls, numbers: Values, n_parts: int) -> PartMoments:
        """Build from :attr:`numbers`."""
        n, means, cross = np.split(numbers, (1, 1 + n_parts), axis=-1)
        return cls(n[..., 0].astype(np.int64), means, cross.reshape(*n.shape[:-1], n_parts, n_parts))


@dataclass(frozen=True, eq=False)
class Arms:
    """Aggregates of two models: of the users of each, and of users of both, whose two values vary together."""

    model: PartMoments
    baseline: PartMoments
    common: PartMoments  # of the model's parts, then the baseline's
    n_nonzero: NDArray[np.int64]  # (n_groups, n_columns), values other than 0 under either

    @classmethod
    def by_group(cls, model: Values, baseline: Values, group: NDArray[np.integer], n_groups: int) -> Arms:
        """Aggregate the parts of users under both models, NaN under a model that does not serve the user.

        Parts are outcomes, a value or a numerator and a denominator, and then covariates, if any.
        """
        sums = moments.membership_matrix(group, n_groups)
        nonzero = sum(np.nan_to_num(parts[..., 0]) != 0 for parts in (model, baseline))
        return cls(
            PartMoments.by_group(model, group, n_groups),
            PartMoments.by_group(baseline, group, n_groups),
            PartMoments.by_group(np.concatenate([model, baseline], axis=-1), group, n_groups),
            np.rint(sums @ np.asarray(nonzero, dtype=np.float64)).astype(np.int64),
        )

    def merge(self, other: Arms) -> Arms:
        """Aggregate both sets of users."""
        model, baseline = self.model.merge(other.model), self.baseline.merge(other.baseline)
        return Arms(model, baseline, self.common.merge(other.common), self.n_nonzero + other.n_nonzero)

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        parts = [each.numbers for each in (self.model, self.baseline, self.common)]
        return [state.tobytes() for state in np.concatenate([*parts, self.n_nonzero[..., None]], axis=-1)]

    @classmethod
    def from_bytes(cls, state: bytes, n_parts: int) -> Arms:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns, ...)."""
        sizes = [1 + n + n**2 for n in (n_parts, n_parts, 2 * n_parts)]
        numbers = np.frombuffer(state).reshape(1, -1, sum(sizes) + 1)
        model, baseline, common, nonzero = np.split(numbers, np.cumsum(sizes), axis=-1)
        first, second = (PartMoments.from_numbers(each, n_parts) for each in (model, baseline))
        return cls(first, second, PartMoments.from_numbers(common, 2 * n_parts), nonzero[..., 0].astype(np.int64))


class ArmComparison(NamedTuple):
    """A model compared with a baseline on different users, each attribute of shape (n_groups, n_columns)."""

    n: NDArray[np.int64]  # users of the model with a value
    n_baseline: NDArray[np.int64]  # the same of the baseline
    value: Values  # of the model: mean or ratio
    baseline: Values
    delta: Values  # difference; of adjusted values with covariates
    std_error: Values  # of the difference
    low: Values
    high: Values
    freedom: Values
    p: Values  # two-sided
    change: Change  # difference as a share of the baseline's value
    effect_size: Values  # difference in standard deviations of users; NaN for ratios
    variance_removed: Values  # by covariates, as a share; NaN without
    reason: NDArray[np.str_]  # why there is no p-value; else empty


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def compare_arms(arms: Arms, *, n_outcomes: int, level: float, least_users: int = MIN_USERS) -> ArmComparison:
    """Compare two models by the means (``n_outcomes`` 1), or ratios of sums (2), over the users of each.

    Welch's test: ``se^2 = s_1^2 / n_1 + s_0^2 / n_0``. A ratio is linearised by the delta method: a user with numerator
    a and denominator b has the value ``(a - r b) / mean b``. Further parts are covariates z, which leave ``delta -
    theta (mean z_1 - mean z_0)``, with theta by least squares, pooled within the models. Each costs a degree of freedom
    (Deng, Xu, Kohavi & Walker 2013).

    >>> parts, none = np.arange(1.0, 9.0)[:, None, None], np.full((8, 1, 1), np.nan)
    >>> model, baseline = np.concatenate([parts, none]), np.concatenate([none, 2 * parts])
    >>> arms = Arms.by_group(model, baseline, np.zeros(16, dtype=np.int64), 1)
    >>> found = compare_arms(arms, n_outcomes=1, level=0.95, least_users=8)
    >>> float(found.delta[0, 0]), float(found.p[0, 0].round(4)), float(found.freedom[0, 0].round(4))
    (-4.5, 0.0418, 10.2941)
    """
    sides = arms.model, arms.baseline
    (value, outcome_1), (baseline, outcome_0) = (_linearise(each, n_outcomes) for each in sides)
    theta, n_covariates = _slopes(sides, (outcome_1, outcome_0), n_outcomes)
    difference = outcome_1 - theta, outcome_0 - theta
    delta = value - baseline - _along(arms.model.means - arms.baseline.means, theta)
    raw, found = _variance(arms, outcome_1, outcome_0), _variance(arms, *difference, n_lost=n_covariates)
    scale = np.maximum(np.abs(value), np.abs(baseline))
    is_beyond = _is_out_of_range(arms) | ~np.isfinite(found.total)
    std_error = np.where(is_beyond, np.nan, np.sqrt(np.maximum(found.total, 0.0)))
    std_error = np.where(std_error <= _ROUNDING * scale, 0.0, std_error)
    delta = np.where((std_error == 0) & (np.abs(delta) <= _ROUNDING * scale), 0.0, delta)
    quantile = distributions.t_quantile((1 + level) / 2, found.freedom)
    alike, *_ = equal_differences_p(np.minimum(arms.model.n, arms.baseline.n), delta)
    p = np.where(std_error == 0, alike, distributions.t_tails(delta / std_error, found.freedom)[0])
    reason = _why_untested(arms, delta, std_error, least_users)
    # The change is delta / r, with r the baseline's value, which varies too.
    unit = np.where(baseline > 0, baseline, np.nan)
    share = delta / unit
    of_change = _variance(arms, difference[0], difference[1] + share[..., None] * outcome_0, n_lost=n_covariates)
    change_error = np.where(is_beyond, np.nan, np.sqrt(np.maximum(of_change.total, 0.0)) / unit)
    none = np.full(delta.shape, np.nan)
    return ArmComparison(
        arms.model.n,
        arms.baseline.n,
        value,
        baseline,
        delta,
        std_error,
        delta - quantile * std_error,
        delta + quantile * std_error,
        found.freedom,
        np.where(reason == "", p, np.nan),
        Change(share, change_error, share - quantile * change_error, share + quantile * change_error),
        np.where(std_error > 0, delta / raw.std_dev, np.nan) if n_outcomes == 1 else none,
        np.where(raw.total > 0, 1 - std_error**2 / raw.total, np.nan) if theta.shape[-1] > n_outcomes else none,
        reason,
    )


class _Variance(NamedTuple):
    """Variance of the difference of two means, each attribute of shape (n_groups, n_columns)."""

    total: Values
    freedom: Values
    std_dev: Values  # of users: the root of the mean variance of both models


def _variance(arms: Arms, of_model: Values, of_baseline: Values, *, n_lost: NDArray[np.int64] | int = 0) -> _Variance:
    """Compute the variance of the difference of two means along gradients of the parts, (..., n_parts).

    Users of both models have a covariance. With them the degrees of freedom lie between Welch's and those of the paired
    test: both ends are exact (Derrick, Russ, Toher & White 2017, Journal of Modern Applied Statistical Methods 16).
    """
    (n_1, n_0), n_both = (np.where(each.n > 1, each.n, np.nan) for each in (arms.model, arms.baseline)), arms.common.n
    squares_1, squares_0 = (
        np.einsum("...i,...ij,...j->...", gradient, each.cross, gradient) / (n - 1)
        for gradient, each, n in ((of_model, arms.model, n_1), (of_baseline, arms.baseline, n_0))
    )
    n_parts = of_model.shape[-1]
    off_1 = _along(arms.common.means[..., :n_parts] - arms.model.means, of_model)
    off_0 = _along(arms.common.means[..., n_parts:] - arms.baseline.means, of_baseline)
    products = np.einsum("...i,...ij,...j->...", of_model, arms.common.cross[..., :n_parts, n_parts:], of_baseline)
    covariance = (products + n_both * off_1 * off_0) / np.maximum(n_both - 1, 1) * n_both / (n_1 * n_0)
    var_1, var_0 = squares_1 / n_1, squares_0 / n_0
    spread = var_1 + var_0
    welch = np.where(spread > 0, spread**2 / (var_1**2 / (n_1 - 1) + var_0**2 / (n_0 - 1)), n_1 + n_0 - 2)
    paired = np.maximum(n_both - 1, 0)
    freedom = paired + (welch - paired) * (n_1 + n_0 - 2 * n_both) / (n_1 + n_0)
    total = spread - 2 * np.where(n_both > 0, covariance, 0.0)
    residual = n_1 + n_0 - 2 - n_lost
    total = total * (n_1 + n_0 - 2) / np.where(residual > 0, residual, np.nan)
    return _Variance(total, np.maximum(freedom - n_lost, 1.0), np.sqrt((squares_1 + squares_0) / 2))


def _along(parts: Values, gradient: Values) -> Values:
    """Return the sum of parts, each times its gradient."""
    total: Values = np.einsum("...i,...i->...", np.nan_to_num(parts), gradient)
    return total


def _linearise(side: PartMoments, n_outcomes: int) -> tuple[Values, Values]:
    """Return the mean or ratio of sums of a model, and its gradient by the means of all parts."""
    gradient = np.zeros_like(side.means)
    value = np.where(side.n > 0, side.means[..., 0], np.nan)
    gradient[..., 0] = 1.0
    if n_outcomes > 1:
        below = np.where((side.n > 0) & (side.means[..., 1] > 0), side.means[..., 1], np.nan)
        value = value / below
        gradient[..., 0], gradient[..., 1] = 1 / below, -value / below
    return value, gradient


def _slopes(
    sides: Sequence[PartMoments], outcomes: Sequence[Values], n_outcomes: int
) -> tuple[Values, NDArray[np.int64]]:
    """Return the slopes of the covariates, 0 for the outcomes, and how many covariates say something of their own.

    Covariates are scaled to a variance of 1 first; one that does not vary has the slope 0.
    """
    theta = np.zeros_like(sides[0].means)
    cross = np.sum([side.cross for side in sides], axis=0)
    squares, products = cross[..., n_outcomes:, n_outcomes:], np.zeros_like(theta[..., n_outcomes:])
    if not squares.shape[-1]:
        return theta, np.zeros(theta.shape[:-1], dtype=np.int64)
    for side, gradient in zip(sides, outcomes, strict=True):
        products = products + np.einsum("...ij,...j->...i", side.cross[..., n_outcomes:, :], gradient)
    spread = np.sqrt(np.diagonal(squares, axis1=-2, axis2=-1))
    n = np.sum([side.n for side in sides], axis=0)[..., None]
    level = np.max([np.abs(side.means[..., n_outcomes:]) for side in sides], axis=0)
    varies = (spread > _ROUNDING * np.sqrt(np.maximum(n, 1)) * level) & np.isfinite(spread)
    unit = np.where(varies, spread, np.inf)
    correlations = np.nan_to_num(squares / unit[..., :, None] / unit[..., None, :])
    inverse = np.linalg.pinv(correlations, rcond=_COLLINEAR, hermitian=True)
    theta[..., n_outcomes:] = np.einsum("...ij,...j->...i", inverse, products / unit) / unit
    rank = np.rint(np.einsum("...ij,...ji->...", inverse, correlations)).astype(np.int64)
    return theta, rank


def _why_untested(arms: Arms, delta: Values, std_error: Values, least_users: int) -> NDArray[np.str_]:
    """Return why two models have no p-value; empty where they have one.

    Too few values other than 0, such as conversions, are no base for a normal distribution: ``few_differences`` where
    their number, times the share of the smaller model in the larger one, is below 10.
    """
    fewest, most = (take(arms.model.n, arms.baseline.n) for take in (np.minimum, np.maximum))
    is_few = arms.n_nonzero * fewest / np.maximum(most, 1) < MIN_NONZERO
    names = [NO_USERS, "one_user", "few_users", "few_differences", OUT_OF_RANGE, "undefined"]
    is_beyond, is_undefined = _is_out_of_range(arms), np.isnan(delta * std_error)
    return np.select([fewest == 0, fewest == 1, fewest < least_users, is_few, is_beyond, is_undefined], names, "")


def _is_out_of_range(arms: Arms) -> NDArray[np.bool_]:
    """Return True where squares of the values of either model leave the range of a double, or lose all digits."""
    squares = np.stack([np.diagonal(each.cross, axis1=-2, axis2=-1)[..., 0] for each in (arms.model, arms.baseline)])
    means = np.stack([each.means[..., 0] for each in (arms.model, arms.baseline)])
    is_lost = moments.may_lose_squares(squares, means) | ~(squares <= moments.SQUARES[1])
    return np.asarray(is_lost.any(axis=0), dtype=np.bool_)


def describe_shared_users(row: Mapping[str, Any]) -> str:
    """Return how many users have lists of both models of a row of ``comparisons`` that takes them for different users.

    >>> row = {"test": "unpaired", "n_with_both": 3, "n_with_baseline": 900, "n_with_model": 93}
    >>> describe_shared_users(row)
    '3 users have lists of both, though each is meant to have one model; the test counts what they share'
    """
    if row.get("test") != UNPAIRED or not row.get("n_with_both"):
        return ""
    n_users = "1 user has" if row["n_with_both"] == 1 else f"{row['n_with_both']:,} users have"
    return f"{n_users} lists of both, though each is meant to have one model; the test counts what they share"


def sample_ratio_p(counts: Sequence[int], shares: Sequence[float]) -> float:
    """Return the p of a split of users against its plan: the chi-square test, or an exact one of few users.

    Where fewer than five users are expected somewhere, it is the least two-sided binomial p of one model against all
    others, times the number of models where these are more than two.

    >>> round(sample_ratio_p([5_200, 4_800], [0.5, 0.5]), 6), round(sample_ratio_p([1, 7], [0.5, 0.5]), 6)
    (6.3e-05, 0.070313)
    """
    found, expected = np.asarray(counts, dtype=np.float64), np.asarray(shares) * sum(counts)
    if not found.sum():
        return 1.0
    if expected.min() >= MIN_EXPECTED:
        return float(special.chdtrc(len(found) - 1, ((found - expected) ** 2 / expected).sum()))
    total = found.sum()
    k = np.arange(total + 1)
    chosen = special.gammaln(total + 1) - special.gammaln(k + 1) - special.gammaln(total - k + 1)
    least = 1.0
    for n, share in zip(counts, shares, strict=True):
        density = np.exp(chosen + special.xlogy(k, share) + special.xlog1py(total - k, -share))
        least = min(least, float(density[density <= density[n] * (1 + 1e-7)].sum()))
    n_tests = 1 if len(found[2:]) == 0 else len(found)  # of two models, both tests are the same
    return min(1.0, least * n_tests)

"""Gaps between groups of users: the difference of the extremes, an interval that accounts for their choice, a test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy import special

from rankeval_spark.statistics import distributions, intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.resampling import ReplicateSums

TIE: Final = 1e-10  # share of the greater of two means up to which their difference is only rounding
MIN_HITS: Final = 20  # users of a group with a value other than that of a user without a hit, below which there is no p
_MAX_FREEDOM: Final = 1000  # degrees of freedom above which the quantile does not change in the third digit
_MIN_GROUPS: Final = 2  # groups that a difference needs
_PRIOR_HITS: Final = 1.0  # hits by which a dispersion is drawn to that of zeros and ones: few hits show little of it
_MIN_EFFECTIVE: Final = 30  # effective hits below which a varied mean without a greatest value has no bounds
_MIN_TAIL: Final = 1e-300  # probability below which normal quantiles do not grow further


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """A measure in each group; a row for each of several measures."""

    values: Values  # (..., n_groups), the measure; NaN for a group that the row leaves out
    std_errors: Values  # (..., n_groups); a value without an error leaves its row without an interval
    freedom: Values  # (..., n_groups), degrees of freedom of the error
    level: float  # nominal coverage, in (0, 1)
    is_share: NDArray[np.bool_] | bool = False  # (...,), the values are means of users' 0 and 1
    # (...,), least and greatest value that a user can have; NaN where the values are no means over users
    bounds: tuple[Values | float, Values | float] = (np.nan, np.nan)
    is_linked: NDArray[np.bool_] | bool = False  # (...,), functions of means, such as the root of a mean of squares
    is_log: NDArray[np.bool_] | bool = False  # (...,), geometric means, whose limits are those of their logarithms
    # (...,), means, or means of logarithms, in which few users at a far floor weigh more than all others
    has_floor: NDArray[np.bool_] | bool = False
    # (...,), least and greatest value that a group can have, where limits are cut off
    reach: tuple[Values | float, Values | float] = (-np.inf, np.inf)

    @property
    def in_logs(self) -> GroupMeans:
        """The same groups, with the logarithms of geometric means."""
        cells = self.repeat_per_group(self.is_log)
        with np.errstate(divide="ignore", invalid="ignore"):
            least, greatest = (np.where(np.asarray(self.is_log), np.log(end), end) for end in self.bounds)
            values = np.where(cells, np.log(self.values), self.values)
            errors = np.where(cells, self.std_errors / self.values, self.std_errors)
        return replace(self, values=values, std_errors=errors, bounds=(least, greatest), is_log=False)

    @property
    def range_by_group(self) -> tuple[Values, Values]:
        """Least and greatest value of a user, repeated for each group: 0 and 1 of shares."""
        is_share = self.repeat_per_group(self.is_share)
        least, greatest = (self.repeat_per_group(end) for end in self.bounds)
        return np.where(is_share, 0.0, least), np.where(is_share, 1.0, greatest)

    def repeat_per_group(self, rows: Any) -> NDArray[Any]:  # noqa: ANN401 - a number or a truth value of each row, or of all
        """Repeat what is known of each row for each of its groups."""
        return np.broadcast_to(np.asarray(rows)[..., None], self.values.shape)


class Gap(NamedTuple):
    """Differences between the groups of one slicing, of shape (...,); NaN with fewer than two groups."""

    gap: Values  # greatest value minus least
    low: Values  # simultaneous interval of the gap
    high: Values
    ratio: Values  # least value over greatest; NaN where the greatest is not above 0 or the least is below it
    mad: Values  # mean absolute difference over all pairs of groups


@np.errstate(over="ignore", invalid="ignore")
def compare_groups(groups: GroupMeans) -> Gap:
    """Compare groups of users: gap with its interval, ratio, mean absolute difference.

    All pairs at once, with the quantile of the studentized range of so many groups (Games & Howell 1976) and limits of
    each group that may be unsymmetric, see :func:`group_limits`. A difference D of two groups lies in ``D - |(d_g,
    e_h)|`` to ``D + |(e_g, d_h)|``, with d and e the distances from a value to its lower and upper limit (Zou &
    Donner 2008). The gap lies between the greatest lower and the greatest upper end. The degrees of freedom are the
    least of all pairs (Welch), rounded down to two digits so that few quantiles are computed; both widen the
    interval.

    >>> found = compare_groups(GroupMeans(np.array([0.2, 0.5, 0.4]), np.full(3, 0.02), np.full(3, 99.0), 0.95))
    >>> [round(float(each), 3) for each in found]
    [0.3, 0.233, 0.367, 0.4, 0.2]
    """
    ordered = np.sort(groups.values, axis=-1)  # NaN last
    n = np.sum(~np.isnan(ordered), axis=-1)
    high, low = _max_per_row(ordered), _min_per_row(ordered)
    below, above = _distances(groups)
    lower, upper = np.full(n.shape, -np.inf), np.full(n.shape, -np.inf)
    for group in range(groups.values.shape[-1]):  # a group with all others: memory grows with groups, not pairs
        difference = groups.values[..., group, None] - groups.values
        difference[..., group] = np.nan
        to_lower = _combine_distances(groups, below[..., group, None], above)
        to_upper = _combine_distances(groups, above[..., group, None], below)
        lower = np.fmax(lower, np.fmax.reduce(difference - to_lower, axis=-1))
        upper = np.fmax(upper, np.fmax.reduce(difference + to_upper, axis=-1))
    is_bounded = _is_bounded(groups, below)
    width = np.maximum(np.subtract(*groups.reach[::-1]), high - low)
    ends = np.maximum(lower, 0.0), np.minimum(upper, width)
    lower, upper = (np.where(is_bounded, end, np.nan) for end in ends)
    found = Gap(high - low, lower, upper, _ratio(low, high), _mean_difference(ordered, n))
    return Gap(*(np.where(n < _MIN_GROUPS, np.nan, each)[()] for each in found))


def ratio_interval(groups: GroupMeans) -> tuple[Values, Values]:
    """Return the interval in [0, 1] of the least true value divided by the greatest; NaN without a ratio.

    All pairs at once, from the limits of each group as in :func:`compare_groups` (Donner & Zou 2012). The least ratio
    of two groups lies between the least lower and the least upper end.

    >>> low, high = ratio_interval(GroupMeans(np.array([0.2, 0.5]), np.full(2, 0.02), np.full(2, 99.0), 0.95))
    >>> round(float(low), 3), round(float(high), 3)
    (0.317, 0.488)
    """
    values, (below, above) = groups.values, _distances(groups)
    is_bounded = _is_bounded(groups, below)
    values, below, above = (np.ldexp(each, -_exponents(values)) for each in (values, below, above))
    below = np.minimum(below, values)  # no lower limit below 0
    low, high = np.full(is_bounded.shape, np.inf), np.full(is_bounded.shape, np.inf)
    for group in range(values.shape[-1]):
        over, others = values[..., group, None], values.copy()
        others[..., group] = np.nan
        product, down, up = over * others, below[..., group, None], above[..., group, None]
        start, most = (over - down) * (over + down), (others - below) * (others + below)
        # Without squares of both values: large ones would leave no digit of the distances.
        roots = (
            np.sqrt(np.maximum((over * theirs) ** 2 + (others * own) ** 2 - (own * theirs) ** 2, 0.0))
            for own, theirs in ((down, above), (up, below))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            to_lower, to_upper = roots
            lower, upper = start / (product + to_lower), (product + to_upper) / most
            is_log = groups.repeat_per_group(groups.is_log)
            lower = np.where(is_log, (over - down) / (others + above), lower)
            upper = np.where(is_log, (over + up) / (others - below), upper)
        is_pair = ~np.isnan(product)
        lower = np.where(is_pair & (start <= 0), 0.0, lower)  # also 0 / 0
        upper = np.where(is_pair & (most <= 0), np.inf, upper)
        low, high = (np.fmin(end, np.fmin.reduce(each, axis=-1)) for end, each in ((low, lower), (high, upper)))
    has_ratio = is_bounded & ~np.isnan(_ratio(_min_per_row(values), _max_per_row(values)))
    has_ratio &= np.sum(~np.isnan(values), axis=-1) >= _MIN_GROUPS
    return np.where(has_ratio, low, np.nan)[()], np.where(has_ratio, np.minimum(high, 1.0), np.nan)[()]


def worst_interval(groups: GroupMeans, *, is_greatest: NDArray[np.bool_] | bool = False) -> tuple[Values, Values]:
    """Return the interval of the worst group's true value; NaN without groups, or where a group has no limits.

    The worst value is the greatest where ``is_greatest``. All k groups lie at once in their limits at the level
    ``1 - (1 - level) / k`` (Bonferroni), so the least true value lies between the least lower and the least upper one.

    >>> groups = GroupMeans(np.array([0.2, 0.21]), np.array([0.02, 0.005]), np.array([99.0, 99.0]), 0.95)
    >>> [round(float(end), 3) for end in worst_interval(groups)]
    [0.154, 0.221]
    """
    n = np.sum(~np.isnan(groups.values), axis=-1, keepdims=True)
    tail = (1 - groups.level) / (2 * np.maximum(n, 1))
    lower, upper = group_limits(groups, special.stdtrit(groups.freedom, 1 - tail), tail)
    is_bounded = (n[..., 0] > 0) & _is_bounded(groups, lower)
    found = (np.where(is_greatest, _max_per_row(ends), _min_per_row(ends)) for ends in (lower, upper))
    low, high = (np.where(is_bounded, end, np.nan)[()] for end in found)
    return low, high


def group_limits(
    groups: GroupMeans,
    quantile: Values,  # (..., n_groups), of Student's distribution: how many errors a limit lies from its mean
    tail: Values,  # (..., 1), probability of a miss on one side
) -> tuple[Values, Values]:
    """Return the lower and upper limit of each group's true mean; NaN without an error or as below.

    An interval of few hits has to use the error that each possible true value would have:

    - A share has the interval of Clopper & Pearson (1934).
    - A mean in a finite range, as y in [0, 1], has Wilson's with ``n y (1 - y) / s^2`` trials and Student's quantile.
      ``s^2 / (y (1 - y))``, at most 1, is drawn towards 1 as by one more hit: h hits count h times, with
      ``h = (sum x)^2 / sum x^2`` (Kish's effective number), or misses if these are fewer.
    - A mean from 0 without a greatest value solves ``(m - y)^2 = q^2 (s^2 / y) m / n`` for m. NaN where h is below 30
      and at most n / 2.
    - Where all users are equal: see :func:`intervals.equal_values_interval`.
    - Other values have ``value -+ quantile se``.

    Of geometric means these are the limits of the mean logarithm. A lower limit above a far floor has as many users at
    the floor as may be unseen. No limit is outside the reach of the value.
    """
    lower, upper = _limits_as_averaged(groups.in_logs, quantile, tail)
    is_log = groups.repeat_per_group(groups.is_log)
    floor, logs = groups.in_logs.range_by_group[0], groups.in_logs.values
    unseen = logs - _unseen_share_bound(groups.freedom + 1, tail) * (logs - floor)
    lower = np.where(groups.repeat_per_group(groups.has_floor), np.minimum(lower, unseen), lower)
    ends = (np.where(is_log, np.exp(np.where(is_log, end, 0.0)), end) for end in (lower, upper))
    least, greatest = (groups.repeat_per_group(end) for end in groups.reach)
    lower, upper = (np.minimum(np.maximum(end, least), greatest) for end in ends)
    return np.minimum(lower, groups.values), np.maximum(upper, groups.values)


def equal_means_p(
    means: Values,  # (n_groups, n_columns), of the users themselves
    errors: Values,  # (n_groups, n_columns), standard errors
    sums: ReplicateSums,  # of the distances of the users to the mean of their group
) -> Values:
    """Return p of equal means of all groups, shape (n_columns,); NaN where an error is NaN.

    The statistic is the greatest studentised difference of two groups, ``t = max |m_g - m_h| / sqrt(se_g^2 + se_h^2)``,
    and ``p = (1 + #{t* >= t}) / (1 + B)``. In replicate b the users of each group are drawn again, and t* is that of
    the distances of their means to the means of the groups. So each group keeps its own distribution, where random
    labels reject equal means in 0 to 3 % of samples instead of 5 %. A replicate without an error counts as extreme,
    unless there is no difference either.
    """
    rounding = TIE * np.abs(means)[..., None]
    observed = _greatest_t(means[..., None], errors[..., None], rounding)[..., 0]
    n = np.where(sums.weights > 1, sums.weights, np.nan)
    drawn = sums.sums / n
    variances = np.maximum(sums.squares - sums.sums * drawn, 0.0) / (n * (n - 1))
    replicates = _greatest_t(drawn, np.sqrt(variances), rounding)
    is_extreme = ~(replicates < observed[:, None] * (1 - TIE))
    p = (1.0 + is_extreme.sum(axis=-1)) / (1.0 + is_extreme.shape[-1])
    return np.where(np.isnan(observed), np.nan, p)


def _greatest_t(means: Values, errors: Values, rounding: Values) -> Values:
    """Return the greatest studentised difference of two groups, (n_columns, n_replicates); NaN without an error."""
    greatest = np.zeros(means.shape[1:])
    for group in range(len(means) - 1):
        distance = np.abs(means[group + 1 :] - means[group])
        error = np.hypot(errors[group + 1 :], errors[group])
        is_apart = ~(distance <= np.maximum(rounding[group + 1 :], rounding[group]))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(is_apart, distance / error, 0.0)
        greatest = np.maximum(greatest, t.max(axis=0))
    return greatest


def _limits_as_averaged(groups: GroupMeans, quantile: Values, tail: Values) -> tuple[Values, Values]:
    """Return the lower and upper limit of each group's true mean, for values as they are averaged."""
    values, errors = groups.values, groups.std_errors
    n = np.where(np.isnan(errors), np.nan, groups.freedom + 1)
    least, greatest = groups.range_by_group
    width = np.where(np.isfinite(least) & np.isfinite(greatest), greatest - least, np.nan)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        exact = _clopper_pearson(n, values, errors, tail)
        shares = _finite_range_limits(n, (values - least) / width, errors / width, quantile)
        finite = (least + width * end for end in shares)
        half_open = (least + end for end in _half_open_limits(n, values - least, errors, quantile))
        most = _unseen_share_bound(n, tail)
        equal = values - most * (values - least), values + most * (greatest - values)
    is_mean = ~groups.repeat_per_group(groups.is_linked)
    has_range = is_mean & ~np.isnan(width)
    is_half_open = is_mean & np.isfinite(least) & np.isposinf(greatest)
    student = values - quantile * errors, values + quantile * errors
    n_users = groups.freedom + 1
    are_equal = ~np.isnan(least) & intervals.are_equal(n_users, values, errors**2 * n_users * groups.freedom)
    cases = [are_equal, groups.repeat_per_group(groups.is_share), has_range, is_half_open]
    of_equal = (np.where(np.isnan(width), np.nan, end) for end in equal)
    lower, upper = (
        np.where(np.isnan(n), np.nan, np.select(cases, found, other))
        for *found, other in zip(of_equal, exact, finite, half_open, student, strict=True)
    )
    return lower, upper


def _unseen_share_bound(n: Values, tail: Values) -> Values:
    """Return the greatest share of users that n users may not show: Wilson's upper bound for 0 of n."""
    normal = -special.ndtri(np.maximum(tail, _MIN_TAIL))
    share: Values = normal**2 / (n + normal**2)
    return share


def _clopper_pearson(n: Values, share: Values, error: Values, tail: Values) -> tuple[Values, Values]:
    """Return limits of a share of n users; users with several lists count as fewer or more trials."""
    trials = n * np.where(error > 0, share * (1 - share) / (error**2 * (n - 1)), 1.0)
    hits, misses = trials * share, trials * (1 - share)
    lower = np.where(hits > 0, special.betaincinv(hits, misses + 1, tail), 0.0)
    return lower, np.where(misses > 0, special.betaincinv(hits + 1, misses, 1 - tail), 1.0)


def _finite_range_limits(n: Values, mean: Values, error: Values, quantile: Values) -> tuple[Values, Values]:
    """Return limits of a mean of values in [0, 1]."""
    variance, most = n * error**2, mean * (1 - mean)
    hits = np.minimum(*(n * end**2 / (variance + end**2) for end in (mean, 1 - mean)))
    dispersion = (hits * np.minimum(variance / most, 1.0) + _PRIOR_HITS) / (hits + _PRIOR_HITS)
    step = quantile**2 * dispersion / n
    half = np.sqrt(step * (most + step / 4))
    low, high = (np.clip((mean + step / 2 + sign * half) / (1 + step), 0.0, 1.0) for sign in (-1, 1))
    return low, high


def _half_open_limits(n: Values, mean: Values, error: Values, quantile: Values) -> tuple[Values, Values]:
    """Return limits of a mean of values from 0 without a greatest one."""
    hits = n * mean**2 / (n * error**2 + mean**2)
    step = np.where((hits >= _MIN_EFFECTIVE) | (hits > n / 2), quantile**2 * error**2 / mean, np.nan)
    half = np.sqrt(step * (mean + step / 4))
    return mean + step / 2 - half, mean + step / 2 + half


@np.errstate(over="ignore", invalid="ignore")
def _distances(groups: GroupMeans) -> tuple[Values, Values]:
    """Return how far each group's limits are from its value if all pairs are compared, see :func:`compare_groups`.

    Those of geometric means, which are not symmetric at all, are the limits that hold for all groups at once.
    """
    n = np.sum(~np.isnan(groups.values), axis=-1)
    errors = np.where(np.isnan(groups.values), np.nan, groups.std_errors)
    quantile = _range_quantiles(n, _least_freedom(errors, groups.freedom), groups.level)[..., None] / np.sqrt(2)
    tail, at_once = special.ndtr(-quantile), (1 - groups.level) / (2 * np.maximum(n, 1)[..., None])
    is_log = groups.repeat_per_group(groups.is_log)
    quantile = np.where(is_log, special.stdtrit(groups.freedom, 1 - at_once), quantile)
    lower, upper = group_limits(groups, quantile, np.where(is_log, at_once, tail))
    return groups.values - lower, upper - groups.values


def _combine_distances(groups: GroupMeans, one: Values, other: Values) -> Values:
    """Combine the distances of both groups: their sum where both limits hold at once, else the hypotenuse."""
    return np.where(groups.repeat_per_group(groups.is_log), one + other, np.hypot(one, other))


def _is_bounded(groups: GroupMeans, limits: Values) -> NDArray[np.bool_]:
    """Return where every group of a row has limits."""
    has_limits = np.isnan(groups.values) | ~np.isnan(limits)
    is_bounded: NDArray[np.bool_] = np.logical_and.reduce(has_limits, axis=-1)
    return is_bounded


def _exponents(values: Values) -> NDArray[np.int32]:
    """Return the power of two by which a row is divided, so that its fourth powers are doubles."""
    exponents: NDArray[np.int32] = np.frexp(np.fmax.reduce(np.abs(values), axis=-1, keepdims=True, initial=0.0))[1]
    return exponents


def _max_per_row(values: Values) -> Values:
    """Return the greatest number along the last axis; -inf where all are NaN."""
    greatest: Values = np.fmax.reduce(values, axis=-1, initial=-np.inf)
    return greatest


def _min_per_row(values: Values) -> Values:
    """Return the least number along the last axis; inf where all are NaN."""
    least: Values = np.fmin.reduce(values, axis=-1, initial=np.inf)
    return least


def _ratio(low: Values, high: Values) -> Values:
    """Divide the least value by the greatest; NaN where the greatest is not above 0 or the least is below it."""
    has_ratio = (high > 0) & (low >= 0) & np.isfinite(high)
    ratio: Values = np.divide(low, high, out=np.full(np.shape(low), np.nan), where=has_ratio)
    return ratio


def _mean_difference(ordered: Values, n: NDArray[np.int_]) -> Values:
    """Average the differences of all pairs: a step between neighbours is part of every pair that lies across it."""
    steps = np.nan_to_num(np.diff(ordered, axis=-1))
    below = np.arange(1, ordered.shape[-1])
    above = np.maximum(n[..., None] - below, 0)
    mean: Values = (steps * below * above).sum(axis=-1) / np.maximum(n * (n - 1) / 2, 1)
    return mean


def _least_freedom(errors: Values, freedom: Values) -> Values:
    """Return the least degrees of freedom (Welch) among the pairs of groups, which are the last axis.

    Infinite where no pair has any spread.
    """
    squares = np.ldexp(errors, -_exponents(errors)) ** 2  # scaled by a power of 2, so that fourth powers stay finite
    terms = np.divide(squares**2, freedom, out=np.full(squares.shape, np.nan), where=freedom > 0)
    least = np.full(errors.shape[:-1], np.inf)
    for group in range(errors.shape[-1] - 1):
        both = squares[..., group + 1 :] + squares[..., group, None]
        below = terms[..., group + 1 :] + terms[..., group, None]
        welch = np.divide(both**2, below, out=np.full(both.shape, np.inf), where=below > 0)
        least = np.fmin(least, np.fmin.reduce(welch, axis=-1))
    return least


def _range_quantiles(n: NDArray[np.int_], freedom: Values, level: float) -> Values:
    """Return quantiles of the studentized range by row, with the degrees of freedom at two digits."""
    found = np.full(n.shape, np.nan)
    for place in np.argwhere(n >= _MIN_GROUPS):
        row = tuple(place)
        whole = int(min(freedom[row], _MAX_FREEDOM))
        step = int(10 ** max(len(str(whole)) - 2, 0))
        found[row] = distributions.studentized_range_quantile(level, int(n[row]), max(whole // step * step, 1))
    return found

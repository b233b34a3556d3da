"""Nights compared: two that share some users, by means over users or lists; and one with the band of those before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.columns import MIN_NIGHTS, ROUNDING
from rankeval_spark.statistics import distributions, moments, paired_ratios, ratios
from rankeval_spark.statistics.moments import Moments
from rankeval_spark.statistics.paired_ratios import RatioPairs
from rankeval_spark.statistics.paired_tests import Change, equal_differences_p
from rankeval_spark.statistics.ratios import Ratios

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix

_ROUNDING: Final = 1e-13  # share of the means up to which a difference or a standard error is only rounding
_N_NUMBERS: Final = 12  # numbers per group and column that `Nights.to_bytes` writes
_N_OF_RATIO: Final = 6  # numbers per night, group and column that `RatioNights.to_bytes` writes
MIN_OF_WEEKDAY: Final = 4  # earlier nights of a weekday below which its level is not known
FALSE_ALARMS: Final = 0.03  # probability that any mean leaves a band of weekdays by chance
_FAR: Final = 6.0  # robust standard deviations from its weekday above which an earlier night is odd
_TO_STD_DEV: Final = 1.4826  # standard deviation of a normal distribution in units of its median absolute deviation


class Shift(NamedTuple):
    """Change from one night to the next, each attribute of the shape of the moments; NaN below two users on either."""

    delta: Values
    std_error: Values
    low: Values
    high: Values
    freedom: Values
    p: Values
    p_less: Values  # of a fall
    p_greater: Values  # of a rise


@dataclass(frozen=True, eq=False)
class Nights:
    """Aggregates of two nights."""

    now: Moments  # (n_groups, n_columns), all users of the night
    before: Moments
    common: Ratios  # users with a value on both nights: the later value as numerator, the earlier as denominator

    @property
    def kept_means(self) -> tuple[Values, Values]:
        """Means of the common users on each night; NaN without them."""
        return self.common.numerator.mean, self.common.denominator.mean

    @property
    def weights(self) -> tuple[Values, Values]:
        """Users of each night."""
        return self.now.n.astype(np.float64), self.before.n.astype(np.float64)

    def merge(self, other: Nights) -> Nights:
        """Aggregate both sets of users."""
        return Nights(self.now.merge(other.now), self.before.merge(other.before), self.common.merge(other.common))

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        numbers = (*self.now.numbers, *self.before.numbers, *self.common.numbers)
        return [state.tobytes() for state in np.stack(numbers, axis=-1, dtype=np.float64)]

    @classmethod
    def from_bytes(cls, state: bytes) -> Nights:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns)."""
        numbers = np.moveaxis(np.frombuffer(state).reshape(1, -1, _N_NUMBERS), -1, 0)
        now, before = (
            Moments(numbers[first].astype(np.int64), numbers[first + 1], numbers[first + 2]) for first in (0, 3)
        )
        return cls(now, before, Ratios.from_numbers(*numbers[6:]))


@dataclass(frozen=True, eq=False)
class RatioNights:
    """Aggregates of two nights for ratios of sums over users, such as means over their lists."""

    now: Ratios  # all users of each night
    before: Ratios
    common: RatioPairs  # users with a value on both nights: the later night as the model, the earlier as the baseline

    @property
    def kept_means(self) -> tuple[Values, Values]:
        """Ratios of the common users on each night; NaN without them."""
        return self.common.ratios

    @property
    def weights(self) -> tuple[Values, Values]:
        """Sums of the denominators of each night."""
        now, before = (np.nan_to_num(each.denominator.n * each.denominator.mean) for each in (self.now, self.before))
        return now, before

    def merge(self, other: RatioNights) -> RatioNights:
        """Aggregate both sets of users."""
        return RatioNights(self.now.merge(other.now), self.before.merge(other.before), self.common.merge(other.common))

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        of_each, shape = (*self.now.numbers, *self.before.numbers), self.common.n.shape
        of_common = [np.frombuffer(state) for state in self.common.to_bytes()]
        numbers = (np.stack(of_each, axis=-1, dtype=np.float64), np.reshape(of_common, (*shape, -1)))
        return [state.tobytes() for state in np.concatenate(numbers, axis=-1)]

    @classmethod
    def from_bytes(cls, state: bytes) -> RatioNights:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns, ...)."""
        n_numbers = 2 * _N_OF_RATIO + paired_ratios.N_NUMBERS
        numbers = np.frombuffer(state).reshape(1, -1, n_numbers)
        *nights, common = np.split(numbers, (_N_OF_RATIO, 2 * _N_OF_RATIO), axis=-1)
        now, before = (Ratios.from_numbers(*np.moveaxis(night, -1, 0)) for night in nights)
        return cls(now, before, RatioPairs.from_bytes(common.tobytes()))

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def as_means(self) -> Nights:
        """Linearise both ratios: aggregates of means with the same spread.

        The delta method with the user as the unit: a user with numerator a and denominator b moves the ratio r by
        ``e = (a - r b) / mean b``. So the squared deviations of a night are the sum of ``e^2``, and the covariance of
        :func:`compare_nights` comes from the products of a common user's two e.
        """
        now, before = (Moments(each.numerator.n, *each.as_means) for each in (self.now, self.before))
        gradients = []  # of the ratio of each night: by the mean numerator and by the mean denominator
        for night in (self.now, self.before):
            base = np.where(night.denominator.mean > 0, night.denominator.mean, np.nan)
            gradients.append((1 / base, -night.numerator.mean / base**2))
        gradient_now, gradient_before = gradients
        zero = np.zeros_like(gradient_before[0])
        # (..., 4) by the parts of `common`: a later value is the difference plus the earlier value
        of_now = np.stack([*gradient_now, *gradient_now], axis=-1)
        of_before = np.stack([zero, zero, *gradient_before], axis=-1)
        about_means = np.einsum("...i,...ij,...j->...", of_now, self.common.cross, of_before)
        off_now, off_before = (np.sum(each * self.common.means, axis=-1) for each in (of_now, of_before))
        products = np.nan_to_num(about_means) + self.common.n * np.nan_to_num(off_now * off_before)
        above, below = (Moments(self.common.n, each.mean, np.zeros_like(each.mean)) for each in (now, before))
        return Nights(now, before, Ratios(above, below, products))


def nights_by_group(
    now: Matrix, before: Matrix, group_now: NDArray[np.integer], group_before: NDArray[np.integer], n_groups: int
) -> Nights:
    """Aggregate the values of the users of each group; NaN also where a user is absent on that night.

    A user whose group changed is in each group on one night only.
    """
    is_common = (group_now == group_before)[:, None] & ~np.isnan(now) & ~np.isnan(before)
    now_common, before_common = (np.where(is_common, each, np.nan) for each in (now, before))
    return Nights(
        moments.moments_by_group(now, group_now, n_groups),
        moments.moments_by_group(before, group_before, n_groups),
        ratios.ratio_moments_by_group(now_common, before_common, group_now, n_groups),
    )


def ratio_nights_by_group(
    now: tuple[Matrix, Matrix],
    before: tuple[Matrix, Matrix],
    group_now: NDArray[np.integer],
    group_before: NDArray[np.integer],
    n_groups: int,
) -> RatioNights:
    """Aggregate the numerators and denominators of the users of each group, as :func:`nights_by_group` does values."""
    in_both = (group_now == group_before)[:, None]
    common = [np.where(in_both, values, np.nan) for values in (*now, *before)]
    return RatioNights(
        ratios.ratio_moments_by_group(*now, group_now, n_groups),
        ratios.ratio_moments_by_group(*before, group_before, n_groups),
        paired_ratios.ratio_pairs_by_group((common[0], common[1]), (common[2], common[3]), group_now, n_groups),
    )


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def compare_nights(nights: Nights, *, level: float) -> Shift:
    """Compare the means of two nights that share some users.

    ``se^2 = se_1^2 + se_2^2 - 2 sum_common (x - mean x)(y - mean y) / (n_1 n_2)``, with the means of all users of each
    night: users of one night only count too. The degrees of freedom are those of the smaller night, n - 1. The
    covariance is divided by ``n_1 n_2``, the variances by ``n (n - 1)``, so that two identical nights keep a standard
    error of ``sqrt(2 / n)`` times that of one night: conservative.

    Three users on each night and none in common, and a mean that rises from 2 to 2.5:

    >>> no_user = ratios.ratio_moments_by_group(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, dtype=np.int64), 1)
    >>> everyone = np.zeros(3, dtype=np.int64)
    >>> now, before = (moments.moments_by_group(np.array([[x], [x + 1], [x + 2]]), everyone, 1) for x in (1.5, 1.0))
    >>> found = compare_nights(Nights(now, before, no_user), level=0.95)
    >>> float(found.delta[0, 0]), float(found.std_error[0, 0].round(4)), float(found.p[0, 0].round(4))
    (0.5, 0.8165, 0.6026)
    """
    now, before = nights.now, nights.before
    delta = now.mean - before.mean
    squares = now.std_error**2 + before.std_error**2 - 2 * _covariance(nights)
    scale = np.maximum(np.abs(now.mean), np.abs(before.mean))
    std_error = _zero_if_rounding(np.sqrt(np.maximum(squares, 0.0)), scale)
    delta = np.where(std_error == 0, _zero_if_rounding(delta, scale), delta)
    freedom = _degrees_of_freedom(now, before)
    half = distributions.t_quantile((1 + level) / 2, freedom) * std_error
    t = delta / std_error
    has_no_spread = (std_error == 0) & ~np.isnan(freedom)
    sides = distributions.t_tails(t, freedom)
    alike = equal_differences_p(np.minimum(now.n, before.n), delta)
    p, p_less, p_greater = (np.where(has_no_spread, *each) for each in zip(alike, sides, strict=True))
    return Shift(delta, std_error, delta - half, delta + half, freedom, p, p_less, p_greater)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def relative_change_of_nights(nights: Nights, *, level: float) -> Change:
    """Return the change of the mean as a share of the earlier mean; NaN where the earlier mean is not above 0.

    By the delta method with ``r = mean x / mean y``, ``se^2 = (se_1^2 - 2 r cov + r^2 se_2^2) / (mean y)^2``. Without
    common users, from 2 to 3 with a standard error of 0.1 on either night:

    >>> no_user = ratios.ratio_moments_by_group(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, dtype=np.int64), 1)
    >>> night = [np.array([[number]]) for number in (100, 3.0, 99.0)]
    >>> nights = Nights(Moments(*night), Moments(night[0], night[1] - 1, night[2]), no_user)
    >>> found = relative_change_of_nights(nights, level=0.95)
    >>> float(found.value[0, 0]), float(found.std_error[0, 0].round(4))
    (0.5, 0.0901)
    """
    now, before = nights.now, nights.before
    base = np.where(before.mean > 0, before.mean, np.nan)
    share = now.mean / base
    covariance = _covariance(nights)
    squares = now.std_error**2 - 2 * share * covariance + share**2 * before.std_error**2
    std_error = _zero_if_rounding(np.sqrt(np.maximum(squares, 0.0)) / base, np.maximum(share, 1.0))
    value = np.where(std_error == 0, _zero_if_rounding(share - 1, np.maximum(share, 1.0)), share - 1)
    half = distributions.t_quantile((1 + level) / 2, _degrees_of_freedom(now, before)) * std_error
    return Change(value, std_error, value - half, value + half)


class Causes(NamedTuple):
    """Parts of a change whose sum it is; all NaN where no user has a value on both nights."""

    left: Values  # users with a value on the earlier night alone
    came: Values  # users with a value on the later night alone
    same: Values  # users with a value on both


def split_by_users(
    now: Values, before: Values, kept: tuple[Values, Values], n_lost: NDArray[np.int64], n_new: NDArray[np.int64]
) -> Causes:
    """Split the change of a mean by who left, who came and who stayed.

    With ``kept`` the means of the common users on the later and the earlier night, the parts are
    ``kept[1] - before``, ``now - kept[0]`` and ``kept[0] - kept[1]``. No order of the three has to be chosen, and
    with the nights exchanged, each changes its sign. Without users who left, or came, that part is exactly 0.

    Users of 1 and 0 become users of 0.5 and 0.75, where the first stayed:

    >>> kept = np.array([0.5]), np.array([1.0])
    >>> causes = split_by_users(np.array([0.625]), np.array([0.5]), kept, np.array([1]), np.array([1]))
    >>> [float(part[0]) for part in causes]
    [0.5, 0.125, -0.5]
    """
    kept_now, kept_before = kept
    is_none = np.isnan(kept_now + kept_before)
    kept_now, kept_before = np.where(n_new == 0, now, kept_now), np.where(n_lost == 0, before, kept_before)
    parts = (kept_before - before, now - kept_now, kept_now - kept_before)
    return Causes(*(np.where(is_none, np.nan, part) for part in parts))


@np.errstate(divide="ignore", invalid="ignore")
def split_by_groups(
    now: Values, before: Values, weight_now: Values, weight_before: Values, whole: NDArray[np.integer]
) -> tuple[Values, Values]:
    """Split the change of each ``whole`` by its groups: what their shares changed, and what their means changed.

    With the shares w of the weights and the means m of a group, ``mix`` is ``(w_1 - w_0) (mean m - mean r)`` and
    ``within`` is ``mean w (m_1 - m_0)``, each mean that of both nights, and r the mean of the whole (Kitagawa 1955).
    A group of one night has the same mean on both, so that all of it is ``mix``. The sum over all groups of a whole is
    its change. NaN where a whole has no weight on one of the nights.

    Half of the users are in each group, then a quarter and three quarters; one mean rises from 0 to 0.5:

    >>> one = np.zeros(2, dtype=np.int64)
    >>> mix, within = split_by_groups(np.array([0.5, 1.0]), np.array([0.0, 1.0]), np.array([1, 3]), np.ones(2), one)
    >>> mix.tolist(), within.tolist()
    ([0.109375, 0.078125], [0.1875, 0.0])
    """
    shares, of_whole = [], []
    for weight, mean in ((weight_now, now), (weight_before, before)):
        share = weight / np.bincount(whole, weight)[whole]
        shares.append(share)
        of_whole.append(np.bincount(whole, np.where(weight > 0, share * mean, 0.0))[whole])
    means = np.where(weight_now > 0, now, before), np.where(weight_before > 0, before, now)
    level = (means[0] / 2 + means[1] / 2) - (of_whole[0] / 2 + of_whole[1] / 2)
    return (shares[0] - shares[1]) * level, (shares[0] / 2 + shares[1] / 2) * (means[0] - means[1])


def _zero_if_rounding(values: Values, scale: Values) -> Values:
    """Replace values by 0 that are below 1e-13 of a scale."""
    return np.where(np.abs(values) <= _ROUNDING * scale, 0.0, values)


def _degrees_of_freedom(now: Moments, before: Moments) -> Values:
    """Return n - 1 of the smaller night; NaN below two users."""
    fewest = np.minimum(now.n, before.n)
    return np.where(fewest > 1, fewest - 1.0, np.nan)


def _covariance(nights: Nights) -> Values:
    """Return the covariance of both nights' means: products of common users' distances from each night's mean."""
    now, before, common = nights.now, nights.before, nights.common
    # The products of `common` are about the means of the common users.
    off_now = np.nan_to_num(common.numerator.mean - now.mean)
    off_before = np.nan_to_num(common.denominator.mean - before.mean)
    products = common.cross + common.numerator.n * off_now * off_before
    covariance: Values = products / np.maximum(now.n * before.n, 1)
    return covariance


class DriftBand(NamedTuple):
    """Band of the earlier nights for each row: its centre, its ends, and the nights with a value."""

    centre: Values
    low: Values
    high: Values
    n_nights: NDArray[np.int64]
    knows_weekday: NDArray[np.bool_]  # the band is that of tonight's weekday


def expected_band(
    values: Values,  # (n_rows, n_nights), the measure on earlier nights; NaN where a night has none
    std_errors: Values,
    ages: NDArray[np.int64] | None = None,  # (n_nights,), days before tonight; without them no weekday is known
    *,
    n_tests: float | None = None,  # independent rows that share the false alarms; None: counted
) -> DriftBand:
    """Compute the band in which the next night is expected: ``median -+ max(4 * 1.4826 MAD, 2 median se)``.

    The first term is four robust standard deviations between nights, which differ by more than their users alone
    explain. The second keeps the band open where the nights were equal by chance. Rows with four nights of tonight's
    weekday have that of :func:`_weekday_limits` in place of the median and the first term.

    >>> band = expected_band(np.array([[0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.28]]), np.full((1, 7), 0.001))
    >>> [round(float(each[0]), 4) for each in band]
    [0.3, 0.2407, 0.3593, 7.0, 0.0]
    """
    n_nights = (~np.isnan(values)).sum(axis=1)
    centre = _medians(values)
    half = 4 * _TO_STD_DEV * _medians(np.abs(values - centre[:, None]))
    knows_weekday = np.zeros(len(values), dtype=np.bool_)
    if ages is not None and len(values):
        of_weekday = _weekday_limits(values, ages, n_tests)
        knows_weekday = ~np.isnan(of_weekday[1]) & (n_nights >= MIN_NIGHTS)
        centre, half = (np.where(knows_weekday, *each) for each in zip(of_weekday, (centre, half), strict=True))
    half = np.fmax(half, 2 * _medians(std_errors))
    centre, half = (np.where(n_nights >= MIN_NIGHTS, each, np.nan) for each in (centre, half))
    return DriftBand(centre, centre - half, centre + half, n_nights.astype(np.int64), knows_weekday)


@np.errstate(divide="ignore", invalid="ignore")
def _weekday_limits(values: Values, ages: NDArray[np.int64], n_tests: float | None) -> tuple[Values, Values]:
    """Return the value that the weekdays and the trend of each row predict for tonight, and half of its interval.

    A line with a level for each weekday of at least four nights, fitted by least squares; NaN without four of tonight's
    weekday. Nights farther from their weekday's median, or from the line, than six robust standard deviations are
    left out. The interval of prediction is Student's with an error of 3 % for all rows together: divided by how many
    independent ones the rows amount to (Galwey 2009), because most measures move together.
    """
    weekday = ages % 7
    is_of = (weekday == np.arange(7)[:, None]).astype(np.float64)  # (7, n_nights); the first is tonight's
    known = ~np.isnan(values)
    is_used = known & ((known @ is_of.T >= MIN_OF_WEEKDAY)[:, weekday])
    design = np.vstack([is_of, -ages / 7]).T
    levels = np.stack([_medians(np.where(is_used & (weekday == day), values, np.nan)) for day in range(7)], axis=1)
    off = values - levels[:, weekday]
    for _ in range(2):
        far = _FAR * _TO_STD_DEV * _medians(np.where(is_used, np.abs(off), np.nan))
        is_kept = is_used & (np.abs(off) <= far[:, None])
        is_kept = np.where((is_kept @ is_of[0] < MIN_OF_WEEKDAY - 1)[:, None], is_used, is_kept)
        squares = np.einsum("rn,ni,nj->rij", is_kept.astype(np.float64), design, design)
        inverse = np.linalg.pinv(squares, hermitian=True)
        line = np.einsum("rij,rj->ri", inverse, np.where(is_kept, values, 0.0) @ design)
        off = values - line @ design.T
    kept = np.where(is_kept, off, 0.0)
    freedom = is_kept.sum(axis=1) - np.rint(np.einsum("rij,rji->r", inverse, squares))
    has_fit = (is_used @ is_of[0] >= MIN_OF_WEEKDAY) & (freedom > 0)
    freedom = np.where(has_fit, freedom, np.nan)
    std_dev = np.sqrt((kept**2).sum(axis=1) / freedom)
    if n_tests is None:
        n_tests = _count_independent(kept[has_fit] / std_dev[has_fit, None], freedom[has_fit])
    quantile = distributions.t_quantile(1 - FALSE_ALARMS / 2 / n_tests, freedom)
    return line[:, 0], quantile * std_dev * np.sqrt(1 + inverse[:, 0, 0])


def _count_independent(residuals: Values, freedom: Values) -> float:
    """Return how many independent rows some correlated ones amount to: ``(sum sqrt l)^2 / sum l`` of eigenvalues l.

    Where there are more rows than degrees of freedom, these limit the eigenvalues, so the count is of a share of rows.
    """
    rows = residuals[np.isfinite(residuals).all(axis=1)]
    if len(rows) <= 1:
        return 1.0
    products = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(products), 0.0))
    return float(roots.sum() ** 2 / (roots**2).sum() * max(1.0, len(rows) / freedom.mean()))


def has_drifted(values: Values, band: DriftBand) -> NDArray[np.bool_]:
    """Return where a value lies outside its band by more than rounding; False without a band or a value."""
    slack = ROUNDING * np.fmax(np.abs(values), np.fmax(np.abs(band.low), np.abs(band.high)))
    return (values < band.low - slack) | (values > band.high + slack)


def _medians(values: Values) -> Values:
    """Return the median of each row without its NaN; NaN where there is nothing else."""
    ordered = np.sort(values, axis=1)
    n = (~np.isnan(values)).sum(axis=1)
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    below, above = (np.maximum(n - 1, 0) // 2)[:, None], (n // 2)[:, None]
    places = (np.minimum(place, values.shape[1] - 1) for place in (below, above))
    middle = np.hstack([np.take_along_axis(ordered, place, axis=1) for place in places])
    medians: Values = middle.mean(axis=1)
    return medians

"""Paired comparison of a model with a baseline on the same users: t test, interval, effect size, tests of signs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.limits import LEAST_USERS
from rankeval_spark.statistics import distributions, intervals, replicate_sums
from rankeval_spark.statistics.paired_differences import FEW, SUM_ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix
    from rankeval_spark.statistics.paired_differences import Counts, Differences
    from rankeval_spark.statistics.replicate_sums import Draws, SliceGroups, Sums

_HALF: Final = FEW // 2
# Every assignment of signs to half of the differences: (1024, 10).
_SIGNS: Final = 1.0 - 2.0 * ((np.arange(1 << _HALF)[:, None] >> np.arange(_HALF)) & 1)

LEAST_DIFFERENCES: Final = 6
"""Differences other than ties below which there is no p-value: five give a two-sided p of at least 1/16."""

OUT_OF_RANGE: Final = "out_of_range"
"""Reason of a test without a p that needs squares which leave the range of a double."""


class Tails(NamedTuple):
    """p-values, (n_rows,), of any difference, one below 0 and one above 0."""

    two_sided: Values
    less: Values
    greater: Values


class Comparison(NamedTuple):
    """A model compared with a baseline, each attribute of shape (n_groups, n_columns)."""

    n: Counts  # users with a value under both
    delta: Values  # mean difference
    std_dev: Values  # of the differences
    std_error: Values
    low: Values  # Student's interval
    high: Values
    p: Values  # two-sided
    p_less: Values  # lower tail
    p_greater: Values  # upper tail
    effect_size: Values  # `dz = delta / std_dev`; NaN without spread
    n_wins: Counts
    n_ties: Counts
    n_losses: Counts
    is_degenerate: NDArray[np.bool_]  # all differences are equal: the interval is a point
    test: NDArray[np.str_]  # `t`; `exact` if all signs of at most 20 differences are enumerated; `equal`
    reason: NDArray[np.str_]  # why there is no p-value, of `reasons`, or `out_of_range`; else empty


class Change(NamedTuple):
    """Relative change and its interval; NaN where the mean of the baseline is not above 0."""

    value: Values
    std_error: Values
    low: Values
    high: Values


def compare_means(differences: Differences, *, level: float, least_users: int = LEAST_USERS) -> Comparison:
    """Compare a model with a baseline on the users that have a value under both; ``differences`` of all users.

    ``t = mean(d) / (sd(d) / sqrt(n))`` with n - 1 degrees of freedom (Student 1908; the default as in Smucker, Allan &
    Carterette 2007 and Urbano, Lima & Hanjalic 2019). With at most 20 differences other than ties, all signs are
    enumerated instead: for 5 users better and none worse, p is .0625, where t gives .025. Below 6 differences, or below
    ``least_users`` users (t is unreliable for skewed differences of few users), there is no p-value. If all d are
    equal, p is 1 where they are 0, and else ``2^(1 - n)``: the share of assignments of signs that are as one-sided.

    >>> from rankeval_spark.statistics.paired_differences import PairedValues, differences_by_group
    >>> values = np.arange(40.0)[:, None]
    >>> pairs = PairedValues.of(values, np.full((40, 1), 15.0))
    >>> found = compare_means(differences_by_group(pairs, np.zeros(40, dtype=np.int64), 1), level=0.95)
    >>> float(found.delta[0, 0]), float(found.p[0, 0].round(4)), str(found.test[0, 0])
    (4.5, 0.0196, 't')
    """
    n, is_equal = differences.n, differences.is_degenerate
    delta = np.where(differences.is_all_zero, 0.0, differences.moments.numerator.mean)
    m2 = np.where(is_equal, 0.0, differences.squares)
    std_dev, std_error = _spread(n, m2)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, effect_size = delta / std_error, np.where(is_equal, np.nan, delta / std_dev)
    low, high = intervals.t_interval(n, delta, m2, level)
    wins, ties, losses = differences.wins_ties_losses
    of_few, test = _small_sample(differences)
    reason = reasons(differences, least_users=least_users)
    is_beyond = np.isnan(delta) | ((test == "") & np.isnan(std_error))
    reason = np.where((reason == "") & is_beyond, OUT_OF_RANGE, reason)
    p, p_less, p_greater = (
        np.where(reason == "", np.where(test == "", by_t, own), np.nan)
        for by_t, own in zip(distributions.t_tails(t, np.where(n > 1, n - 1, np.nan)), of_few, strict=True)
    )
    return Comparison(
        n, delta, std_dev, std_error, low, high, p, p_less, p_greater, effect_size, wins, ties, losses,
        is_equal & (n > 0), np.where(test == "", "t", test), reason,
    )  # fmt: skip  # one name a line would be a page


def randomized(
    differences: Differences, sums: Sums, *, least_users: int = LEAST_USERS
) -> tuple[Values, NDArray[np.str_], NDArray[np.str_]]:
    """Return the two-sided p of random signs, or of all if they are few; the test; and why there is no p.

    The test is ``randomization``, ``exact`` or ``equal``. ``sums`` are those of ``sign_sums`` of the same users.
    """
    of_few, test = _small_sample(differences)
    with np.errstate(over="ignore"):
        total = differences.n * differences.moments.numerator.mean
    drawn = monte_carlo_p(total, differences.absolute, sums)
    reason = reasons(differences, least_users=least_users)
    p = np.where(reason == "", np.where(test == "", drawn, of_few.two_sided), np.nan)
    return p, np.where(test == "", "randomization", test), reason


def sign_sums(differences: Matrix, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None) -> Sums:
    """Add up the differences with random signs; all columns and groups share a user's signs."""
    return replicate_sums.sums_by_group(np.nan_to_num(differences), hashes, draws.signs, groups)


def monte_carlo_p(
    total: Values,  # (...), sum of the observed differences
    absolute: Values,  # (...), sum of their absolute values
    sums: Sums,  # (..., n_replicates), of `sign_sums`
) -> Values:
    """Two-sided p from sums with random signs, shape (...).

    ``(1 + #{|sum*| >= |sum| - eps}) / (1 + B)``, with eps 1e-13 of ``absolute``; never 0 (Phipson & Smyth 2010).
    Fisher (1935), The design of experiments, section 21. The tolerance counts sums that are equal but for rounding.
    """
    n_extreme = (np.abs(sums) >= (np.abs(total) - SUM_ROUNDING * absolute)[..., None]).sum(axis=-1)
    is_known = np.isfinite(total) & np.isfinite(sums).all(axis=-1)
    return np.where(~is_known, np.nan, (1.0 + n_extreme) / (1.0 + sums.shape[-1]))


def all_signs(
    differences: Values,  # (n_rows, n_differences), NaN and 0 are left out, because their sign changes nothing
) -> Tails:
    """Enumerate the signs of at most 20 differences.

    Each p is the share of the ``2^n`` sums that are at least as extreme as the observed one, less 1e-13 of the sum of
    absolute values for rounding; 1 without a difference. ValueError if a row has more than 20 differences.

    The sums of each half, 1024 of either, are sorted and searched for pairs that reach the observed sum. That replaces
    a million additions.

    Five users of five prefer the model: 2 of 32 assignments of signs are as extreme.

    >>> [float(each[0]) for each in all_signs(np.ones((1, 5)))]
    [0.0625, 1.0, 0.03125]
    """
    if differences.shape[1] > FEW:
        message = f"found {differences.shape[1]} differences, expected at most {FEW}: use sign_sums for more"
        raise ValueError(message)
    known = np.zeros((len(differences), FEW))
    known[:, : differences.shape[1]] = np.nan_to_num(differences)
    _, exponent = np.frexp(np.abs(known).max(axis=1, keepdims=True))
    known = np.ldexp(known, -exponent)  # so that sums are doubles
    observed, tolerance = known.sum(axis=1), SUM_ROUNDING * np.abs(known).sum(axis=1)
    one = known[:, :_HALF] @ _SIGNS.T
    other = np.sort(known[:, _HALF:] @ _SIGNS.T, axis=1)
    far = np.abs(observed) - tolerance
    two_sided = np.where(far <= 0, 1.0, np.minimum(2 * _shares(one, other, far), 1.0))
    return Tails(two_sided, _shares(one, other, -observed - tolerance), _shares(one, other, observed - tolerance))


def _shares(one: Values, other: Values, ends: Values) -> Values:
    """Share of each row's sums that are at least the row's end; by symmetry also that of sums at most its negative.

    ``one`` and ``other``, of shape (n_rows, 1024), are the sums of the halves; ``other`` is in ascending order.
    """
    rows = zip(one, other, ends, strict=True)
    below = [int(np.searchsorted(ordered, end - sums).sum()) for sums, ordered, end in rows]
    shares: Values = 1.0 - np.array(below, dtype=np.float64) / one.shape[1] ** 2
    return shares


def reasons(differences: Differences, *, least_users: int = LEAST_USERS) -> NDArray[np.str_]:
    """Return why a test of differences has no p: ``one_user``, ``few_users`` or ``few_differences``; else empty."""
    n = differences.n
    n_different = np.where(differences.is_degenerate, n, differences.n_other_than_0)
    return reasons_of(n, np.where(differences.is_all_zero, 0, n_different), least_users=least_users)


def reasons_of(n: Counts, n_different: Counts, *, least_users: int) -> NDArray[np.str_]:
    """Return why a test on n users has no p-value if ``n_different`` of them differ; if none does, p is 1."""
    is_few = (n_different < LEAST_DIFFERENCES) & (n_different > 0)
    return np.select([n <= 1, n < least_users, is_few], ["one_user", "few_users", "few_differences"], "")


def relative_change(differences: Differences, *, level: float) -> Change:
    """Change of the mean as a share of the baseline's mean.

    ``delta = x / y - 1`` of the means, by the delta method ``se^2 = (s_xx - 2 (1 + delta) s_xy + (1 + delta)^2 s_yy) /
    (n y^2)``, which is the variance of ``d - delta y``. Dividing the interval of the difference by the baseline's mean
    would cover only 73 % at a large change, because y varies too.

    The model is always twice as good as the baseline, so the change has no spread.

    >>> from rankeval_spark.statistics.paired_differences import PairedValues, differences_by_group
    >>> baseline = np.array([[1.0], [2.0], [3.0]])
    >>> pairs = PairedValues.of(2 * baseline, baseline)
    >>> found = relative_change(differences_by_group(pairs, np.zeros(3, dtype=np.int64), 1), level=0.95)
    >>> [float(each[0, 0]) for each in found]
    [1.0, 0.0, 1.0, 1.0]
    """
    value, m2 = differences.moments.as_means
    return Change(value, _spread(differences.n, m2)[1], *intervals.t_interval(differences.n, value, m2, level))


def _spread(n: Counts, m2: Values) -> tuple[Values, Values]:
    """Sample standard deviation and standard error; NaN below two users."""
    many = np.where(n > 1, n, np.nan)
    std_dev = np.sqrt(m2 / (many - 1))
    return std_dev, std_dev / np.sqrt(many)


def _small_sample(differences: Differences) -> tuple[Tails, NDArray[np.str_]]:
    """Test rows with at most 20 differences (``exact``) or with equal ones (``equal``); NaN and '' elsewhere."""
    n, is_equal = differences.n, differences.is_degenerate & (differences.n > 0)
    is_few = ~is_equal & (n > 0) & (differences.n_other_than_0 <= FEW)
    signs = np.sign(differences.low)
    tails = Tails(*(np.full(n.shape, np.nan) for _ in range(3)))
    for chosen, found in (
        (is_few, all_signs(differences.few[is_few])),
        (is_equal, equal_differences_p(n[is_equal], signs[is_equal])),
    ):
        for each, own in zip(tails, found, strict=True):
            each[chosen] = own
    return tails, np.where(is_equal, "equal", np.where(is_few, "exact", ""))


def equal_differences_p(n: Counts, delta: Values) -> Tails:
    """p-values where all differences are equal: shares of the ``2^n`` assignments of signs."""
    one_side = np.where(delta == 0, 1.0, 0.5 ** n.astype(np.float64))
    return Tails(np.minimum(2 * one_side, 1.0), np.where(delta > 0, 1.0, one_side), np.where(delta < 0, 1.0, one_side))

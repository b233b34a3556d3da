"""Paired comparison of a model with a baseline on the same users: differences that merge, tests, users in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankeval_spark.columns import MIN_USERS
from rankeval_spark.statistics import distributions, intervals, ratios, resampling
from rankeval_spark.statistics.moments import SQUARES, membership_matrix
from rankeval_spark.statistics.ratios import Ratios

if TYPE_CHECKING:
    from rankeval_spark.statistics import FewDifferences
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix
    from rankeval_spark.statistics.resampling import Draws, SliceGroups, Sums


Counts: TypeAlias = NDArray[np.int64]

MAX_FEW: Final = 20  # most non-zero differences whose assignments of signs are all enumerated
MIN_DIFFERENCES: Final = 6  # other than ties, for a p-value: five give a two-sided p of at least 1/16
ROUNDING: Final = 1e-14  # share of the greater of two values below which their difference is rounding and counts as 0
SUM_ROUNDING: Final = 1e-13  # share of the sum of absolute values up to which sums of the same numbers may be equal
OUT_OF_RANGE: Final = "out_of_range"  # reason of a test without a p whose squares leave the range of a double
_N_SINGLE: Final = 13  # numbers of a group and column in addition to its few differences
_GREATEST: Final = float(np.finfo(np.float64).max)
_HALF: Final = MAX_FEW // 2
# Every assignment of signs to half of the differences: (1024, 10).
_SIGNS: Final = 1.0 - 2.0 * ((np.arange(1 << _HALF)[:, None] >> np.arange(_HALF)) & 1)


def subtract(values: Values, baseline: Values) -> Values:
    """Return the difference of two models' values; 0 where only rounding differs, infinite where a value is.

    Sums over the same items differ in the last bits when the order of addition differs; such a user is a tie.

    >>> subtract(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25])).tolist()
    [0.0, 0.25]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        difference = values - baseline
    scale = np.maximum(np.abs(values), np.abs(baseline))
    difference = np.where(np.isinf(scale) & np.isnan(difference), np.inf, difference)
    return np.where(np.isfinite(scale) & (np.abs(difference) <= ROUNDING * scale), 0.0, difference)


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Differences of users between two models, and where each one is counted."""

    difference: Matrix  # (n_users, n_columns), model minus baseline; NaN where either is undefined
    baseline: Matrix  # (n_users, n_columns), NaN where either is undefined
    rounding: Matrix  # (n_users, n_columns), by how much rounding can change the difference; 0 where that is 0
    # 1 where the difference is above a margin, and 1 where it is below minus the margin; None without a margin
    beyond: tuple[Matrix, Matrix] | None = None

    @classmethod
    def from_values(cls, values: Matrix, baseline: Matrix, *, margin: float | None = None) -> PairedValues:
        """Pair values under two models, a column per (pair, measure, k); count users who differ by more than a margin.

        A difference that exceeds the margin by rounding only does not count.
        """
        difference = subtract(values, baseline)
        known_baseline = np.where(np.isnan(difference), np.nan, baseline)
        scale = np.fmax(np.abs(values), np.abs(baseline))
        rounding = np.where(difference == 0, 0.0, ROUNDING * scale)
        if margin is None:
            return cls(difference, known_baseline, rounding)
        exceeds = np.abs(np.nan_to_num(difference)) - margin > rounding
        above, below = ((exceeds & side).astype(np.float64) for side in (difference > 0, difference < 0))
        return cls(difference, known_baseline, rounding, (above, below))


@dataclass(frozen=True, eq=False)
class Differences:
    """Aggregates of the users' differences d in each group: precise where two models are nearly the same.

    What is rounding depends on each user's own two values: next to a user with a value of 1e12 the others still differ.
    """

    moments: Ratios  # of d as the numerator and of the baseline's values as the denominator
    low: Matrix  # (n_groups, n_columns), least d with its rounding added; inf without users
    high: Matrix  # greatest d less its rounding; -inf without users
    absolute: Matrix  # sum of `|d|`, at most the greatest double
    n_wins: Counts  # users with d above 0
    n_losses: Counts  # users with d below 0
    few: Values  # (n_groups, n_columns, 20), the non-zero d in ascending order, then NaN; all NaN where there are more
    above: Matrix  # users with d above the margin; 0 without a margin
    below: Matrix  # users with d below minus the margin; 0 without a margin

    def merge(self, other: Differences) -> Differences:
        """Aggregate both sets of users."""
        n_few = self.n_nonzero + other.n_nonzero
        few = np.sort(np.concatenate([self.few, other.few], axis=-1), axis=-1)[..., :MAX_FEW]
        return Differences(
            self.moments.merge(other.moments),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            _add_capped(self.absolute, other.absolute),
            self.n_wins + other.n_wins,
            self.n_losses + other.n_losses,
            np.where((n_few <= MAX_FEW)[..., None], few, np.nan),
            self.above + other.above,
            self.below + other.below,
        )

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        single = (self.low, self.high, self.absolute, self.n_wins, self.n_losses, self.above, self.below)
        parts = [np.stack((*self.moments.numbers, *single), axis=-1, dtype=np.float64), self.few]
        return [state.tobytes() for state in np.concatenate(parts, axis=-1)]

    @classmethod
    def from_bytes(cls, state: bytes) -> Differences:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns)."""
        numbers = np.frombuffer(state).reshape(1, -1, _N_SINGLE + MAX_FEW)
        single, few = np.split(numbers, (_N_SINGLE,), axis=-1)
        *moments, low, high, absolute, wins, losses, above, below = np.moveaxis(single, -1, 0)
        n_wins, n_losses = (each.astype(np.int64) for each in (wins, losses))
        return cls(Ratios.from_numbers(*moments), low, high, absolute, n_wins, n_losses, few, above, below)

    def take_columns(self, positions: Sequence[int]) -> Differences:
        """Keep some of the columns."""
        cells = slice(None), list(positions)
        _, *others = fields(self)
        return Differences(self.moments.take(cells), *(getattr(self, each.name)[cells] for each in others))

    @property
    def n(self) -> Counts:
        """Users with a value under both models."""
        return self.moments.numerator.n

    @property
    def n_nonzero(self) -> Counts:
        """Users with a non-zero difference, however small."""
        return self.n_wins + self.n_losses

    @property
    def wins_ties_losses(self) -> tuple[Counts, Counts, Counts]:
        """Users with a greater value under the model, with the same, and with a lesser one."""
        return self.n_wins, self.n - self.n_nonzero, self.n_losses

    @property
    def squares(self) -> Matrix:
        """Sum of d's squared deviations from its mean; NaN where squares leave the range of a double."""
        m2, (least, most) = self.moments.numerator.m2, SQUARES
        return np.where(self.is_degenerate | ((m2 >= least) & (m2 <= most)), m2, np.nan)

    @property
    def is_degenerate(self) -> NDArray[np.bool_]:
        """True where all differences are equal, but for the rounding of each, so that there is no spread."""
        return self.high <= self.low

    @property
    def is_all_zero(self) -> NDArray[np.bool_]:
        """True where all differences are 0."""
        is_all_zero: NDArray[np.bool_] = (self.n > 0) & (self.n_nonzero == 0)
        return is_all_zero


def differences_by_group(pairs: PairedValues, group: NDArray[np.integer], n_groups: int) -> Differences:
    """Aggregate the differences of the users of each group."""
    sums, difference = membership_matrix(group, n_groups), pairs.difference
    none = np.zeros((n_groups, difference.shape[1]))
    beyond = [none, none] if pairs.beyond is None else [sums @ each for each in pairs.beyond]
    with np.errstate(invalid="ignore"):  # of infinite differences
        ends = np.hstack([-difference - pairs.rounding, difference - pairs.rounding])
    greatest = np.full((n_groups, ends.shape[1]), -np.inf)
    order = np.argsort(group, kind="stable")
    found, starts = np.unique(group[order], return_index=True)
    if found.size:
        greatest[found] = np.fmax(np.fmax.reduceat(ends[order], starts, axis=0), -np.inf)
    low, high = np.hsplit(greatest, 2)
    n_wins, n_losses = (
        np.rint(sums @ each.astype(np.float64)).astype(np.int64) for each in (difference > 0, difference < 0)
    )
    moments = ratios.ratio_moments_by_group(difference, pairs.baseline, group, n_groups)
    absolute = _add_capped(sums @ np.abs(np.nan_to_num(difference)))
    few = _few_differences(difference, group, n_wins + n_losses)
    return Differences(moments, -low, high, absolute, n_wins, n_losses, few, *beyond)


def _add_capped(*parts: Matrix) -> Matrix:
    """Add up, to at most the greatest double."""
    with np.errstate(over="ignore"):
        return np.minimum(sum(parts), _GREATEST)


def _few_differences(difference: Matrix, group: NDArray[np.integer], n_different: Counts) -> Values:
    """Return the sorted differences of each (group, column) that has at most 20; NaN elsewhere."""
    few = np.full((n_different.size, MAX_FEW), np.nan)
    counts = np.where(n_different <= MAX_FEW, n_different, 0).ravel()
    if counts.any():
        user, column = np.nonzero(np.nan_to_num(difference))
        row = group[user] * n_different.shape[1] + column
        is_kept = counts[row] > 0
        row, values = row[is_kept], difference[user[is_kept], column[is_kept]]
        order = np.lexsort((values, row))
        row, values = row[order], values[order]
        first = np.cumsum(counts) - counts
        few[row, np.arange(len(row)) - first[row]] = values
    return few.reshape(*n_different.shape, MAX_FEW)


class Comparison(NamedTuple):
    """A model compared with a baseline, each attribute of shape (n_groups, n_columns)."""

    n: Counts  # users with a value under both
    delta: Values  # mean difference
    std_error: Values  # of the difference; NaN below two users
    low: Values  # Student's interval
    high: Values
    p: Values  # two-sided
    effect_size: Values  # `dz = delta / std_dev`; NaN without spread
    n_wins: Counts
    n_ties: Counts
    n_losses: Counts
    test: NDArray[np.str_]  # `t`; `exact` if all signs of at most 20 differences are enumerated; `equal`
    reason: NDArray[np.str_]  # why there is no p-value, of `reasons`, or `out_of_range`; else empty


class Change(NamedTuple):
    """Relative change and its interval; NaN where the mean of the baseline is not above 0."""

    value: Values
    std_error: Values
    low: Values
    high: Values


def compare_means(
    differences: Differences, *, level: float, least_users: int = MIN_USERS, few: FewDifferences = "exact"
) -> Comparison:
    """Compare a model with a baseline on the users that have a value under both; ``differences`` of all users.

    ``t = mean(d) / (sd(d) / sqrt(n))`` with n - 1 degrees of freedom. With at most 20 differences other than ties, all
    signs are enumerated instead. Below 6 differences, or below ``least_users`` users (t is unreliable for skewed
    differences of few users), there is no p-value. With ``few="t"`` few differences are no exception. If all d are
    equal, p is 1 where they are 0, and else ``2^(1 - n)``: the share of assignments of signs that are as one-sided.

    >>> values = np.arange(40.0)[:, None]
    >>> pairs = PairedValues.from_values(values, np.full((40, 1), 15.0))
    >>> found = compare_means(differences_by_group(pairs, np.zeros(40, dtype=np.int64), 1), level=0.95)
    >>> float(found.delta[0, 0]), float(found.p[0, 0].round(4)), str(found.test[0, 0])
    (4.5, 0.0196, 't')
    """
    n, is_equal = differences.n, differences.is_degenerate
    delta = np.where(differences.is_all_zero, 0.0, differences.moments.numerator.mean)
    m2 = np.where(is_equal, 0.0, differences.squares)
    std_dev, std_error = _std_dev_and_error(n, m2)
    with np.errstate(divide="ignore", invalid="ignore"):
        t, effect_size = delta / std_error, np.where(is_equal, np.nan, delta / std_dev)
    low, high = intervals.t_interval(n, delta, m2, level)
    wins, ties, losses = differences.wins_ties_losses
    of_few, test = _small_sample_p(differences)
    test = np.where((test == "exact") & (few == "t"), "", test)
    reason = why_untested(differences, least_users=least_users, few=few)
    is_beyond = np.isnan(delta) | ((test == "") & np.isnan(std_error))
    reason = np.where((reason == "") & is_beyond, OUT_OF_RANGE, reason)
    by_t, *_ = distributions.t_tails(t, np.where(n > 1, n - 1, np.nan))
    p = np.where(reason == "", np.where(test == "", by_t, of_few), np.nan)
    test = np.where(test == "", "t", test)
    return Comparison(n, delta, std_error, low, high, p, effect_size, wins, ties, losses, test, reason)


def randomization_test(
    differences: Differences, sums: Sums, *, least_users: int = MIN_USERS
) -> tuple[Values, NDArray[np.str_], NDArray[np.str_]]:
    """Return the two-sided p of random signs, or of all if they are few; the test; and why there is no p."""
    of_few, test = _small_sample_p(differences)
    with np.errstate(over="ignore"):
        total = differences.n * differences.moments.numerator.mean
    drawn = monte_carlo_p(total, differences.absolute, sums)
    reason = why_untested(differences, least_users=least_users)
    p = np.where(reason == "", np.where(test == "", drawn, of_few), np.nan)
    return p, np.where(test == "", "randomization", test), reason


def sign_sums(differences: Matrix, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None) -> Sums:
    """Add up the differences with random signs; all columns and groups share a user's signs."""
    return resampling.sums_by_group(np.nan_to_num(differences), hashes, draws.signs, groups)


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


def all_signs_p(
    differences: Values,  # (n_rows, n_differences), NaN and 0 are left out, because their sign changes nothing
) -> Values:
    """Return the two-sided p of all signs of at most 20 differences; 1 without a difference.

    It is the share of the ``2^n`` sums that are at least as extreme as the observed one, less 1e-13 of the sum of
    absolute values for rounding. The sums of each half, 1024 of either, are sorted and searched for pairs that reach
    the observed sum. ValueError for more than 20. Five users of five prefer the model, as 2 of 32 assignments do:

    >>> all_signs_p(np.ones((1, 5))).tolist()
    [0.0625]
    """
    if differences.shape[1] > MAX_FEW:
        message = f"found {differences.shape[1]} differences, expected at most {MAX_FEW}: use sign_sums for more"
        raise ValueError(message)
    scaled = np.zeros((len(differences), MAX_FEW))
    scaled[:, : differences.shape[1]] = np.nan_to_num(differences)
    _, exponent = np.frexp(np.abs(scaled).max(axis=1, keepdims=True))
    scaled = np.ldexp(scaled, -exponent)  # so that sums are doubles
    first_sums, second_sums = scaled[:, :_HALF] @ _SIGNS.T, np.sort(scaled[:, _HALF:] @ _SIGNS.T, axis=1)
    least_extreme = np.abs(scaled.sum(axis=1)) - SUM_ROUNDING * np.abs(scaled).sum(axis=1)
    # Sums of either half, and how many of the other half's are too small to reach the end
    n_too_small = [
        int(np.searchsorted(ordered, end - sums).sum())
        for sums, ordered, end in zip(first_sums, second_sums, least_extreme, strict=True)
    ]
    # By symmetry also the shares of sums of the other sign
    shares = 1.0 - np.array(n_too_small, dtype=np.float64) / first_sums.shape[1] ** 2
    return np.where(least_extreme <= 0, 1.0, np.minimum(2 * shares, 1.0))


def why_untested(
    differences: Differences, *, least_users: int = MIN_USERS, few: FewDifferences = "exact"
) -> NDArray[np.str_]:
    """Return why a test of differences has no p, see :func:`why_untested_counts`; else empty."""
    n = differences.n
    n_different = np.where(differences.is_degenerate, n, differences.n_nonzero)
    n_different = np.where(differences.is_all_zero, 0, n_different)
    return why_untested_counts(n, n_different, least_users=least_users, few=few)


def why_untested_counts(n: Counts, n_different: Counts, *, least_users: int, few: FewDifferences) -> NDArray[np.str_]:
    """Return why a test on n users has no p: ``one_user``, ``few_users`` or ``few_differences``; else empty.

    ``n_different`` of the users differ; if none does, p is 1. Few differences are a reason unless ``few`` is "t".
    """
    is_few = (n_different < MIN_DIFFERENCES) & (n_different > 0) & (few == "exact")
    return np.select([n <= 1, n < least_users, is_few], ["one_user", "few_users", "few_differences"], "")


def relative_change(differences: Differences, *, level: float) -> Change:
    """Return the change of the mean as a share of the baseline's mean; NaN where that is not above 0.

    ``delta = x / y - 1`` of the means, by the delta method ``se^2 = (s_xx - 2 (1 + delta) s_xy + (1 + delta)^2 s_yy) /
    (n y^2)``. Dividing the interval of the difference by the baseline's mean would cover only 73 % at a large change,
    because y varies too. The model is always twice as good as the baseline, so the change has no spread:

    >>> baseline = np.array([[1.0], [2.0], [3.0]])
    >>> pairs = PairedValues.from_values(2 * baseline, baseline)
    >>> found = relative_change(differences_by_group(pairs, np.zeros(3, dtype=np.int64), 1), level=0.95)
    >>> [float(each[0, 0]) for each in found]
    [1.0, 0.0, 1.0, 1.0]
    """
    value, m2 = differences.moments.as_means
    n, (_, std_error) = differences.n, _std_dev_and_error(differences.n, m2)
    return Change(value, std_error, *intervals.t_interval(n, value, m2, level))


def _std_dev_and_error(n: Counts, m2: Values) -> tuple[Values, Values]:
    """Return the sample standard deviation and the standard error; NaN below two users."""
    many = np.where(n > 1, n, np.nan)
    std_dev = np.sqrt(m2 / (many - 1))
    return std_dev, std_dev / np.sqrt(many)


def _small_sample_p(differences: Differences) -> tuple[Values, NDArray[np.str_]]:
    """Return the two-sided p of at most 20 differences (``exact``) or equal ones (``equal``); else NaN and ''."""
    n, is_equal = differences.n, differences.is_degenerate & (differences.n > 0)
    is_few = ~is_equal & (n > 0) & (differences.n_nonzero <= MAX_FEW)
    p = np.full(n.shape, np.nan)
    p[is_few] = all_signs_p(differences.few[is_few])
    p[is_equal] = equal_differences_p(n[is_equal], np.sign(differences.low)[is_equal])[0]
    return p, np.where(is_equal, "equal", np.where(is_few, "exact", ""))


def equal_differences_p(n: Counts, delta: Values) -> tuple[Values, Values, Values]:
    """Return p-values of equal differences, two-sided, for a fall and for a rise: shares of ``2^n`` signs."""
    one_side = np.where(delta == 0, 1.0, 0.5 ** n.astype(np.float64))
    return np.minimum(2 * one_side, 1.0), np.where(delta > 0, 1.0, one_side), np.where(delta < 0, 1.0, one_side)


FEW_COMMON_LISTS: Final = "few_common_lists"  # reason of a comparison that is withheld
FEW_COMMON_JUDGED_LISTS: Final = "few_common_judged_lists"  # the same where judgements name lists, which are counted
TOO_LITTLE_SUPPORT: Final = "too_little_support"  # reason where few impressions carry the weights of a model
MIN_SHARE: Final = 10  # one in this many users, at least, has lists of both models


class ListCounts(NamedTuple):
    """Users, or lists that judgements name, with a list from the baseline, the model, and both: one shape."""

    n_baseline: np.ndarray
    n_model: np.ndarray
    n_both: np.ndarray


def are_too_few(everyone: ListCounts, evaluated: ListCounts) -> np.ndarray:
    """Return where two models serve different users, so that paired differences compare how many each one serves.

    Fewer than one in ten users of the smaller model have lists of both, judged or not; unless one in ten evaluated
    users with a list of the larger model have lists of both, such as a panel that both models serve. A model without
    any list is compared: it fails its users.

    >>> everyone = ListCounts(np.array([900, 900, 900, 5000]), np.array([100, 100, 0, 5000]), np.array([9, 10, 0, 80]))
    >>> evaluated = ListCounts(np.array([900, 900, 900, 80]), np.array([100, 100, 0, 80]), np.array([9, 10, 0, 80]))
    >>> are_too_few(everyone, evaluated).tolist()
    [True, False, False, False]
    """
    too_few: np.ndarray = MIN_SHARE * everyone.n_both < np.minimum(everyone.n_baseline, everyone.n_model)
    larger = np.maximum(evaluated.n_baseline, evaluated.n_model)
    too_few &= ~((evaluated.n_both > 0) & (MIN_SHARE * evaluated.n_both >= larger))
    return too_few


def why_withheld(row: Mapping[str, Any]) -> str:
    """Return why a row of ``comparisons`` is withheld, and which means can be compared; empty where it is not.

    >>> why_withheld({"reason": "few_common_lists", "n_with_both": 3, "n_with_baseline": 900, "n_with_model": 93})
    "withheld: 3 of the 93 users of the smaller model have lists of both, fewer than 1 in 10; compare the means of
    population='run', which are over each model's own users"
    """
    if row.get("reason") == FEW_COMMON_JUDGED_LISTS:
        return (
            "withheld: fewer than 1 in 10 of the judged lists of the smaller model are answered by both; compare the "
            "means of population='run', which are over each model's own lists"
        )
    if row.get("reason") != FEW_COMMON_LISTS:
        return ""
    smaller = min(row["n_with_baseline"], row["n_with_model"])
    return (
        f"withheld: {row['n_with_both']:,} of the {smaller:,} users of the smaller model have lists of both, fewer "
        "than 1 in 10; compare the means of population='run', which are over each model's own users"
    )

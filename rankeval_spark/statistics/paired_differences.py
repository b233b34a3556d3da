"""Aggregates of the users' differences between two models: one pass, and they merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankeval_spark.statistics import ratios
from rankeval_spark.statistics.moments import SQUARES, membership_of
from rankeval_spark.statistics.ratios import Ratios

if TYPE_CHECKING:
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix

Counts: TypeAlias = NDArray[np.int64]

FEW: Final = 20  # largest number of non-zero differences of which all signs are enumerated

ROUNDING: Final = 1e-14
"""Share of the greater of a user's two values below which their difference is rounding and counts as 0."""

SUM_ROUNDING: Final = 1e-13
"""Share of the sum of absolute values up to which two sums of the same numbers, with other signs, may be equal."""

_N_SINGLE: Final = 13  # numbers of a group and column in addition to its few differences

_GREATEST: Final = float(np.finfo(np.float64).max)


def difference_of(values: Values, baseline: Values) -> Values:
    """Difference of the values of two models; 0 where only rounding differs, infinite where a value is.

    Sums over the same items differ in the last bits when the order of addition differs; such a user is a tie. What is
    rounding depends on the user's own two values alone.

    >>> difference_of(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25])).tolist()
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
    def of(cls, values: Matrix, baseline: Matrix, *, margin: float | None = None) -> PairedValues:
        """Pair values under two models, a column per (pair, measure, k); count users who differ by more than a margin.

        A difference that exceeds the margin by rounding only does not count.
        """
        difference = difference_of(values, baseline)
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
    """Aggregates of the users' differences d in each group.

    With d in place of the model's value, no precision is lost where two models are nearly the same. What is rounding
    depends on each user's own two values, see :func:`difference_of`: next to a user with a value of 1e12 the others
    still differ.
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
        n_few = self.n_other_than_0 + other.n_other_than_0
        few = np.sort(np.concatenate([self.few, other.few], axis=-1), axis=-1)[..., :FEW]
        return Differences(
            self.moments.merge(other.moments),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            _sums(self.absolute, other.absolute),
            self.n_wins + other.n_wins,
            self.n_losses + other.n_losses,
            np.where((n_few <= FEW)[..., None], few, np.nan),
            self.above + other.above,
            self.below + other.below,
        )

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        own = (self.low, self.high, self.absolute, self.n_wins, self.n_losses, self.above, self.below)
        parts = [np.stack((*self.moments.numbers, *own), axis=-1, dtype=np.float64), self.few]
        return [state.tobytes() for state in np.concatenate(parts, axis=-1)]

    @classmethod
    def from_bytes(cls, state: bytes) -> Differences:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns)."""
        numbers = np.frombuffer(state).reshape(1, -1, _N_SINGLE + FEW)
        single, few = np.split(numbers, (_N_SINGLE,), axis=-1)
        *moments, low, high, absolute, wins, losses, above, below = np.moveaxis(single, -1, 0)
        n_wins, n_losses = (each.astype(np.int64) for each in (wins, losses))
        return cls(Ratios.of(*moments), low, high, absolute, n_wins, n_losses, few, above, below)

    def columns(self, positions: Sequence[int]) -> Differences:
        """Keep some of the columns."""
        own = slice(None), list(positions)
        _, *others = fields(self)
        return Differences(self.moments.at(own), *(getattr(self, each.name)[own] for each in others))

    @property
    def n(self) -> Counts:
        """Users with a value under both models."""
        return self.moments.numerator.n

    @property
    def n_other_than_0(self) -> Counts:
        """Users with a non-zero difference, however small."""
        return self.n_wins + self.n_losses

    @property
    def wins_ties_losses(self) -> tuple[Counts, Counts, Counts]:
        """Users with a greater value under the model, with the same, and with a lesser one."""
        return self.n_wins, self.n - self.n_other_than_0, self.n_losses

    @property
    def squares(self) -> Matrix:
        """Sum of d's squared deviations from its mean; NaN where squares leave the range of a double."""
        m2, (least, most) = self.moments.numerator.m2, SQUARES
        return np.where(self.is_degenerate | ((m2 >= least) & (m2 <= most)), m2, np.nan)

    @property
    def is_degenerate(self) -> NDArray[np.bool_]:
        """Whether all differences are equal, but for the rounding of each, so that there is no spread."""
        return self.high <= self.low

    @property
    def is_all_zero(self) -> NDArray[np.bool_]:
        """Whether all differences are 0."""
        is_all_zero: NDArray[np.bool_] = (self.n > 0) & (self.n_other_than_0 == 0)
        return is_all_zero


def differences_by_group(pairs: PairedValues, group: NDArray[np.integer], n_groups: int) -> Differences:
    """Aggregate the differences of the users of each group."""
    sums = membership_of(group, n_groups)
    none = np.zeros((n_groups, pairs.difference.shape[1]))
    beyond = [none, none] if pairs.beyond is None else [sums @ each for each in pairs.beyond]
    with np.errstate(invalid="ignore"):  # of infinite differences
        ends = np.hstack([-pairs.difference - pairs.rounding, pairs.difference - pairs.rounding])
    low, high = np.hsplit(_greatest(ends, group, n_groups), 2)
    n_wins, n_losses = (
        np.rint(sums @ each.astype(np.float64)).astype(np.int64)
        for each in (pairs.difference > 0, pairs.difference < 0)
    )
    return Differences(
        ratios.ratio_moments_by_group(pairs.difference, pairs.baseline, group, n_groups),
        -low,
        high,
        _sums(sums @ np.abs(np.nan_to_num(pairs.difference))),
        n_wins,
        n_losses,
        _few(pairs.difference, group, n_wins + n_losses),
        *beyond,
    )


def _sums(*parts: Matrix) -> Matrix:
    """Add up, to at most the greatest double."""
    with np.errstate(over="ignore"):
        return np.minimum(sum(parts), _GREATEST)


def _greatest(values: Matrix, group: NDArray[np.integer], n_groups: int) -> Matrix:
    """Greatest value of each column in each group; -inf without one."""
    greatest = np.full((n_groups, values.shape[1]), -np.inf)
    order = np.argsort(group, kind="stable")
    found, starts = np.unique(group[order], return_index=True)
    if found.size:
        greatest[found] = np.fmax(np.fmax.reduceat(values[order], starts, axis=0), -np.inf)
    return greatest


def _few(difference: Matrix, group: NDArray[np.integer], n_different: Counts) -> Values:
    """Lay out the differences of each (group, column) that has at most 20."""
    few = np.full((n_different.size, FEW), np.nan)
    counts = np.where(n_different <= FEW, n_different, 0).ravel()
    if counts.any():
        user, column = np.nonzero(np.nan_to_num(difference))
        row = group[user] * n_different.shape[1] + column
        is_kept = counts[row] > 0
        row, values = row[is_kept], difference[user[is_kept], column[is_kept]]
        order = np.lexsort((values, row))
        row, values = row[order], values[order]
        first = np.cumsum(counts) - counts
        few[row, np.arange(len(row)) - first[row]] = values
    return few.reshape(*n_different.shape, FEW)

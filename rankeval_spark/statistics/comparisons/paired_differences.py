"""Aggregates of the users' differences between two models: one pass, and they merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankeval_spark.statistics import ratios
from rankeval_spark.statistics.moments import membership_of
from rankeval_spark.statistics.ratios import Ratios

if TYPE_CHECKING:
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix

Counts: TypeAlias = NDArray[np.int64]

FEW: Final = 20
"""Largest number of non-zero differences of which all signs are enumerated."""

TIE: Final = 1e-10
"""Share of the mean absolute difference below which a user's difference is a tie."""

ROUNDING: Final = 1e-14
"""Share of the greater of a user's two values below which their difference is rounding and counts as 0."""

EQUAL: Final = 1e-12
"""Range of the differences, relative to the greatest value of any user, within which they are all equal."""

_LOWEST: Final = -80
_STEP: Final = 4
_N_RUNGS: Final = 33
"""Rungs of the ladder of magnitudes, from 2^-80 in steps of 2^4 to 2^48."""
_N_SINGLE: Final = 12
"""Numbers of a group and column in addition to its ladder and its few differences."""


def difference_of(values: Values, baseline: Values) -> Values:
    """Difference of the values of two models; 0 where only rounding differs.

    Sums over the same items differ in the last bits when the order of addition differs; such a user is a tie.

    Examples
    --------
    >>> difference_of(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25])).tolist()
    [0.0, 0.25]
    """
    difference = values - baseline
    scale = np.maximum(np.abs(values), np.abs(baseline))
    return np.where(np.isfinite(scale) & (np.abs(difference) <= ROUNDING * scale), 0.0, difference)


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Differences of users between two models, and where each one is counted.

    Parameters
    ----------
    difference, baseline : float64, shape (n_users, n_columns)
        Value of the model minus value of the baseline, and value of the baseline; NaN where either is undefined.
    absolute : float64, same shape
        Absolute value of the difference; 0 where it is NaN.
    scale : float64, same shape
        Greater of the absolute values of both; 0 where the difference is NaN.
    user, place : int64, shape (n_different,)
        Row of each non-zero difference, and its place in the ladders of all columns, see :class:`Differences`.
    beyond : pair of float64, shape (n_users, n_columns), or None
        1 where d is above a margin, and where it is below minus the margin; None without a margin.
    """

    difference: Matrix
    baseline: Matrix
    absolute: Matrix
    scale: Matrix
    user: Counts
    place: Counts
    beyond: tuple[Matrix, Matrix] | None = None

    @classmethod
    def of(cls, values: Matrix, baseline: Matrix, *, margin: float | None = None) -> PairedValues:
        """Pair the values of users under two models, one column per (pair, measure, k).

        Parameters
        ----------
        margin : float, optional
            Users whose values differ by more are counted. What exceeds it by rounding only does not.
        """
        difference = difference_of(values, baseline)
        known = np.nan_to_num(difference)
        user, column = np.nonzero(known)
        different = known[user, column]
        _, exponent = np.frexp(different)
        rung = np.clip((exponent - 1 - _LOWEST) // _STEP, 0, _N_RUNGS - 1)
        place = (2 * column + (different > 0)) * _N_RUNGS + rung
        is_unknown = np.isnan(difference)
        known_baseline = np.where(is_unknown, np.nan, baseline)
        scale = np.where(is_unknown, 0.0, np.fmax(np.abs(values), np.abs(baseline)))
        beyond = None if margin is None else _beyond(known, scale, margin)
        return cls(difference, known_baseline, np.abs(known), scale, user, place, beyond)


def _beyond(difference: Matrix, scale: Matrix, margin: float) -> tuple[Matrix, Matrix]:
    """Mark with 1 the users whose value is greater, and those whose value is less, by more than a margin."""
    exceeds = np.abs(difference) - margin > ROUNDING * scale
    greater, less = ((exceeds & side).astype(np.float64) for side in (difference > 0, difference < 0))
    return greater, less


@dataclass(frozen=True, eq=False)
class Differences:
    """Aggregates of the differences d of the users of each group.

    Parameters
    ----------
    moments : Ratios
        Central moments of d as the numerator, of the baseline's values as the denominator. With d in place of the
        model's value, no precision is lost where two models are nearly the same.
    low, high : float64, shape (n_groups, n_columns)
        Least and greatest d; inf and -inf without users.
    absolute : float64, same shape
        Sum of ``|d|``.
    scale : float64, same shape
        Greatest absolute value of a user under either model; 0 without users.
    ladder : int64, shape (n_groups, n_columns, 2, 33)
        Number of users by magnitude of d, for d < 0 and for d > 0: rung j has ``2^(4j - 80) <= |d| < 2^(4j - 76)``.
    few : float64, shape (n_groups, n_columns, 20)
        The non-zero d in ascending order, then NaN; all NaN where there are more.
    above, below : float64, shape (n_groups, n_columns)
        Number of users with d above the margin, and below minus the margin; 0 without a margin.

    Notes
    -----
    A tie is ``|d| <= eps`` with ``eps = 1e-10 mean |d|``, which is known only at the end of the pass. So the ladder
    counts users by magnitude; merged counts are exact at every rung, and eps is rounded to the nearest rung (within a
    factor of 4). The tolerance covers rounding of equal values, which is 1e-16 of them. It does not mean that smaller
    differences are irrelevant.
    """

    moments: Ratios
    low: Matrix
    high: Matrix
    absolute: Matrix
    scale: Matrix
    ladder: Counts
    few: Values
    above: Matrix
    below: Matrix

    def merge(self, other: Differences) -> Differences:
        """Aggregate both sets of users."""
        n_few = self.n_other_than_0 + other.n_other_than_0
        few = np.sort(np.concatenate([self.few, other.few], axis=-1), axis=-1)[..., :FEW]
        return Differences(
            self.moments.merge(other.moments),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.absolute + other.absolute,
            np.maximum(self.scale, other.scale),
            self.ladder + other.ladder,
            np.where((n_few <= FEW)[..., None], few, np.nan),
            self.above + other.above,
            self.below + other.below,
        )

    def to_bytes(self) -> list[bytes]:
        """Write the aggregates of each group."""
        single = (*self.moments.numbers, self.low, self.high, self.absolute, self.scale, self.above, self.below)
        parts = [np.stack(single, axis=-1), self.ladder.reshape(*self.n.shape, -1), self.few]
        return [state.tobytes() for state in np.concatenate(parts, axis=-1, dtype=np.float64)]

    @classmethod
    def from_bytes(cls, state: bytes) -> Differences:
        """Read the aggregates of one group, as :meth:`to_bytes` wrote them: shapes (1, n_columns)."""
        numbers = np.frombuffer(state).reshape(1, -1, _N_SINGLE + 2 * _N_RUNGS + FEW)
        single, ladder, few = np.split(numbers, (_N_SINGLE, _N_SINGLE + 2 * _N_RUNGS), axis=-1)
        *moments, low, high, absolute, scale, above, below = np.moveaxis(single, -1, 0)
        rungs = ladder.reshape(*low.shape, 2, _N_RUNGS).astype(np.int64)
        return cls(Ratios.of(*moments), low, high, absolute, scale, rungs, few, above, below)

    def columns(self, positions: Sequence[int]) -> Differences:
        """Keep some of the columns."""
        own = slice(None), list(positions)
        numbers = (self.low, self.high, self.absolute, self.scale, self.few, self.above, self.below)
        low, high, absolute, scale, few, above, below = (each[own] for each in numbers)
        return Differences(self.moments.at(own), low, high, absolute, scale, self.ladder[own], few, above, below)

    @property
    def n(self) -> Counts:
        """Users with a value under both models."""
        return self.moments.numerator.n

    @property
    def n_other_than_0(self) -> Counts:
        """Users with a non-zero difference, however small."""
        counts: Counts = self.ladder.sum(axis=(-1, -2))
        return counts

    @property
    def tie(self) -> Matrix:
        """Least magnitude of a difference that is not a tie: eps rounded to the nearest rung, 0 at the lowest one."""
        return np.where(self._tie_rung > 0, 2.0 ** (_LOWEST + _STEP * self._tie_rung), 0.0)

    @property
    def _tie_rung(self) -> Matrix:
        with np.errstate(divide="ignore"):
            place = (np.log2(TIE * self.absolute / np.maximum(self.n, 1)) - _LOWEST) / _STEP
        return np.clip(np.rint(place), 0, _N_RUNGS - 1)

    @property
    def wins_ties_losses(self) -> tuple[Counts, Counts, Counts]:
        """Users with a greater value under the model, with the same, and with a lesser one."""
        counts = np.where(np.arange(_N_RUNGS) >= self._tie_rung[..., None, None], self.ladder, 0).sum(axis=-1)
        losses, wins = counts[..., 0], counts[..., 1]
        return wins, self.n - wins - losses, losses

    @property
    def is_degenerate(self) -> NDArray[np.bool_]:
        """Whether all differences are equal, to within 1e-12 of the greatest value, so that there is no spread."""
        return self.high - self.low <= EQUAL * self.scale

    @property
    def is_all_zero(self) -> NDArray[np.bool_]:
        """Whether all differences are 0, to within 1e-12 of the greatest value."""
        return (self.n > 0) & (np.maximum(-self.low, self.high) <= EQUAL * self.scale)


def differences_by_group(pairs: PairedValues, group: NDArray[np.integer], n_groups: int) -> Differences:
    """Aggregate the differences of the users of each group."""
    low, high = _ends(pairs.difference, group, n_groups)
    none = np.zeros((n_groups, pairs.difference.shape[1]))
    beyond = [none, none] if pairs.beyond is None else [membership_of(group, n_groups) @ each for each in pairs.beyond]
    ladder = _ladder(pairs, group, n_groups)
    return Differences(
        ratios.ratio_moments_by_group(pairs.difference, pairs.baseline, group, n_groups),
        low,
        high,
        membership_of(group, n_groups) @ pairs.absolute,
        np.maximum(_ends(pairs.scale, group, n_groups)[1], 0.0),
        ladder,
        _few(pairs, group, ladder.sum(axis=(-1, -2))),
        *beyond,
    )


def _ends(values: Matrix, group: NDArray[np.integer], n_groups: int) -> tuple[Matrix, Matrix]:
    shape = (n_groups, values.shape[1])
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    order = np.argsort(group, kind="stable")
    found, starts = np.unique(group[order], return_index=True)
    if found.size:
        ordered = values[order]
        low[found] = np.fmin(np.fmin.reduceat(ordered, starts, axis=0), np.inf)
        high[found] = np.fmax(np.fmax.reduceat(ordered, starts, axis=0), -np.inf)
    return low, high


def _ladder(pairs: PairedValues, group: NDArray[np.integer], n_groups: int) -> Counts:
    shape = (n_groups, pairs.difference.shape[1], 2, _N_RUNGS)
    size = int(np.prod(shape[1:]))
    return np.bincount(group[pairs.user] * size + pairs.place, minlength=n_groups * size).reshape(shape)


def _few(pairs: PairedValues, group: NDArray[np.integer], n_different: Counts) -> Values:
    """Lay out the differences of each (group, column) that has at most 20."""
    few = np.full((n_different.size, FEW), np.nan)
    counts = np.where(n_different <= FEW, n_different, 0).ravel()
    if counts.any():
        column = pairs.place // (2 * _N_RUNGS)
        row = group[pairs.user] * n_different.shape[1] + column
        is_kept = counts[row] > 0
        row, values = row[is_kept], pairs.difference[pairs.user[is_kept], column[is_kept]]
        order = np.lexsort((values, row))
        row, values = row[order], values[order]
        first = np.cumsum(counts) - counts
        few[row, np.arange(len(row)) - first[row]] = values
    return few.reshape(*n_different.shape, FEW)

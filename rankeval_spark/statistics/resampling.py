"""Sums over users with random factors that merge, and the Poisson bootstrap (Chamandy et al. 2012).

Means and micro averages share one interval: a mean is the ratio of the sum of its values and the number of users who
have one, so replicate b is ``sum w_b numerator / sum w_b denominator``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval_spark.statistics import hashed_random
from rankeval_spark.statistics.intervals import Spread

if TYPE_CHECKING:
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Moments

Matrix: TypeAlias = NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)

Sums: TypeAlias = NDArray[np.float64]  # (n_groups, n_columns, n_replicates); those of two sets of users are added
# (n_parts, 2, n_columns, n_replicates), sums of numerators, then of denominators; parts are added
Parts: TypeAlias = NDArray[np.float64]
# Returns the random factors of users, (n_users, n_replicates), from their hashes.
Draw: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.integer]]

USERS_AT_ONCE: Final = 1024  # users in a block: with 1000 replicates, 8 MB of doubles
_MIN_AT_ONCE: Final = 64  # the same where replicates are many; smaller blocks would write the sums too often
MAX_EMPTY: Final = 0.05  # share of replicates without a value above which there is no interval and no p-value
_ALIKE: Final = 1e-8  # variance, by the squared mean, below which sums of squares cannot tell spread from rounding
_TOLERANCE: Final = 1e-10  # relative rounding that a replicate equal to the observed value may have


@dataclass(frozen=True)
class Draws:
    """Number of random replicates and their seed: the same for every model, slice, measure and cutoff."""

    replicates: int
    seed: int

    def weights(self, hashes: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return how often each user is drawn in each replicate; rows of one user have the same weights.

        >>> Draws(replicates=5, seed=0).weights(hashed_random.hash_ids(["ann", "bob", "ann"]))
        array([[0, 1, 1, 0, 3],
               [1, 1, 2, 1, 2],
               [0, 1, 1, 0, 3]], dtype=uint8)
        """
        users, place = np.unique(hashes, return_inverse=True)
        return hashed_random.poisson_weights(users, seed=self.seed, replicates=self.replicates)[place]

    def signs(self, hashes: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the random sign of each user in each replicate."""
        return hashed_random.random_signs(hashes, seed=self.seed, replicates=self.replicates)


class SliceGroups(NamedTuple):
    """Groups of several slicings."""

    codes: NDArray[np.integer]  # (n_slicings, n_users), from 0 to `n - 1`, below 0 for none; slicings share no group
    n: int  # groups of all slicings

    @classmethod
    def everyone(cls, n_users: int) -> SliceGroups:
        """Build one group of all users."""
        return cls(np.zeros((1, n_users), dtype=np.int64), 1)


def sums_by_group(
    columns: Matrix,  # (n_users, n_columns), without NaN
    hashes: NDArray[np.int64],
    draw: Draw,  # called once for all columns and slicings
    groups: SliceGroups | None = None,  # everyone by default
) -> Sums:
    """Sum the columns times the random factors over the users of each group: (n_groups, n_columns, n_replicates).

    NaN where a sum is beyond the range of a double.

    >>> sums = sums_by_group(
    ...     np.array([[1.0], [2.0]]),
    ...     np.array([7, 8]),
    ...     lambda hashes: hashes[:, None] * np.array([1, -1]),
    ...     SliceGroups(np.array([[0, 0], [1, -1]]), 2),
    ... )
    >>> sums.tolist()
    [[[23.0, -23.0]], [[7.0, -7.0]]]
    """
    slicings, n_groups = groups or SliceGroups.everyone(len(columns))
    n_replicates = draw(hashes[:0]).shape[1]
    sums = np.zeros((n_groups, columns.shape[1], n_replicates))
    at_once = min(USERS_AT_ONCE, max(_MIN_AT_ONCE, USERS_AT_ONCE * 1000 // max(n_replicates, 1)))
    for start in range(0, len(columns), at_once):
        block = slice(start, start + at_once)
        factors = draw(hashes[block]).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            for codes in slicings[:, block]:
                for group, users in iterate_groups(codes):
                    sums[group] += columns[block][users].T @ factors[users]
    return np.where(np.isfinite(sums), sums, np.nan)


def distinct_columns(columns: NDArray[Scalar]) -> tuple[NDArray[Scalar], NDArray[np.int64]]:
    """Keep one of equal columns; return the columns that are kept, and which of them each column is."""
    known: dict[bytes, int] = {}
    places = np.array([known.setdefault(column.tobytes(), len(known)) for column in columns.T], dtype=np.int64)
    firsts = np.unique(places, return_index=True)[1]
    return columns[:, firsts], places


def iterate_groups(codes: NDArray[np.integer]) -> Iterator[tuple[int, slice | NDArray[np.int64]]]:
    """Find the groups of a slicing and the positions of their users; a Python slice for everyone, to copy nothing."""
    if codes.size and codes.min() == codes.max():
        if codes[0] >= 0:
            yield int(codes[0]), slice(None)
        return
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    for group, users in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if group >= 0:
            yield group, users


@dataclass(frozen=True, eq=False)
class ReplicateSums:
    """Weighted sums over users in each replicate, all of shape (n_groups, n_columns, n_replicates)."""

    weights: Sums  # sum of the weights w of users with a defined value
    sums: Sums  # sum of w x
    squares: Sums  # sum of w x^2

    def merge(self, other: ReplicateSums) -> ReplicateSums:
        """Add up both sets of users."""
        return ReplicateSums(self.weights + other.weights, self.sums + other.sums, self.squares + other.squares)

    @property
    def means(self) -> Values:
        """Mean of each replicate, ``sum w x / sum w``; NaN where no user was drawn."""
        return replicate_quotient(self.sums, self.weights)


def weighted_sums(
    values: Matrix, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None
) -> ReplicateSums:
    """Add up users with Poisson weights; columns that are undefined for the same users share the sums of weights."""
    is_defined = ~np.isnan(values)
    masks, mask_of = distinct_columns(is_defined)
    filled = np.where(is_defined, values, 0.0)
    with np.errstate(over="ignore"):
        columns = np.hstack([masks.astype(np.float64), filled, filled**2])
    sums = sums_by_group(columns, hashes, draws.weights, groups)
    n_masks, n_columns = masks.shape[1], values.shape[1]
    weights, first, second = np.split(sums, [n_masks, n_masks + n_columns], axis=1)
    return ReplicateSums(weights[:, mask_of], first, second)


def ratio_sums(
    numerators: Matrix, denominators: Matrix, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None
) -> Parts:
    """Add up numerators and denominators of users with Poisson weights: shape (n_groups, 2, n_columns, n_replicates).

    Both are 0 where undefined; the denominator of a mean is 1 elsewhere. Single precision would be a third faster, but
    a mean would be off by 1e-7.

    >>> from rankeval_spark.statistics.hashed_random import hash_ids
    >>> ratio_sums(np.array([[1.0]]), np.array([[2.0]]), hash_ids(["ann"]), Draws(5, 0)).tolist()
    [[[[0.0, 1.0, 1.0, 0.0, 3.0]], [[0.0, 2.0, 2.0, 0.0, 6.0]]]]
    """
    kept, which = distinct_columns(denominators)
    sums = sums_by_group(np.hstack([kept, numerators]), hashes, draws.weights, groups)
    n_kept = kept.shape[1]
    return np.stack([sums[:, n_kept:], sums[:, :n_kept][:, which]], axis=1)


def bootstrap_spread(parts: Parts, level: float) -> Spread:
    """Compute each column's standard error and percentile interval from sums of disjoint sets of users.

    Parts are added in ascending order, so that their order does not matter. NaN where more than 5 % of the replicates
    have no denominator; fewer are left out. Replicates 1, 2 and 3 of a mean:

    >>> parts = np.array([[[[2.0, 4.0, 6.0]], [[2.0, 2.0, 2.0]]]])
    >>> bootstrap_spread(parts, 0.5)
    Spread(std_error=array([1.]), low=array([1.5]), high=array([2.5]))
    """
    numerators, denominators = np.sort(parts, axis=0).sum(axis=0)
    statistics = replicate_quotient(numerators, denominators)
    low, high = percentile_interval(statistics, level)
    std_error = np.full(low.shape, np.nan)
    is_known = ~np.isnan(low)
    std_error[is_known] = np.nanstd(statistics[is_known], axis=-1, ddof=1)
    return Spread(std_error, low, high)


def replicate_quotient(numerator: Values, denominator: Values) -> Values:
    """Divide replicate by replicate; NaN where the denominator is 0."""
    found: Values = np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator != 0)
    return found


def percentile_interval(statistics: Values, level: float) -> tuple[Values, Values]:
    """Return quantiles of (..., n_replicates) statistics at ``(1 -+ level) / 2``, linear between neighbours.

    Undefined replicates are left out; NaN where more than 5 % are undefined.
    """
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    ordered = np.sort(statistics, axis=-1)  # NaN last
    n_defined = (~np.isnan(statistics)).sum(axis=-1)
    place = np.maximum(n_defined - 1, 0)[..., None] * ends
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(n_defined - 1, 0)[..., None])
    at_below, at_above = (np.take_along_axis(ordered, position, axis=-1) for position in (below, above))
    quantiles = at_below + (place - below) * (at_above - at_below)
    quantiles[_is_mostly_empty(statistics)] = np.nan
    return quantiles[..., 0], quantiles[..., 1]


def studentized_p(
    moments: Moments,  # (n_groups, n_columns), of the same values
    replicates: ReplicateSums,
) -> Values:
    """Return the two-sided p of a mean that is 0 in the null hypothesis, by the studentized shift; 1 if all are 0.

    ``p = (1 + #{|t*| >= |t|}) / (B + 1)`` with ``t = mean / se`` and ``t* = (mean* - mean) / se*`` (Sakai 2006).
    ``se*^2 = sum w (x - mean*)^2 / (W (W - 1))``, with W the sum of weights. A replicate of equal values counts as
    extreme unless its mean is the observed one. NaN below two users, where all values are equal but not 0, where more
    than 5 % of the replicates have no t, and where the values differ by less than 1e-4 of their mean: sums of squares
    cannot distinguish such a spread from rounding.
    """
    mean, weights = moments.mean[..., None], np.where(replicates.weights > 1, replicates.weights, np.nan)
    means = replicates.sums / weights
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        spread = replicates.squares - replicates.sums * means
        spread = np.where(spread <= _TOLERANCE * replicates.squares, 0.0, spread)
        distance = np.abs(means - mean)
        distance = np.where(distance > _TOLERANCE * np.abs(mean), distance, 0.0)
        shifted = distance / np.sqrt(spread / (weights * (weights - 1)))
    shifted = np.where((distance == 0) & ~np.isnan(weights), 0.0, shifted)  # NaN below two drawn users
    observed = np.abs(replicate_quotient(moments.mean, moments.std_error))
    n_extreme = (shifted >= observed[..., None] * (1 - _TOLERANCE)).sum(axis=-1)
    n_replicates = replicates.sums.shape[-1]
    p = (1.0 + n_extreme + np.isnan(shifted).sum(axis=-1)) / (n_replicates + 1.0)
    with np.errstate(over="ignore"):
        is_too_alike = (moments.m2 > 0) & (moments.m2 <= _ALIKE * moments.n * moments.mean**2)
    p = np.where(np.isnan(observed) | _is_mostly_empty(shifted) | is_too_alike, np.nan, p)
    is_all_zero = (moments.mean == 0) & (moments.m2 == 0) & (moments.n > 1)
    return np.where(is_all_zero, 1.0, p)


def _is_mostly_empty(statistics: Values) -> NDArray[np.bool_]:
    """Return where more than 5 % of the replicates, the last axis, are NaN."""
    empty: NDArray[np.bool_] = np.isnan(statistics).mean(axis=-1) > MAX_EMPTY
    return empty

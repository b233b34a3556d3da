"""Bootstrap intervals of means and of ratios of sums over users, from sums that are added up anywhere.

A mean is the ratio of the sum of its values and the number of users who have one, so that means and micro averages are
drawn alike: replicate b is ``sum w_b numerator / sum w_b denominator``, the normalised mean of :mod:`bootstrap`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankeval_spark.statistics import hashing, replicates as replicated
from rankeval_spark.statistics.bootstrap import percentile_interval, quotient
from rankeval_spark.statistics.jackknife import Spread

if TYPE_CHECKING:
    from rankeval_spark.statistics.replicates import Matrix

Parts: TypeAlias = NDArray[np.float64]
"""Shape (n_parts, 2, n_columns, n_replicates): sums of numerators, then of denominators; parts are added."""


@dataclass(frozen=True)
class Draws:
    """The draws of a bootstrap, the same for every model, slice, measure and cutoff.

    Parameters
    ----------
    replicates : int
        How many there are.
    seed : int
        With the user's id and the number of the replicate, all that a weight depends on.
    """

    replicates: int
    seed: int

    def weights(self, hashes: NDArray[np.int64]) -> NDArray[np.uint8]:
        """How often each user is drawn in each replicate; a user with several rows is drawn once for all of them.

        Examples
        --------
        >>> Draws(replicates=5, seed=0).weights(hashing.user_hashes(["ann", "bob", "ann"]))
        array([[0, 1, 1, 0, 3],
               [1, 1, 2, 1, 2],
               [0, 1, 1, 0, 3]], dtype=uint8)
        """
        users, place = np.unique(hashes, return_inverse=True)
        return hashing.poisson_weights(users, seed=self.seed, replicates=self.replicates)[place]


def ratio_sums(  # noqa: PLR0913 - options by keyword
    numerators: Matrix,
    denominators: Matrix,
    hashes: NDArray[np.int64],
    *,
    draws: Draws,
    groups: NDArray[np.integer] | None = None,
    n_groups: int = 1,
) -> Parts:
    """Add up the numerators and the denominators of users, as often as each is drawn.

    Parameters
    ----------
    numerators, denominators : float64, shape (n_rows, n_columns)
        Both 0 where undefined; the denominator of a mean is 1 elsewhere.
    hashes : int64, shape (n_rows,)
        Hash of the id of each row's user.
    draws : Draws
        Seed and number of replicates.
    groups : int, shape (n_slicings, n_rows)
        Group of each row in each slicing, below 0 for none; everyone by default.
    n_groups : int
        Number of groups of all slicings.

    Returns
    -------
    float64, shape (n_groups, 2, n_columns, n_replicates)

    Notes
    -----
    In double precision: 100,000 users with 36 columns and 1000 replicates take 0.9 s on a core, nearly half of which
    is drawing; in single precision, a third faster, a mean would be off by 1e-7.

    Examples
    --------
    >>> found = ratio_sums(np.array([[1.0]]), np.array([[2.0]]), hashing.user_hashes(["ann"]), draws=Draws(5, 0))
    >>> found.tolist()
    [[[[0.0, 1.0, 1.0, 0.0, 3.0]], [[0.0, 2.0, 2.0, 0.0, 6.0]]]]
    """
    kept, which = replicated.distinct_columns(denominators)
    sums = replicated.sums_by_group(
        np.hstack([kept, numerators]),
        hashes,
        draw=draws.weights,
        groups=np.zeros((1, len(hashes)), dtype=np.int64) if groups is None else groups,
        n_groups=n_groups,
    )
    n_kept = kept.shape[1]
    return np.stack([sums[:, n_kept:], sums[:, :n_kept][:, which]], axis=1)


def spread_of(parts: Parts, level: float) -> Spread:
    """Compute the standard error and the percentile interval of each column.

    Parameters
    ----------
    parts : float64, shape (n_parts, 2, n_columns, n_replicates)
        Sums of disjoint sets of users. They are added in ascending order, so that it does not matter which comes first.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    Spread
        Sample standard deviation of the replicates, and their quantiles at ``(1 -+ level) / 2``, each of shape
        (n_columns,). Replicates without a denominator are left out; NaN where over 5 % are.

    Examples
    --------
    Replicates 1, 2 and 3 of a mean:

    >>> parts = np.array([[[[2.0, 4.0, 6.0]], [[2.0, 2.0, 2.0]]]])
    >>> spread_of(parts, 0.5)
    Spread(std_error=array([1.]), low=array([1.5]), high=array([2.5]))
    """
    numerators, denominators = np.sort(parts, axis=0).sum(axis=0)
    statistics = quotient(numerators, denominators)
    low, high = percentile_interval(statistics, level)
    std_error = np.full(low.shape, np.nan)
    is_there = ~np.isnan(low)
    std_error[is_there] = np.nanstd(statistics[is_there], axis=-1, ddof=1)
    return Spread(std_error, low, high)

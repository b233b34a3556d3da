"""Would a gap between groups be as large if the groups were drawn by lot: users get random labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.statistics import hashing, replicates as replicated
from rankeval_spark.statistics.differences import TIE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix
    from rankeval_spark.statistics.replicates import Sums


@dataclass(frozen=True, eq=False)
class Relabelled:
    """Users and sums of their values under each label, in each replicate.

    Parameters
    ----------
    n, sums : float64, shape (n_groups, n_columns, n_replicates)
    """

    n: Sums
    sums: Sums

    def merge(self, other: Relabelled) -> Relabelled:
        """Add up both sets of users."""
        return Relabelled(self.n + other.n, self.sums + other.sums)

    @property
    def gaps(self) -> Values:
        """Greatest mean minus least, of the labels that anybody has: shape (n_columns, n_replicates)."""
        has_users = self.n > 0
        means = np.divide(self.sums, self.n, out=np.zeros(self.n.shape), where=has_users)
        highest = np.where(has_users, means, -np.inf).max(axis=0)
        gaps: Values = highest - np.where(has_users, means, np.inf).min(axis=0)
        return gaps


def relabel(values: Matrix, hashes: NDArray[np.int64], *, seed: int, replicates: int, shares: Values) -> Relabelled:
    """Give each user a random group in each replicate.

    Parameters
    ----------
    values : float64, shape (n_users, n_columns)
        A row for each user of any of the groups; NaN where undefined.
    hashes : int64, shape (n_users,)
        Hash of each user's id.
    seed, replicates : int
        Of the evaluation.
    shares : float64, shape (n_groups,)
        Share of the users that each group has, adding up to 1: known from a first pass over all users.

    Returns
    -------
    Relabelled

    Notes
    -----
    A permutation of labels keeps the size of every group exactly. Over a distributed table it would take a sort for
    each replicate; labels drawn with the groups' shares keep the sizes up to their binomial spread, and merge.
    """
    ends = np.rint(np.cumsum(shares)[:-1] * 2.0**32).astype(np.uint64)
    is_defined = ~np.isnan(values)
    masks, mask_of = replicated.distinct_columns(is_defined)
    columns = np.hstack([masks.astype(np.float64), np.where(is_defined, values, 0.0)])
    sums = np.zeros((len(shares), columns.shape[1], replicates))
    for start in range(0, len(values), replicated.USERS_AT_ONCE):
        block = slice(start, start + replicated.USERS_AT_ONCE)
        drawn = hashing.uniforms(hashes[block], seed=seed, replicates=replicates)
        labels = np.searchsorted(ends, drawn.astype(np.uint64), side="right")
        for label in range(len(shares)):
            sums[label] += columns[block].T @ (labels == label).astype(np.float64)
    return Relabelled(sums[:, : masks.shape[1]][:, mask_of], sums[:, masks.shape[1] :])


def gap_p(gaps: Values, relabelled: Relabelled) -> Values:
    """Chance of a gap that large between groups drawn by lot.

    Parameters
    ----------
    gaps : float64, shape (n_columns,)
        Greatest mean minus least of the groups as they are; NaN where there is none.
    relabelled : Relabelled
        Merged over all users.

    Returns
    -------
    float64, shape (n_columns,)
        ``(1 + #{gap* >= gap - eps}) / (1 + B)``, eps being 1e-10 of the gap.

    Examples
    --------
    >>> alike = relabel(np.ones((4, 1)), np.arange(4), seed=0, replicates=9, shares=np.array([0.5, 0.5]))
    >>> gap_p(np.array([0.0]), alike).tolist()
    [1.0]
    """
    n_extreme = (relabelled.gaps >= (gaps * (1 - TIE))[:, None]).sum(axis=-1)
    return np.where(np.isnan(gaps), np.nan, (1.0 + n_extreme) / (1.0 + relabelled.sums.shape[-1]))

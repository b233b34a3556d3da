"""Fisher's randomization test of paired differences: all signs where they are few, random ones otherwise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.statistics import hashing, replicates as replicated
from rankeval_spark.statistics.differences import FEW, TIE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix
    from rankeval_spark.statistics.replicates import Sums

_HALF: Final = FEW // 2


class Tails(NamedTuple):
    """p-values of shape (n_rows,): of a difference, of one below 0, of one above 0."""

    two_sided: Values
    less: Values
    greater: Values


def sign_sums(  # noqa: PLR0913 - options by keyword
    differences: Matrix,
    hashes: NDArray[np.int64],
    *,
    seed: int,
    replicates: int,
    groups: NDArray[np.integer] | None = None,
    n_groups: int = 1,
) -> Sums:
    """Add up the differences with random signs; the sums of two sets of users are added.

    Parameters
    ----------
    differences : float64, shape (n_users, n_columns)
        A row for each user; NaN where undefined.
    hashes, seed, replicates, groups, n_groups
        As for ``bootstrap.by_group``. All columns and groups share a user's signs.

    Returns
    -------
    float64, shape (n_groups, n_columns, replicates)

    Examples
    --------
    >>> sign_sums(np.array([[3.0], [np.nan]]), hashing.user_hashes(["bob", "ann"]), seed=0, replicates=4).tolist()
    [[[-3.0, -3.0, 3.0, 3.0]]]
    """
    return replicated.sums_by_group(
        np.nan_to_num(differences),
        hashes,
        draw=partial(hashing.signs, seed=seed, replicates=replicates),
        groups=np.zeros((1, len(differences)), dtype=np.int64) if groups is None else groups,
        n_groups=n_groups,
    )


def monte_carlo_p(total: Values, absolute: Values, sums: Sums) -> Values:
    """Two-sided p from sums with random signs.

    Parameters
    ----------
    total : float64, shape (...)
        Sum of the differences as they are; NaN where there is nothing to test.
    absolute : float64, shape (...)
        Sum of their absolute values.
    sums : float64, shape (..., n_replicates)
        From :func:`sign_sums`.

    Returns
    -------
    float64, shape (...)
        ``(1 + #{|sum*| >= |sum| - eps}) / (1 + B)``, eps being 1e-10 of ``absolute``; never 0 (Phipson & Smyth 2010).

    Notes
    -----
    Fisher (1935), The design of experiments, section 21. Without the tolerance, sums that are equal but for rounding
    would be lost, and p with them.

    Examples
    --------
    >>> monte_carlo_p(np.array([2.0]), np.array([2.0]), np.array([[2.0, -2.0, 1.0]])).tolist()
    [0.75]
    """
    n_extreme = (np.abs(sums) >= (np.abs(total) - TIE * absolute)[..., None]).sum(axis=-1)
    return np.where(np.isnan(total), np.nan, (1.0 + n_extreme) / (1.0 + sums.shape[-1]))


def exact(differences: Values) -> Tails:
    """Enumerate the signs of at most 20 differences.

    Parameters
    ----------
    differences : float64, shape (n_rows, n_differences)
        At most 20 a row; NaN and 0 are left out, as their sign changes nothing.

    Returns
    -------
    Tails
        Shares of the ``2^n`` sums that are at least as extreme as the observed one, minus 1e-10 of the sum of absolute
        values for rounding. 1 without a difference.

    Raises
    ------
    ValueError
        There are more than 20 differences in a row.

    Notes
    -----
    Of the sums of each half, 1024 of either, pairs are counted that reach the observed sum: a search for each sum of
    the one half among the sorted sums of the other, instead of a million additions.

    Examples
    --------
    Five users of five prefer the model: 2 of 32 assignments of signs are as extreme.

    >>> [float(each[0]) for each in exact(np.ones((1, 5)))]
    [0.0625, 1.0, 0.03125]
    """
    if differences.shape[1] > FEW:
        message = f"the signs of {differences.shape[1]} differences are too many to enumerate, at most {FEW}"
        raise ValueError(message)
    known = np.zeros((len(differences), FEW))
    known[:, : differences.shape[1]] = np.nan_to_num(differences)
    observed, tolerance = known.sum(axis=1), TIE * np.abs(known).sum(axis=1)
    one = known[:, :_HALF] @ _SIGNS.T
    other = np.sort(known[:, _HALF:] @ _SIGNS.T, axis=1)
    far = np.abs(observed) - tolerance
    two_sided = np.where(far <= 0, 1.0, np.minimum(2 * _shares(one, other, far), 1.0))
    return Tails(two_sided, _shares(one, other, -observed - tolerance), _shares(one, other, observed - tolerance))


def _shares(one: Values, other: Values, ends: Values) -> Values:
    """Share of each row's sums that are at least the row's end; what is at most its negative is as much.

    Parameters
    ----------
    one, other : float64, shape (n_rows, 1024)
        Sums of the halves; those of the other in ascending order.
    ends : float64, shape (n_rows,)
    """
    rows = zip(one, other, ends, strict=True)
    below = [int(np.searchsorted(ordered, end - sums).sum()) for sums, ordered, end in rows]
    shares: Values = 1.0 - np.array(below, dtype=np.float64) / one.shape[1] ** 2
    return shares


_SIGNS: Final = 1.0 - 2.0 * ((np.arange(1 << _HALF)[:, None] >> np.arange(_HALF)) & 1)
"""Shape (1024, 10): every assignment of signs."""

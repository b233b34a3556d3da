"""Fisher's randomization test of paired differences: all signs where they are few, random signs otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rankeval_spark.statistics.comparisons.paired_differences import FEW, SUM_ROUNDING
from rankeval_spark.statistics.resampling import replicate_sums as replicated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Matrix
    from rankeval_spark.statistics.resampling.replicate_sums import Draws, SliceGroups, Sums

_HALF: Final = FEW // 2


class Tails(NamedTuple):
    """p-values of shape (n_rows,): of a difference, of one below 0, of one above 0."""

    two_sided: Values
    less: Values
    greater: Values


def sign_sums(differences: Matrix, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None) -> Sums:
    """Add up the differences with random signs; all columns and groups share a user's signs."""
    return replicated.sums_by_group(np.nan_to_num(differences), hashes, draws.signs, groups)


def monte_carlo_p(total: Values, absolute: Values, sums: Sums) -> Values:
    """Two-sided p from sums with random signs, shape (...).

    Parameters
    ----------
    total, absolute : float64, shape (...)
        Sum of the observed differences, and of their absolute values.
    sums : float64, shape (..., n_replicates)
        From :func:`sign_sums`.

    Notes
    -----
    ``(1 + #{|sum*| >= |sum| - eps}) / (1 + B)``, with eps 1e-13 of ``absolute``; never 0 (Phipson & Smyth 2010).
    Fisher (1935), The design of experiments, section 21. The tolerance counts sums that are equal but for rounding.
    """
    n_extreme = (np.abs(sums) >= (np.abs(total) - SUM_ROUNDING * absolute)[..., None]).sum(axis=-1)
    is_known = np.isfinite(total) & np.isfinite(sums).all(axis=-1)
    return np.where(~is_known, np.nan, (1.0 + n_extreme) / (1.0 + sums.shape[-1]))


def exact(differences: Values) -> Tails:
    """Enumerate the signs of at most 20 differences.

    Parameters
    ----------
    differences : float64, shape (n_rows, n_differences)
        NaN and 0 are left out, because their sign changes nothing.

    Returns
    -------
    Tails
        Shares of the ``2^n`` sums that are at least as extreme as the observed one, less 1e-13 of the sum of absolute
        values for rounding; 1 without a difference.

    Raises
    ------
    ValueError
        There are more than 20 differences in a row.

    Notes
    -----
    The sums of each half, 1024 of either, are sorted and searched for pairs that reach the observed sum. That replaces
    a million additions.

    Examples
    --------
    Five users of five prefer the model: 2 of 32 assignments of signs are as extreme.

    >>> [float(each[0]) for each in exact(np.ones((1, 5)))]
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


_SIGNS: Final = 1.0 - 2.0 * ((np.arange(1 << _HALF)[:, None] >> np.arange(_HALF)) & 1)
"""Shape (1024, 10): every assignment of signs."""

"""Many tests at once: adjusted p-values over families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values

Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]


class Adjusted(NamedTuple):
    """Adjusted p-values, each attribute of shape (n_rows,).

    Attributes
    ----------
    p : float64
        NaN where there was no p, or where the replicates were too few for significance.
    family_size : int64
        Rows of the same family that have a p.
    reason : str
        ``replicates`` where there is a p, but none that so few replicates could have made significant; else empty.
    """

    p: Values
    family_size: NDArray[np.int64]
    reason: NDArray[np.str_]


def adjust(
    p: Values, family: NDArray[np.integer], *, correction: Correction, alpha: float, replicates: Values | None = None
) -> Adjusted:
    """Adjust p-values for the number of tests.

    Parameters
    ----------
    p : float64, shape (n_rows,)
        NaN where nothing was tested; such rows are in no family.
    family : int, shape (n_rows,)
        Code of each row's family: the tests of one kind in one run.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        Holm keeps the chance of any false finding below alpha; it needs no assumption and loses nothing to Bonferroni.
        Benjamini-Hochberg keeps the expected share of false findings below alpha.
    alpha : float
        Level that the findings will be held against.
    replicates : float64, shape (n_rows,), optional
        Replicates B behind a p from random numbers; NaN for other tests.

    Returns
    -------
    Adjusted

    Notes
    -----
    Of the sorted p of a family of f: Holm (1979) ``max_{j <= i} (f - j + 1) p_(j)``, Bonferroni ``f p``, Benjamini &
    Hochberg (1995) ``min_{j >= i} f p_(j) / j``, all at most 1. A p from B replicates is at least 1 / (B + 1): where
    ``f / (B + 1) > alpha`` it could not be found significant by itself and is left out with its reason. (With Holm
    and Bonferroni no p of the family could be, whatever the data; with Benjamini-Hochberg only where many p are as
    small.)

    Examples
    --------
    >>> p = np.array([0.01, 0.04, 0.03, np.nan])
    >>> found = adjust(p, np.zeros(4, dtype=np.int64), correction="holm", alpha=0.05)
    >>> found.p.tolist(), found.family_size.tolist()
    ([0.03, 0.06, 0.06, nan], [3, 3, 3, 3])
    """
    known = ~np.isnan(p)
    codes, position = np.unique(family, return_inverse=True)
    sizes = np.bincount(position[known], minlength=len(codes))
    adjusted = np.full(p.shape, np.nan)
    for code in range(len(codes)):
        own = known & (position == code)
        adjusted[own] = _CORRECTIONS[correction](p[own])
    family_size = sizes[position].astype(np.int64)
    drawn = np.full(p.shape, np.inf) if replicates is None else np.where(np.isnan(replicates), np.inf, replicates)
    worst = family_size if correction != "none" else np.ones_like(family_size)
    is_hopeless = known & (worst / (drawn + 1.0) > alpha)
    return Adjusted(np.where(is_hopeless, np.nan, adjusted), family_size, np.where(is_hopeless, "replicates", ""))


def _holm(p: Values) -> Values:
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return _placed(steps, order)


def _benjamini_hochberg(p: Values) -> Values:
    order = np.argsort(p, kind="stable")
    steps = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    return _placed(steps, order)


def _bonferroni(p: Values) -> Values:
    return np.minimum(p * len(p), 1.0)


def _unchanged(p: Values) -> Values:
    return p


def _placed(steps: Values, order: NDArray[np.int64]) -> Values:
    adjusted = np.empty_like(steps)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


_CORRECTIONS = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "benjamini-hochberg": _benjamini_hochberg,
    "none": _unchanged,
}

"""Many tests at once: p-values adjusted over families of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values

Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]


class Adjusted(NamedTuple):
    """Adjusted p-values, each attribute of shape (n_rows,)."""

    p: Values  # NaN without a p-value, or where the replicates are too few for significance
    family_size: NDArray[np.int64]  # rows of the same family that have a p-value
    reason: NDArray[np.str_]  # `replicates` where so few of them cannot make the p-value significant; else empty


def adjust(
    p: Values,  # (n_rows,), NaN where nothing was tested; such rows are in no family
    family: NDArray[np.integer],  # (n_rows,), code of each row's family: the tests of one kind in one run
    *,
    correction: Correction,
    alpha: float,  # significance level
    replicates: Values | None = None,  # (n_rows,), replicates B of a p-value from random numbers; NaN for other tests
) -> Adjusted:
    """Adjust p-values for the number of tests.

    Of the sorted p of a family of f: Holm (1979) ``max_{j <= i} (f - j + 1) p_(j)``, Bonferroni ``f p``, Benjamini &
    Hochberg (1995) ``min_{j >= i} f p_(j) / j``, all at most 1. Holm keeps the chance of any false finding below alpha,
    without assumptions, and is never weaker than Bonferroni; Benjamini-Hochberg keeps the expected share of false
    findings below alpha. A p-value from B replicates is at least 1 / (B + 1). Where ``f / (B + 1) > alpha`` no single
    p-value could be significant: it is left out with its reason.

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
        adjusted[own] = np.minimum(_adjusted(p[own], correction), 1.0)
    family_size = sizes[position].astype(np.int64)
    drawn = np.full(p.shape, np.inf) if replicates is None else np.where(np.isnan(replicates), np.inf, replicates)
    n_tests = family_size if correction != "none" else np.ones_like(family_size)
    is_hopeless = known & (n_tests / (drawn + 1.0) > alpha)
    return Adjusted(np.where(is_hopeless, np.nan, adjusted), family_size, np.where(is_hopeless, "replicates", ""))


def _adjusted(p: Values, correction: Correction) -> Values:
    """Adjust the p-values of one family; they may exceed 1."""
    if correction == "none":
        return p
    if correction == "bonferroni":
        return p * len(p)
    order = np.argsort(p, kind="stable")
    if correction == "holm":
        steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    else:
        steps = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    adjusted = np.empty_like(steps)
    adjusted[order] = steps
    return adjusted

"""Many tests at once: p-values adjusted over families of tests, and all pairs of models by Tukey's method."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple, assert_never

import numpy as np

from rankeval_spark.statistics import distributions, hashed_random, resampling
from rankeval_spark.statistics.moments import SQUARES
from rankeval_spark.statistics.paired_tests import ROUNDING, SUM_ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics import Correction
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.resampling import Draws, SliceGroups, Sums


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
    Hochberg (1995) ``min_{j >= i} f p_(j) / j``, all at most 1. A p-value from B replicates is at least 1 / (B + 1).
    Where ``f / (B + 1) > alpha`` no single p-value could be significant: it is left out with its reason.

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
    order = np.argsort(p, kind="stable")
    match correction:
        case "none":
            return p
        case "bonferroni":
            return p * len(p)
        case "holm":
            steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        case "benjamini-hochberg":
            steps = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
        case _:
            assert_never(correction)
    adjusted = np.empty_like(steps)
    adjusted[order] = steps
    return adjusted


class Tukey(NamedTuple):
    """All pairs of m models, first the pairs of model 0."""

    delta: Values  # (n_rows, n_pairs), mean of the first model minus that of the second
    effect_size: Values  # (n_rows, n_pairs), `delta / sqrt(V_E)`
    low: Values  # (n_rows, n_pairs), simultaneous interval of delta
    high: Values  # (n_rows, n_pairs)
    p: Values  # (n_rows, n_pairs), adjusted for all pairs of the row
    residual_variance: Values  # (n_rows,), `V_E`: the variance that neither the user nor the model explains


def user_means(values: Values) -> Values:
    """Return each user's mean over the models, (n_users, 1, n_columns), of (n_users, n_models, n_columns) values."""
    with np.errstate(over="ignore", invalid="ignore"):
        means: Values = values.mean(axis=1, keepdims=True)
        is_beyond = ~np.isfinite(means)  # the sum of the models, not the mean
        return np.where(is_beyond, (values / values.shape[1]).sum(axis=1, keepdims=True), means)


def centre_by_user(values: Values) -> Values:
    """Return values minus each user's mean over the models, (n_users, n_models, n_columns); 0 where only rounding.

    NaN for a user and column where any model has no value, infinite where a value is. The means of these columns differ
    as those of the values do, and ``sum_j m2_j`` is the residual sum of squares.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centred: Values = values - user_means(values)
    greatest = np.abs(values).max(axis=1, keepdims=True)
    centred = np.where(np.isinf(greatest), np.inf, centred)
    return np.where(np.isfinite(centred) & (np.abs(centred) <= ROUNDING * greatest), 0.0, centred)


def squared_rounding(values: Values, centred: Values) -> Values:
    """Return the squared deviations that rounding can cause, (n_users, n_columns); 0 without a difference."""
    greatest = np.abs(values).max(axis=1)
    differs = np.nan_to_num(centred).any(axis=1)
    with np.errstate(over="ignore"):
        return np.where(differs, (ROUNDING * greatest) ** 2, 0.0)


def tukey_test(
    n: NDArray[np.int64],  # (n_rows,), users with a value under all models
    means: Values,  # (n_rows, n_models), of `centre_by_user` values under each model
    m2: Values,  # (n_rows, n_models), their squared deviations
    *,
    level: float,
    rounding: Values | float = 1e-12,  # (n_rows,), standard deviation up to which it is only rounding
) -> Tukey:
    """Compare all pairs of models on the same users; all intervals of a row cover together at the ``level``.

    NaN below two users, and where squares leave the range of a double. Without residual variance only ``delta``,
    ``residual_variance``, and a p of 1 where models are equal for every user are no NaN.

    Two-way analysis without replication (Sakai 2018, chapter 4): ``V_E = sum of squared residuals / ((m - 1)(n - 1))``
    and ``q = |mean_i - mean_j| / sqrt(V_E / n)``. If the differences of all pairs have the same variance, q has the
    distribution of the studentized range of m, with (m - 1)(n - 1) degrees of freedom.

    >>> values = np.array([[1.0, 2.0, 4.0], [0.0, 2.0, 3.0], [1.0, 1.0, 4.0], [2.0, 3.0, 4.0]])
    >>> centred = centre_by_user(values[:, :, None])[:, :, 0]
    >>> found = tukey_test(
    ...     np.array([4]), centred.mean(axis=0)[None], 4 * centred.var(axis=0)[None], level=0.95
    ... )
    >>> found.delta.tolist(), found.p.round(4).tolist()
    ([[-1.0, -2.75, -1.75]], [[0.0948, 0.001, 0.01]])
    """
    n_models = means.shape[1]
    first, second = np.array(list(combinations(range(n_models), 2))).T
    many = np.where(n > 1, n, np.nan)
    freedom = (n_models - 1) * (many - 1)
    squares, (least, most) = m2.sum(axis=1), SQUARES
    variance = np.where((squares == 0) | ((squares >= least) & (squares <= most)), squares, np.nan) / freedom
    delta = means[:, first] - means[:, second]
    rounding = np.broadcast_to(rounding, n.shape)
    has_spread = np.sqrt(variance) > rounding
    std_error = np.where(has_spread, np.sqrt(variance / many), np.nan)
    distinct, position = np.unique(freedom, return_inverse=True)
    quantiles = [
        np.nan if np.isnan(number) else distributions.studentized_range_quantile(level, n_models, float(number))
        for number in distinct
    ]
    half = (np.array(quantiles)[position] * std_error)[:, None]
    tails = distributions.studentized_range_tail(
        (np.abs(delta) / std_error[:, None]).ravel(), n_models, np.repeat(freedom, delta.shape[1])
    ).reshape(delta.shape)
    has_no_spread = (~has_spread & ~np.isnan(variance))[:, None]
    p = np.where(has_no_spread & (np.abs(delta) <= rounding[:, None]), 1.0, tails)
    effect_size = delta / (std_error * np.sqrt(many))[:, None]
    return Tukey(delta, effect_size, delta - half, delta + half, p, variance)


def permuted_sums(centred: Values, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None) -> Sums:
    """Add up :func:`centre_by_user` values with each user's models in random order, the same for columns and groups.

    Returns the sum at each place of the order: shape (n_groups, n_models, n_columns, replicates).
    """
    known = np.where(np.isnan(centred), 0.0, centred)
    n_models = centred.shape[1]
    slicings, n_groups = groups or resampling.SliceGroups.everyone(len(known))
    sums = np.zeros((n_groups, n_models, centred.shape[2], draws.replicates))
    for start in range(0, len(known), resampling.USERS_AT_ONCE):
        block = slice(start, start + resampling.USERS_AT_ONCE)
        orders = hashed_random.random_orders(
            hashes[block], seed=draws.seed, replicates=draws.replicates, n_systems=n_models
        )
        for place, model in product(range(n_models - 1), range(n_models)):
            is_here = (orders[place] == model).astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                for codes in slicings[:, block]:
                    for group, users in resampling.iterate_groups(codes):
                        sums[group, place] += known[block, model][users].T @ is_here[users]
    with np.errstate(over="ignore", invalid="ignore"):
        sums[:, -1] = -sums[:, :-1].sum(axis=1)
    return sums


def randomised_p(
    totals: Values,  # (n_models, n_columns), observed sums of the centred values
    absolute: Values,  # (n_columns,), sum over users and models of their absolute values
    sums: Sums,  # (n_models, n_columns, n_replicates), from `permuted_sums`
) -> Values:
    """Return p of the randomised Tukey HSD, (n_columns, n_pairs); NaN where sums are beyond the range of a double.

    The share of the random orders in which the range of the means is at least the difference, ``(1 + #{range* >=
    |difference| - eps}) / (1 + B)``, with eps 1e-13 of ``absolute``; adjusted for all pairs (Carterette 2012).
    """
    first, second = np.array(list(combinations(range(len(totals)), 2))).T
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = np.sort(sums.max(axis=0) - sums.min(axis=0), axis=-1)
        ends = np.abs(totals[first] - totals[second]).T - SUM_ROUNDING * absolute[:, None]
    n_extreme = [
        ranges.shape[1] - np.searchsorted(row_ranges, end, side="left")
        for row_ranges, end in zip(ranges, ends, strict=True)
    ]
    counts = np.array(n_extreme, dtype=np.float64).reshape(ends.shape)
    is_known = np.isfinite(ends) & np.isfinite(ranges).all(axis=-1, keepdims=True)
    return np.where(is_known, (1.0 + counts) / (1.0 + sums.shape[-1]), np.nan)

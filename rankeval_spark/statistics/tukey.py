"""More than two models on the same users: two-way analysis of variance and Tukey's honestly significant differences."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from rankeval_spark.statistics import distributions, hashed_random, replicate_sums as replicated
from rankeval_spark.statistics.moments import SQUARES
from rankeval_spark.statistics.paired_tests import ROUNDING, SUM_ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.replicate_sums import Draws, SliceGroups, Sums


class Tukey(NamedTuple):
    """All pairs of m models, first the pairs of model 0."""

    delta: Values  # (n_rows, n_pairs), mean of the first model minus that of the second
    effect_size: Values  # (n_rows, n_pairs), `delta / sqrt(V_E)`
    low: Values  # (n_rows, n_pairs), simultaneous interval of delta
    high: Values  # (n_rows, n_pairs)
    p: Values  # (n_rows, n_pairs), adjusted for all pairs of the row
    residual_variance: Values  # (n_rows,), `V_E`: the variance that neither the user nor the model explains
    p_any: Values  # (n_rows,), p of the F test that any two models differ


def user_means(values: Values) -> Values:
    """Mean of each user over the models, (n_users, 1, n_columns), from (n_users, n_models, n_columns) values."""
    with np.errstate(over="ignore", invalid="ignore"):
        means: Values = values.mean(axis=1, keepdims=True)
        is_beyond = ~np.isfinite(means)  # the sum of the models, not the mean
        return np.where(is_beyond, (values / values.shape[1]).sum(axis=1, keepdims=True), means)


def row_centred(values: Values) -> Values:
    """Values minus each user's mean over the models, shape (n_users, n_models, n_columns); 0 where only rounding.

    NaN for a user and column where any model has no value, infinite where a value is. The central moments of these
    columns are all that the analysis needs: their means differ as the means of the values do, and ``sum_j m2_j`` is the
    residual sum of squares.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centred: Values = values - user_means(values)
    greatest = np.abs(values).max(axis=1, keepdims=True)
    centred = np.where(np.isinf(greatest), np.inf, centred)
    return np.where(np.isfinite(centred) & (np.abs(centred) <= ROUNDING * greatest), 0.0, centred)


def squared_rounding(values: Values, centred: Values) -> Values:
    """Return the squared deviations that rounding can cause, shape (n_users, n_columns); 0 without a difference.

    It depends on the user's own values alone: next to a user with a value of 1e12 the models still differ for others.
    """
    greatest = np.abs(values).max(axis=1)
    differs = np.nan_to_num(centred).any(axis=1)
    with np.errstate(over="ignore"):
        return np.where(differs, (ROUNDING * greatest) ** 2, 0.0)


def compare_all(
    n: NDArray[np.int64],  # (n_rows,), users with a value under all models
    means: Values,  # (n_rows, n_models), of `row_centred` values under each model
    m2: Values,  # (n_rows, n_models), their squared deviations
    *,
    level: float,
    rounding: Values | float = 1e-12,  # (n_rows,), standard deviation up to which it is only rounding
) -> Tukey:
    """Compare all pairs of models on the same users; all intervals of a row cover together at the ``level``.

    NaN below two users, and where squares leave the range of a double. Without residual variance only ``delta``,
    ``residual_variance``, and a p of 1 where models are equal for every user are no NaN: differences that are all 0 are
    no evidence of one.

    Sakai (2018), Laboratory experiments in information retrieval, chapter 4: two-way analysis without replication,
    ``V_E = sum of squared residuals / ((m - 1)(n - 1))`` and ``q = |mean_i - mean_j| / sqrt(V_E / n)``. If the
    differences of all pairs have the same variance, q has the distribution of the studentized range of m, with
    (m - 1)(n - 1) degrees of freedom. For m = 2 this is the paired t test.

    >>> values = np.array([[1.0, 2.0, 4.0], [0.0, 2.0, 3.0], [1.0, 1.0, 4.0], [2.0, 3.0, 4.0]])
    >>> centred = row_centred(values[:, :, None])[:, :, 0]
    >>> found = compare_all(
    ...     np.array([4]), centred.mean(axis=0)[None], 4 * centred.var(axis=0)[None], level=0.95
    ... )
    >>> found.delta.tolist(), found.p.round(4).tolist()
    ([[-1.0, -2.75, -1.75]], [[0.0948, 0.001, 0.01]])
    """
    n_models = means.shape[1]
    one, other = np.array(list(combinations(range(n_models), 2))).T
    many = np.where(n > 1, n, np.nan)
    freedom = (n_models - 1) * (many - 1)
    squares, (least, most) = m2.sum(axis=1), SQUARES
    variance = np.where((squares == 0) | ((squares >= least) & (squares <= most)), squares, np.nan) / freedom
    delta = means[:, one] - means[:, other]
    rounding = np.broadcast_to(rounding, n.shape)
    has_spread = np.sqrt(variance) > rounding
    std_error = np.where(has_spread, np.sqrt(variance / many), np.nan)
    half = _quantiles(level, n_models, freedom)[:, None] * std_error[:, None]
    tails = distributions.studentized_range_above(
        (np.abs(delta) / std_error[:, None]).ravel(), n_models, np.repeat(freedom, delta.shape[1])
    ).reshape(delta.shape)
    has_no_spread = (~has_spread & ~np.isnan(variance))[:, None]
    p = np.where(has_no_spread & (np.abs(delta) <= rounding[:, None]), 1.0, tails)
    apart = (means - means.mean(axis=1, keepdims=True)) / std_error[:, None]
    by_f = special.fdtrc(n_models - 1, freedom, (apart**2).sum(axis=1) / (n_models - 1))
    p_any = np.where(has_no_spread.ravel() & (p == 1).all(axis=1), 1.0, by_f)
    effect_size = delta / (std_error * np.sqrt(many))[:, None]
    return Tukey(delta, effect_size, delta - half, delta + half, p, variance, p_any)


def permuted_sums(centred: Values, hashes: NDArray[np.int64], draws: Draws, groups: SliceGroups | None = None) -> Sums:
    """Add up :func:`row_centred` values with the models of each user in random order.

    Returns the sum at each place of the order: shape (n_groups, n_models, n_columns, replicates). All columns and
    groups share a user's orders.
    """
    known = np.where(np.isnan(centred), 0.0, centred)
    n_models = centred.shape[1]
    slicings, n_groups = groups or replicated.SliceGroups.everyone(len(known))
    sums = np.zeros((n_groups, n_models, centred.shape[2], draws.replicates))
    for start in range(0, len(known), replicated.USERS_AT_ONCE):
        block = slice(start, start + replicated.USERS_AT_ONCE)
        orders = hashed_random.permutations(
            hashes[block], seed=draws.seed, replicates=draws.replicates, n_systems=n_models
        )
        for place, model in product(range(n_models - 1), range(n_models)):
            is_here = (orders[place] == model).astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                for codes in slicings[:, block]:
                    for group, users in replicated.members(codes):
                        sums[group, place] += known[block, model][users].T @ is_here[users]
    with np.errstate(over="ignore", invalid="ignore"):
        sums[:, -1] = -sums[:, :-1].sum(axis=1)
    return sums


def randomised_p(
    totals: Values,  # (n_models, n_columns), observed sums of the centred values
    absolute: Values,  # (n_columns,), sum over users and models of their absolute values
    sums: Sums,  # (n_models, n_columns, n_replicates), from `permuted_sums`
) -> Values:
    """Randomised Tukey HSD: share of the random orders in which the range of the means is at least the difference.

    ``(1 + #{range* >= |difference| - eps}) / (1 + B)``, shape (n_columns, n_pairs), with eps 1e-13 of ``absolute``;
    adjusted for all pairs. NaN where sums are beyond the range of a double. It assumes neither normal values nor equal
    variances. The observed order is one of the B + 1, so p is never 0. Carterette (2012), Multiple testing in
    statistical analysis of systems-based information retrieval experiments.
    """
    one, other = np.array(list(combinations(range(len(totals)), 2))).T
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = np.sort(sums.max(axis=0) - sums.min(axis=0), axis=-1)
        ends = np.abs(totals[one] - totals[other]).T - SUM_ROUNDING * absolute[:, None]
    n_extreme = [
        ranges.shape[1] - np.searchsorted(own, end, side="left") for own, end in zip(ranges, ends, strict=True)
    ]
    counts = np.array(n_extreme, dtype=np.float64).reshape(ends.shape)
    is_known = np.isfinite(ends) & np.isfinite(ranges).all(axis=-1, keepdims=True)
    return np.where(is_known, (1.0 + counts) / (1.0 + sums.shape[-1]), np.nan)


def _quantiles(level: float, n_models: int, freedom: Values) -> Values:
    distinct, position = np.unique(freedom, return_inverse=True)
    quantiles = np.array([np.nan if np.isnan(one) else _quantile(level, n_models, float(one)) for one in distinct])
    return quantiles[position]


@lru_cache(maxsize=4096)
def _quantile(level: float, n_models: int, freedom: float) -> float:
    from scipy import stats  # noqa: PLC0415 - 0.6 s, which every Python worker would pay

    return float(stats.studentized_range.ppf(level, n_models, freedom))

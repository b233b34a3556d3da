"""The Poisson bootstrap over users: replicate sums that merge, and intervals and p-values from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark.statistics import hashing, replicates as replicated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.moments import Moments
    from rankeval_spark.statistics.replicates import Matrix, Sums

MOST_EMPTY: Final = 0.05
"""Share of replicates without a value above which there is no interval and no p."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """Weighted sums over users in each replicate.

    Parameters
    ----------
    weights : float64, shape (n_groups, n_columns, n_replicates)
        Sum of the weights w of the users with a defined value.
    sums : float64, same shape
        Sum of w x.
    squares : float64, same shape, or None
        Sum of w x^2, where it was requested.

    Examples
    --------
    A user whose value is 3 gives 3 wherever they are drawn at all:

    >>> found = by_group(np.array([[3.0]]), hashing.user_hashes(["bob"]), seed=0, replicates=4)
    >>> found.means
    array([[[3., 3., 3., 3.]]])
    """

    weights: Sums
    sums: Sums
    squares: Sums | None = None

    def merge(self, other: Replicates) -> Replicates:
        """Add up both sets of users."""
        squares = None if self.squares is None or other.squares is None else self.squares + other.squares
        return Replicates(self.weights + other.weights, self.sums + other.sums, squares)

    @property
    def means(self) -> Values:
        """Normalised mean of each replicate, ``sum w x / sum w``; NaN where no user was drawn."""
        return quotient(self.sums, self.weights)


def by_group(  # noqa: PLR0913 - options by keyword
    values: Matrix,
    hashes: NDArray[np.int64],
    *,
    seed: int,
    replicates: int,
    groups: NDArray[np.integer] | None = None,
    n_groups: int = 1,
    with_squares: bool = False,
) -> Replicates:
    """Add up users with Poisson weights.

    Parameters
    ----------
    values : float64, shape (n_users, n_columns)
        A row for each user, a column for each (model or pair, measure, k); NaN where undefined.
    hashes : int64, shape (n_users,)
        Hash of each user's id.
    seed, replicates : int
        Of the evaluation. All columns and groups share a user's weights.
    groups : int, shape (n_slicings, n_users)
        Group of each user in each slicing (below 0: none), see ``replicates.sums_by_group``; everyone by default.
    n_groups : int
        Number of groups.
    with_squares : bool
        Whether ``squares`` are wanted too: :func:`studentized_p` needs them.

    Returns
    -------
    Replicates
        Of shape (n_groups, n_columns, replicates).

    Notes
    -----
    Chamandy, Muralidharan, Najmi & Naidu (2012), Estimating uncertainty for massive data streams. Columns that are
    undefined for the same users share the sums of weights.
    """
    is_defined = ~np.isnan(values)
    masks, mask_of = replicated.distinct_columns(is_defined)
    filled = np.where(is_defined, values, 0.0)
    parts = [masks.astype(np.float64), filled, *([filled**2] if with_squares else [])]
    sums = replicated.sums_by_group(
        np.hstack(parts),
        hashes,
        draw=partial(hashing.poisson_weights, seed=seed, replicates=replicates),
        groups=np.zeros((1, len(values)), dtype=np.int64) if groups is None else groups,
        n_groups=n_groups,
    )
    n_masks, n_columns = masks.shape[1], values.shape[1]
    first, second = np.split(sums[:, n_masks:], [n_columns], axis=1)
    return Replicates(sums[:, :n_masks][:, mask_of], first, second if with_squares else None)


def quotient(numerator: Values, denominator: Values) -> Values:
    """Divide replicate by replicate; NaN where the denominator is 0.

    That of the sums of numerators and denominators is the replicate of a ratio of sums (micro average).

    Examples
    --------
    >>> quotient(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.5, nan])
    """
    found: Values = np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator != 0)
    return found


def percentile_interval(statistics: Values, level: float) -> tuple[Values, Values]:
    """Interval between quantiles of replicates.

    Parameters
    ----------
    statistics : float64, shape (..., n_replicates)
        The statistic in each replicate, such as ``Replicates.means``; NaN where it is undefined.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    low, high : float64, shape (...)
        Quantiles at ``(1 -+ level) / 2`` of the defined replicates, linear between neighbours; NaN where more than 5 %
        are undefined.

    Examples
    --------
    >>> low, high = percentile_interval(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), 0.5)
    >>> low.tolist(), high.tolist()
    ([2.0], [4.0])
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


def studentized_p(moments: Moments, replicates: Replicates) -> Values:
    """Two-sided p of a mean that is 0 in the null hypothesis, by the studentized shift.

    Parameters
    ----------
    moments : Moments
        Of shape (n_groups, n_columns), of the same values.
    replicates : Replicates
        With squares.

    Returns
    -------
    float64, shape (n_groups, n_columns)
        ``(1 + #{|t*| >= |t|}) / (B + 1)``, never 0; 1 where all values are 0. NaN below two users, where all values are
        equal but not 0 (``paired`` says what holds then), and where over 5 % of the replicates have no t.

    Raises
    ------
    ValueError
        The squares were not added up.

    Notes
    -----
    Sakai (2006), Evaluating evaluation metrics based on the bootstrap: ``t = mean / se`` and ``t* = (mean* - mean) /
    se*``, the replicates being shifted to the null hypothesis, with ``se*^2 = sum w (x - mean*)^2 / (W (W - 1))``, W
    the sum of weights. A replicate of equal values counts as extreme unless its mean is the observed one. NaN where the
    values differ by less than 1e-4 of their mean: the sums of squares cannot distinguish such a spread from rounding.
    """
    if replicates.squares is None:
        message = "the sums of squares of the replicates are needed: by_group(..., with_squares=True)"
        raise ValueError(message)
    observed = np.abs(quotient(moments.mean, moments.std_error))
    shifted = _studentized(moments.mean, replicates.weights, replicates.sums, replicates.squares)
    n_extreme = (shifted >= observed[..., None] * (1 - _TOLERANCE)).sum(axis=-1)
    n_replicates = replicates.sums.shape[-1]
    p = (1.0 + n_extreme + np.isnan(shifted).sum(axis=-1)) / (n_replicates + 1.0)
    is_too_alike = (moments.m2 > 0) & (moments.m2 <= _ALIKE * moments.n * moments.mean**2)
    p = np.where(np.isnan(observed) | _is_mostly_empty(shifted) | is_too_alike, np.nan, p)
    is_nothing = (moments.mean == 0) & (moments.m2 == 0) & (moments.n > 1)
    return np.where(is_nothing, 1.0, p)


_ALIKE: Final = 1e-8
"""Variance, as a share of the squared mean, up to which the sums of squares are too inaccurate for the spread."""

_TOLERANCE: Final = 1e-10
"""Share by which rounding may have lessened a replicate that is equal to what was observed."""


def _studentized(mean: Values, weights: Sums, sums: Sums, squares: Sums) -> Values:
    """Compute ``|mean* - mean| / se*``; NaN where fewer than two users were drawn."""
    weights = np.where(weights > 1, weights, np.nan)
    means = sums / weights
    spread = squares - sums * means
    spread = np.where(spread > _TOLERANCE * squares, spread, 0.0)
    distance = np.abs(means - mean[..., None])
    distance = np.where(distance > _TOLERANCE * np.abs(mean[..., None]), distance, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shifted: Values = distance / np.sqrt(spread / (weights * (weights - 1)))
    return np.where((distance == 0) & ~np.isnan(weights), 0.0, shifted)


def _is_mostly_empty(statistics: Values) -> NDArray[np.bool_]:
    empty: NDArray[np.bool_] = np.isnan(statistics).mean(axis=-1) > MOST_EMPTY
    return empty

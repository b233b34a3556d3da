"""Sign test and Wilcoxon test of differences: on request only, because with many users they do not test the mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import special

from rankeval_spark.statistics import distributions

if TYPE_CHECKING:
    from rankeval_spark.statistics import Zeros
    from rankeval_spark.statistics.intervals import Values
    from rankeval_spark.statistics.paired_tests import Counts

TIE: Final = 1e-10  # share of a magnitude by which the next greater one exceeds it at least: what is nearer is a tie
EXACT: Final = 50  # most differences for an exact test by all assignments of signs, as scipy does without ties


class Magnitudes(NamedTuple):
    """Users by the magnitude of their difference."""

    magnitude: Values  # (n_magnitudes,), least `|d|` of those that are tied, ascending, without 0
    n_positive: Counts  # (n_magnitudes,), users with d > 0
    n_negative: Counts  # (n_magnitudes,), users with d < 0
    n_zero: int  # users without a difference


def sign_test_p(n_wins: Counts, n_losses: Counts) -> Values:
    """Return the two-sided p of the sign test; ties are left out, and without wins and losses p is 1.

    >>> sign_test_p(np.array([5, 0]), np.array([0, 0])).tolist()
    [0.0625, 1.0]
    """
    n = np.asarray(n_wins) + np.asarray(n_losses)
    p: Values = np.minimum(2 * distributions.fair_coin_cdf(np.minimum(n_wins, n_losses), n), 1.0)
    return p


def count_magnitudes(differences: Values) -> Magnitudes:
    """Count the users of each magnitude; magnitudes within 1e-10 of one another are ties, as 0.3 - 0.2 and 0.1 are.

    >>> count_magnitudes(np.array([0.3 - 0.2, -0.1, 1e12, 0.0]))
    Magnitudes(magnitude=array([1.e-01, 1.e+12]), n_positive=array([1, 1]), n_negative=array([1, 0]), n_zero=1)
    """
    known = differences[~np.isnan(differences)]
    different = known[known != 0]
    distinct, position = np.unique(np.abs(different), return_inverse=True)
    is_next = np.ones(len(distinct), dtype=np.bool_)
    np.greater(distinct[1:], distinct[:-1] * (1 + TIE), out=is_next[1:])
    place = (np.cumsum(is_next) - 1)[position]
    n_positive, n_negative = (
        np.bincount(place[side], minlength=int(is_next.sum())) for side in (different > 0, different < 0)
    )
    return Magnitudes(distinct[is_next], n_positive, n_negative, len(known) - len(different))


def differences_to_bytes(differences: Values) -> bytes:
    """Write the distinct differences of each column, and how many users have them, to be merged elsewhere.

    The ties of :func:`count_magnitudes` are known only after all users are read.
    """
    found = [np.unique(column[~np.isnan(column)], return_counts=True) for column in differences.T]
    sizes = [len(values) for values, _ in found]
    return np.concatenate([[len(found)], sizes, *(part for pair in found for part in pair)], dtype=np.float64).tobytes()


def differences_from_bytes(states: Sequence[bytes]) -> list[Values]:
    """Read the differences of all users, column by column, in ascending order: one double per user."""
    parts = []
    for numbers in map(np.frombuffer, states):
        sizes = np.repeat(numbers[1 : 1 + int(numbers[0])].astype(np.int64), 2)
        pairs = np.split(numbers[1 + int(numbers[0]) :], np.cumsum(sizes)[:-1])
        parts.append(list(zip(pairs[::2], [counts.astype(np.int64) for counts in pairs[1::2]], strict=True)))
    return [
        np.sort(np.concatenate([np.repeat(values, counts) for values, counts in column]))
        for column in zip(*parts, strict=True)
    ]


def wilcoxon_p(counts: Magnitudes, *, zeros: Zeros) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test: exact for at most 50 differences, NaN without any.

    ``wilcox`` (Wilcoxon 1945) leaves users without a difference out before ranking; ``pratt`` (Pratt 1959) ranks them
    and drops their ranks. ``W = sum of ranks with d > 0``; ties have the mean of their ranks. With at most 50
    differences, p is twice the share of all assignments of signs whose W is as far to one side.

    Beyond 50, W is taken as normal, without a correction for continuity. Of z zeros that were ranked and t users of
    each magnitude, its mean is ``(n (n + 1) - z (z + 1)) / 4``. Its variance is ``(n (n + 1)(2 n + 1) - z (z + 1)(2 z +
    1)) / 24 - sum (t^3 - t) / 48``.

    Of 16 assignments of signs to the ranks 1 to 4, 7 have a sum of at least 6:

    >>> wilcoxon_p(count_magnitudes(np.array([1.0, 2.0, 3.0, -4.0])), zeros="wilcox")
    0.875
    """
    tied = counts.n_positive + counts.n_negative
    n_ranked_zeros = counts.n_zero if zeros == "pratt" else 0
    n = int(tied.sum()) + n_ranked_zeros
    if not tied.size:
        return np.nan
    if tied.sum() <= EXACT:
        return _exact_p(counts, n_ranked_zeros)
    statistic = float(counts.n_positive @ _ranks(tied, n_ranked_zeros))
    mean = (n * (n + 1) - n_ranked_zeros * (n_ranked_zeros + 1)) / 4
    cubes, zeros_left_out = (float(size * (size + 1) * (2 * size + 1)) for size in (n, n_ranked_zeros))
    variance = (cubes - zeros_left_out) / 24 - float((tied.astype(np.float64) ** 3 - tied).sum()) / 48
    return float(2 * special.ndtr(-abs(statistic - mean) / np.sqrt(variance)))


def _ranks(tied: Counts, n_ranked_zeros: int) -> Values:
    """Rank the users of each magnitude, after the zeros; ties have the mean of their ranks."""
    return n_ranked_zeros + np.cumsum(tied) - (tied - 1) / 2


def _exact_p(counts: Magnitudes, n_ranked_zeros: int) -> float:
    """Count the assignments of signs by their sum of positive ranks: two-sided p.

    Each rank is added to the sums so far or not (the shift algorithm of Streitberg & Röhmel 1986). Ranks are doubled,
    so that they are whole numbers. More zeros than the ranks after them can sum up to change nothing further.
    """
    tied = counts.n_positive + counts.n_negative
    n = int(tied.sum())
    ranks = np.rint(2 * _ranks(tied, min(n_ranked_zeros, n * (n + 1) // 2 + 1))).astype(np.int64)
    ways = np.zeros(int(tied @ ranks) + 1)
    ways[0] = 1.0
    for rank in np.repeat(ranks, tied).tolist():
        ways[rank:] += ways[:-rank]
    observed = int(counts.n_positive @ ranks)
    return min(2 * float(min(ways[: observed + 1].sum(), ways[observed:].sum())) / 2.0**n, 1.0)

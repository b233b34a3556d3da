"""Sums of groups of numbers that are rounded once, in a module of their own because it needs no scipy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_STEPS: Final = 64  # longest group that is summed next to others; a longer one costs as much alone


def exact_sums(
    numbers: NDArray[np.float64],  # (n_numbers,), finite numbers, one group after another
    lengths: NDArray[np.integer],  # (n_groups,), numbers in each group, at least 1
) -> NDArray[np.float64]:
    """Return the sum of each group as the nearest double, whatever the order of its numbers.

    Groups are summed side by side, one number a step, with the rounding error of each addition kept next to the sum
    (Knuth's two-sum). Where the errors add up without an error of their own, adding both rounds once; other groups go
    through `math.fsum`.

    >>> exact_sums(np.array([0.1] * 10 + [1e16, 1.0, -1e16]), np.array([10, 3]))
    array([1., 1.])
    """
    first = np.cumsum(lengths) - lengths
    total, error_sum = numbers[first], np.zeros(len(first))
    is_exact = lengths <= _MAX_STEPS
    with np.errstate(over="ignore", invalid="ignore"):  # a sum on the way can exceed the range of a double
        for step in range(1, min(int(lengths.max(initial=0)), _MAX_STEPS)):
            group = np.flatnonzero(is_exact & (lengths > step))
            total[group], error = _two_sum(total[group], numbers[first[group] + step])
            error_sum[group], lost = _two_sum(error_sum[group], error)
            is_exact[group] = lost == 0
        sums: NDArray[np.float64] = total + error_sum
    for place in np.flatnonzero(~is_exact).tolist():
        group_numbers = numbers[first[place] : first[place] + lengths[place]].tolist()
        try:
            sums[place] = math.fsum(group_numbers)
        except OverflowError:  # of a sum on the way; that of all numbers may still be a double
            exact = sum(map(Fraction, group_numbers))
            try:
                sums[place] = float(exact)
            except OverflowError:
                sums[place] = math.inf if exact > 0 else -math.inf
    return sums


def _two_sum(left: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up, and return what rounding took away; NaN where the sum exceeds the range of a double."""
    total = left + right
    added = total - left
    return total, (left - (total - added)) + (right - added)

"""Hall's interval from the values themselves, one group at a time, by the formulas of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, stats

if TYPE_CHECKING:
    from collections.abc import Sequence


def hall(
    numerators: Sequence[float] | np.ndarray,
    denominators: Sequence[float] | np.ndarray | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """Interval of a mean, or of a ratio of sums over users; of values that differ, within ``bounds``."""
    above = np.array(numerators, dtype=np.float64)
    below = np.ones_like(above) if denominators is None else np.array(denominators, dtype=np.float64)
    n, ratio = len(above), above.sum() / below.sum()
    residuals = (above - ratio * below) / below.mean()
    deviation = math.sqrt((residuals**2).sum() / (n - 1))
    error = deviation / math.sqrt(n)
    skewness = (residuals**3).mean() / (residuals**2).mean() ** 1.5
    lean = (residuals * below).sum() / (n - 1) / below.mean() / deviation / math.sqrt(n)
    a, shift = skewness / 3 / math.sqrt(n) - lean, skewness / 6 / math.sqrt(n)
    quantile = float(stats.t.ppf((1 + level) / 2, n - 1))
    low, high = (ratio - error * _t_where(end - shift, a) for end in (quantile, -quantile))
    if (below == below[0]).all() and all(map(math.isfinite, bounds)):
        width = bounds[1] - bounds[0]
        share, square = (ratio - bounds[0]) / width, quantile**2
        half = quantile * math.sqrt(share * (1 - share) / n + square / 4 / n**2)
        ends = [(share + square / 2 / n + each) / (1 + square / n) for each in (-half, half)]
        low, high = max(low, bounds[0] + width * ends[0]), min(high, bounds[0] + width * ends[1])
    return max(min(low, ratio), bounds[0]), min(max(high, ratio), bounds[1])


def _t_where(end: float, a: float) -> float:
    """T with ``T + a T^2 + a^2 T^3 / 3 = end``."""
    if abs(a) > 1e-2:
        return (float(np.cbrt(1 + 3 * a * end)) - 1) / a
    return float(optimize.brentq(lambda t: t + a * t**2 + a**2 * t**3 / 3 - end, -500, 500, xtol=1e-14, rtol=1e-14))

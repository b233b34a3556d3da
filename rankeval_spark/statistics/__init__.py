"""How certain a mean is: moments that merge, intervals, comparisons and gates from them. numpy and scipy only."""

from __future__ import annotations

from rankeval_spark.statistics import intervals, jackknife, links, moments, ratios
from rankeval_spark.statistics.moments import Moments

__all__ = ["Moments", "intervals", "jackknife", "links", "moments", "ratios"]

"""Figures as functions: result frames of any library in, a :class:`Figure` out.

What their arguments have in common:

- Frames are ``metrics``, ``user_metrics`` or ``comparisons`` of ``evaluate(...)`` or of ``Results(...)``; of several
  nights the newest is drawn.
- ``measure`` and ``measures`` are names with cutoffs, such as ``"nDCG@10"``; where left out, the one that is looked at
  first.
- ``models`` are drawn, or all where none is named; the ``baseline`` is drawn in grey.
- ``look`` is where the figure is shown.
"""

from __future__ import annotations

from rankeval_spark.report.figures.charts import NOTEBOOK, NOTEBOOK_DARK, PAGE, Look
from rankeval_spark.report.figures.figure import Figure
from rankeval_spark.report.figures.forest_plot import forest
from rankeval_spark.report.figures.means import Marks, curves, groups, history, leaderboard, tradeoffs
from rankeval_spark.report.figures.precision_recall import pr_curve
from rankeval_spark.report.figures.users import user_differences, user_values

__all__ = [
    "NOTEBOOK",
    "NOTEBOOK_DARK",
    "PAGE",
    "Figure",
    "Look",
    "Marks",
    "curves",
    "forest",
    "groups",
    "history",
    "leaderboard",
    "pr_curve",
    "tradeoffs",
    "user_differences",
    "user_values",
]

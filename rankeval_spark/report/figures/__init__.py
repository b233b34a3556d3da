"""Figures as functions: result frames of any library in, charts of Altair out."""

from __future__ import annotations

from rankeval_spark.report.figures.forest_plot import forest
from rankeval_spark.report.figures.groups_and_tradeoffs import groups, tradeoffs
from rankeval_spark.report.figures.look import NOTEBOOK, NOTEBOOK_DARK, PAGE, Look
from rankeval_spark.report.figures.means import Marks, curves, history, leaderboard
from rankeval_spark.report.figures.users import pr_curve, user_differences, user_values

__all__ = [
    "NOTEBOOK",
    "NOTEBOOK_DARK",
    "PAGE",
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

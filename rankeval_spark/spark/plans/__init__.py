"""The stages of an evaluation in their order: plans only, which run nothing, but for the job that makes all sums."""

from __future__ import annotations

from rankeval_spark.spark.plans.result_frames import (
    to_agreement,
    to_hit_ranks,
    to_merged,
    to_packed,
    to_published_users,
    to_ranked_items,
    to_rows,
    to_totals,
    to_user_metrics,
    with_catalogues,
)
from rankeval_spark.spark.plans.user_rows import InputFrames, model_names, to_user_rows

__all__ = [
    "InputFrames",
    "model_names",
    "to_agreement",
    "to_hit_ranks",
    "to_merged",
    "to_packed",
    "to_published_users",
    "to_ranked_items",
    "to_rows",
    "to_totals",
    "to_user_metrics",
    "to_user_rows",
    "with_catalogues",
]

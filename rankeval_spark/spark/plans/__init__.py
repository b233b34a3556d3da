"""The stages of an evaluation in their order: plans only, which run nothing."""

from __future__ import annotations

from rankeval_spark.spark.plans.input_frames import InputFrames
from rankeval_spark.spark.plans.result_frames import (
    Frames,
    can_be_summarised,
    to_agreement,
    to_comparisons,
    to_exposures,
    to_group_metrics,
    to_hit_ranks,
    to_lists,
    to_metrics,
    to_ranked_items,
    to_scored,
    to_scored_lists,
)
from rankeval_spark.spark.plans.user_rows import are_lists_enough, can_mark_unusable, model_names

__all__ = [
    "Frames",
    "InputFrames",
    "are_lists_enough",
    "can_be_summarised",
    "can_mark_unusable",
    "model_names",
    "to_agreement",
    "to_comparisons",
    "to_exposures",
    "to_group_metrics",
    "to_hit_ranks",
    "to_lists",
    "to_metrics",
    "to_ranked_items",
    "to_scored",
    "to_scored_lists",
]

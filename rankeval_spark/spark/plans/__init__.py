"""The stages of an evaluation in their order: plans only, which run nothing."""

from __future__ import annotations

from rankeval_spark.spark.plans.input_frames import InputFrames
from rankeval_spark.spark.plans.one_job import to_packed, to_totals
from rankeval_spark.spark.plans.result_frames import (
    Frames,
    to_agreement,
    to_exposures,
    to_hit_ranks,
    to_lists,
    to_ranked_items,
    to_scored,
    to_scored_lists,
)
from rankeval_spark.spark.plans.user_rows import are_lists_enough, can_mark_unusable, model_names, to_user_rows

__all__ = [
    "Frames",
    "InputFrames",
    "are_lists_enough",
    "can_mark_unusable",
    "model_names",
    "to_agreement",
    "to_exposures",
    "to_hit_ranks",
    "to_lists",
    "to_packed",
    "to_ranked_items",
    "to_scored",
    "to_scored_lists",
    "to_totals",
    "to_user_rows",
]

"""The stages put together: reads like the table of contents of an evaluation, and runs nothing."""

from __future__ import annotations

from rankeval_spark.pipeline.evaluation import (
    Frames,
    Request,
    to_agreement,
    to_exposures,
    to_frames,
    to_gap_tests,
    to_lists,
    to_scored,
)

__all__ = [
    "Frames",
    "Request",
    "to_agreement",
    "to_exposures",
    "to_frames",
    "to_gap_tests",
    "to_lists",
    "to_scored",
]

"""What is wrong with the inputs, counted in one pass each."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any

from rankeval_spark import evaluate
from rankeval_spark.spark.plans import result_frames
from tests.support.frames import (
    frame_of,
    held_out,
    recommendations,
    table,
    tuples,
)
from tests.support.plans import no_spark_jobs, python_nodes
from tests.support.sections import sections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_item_named_by_unusable_training_rows_alone_is_unknown_everywhere(
    spark: SparkSession,
) -> None:
    """B is in a row without a user; the lists of both users lose it."""
    log = recommendations(spark, "user_id item_id score", ("u", "a", 2.0), ("u", "b", 1.0), ("v", "b", 1.0))
    train = table(spark, "user_id item_id", ("x", "a"), (None, "b"), ("u", None))
    frames = {"recommendations": log, "held_out": held_out(spark, "user_id item_id", ("u", "a")), "train": train}
    for host in ("spark", "here"):
        given: dict[str, Any] = frames if host == "spark" else {name: one.toArrow() for name, one in frames.items()}
        result = evaluate(**sections(**{**given, "measures": ["P@1"], "unknown_items": "drop"}))
        found = result.checks.toArrow() if host == "spark" else result.checks
        rows = {row["check"]: row for row in found.to_pylist() if row["check"].startswith("unknown_")}
        assert (rows["unknown_items"]["count"], rows["unknown_items"]["share"]) == (1, 1 / 2)
        assert (rows["unknown_rows"]["count"], rows["unknown_rows"]["share"]) == (2, 2 / 3)
        assert rows["unknown_items"]["sample_keys"] == rows["unknown_rows"]["sample_keys"] == ["b"]


def test_items_whose_vector_has_another_length_than_most_are_counted(spark: SparkSession) -> None:
    """A vector that cannot be used has no length, and an empty one has 0."""
    vectors = {
        "a": [1.0],
        "b": [1.0, 2.0],
        "c": [3.0, 4.0],
        "d": None,
        "e": [math.nan],
        "f": [],
        "g": [0.5, 1.0],
        None: [1.0],
    }
    items = frame_of(spark, list(vectors.items()), "item_id string, vector array<double>")
    numbered = frame_of(spark, [(2, [1.0]), (1, [1.0, 2.0])], "item_id bigint, vector array<double>")
    with no_spark_jobs(spark):
        lengths = result_frames.to_vector_lengths(items)
    assert tuples(lengths, "length", "n_items", "item") == [(0, 1, "f"), (1, 1, "a"), (2, 3, "b")]
    assert tuples(result_frames.to_vector_lengths(numbered), "length", "n_items", "item") == [(1, 1, "2"), (2, 1, "1")]
    assert python_nodes(lengths) == []


def test_inputs_without_rows_have_facts_of_zero(spark: SparkSession) -> None:
    """The same ones as inputs with rows."""
    asked: dict[str, Any] = {"measures": ["P@1", "ILD@1"], "slices": ["country"], "evaluation_date": date(2026, 1, 1)}
    asked |= {"seen_in_train": "drop", "unknown_items": "drop", "models": ["m"]}
    columns = {
        "recommendations": "user_id string, item_id string, score double, model_id string",
        "held_out": "user_id string, item_id string",
        "train": "user_id string, item_id string, interacted_at timestamp",
        "items": "item_id string, vector array<double>",
        "segments": "user_id string, country string",
    }
    frames: dict[str, Any] = {name: frame_of(spark, [], each) for name, each in columns.items()}
    facts = evaluate(**sections(**{**frames, **asked})).checks.toArrow()
    named = {name: frame.toArrow() for name, frame in frames.items()}
    here = evaluate(**sections(**{**named, **asked})).checks
    assert {*facts["count"].to_pylist()} == {0}
    assert facts.to_pylist() == here.to_pylist()
    assert facts.num_rows == 32

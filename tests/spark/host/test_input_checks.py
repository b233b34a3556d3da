"""What is wrong with the inputs, counted in one pass each."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from rankeval_spark import evaluate
from rankeval_spark.config import Checks
from rankeval_spark.config.request import Request
from rankeval_spark.engine.checks import Tally, item_checks, train_checks
from rankeval_spark.result_rows import check_rows
from rankeval_spark.spark.plans import result_frames, user_rows
from rankeval_spark.spark.plans.usable_rows import keep_usable
from rankeval_spark.spark.plans.user_rows import InputFrames
from rankeval_spark.sums import check_counts
from rankeval_spark.sums.sums import LISTS, ListCounts, ListTotals
from tests.support import arrow_frames
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
    from pyspark.sql import DataFrame, SparkSession


def test_faults_of_the_training_data_and_of_the_catalogue_are_counted(spark: SparkSession) -> None:
    zone = UTC
    days = [None, datetime(2026, 1, 1, tzinfo=zone), datetime(2025, 12, 31, 23, 59, 59, tzinfo=zone)]
    rows_of_train = [("ann", "a", days[2]), ("ann", "a", days[0]), (None, "a", days[1]), ("bob", None, days[1])]
    train = table(spark, "user_id item_id interacted_at", *rows_of_train, ("cat", "a", days[1]))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # the day is one in UTC, whatever the session's
    good, bad = [1.0, 2.0], [1.0, math.nan]
    rows = [
        *(("a", good, False), ("b", bad, False), ("c", [None], False), ("d", None, True)),
        *(("e", None, False), ("a", good, False), ("a", None, False), (None, bad, True)),
    ]
    items = frame_of(spark, rows, "item_id string, vector array<double>, lost boolean")
    named = keep_usable(items, item_checks([]))
    with no_spark_jobs(spark):
        of_train = result_frames.to_tallies(train, train_checks(train.columns, before=date(2026, 1, 1)))
        of_items = result_frames.to_tallies(items, item_checks(items.columns, unreadable="lost"))
        known = result_frames.to_known_items(named)
    facts = [Tally(**row) for row in of_train.unionByName(of_items).toArrow().to_pylist()]
    counts = [check_rows.CheckCount(one.input, one.check, one.count, one.total, one.sample_keys) for one in facts]
    verdicts = check_rows.to_check_rows(counts, Checks())
    assert tuples(known, "item_id", "n_judged", "n_listed", "n_known") == [
        *(("a", 0, 0, 3), ("b", 0, 0, 1), ("c", 0, 0, 1), ("d", 0, 0, 1), ("e", 0, 0, 1))
    ]
    assert arrow_frames.tuples(verdicts, "input", "check", "count", "share", "verdict", "sample_keys") == [
        ("items", "invalid_facts", 3, 3 / 8, "warn", ["b", "d"]),
        ("items", "null_keys", 1, 1 / 8, "warn", ["NULL"]),
        ("items", "rows", 8, None, "ok", []),
        ("train", "null_keys", 2, 2 / 5, "warn", ["NULL a", "bob NULL"]),
        ("train", "rows", 5, None, "ok", []),
        ("train", "train_after_cut", 1, 1 / 5, "warn", ["cat a"]),
    ]


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


def test_values_of_segments_are_collected_once(spark: SparkSession) -> None:
    rows = [("u", "DE", "x"), ("v", "DE", None), ("w", " de", "x"), (None, "FR", "y")]
    segments = table(spark, "user_id country tier", *rows)
    values = result_frames.to_segment_values(segments, names=["country", "tier"])
    assert tuples(values, "segment", "value") == [("country", " de"), ("country", "DE"), ("tier", "x")]


def list_facts(log: DataFrame, *, train: DataFrame | None = None) -> dict[str, tuple[Any, ...]]:
    """Count in lists that come of a log, at the cutoff 3; nobody but Ann is judged."""
    request = Request(measures=("RR@3",), counts_seen=train is not None)
    judged = held_out(log.sparkSession, "user_id item_id", ("ann", "b"))
    inputs = InputFrames(log, judged, has_one_list=True, train=train, model_names=("m",))
    rows, sums = user_rows.to_user_rows(inputs, request), {LISTS: ListCounts(request)}
    packed = result_frames.to_packed(rows.frame, ListTotals(rows.job, sums))
    facts = check_counts.list_facts(result_frames.to_totals(packed, sums)[LISTS], request)
    return {one.check: (one.count, one.total, [*one.sample_keys]) for one in facts}


def test_recommended_items_in_the_users_training_data_are_counted_on_demand(spark: SparkSession) -> None:
    log = recommendations(
        spark,
        "user_id item_id score",
        *(("ann", item, -float(place)) for place, item in enumerate("abcde")),
        ("bob", "a", 1.0),
    )
    train = table(spark, "user_id item_id", ("ann", "c"), ("ann", "c"), ("ann", "e"), ("ann", None), ("bob", "b"))
    found = list_facts(log, train=train)
    assert found["seen_in_train"] == (1, 3 + 1, ["m ann"])  # e stands below the cutoff
    assert "seen_in_train" not in list_facts(log)


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

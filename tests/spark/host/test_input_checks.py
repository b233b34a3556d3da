"""What is wrong with the inputs, counted in one pass each."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import schemas
from rankeval_spark.config import Checks, Threshold
from rankeval_spark.config.request import Request
from rankeval_spark.hosts.spark_checks import computed_facts
from rankeval_spark.result_rows import check_rows
from rankeval_spark.spark import plans as evaluation_plans
from rankeval_spark.spark.plans import InputFrames, input_checks
from rankeval_spark.sums import check_counts
from rankeval_spark.sums.sums import LISTS, ListTotals, check_sums
from tests.support import arrow_frames
from tests.support.frames import (
    after_run,
    frame_of,
    held_out,
    recommendations,
    table,
)
from tests.support.plans import no_spark_jobs, python_nodes

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FACTS = ("input", "check", "count", "total", "sample_keys")


def verdicts_of(facts: DataFrame, checks: Checks) -> pa.Table:
    return check_rows.to_check_rows(computed_facts(facts), checks)


def facts_of(frame: DataFrame) -> list[tuple[object, ...]]:
    """Check, count, total and samples, and the columns are those of facts."""
    assert tuple(frame.columns) == FACTS
    facts = [check_rows.joined_fact(check_rows.CheckCount(*row)) for row in frame.collect()]
    return sorted((fact.check, fact.count, fact.total, fact.sample_keys) for fact in facts)


def test_rows_null_keys_and_invalid_scores_of_the_log_are_counted(spark: SparkSession) -> None:
    log = recommendations(
        spark,
        "user_id item_id score",
        ("ann", "a", 0.5),
        (None, "a", 0.5),
        ("ann", None, math.nan),  # counted once, as a row without a key
        ("ann", "b", math.nan),
        ("bob", "c", None),
    )
    with no_spark_jobs(spark):
        facts = input_checks.to_recommendation_facts(log)
    assert facts_of(facts) == [
        ("invalid_scores", 2, 5, ["m ann  b", "m bob  c"]),
        ("null_keys", 2, 5, ["m NULL  a", "m ann  NULL"]),
        ("rows", 5, 5, []),
        ("zero_ranks", 0, 5, []),
    ]
    assert python_nodes(facts) == []


def test_rank_0_is_counted_by_a_check_of_its_own_where_ranks_order_the_lists(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [
        ("ann", "a", 0),
        ("ann", "b", 1),
        ("ann", "c", -1),
        ("ann", "d", None),
        (None, "e", 0),
    ]
    facts = input_checks.to_recommendation_facts(recommendations(spark, "user_id item_id rank", *rows))
    assert facts_of(facts) == [
        ("invalid_scores", 2, 5, ["m ann  c", "m ann  d"]),
        ("null_keys", 1, 5, ["m NULL  e"]),
        ("rows", 5, 5, []),
        ("zero_ranks", 1, 5, ["m ann  a"]),
    ]


def test_rows_null_keys_null_and_negative_gains_of_the_held_out_table_are_counted(spark: SparkSession) -> None:
    rows = [("ann", "a", 1.0), ("ann", None, 1.0), ("ann", "b", None), ("ann", "c", math.inf), (None, "d", math.nan)]
    rows += [("ann", "e", -1.0), ("bob", "e", -math.inf), ("bob", None, -1.0)]
    with no_spark_jobs(spark):
        facts = input_checks.to_held_out_facts(held_out(spark, "user_id item_id gain", *rows))
    assert facts_of(facts) == [
        ("invalid_gains", 3, 8, ["ann b", "bob e"]),
        ("invalid_values", 5, 8, ["ann a", "bob e"]),
        ("invalid_weights", 5, 8, ["ann a", "bob e"]),
        ("low_gains", 0, 8, []),
        ("negative_gains", 1, 8, ["ann e"]),
        ("null_keys", 3, 8, ["NULL d", "bob NULL"]),
        ("rows", 8, 8, []),
    ]


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
    with no_spark_jobs(spark):
        facts = input_checks.union(
            input_checks.to_train_facts(train, evaluation_date=date(2026, 1, 1)),
            input_checks.to_item_row_facts(items, unreadable="lost"),
        )
    verdicts = verdicts_of(facts, Checks(duplicates=Threshold(error=1)))
    assert arrow_frames.tuples(verdicts, "input", "check", "count", "share", "verdict", "sample_keys") == [
        ("items", "duplicates", 2, 2 / 7, "error", ["a"]),
        ("items", "invalid_facts", 3, 3 / 8, "warn", ["b", "d"]),
        ("items", "null_keys", 1, 1 / 8, "warn", ["NULL"]),
        ("items", "rows", 8, None, "ok", []),
        ("train", "null_keys", 2, 2 / 5, "warn", ["NULL a", "bob NULL"]),
        ("train", "rows", 5, None, "ok", []),
        ("train", "train_after_cut", 1, 1 / 5, "warn", ["cat a"]),
    ]


@pytest.mark.parametrize("policy", ["max", "sum", "error"])
def test_repeated_judgements_and_users_without_a_relevant_one_are_counted(spark: SparkSession, policy: str) -> None:
    rows = [("ann", "a", 1.0), ("ann", "a", 1.0), ("ann", "a", 2.0), ("bob", "a", 0.5), ("cat", "a", 0.0)]
    with no_spark_jobs(spark):
        facts = input_checks.to_judgement_facts(held_out(spark, "user_id item_id gain", *rows), duplicates=policy)
    assert facts_of(facts) == [("duplicates", 2, 5, ["ann"]), ("zero_relevant", 2, 3, ["bob", "cat"])]


def test_items_that_no_list_holds_and_those_that_the_catalogue_does_not_have_are_counted(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id score", ("ann", "a", 1.0), ("bob", "a", 1.0))
    judged = held_out(spark, "user_id item_id", ("zoe", "a"), ("ann", "x"), ("bob", "x"), ("ann", "y"))
    items = table(spark, "item_id", ("x",), ("x",), ("a",), (None,))
    with no_spark_jobs(spark):
        facts = input_checks.to_join_facts(judged, usable_recommendations=log)
        catalogue = input_checks.to_unknown_item_facts(items.where("item_id != 'a'"), usable_recommendations=log)
        known = input_checks.to_unknown_item_facts(items, usable_recommendations=log)
    assert facts_of(facts.unionByName(catalogue).unionByName(known)) == [
        ("unknown_items", 0, 1, []),
        ("unknown_items", 1, 1, ["a"]),
        ("unmatched_items", 3, 4, ["x", "y"]),
    ]


@pytest.mark.parametrize("ids", ["string", "bigint"])
def test_rows_that_policies_leave_out_are_counted_in_the_whole_log(spark: SparkSession, ids: str) -> None:
    """However often they stand in the training data or in the catalogue; a NULL there is nobody and nothing."""
    name = str if ids == "string" else int
    pairs = [(7, 1), (7, 1), (7, 3), (8, 2), (8, 1), (9, 4)]
    rows = [(name(user), name(item), -float(place)) for place, (user, item) in enumerate(pairs)]
    log = recommendations(spark, "user_id item_id score", *rows, ids=ids)
    owned = [(name(7), name(1)), (name(7), name(1)), (name(8), name(2)), (None, name(4)), (name(9), None), (None, None)]
    train = table(spark, "user_id item_id", *owned, ids=ids)
    with no_spark_jobs(spark):
        seen = input_checks.to_seen_facts(log, train=train)
        unknown = input_checks.to_unknown_row_facts(train, usable_recommendations=log)
        different = input_checks.to_unknown_item_facts(train, usable_recommendations=log)
    assert facts_of(input_checks.union(seen, unknown, different)) == [
        ("seen_in_train", 3, 6, ["m 7  1", "m 8  2"]),  # the first of them occurs twice in the list
        ("unknown_items", 1, 4, ["3"]),
        ("unknown_rows", 1, 6, ["3"]),
    ]


def test_items_whose_vector_has_another_length_than_most_are_counted(spark: SparkSession) -> None:
    """An error whatever the thresholds; a vector that cannot be used has no length, and an empty one has 0."""
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
        facts = input_checks.to_vector_facts(items)
    verdicts = verdicts_of(facts, Checks())
    assert facts_of(facts) == [("vector_lengths", 2, 5, ["b: 2 numbers", "f: 0 numbers", "a: 1 number"])]
    assert arrow_frames.tuples(verdicts, "input", "severity", "share", "threshold", "verdict") == [
        ("items", "error", 2 / 5, 0.0, "error")
    ]
    assert facts_of(input_checks.to_vector_facts(numbered)) == [
        ("vector_lengths", 1, 2, ["2: 1 number", "1: 2 numbers"])
    ]
    alike = items.where("item_id in ('b', 'c', 'd', 'e')")
    assert facts_of(input_checks.to_vector_facts(alike)) == [("vector_lengths", 0, 2, [])]
    assert python_nodes(facts) == []


def list_facts(log: DataFrame, *, train: DataFrame | None = None) -> dict[str, tuple[Any, ...]]:
    """Count in lists that come of a log, at the cutoff 3; nobody but Ann is judged."""
    request = Request(measures=("RR@3",), counts_seen=train is not None)
    judged = held_out(log.sparkSession, "user_id item_id", ("ann", "b"))
    inputs = InputFrames(log, judged, has_one_list=True, train=train, model_names=("m",))
    rows, sums = evaluation_plans.to_user_rows(inputs, request), check_sums(request)
    packed = evaluation_plans.to_packed(rows.frame, ListTotals(rows.job, sums))
    facts = check_counts.list_facts(evaluation_plans.to_totals(packed, sums)[LISTS], request)
    return {one.check: (one.count, one.total, [*one.sample_keys]) for one in facts}


def test_recommended_items_that_the_user_has_in_the_training_data_are_counted_on_demand(spark: SparkSession) -> None:
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
    log, judged = recommendations(spark, "user_id item_id score"), held_out(spark, "user_id item_id")
    facts = input_checks.union(
        input_checks.to_recommendation_facts(log),
        input_checks.to_held_out_facts(judged),
        input_checks.to_judgement_facts(judged, duplicates="max"),
        input_checks.to_join_facts(judged, usable_recommendations=log),
        input_checks.to_unmatched_list_facts(held_out(spark, "user_id list_id item_id"), usable_recommendations=log),
        input_checks.to_train_facts(table(spark, "user_id item_id interacted_at"), evaluation_date=date(2026, 1, 1)),
        input_checks.to_item_row_facts(frame_of(spark, [], "item_id string, vector array<double>")),
        input_checks.to_unknown_item_facts(table(spark, "item_id"), usable_recommendations=log),
        input_checks.to_seen_facts(log, train=table(spark, "user_id item_id")),
        input_checks.to_unknown_row_facts(table(spark, "item_id"), usable_recommendations=log),
        input_checks.to_vector_facts(frame_of(spark, [], "item_id string, vector array<double>")),
        input_checks.to_alike_facts(table(spark, "user_id country"), names=["country"]),
    )
    of_lists = check_counts.list_facts(check_counts.COUNTS.empty_table(), Request(measures=("P@1",)))
    verdicts = check_rows.to_check_rows([*computed_facts(facts), *of_lists], Checks())
    found = arrow_frames.tuples(verdicts, "check", "count", "share", "verdict", "sample_keys")
    more = ["duplicates", "null_keys"] * 2 + ["null_keys"] + ["rows"] * 4 + [check_rows.VECTOR_LENGTHS]
    asked_for = {check_rows.EXTRA_COLUMNS, check_rows.SAMPLED_CANDIDATES, check_rows.ABSENT_BASELINE}
    of_times = {*check_rows.NOT_REPEATED, check_rows.EVENTS_END, *check_rows.OF_TIMING}
    of_inputs = Checks.model_fields.keys() - {*of_times, *asked_for}
    assert [name for name, *_ in found] == sorted([*of_inputs, *more])
    assert {(count, share, verdict, *keys) for _, count, share, verdict, keys in found} == {(0, None, "ok")}
    assert verdicts.column_names == [field.name for field in after_run(schemas.CHECKS)]
    assert verdicts.group_by(["input", "check"]).aggregate([]).num_rows == verdicts.num_rows

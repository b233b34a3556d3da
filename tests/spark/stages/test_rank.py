"""The order of a list: total, by the declared rules, whatever the order of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest

from rankeval_spark.config.policies import Ties
from rankeval_spark.stages import clean, match, rank
from tests.support.frames import assert_columns, assert_key, held_out, recommendations, tuples
from tests.support.plans import JOB_FAILED, no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY = ("model_id", "user_id", "list_id", "item_id")


def scored(spark: SparkSession, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """One user's list: (item, score)."""
    user = "u" if ids == "string" else 1
    return recommendations(spark, "user_id item_id score", *((user, *row) for row in rows), ids=ids)


def order(log: DataFrame, *, ties: str = "item_asc", duplicates: str = "best") -> list[Any]:
    """Items of the one list, best first; their ranks must be 1, 2, ..."""
    rows = tuples(rank.to_ranked(log, ties=ties, duplicates=duplicates), "rank", "item_id")
    assert [place for place, _ in rows] == list(range(1, len(rows) + 1))
    return [item for _, item in rows]


def tied(log: DataFrame, **policies: str) -> list[int]:
    """Ranks that tie with the rank before."""
    options: dict[str, Any] = {"ties": "item_asc", "duplicates": "best", **policies}
    rows = tuples(rank.to_ranked(log, **options), "rank", "_is_tied")
    return [place for place, is_tied in rows if is_tied]


def test_lists_are_ordered_by_score_each_from_rank_1(spark: SparkSession) -> None:
    log = recommendations(
        spark,
        "model_id user_id list_id item_id score",
        ("m", "u", "am", "a", 0.1),
        ("m", "u", "am", "b", 0.9),
        ("m", "u", "pm", "a", 0.8),
        ("m", "v", "am", "a", 0.7),
        ("n", "u", "am", "a", 0.6),
    )
    with no_spark_jobs(spark):
        ranked = rank.to_ranked(log, ties="item_asc", duplicates="best")
    assert tuples(ranked, *KEY, "rank") == [
        ("m", "u", "am", "a", 2),
        ("m", "u", "am", "b", 1),
        ("m", "u", "pm", "a", 1),
        ("m", "v", "am", "a", 1),
        ("n", "u", "am", "a", 1),
    ]
    assert_key(ranked, KEY)
    in_order = ("user_id", "model_id", "list_id", "item_id")
    assert_columns(
        ranked,
        [
            *((name, "string") for name in in_order),
            ("_n_copies", "int"),
            ("rank", "int"),
            ("_is_tied", "boolean"),
            ("_is_last", "boolean"),
        ],
    )


def test_ties_go_to_the_smaller_item(spark: SparkSession) -> None:
    log = scored(spark, ("d2", 0.5), ("d10", 0.5), ("z", 0.9))
    assert order(log, ties="item_asc") == ["z", "d10", "d2"]


def test_item_desc_orders_ties_by_their_bytes_as_trec_eval(spark: SparkSession) -> None:
    log = scored(spark, ("d10", 0.5), ("d2", 0.5), ("é", 0.5), ("z", 0.5), ("Z", 0.5), ("𝄞", 0.5), ("\uffee", 0.5))
    items = ["d10", "d2", "é", "z", "Z", "𝄞", "\uffee"]
    assert order(log, ties="item_desc") == sorted(items, key=str.encode, reverse=True)


def test_integer_items_tie_by_value_ascending_and_by_digits_descending(spark: SparkSession) -> None:
    log = scored(spark, (10, 0.5), (9, 0.5), (2, 0.5), (-1, 0.5), ids="bigint")
    assert order(log, ties="item_asc") == [-1, 2, 9, 10]
    assert order(log, ties="item_desc") == [9, 2, 10, -1]


def test_ties_can_follow_the_rank_of_the_log_and_then_the_item(spark: SparkSession) -> None:
    log = recommendations(
        spark,
        "user_id item_id score rank",
        ("u", "e", 0.5, None),
        ("u", "d", 0.5, None),
        ("u", "a", 0.5, 4),
        ("u", "b", 0.5, 2),
        ("u", "c", 0.9, 9),
    )
    assert order(log, ties="rank") == ["c", "b", "a", "d", "e"]


def test_minus_zero_ties_with_zero(spark: SparkSession) -> None:
    log = scored(spark, ("b", 0.0), ("a", -0.0), ("c", -0.0))
    assert order(log) == ["a", "b", "c"]
    assert tied(log) == [2, 3]


def test_scores_are_compared_in_double_precision(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.1), ("b", 0.1 + 1e-9))
    assert order(log) == ["b", "a"]
    assert tied(log) == []


def test_a_tied_rank_is_one_whose_score_equals_that_of_the_rank_before(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.9), ("b", 0.5), ("c", 0.5), ("d", 0.5), ("e", 0.1), ("f", 0.05), ("g", 0.05))
    assert tied(log) == [3, 4, 7]


@pytest.mark.parametrize("duplicates", ["best", "keep"])
def test_a_tie_fails_the_job_where_the_policy_is_error(spark: SparkSession, duplicates: str) -> None:
    with no_spark_jobs(spark):
        ranked = rank.to_ranked(scored(spark, ("a", 0.5), ("b", 0.5)), ties="error", duplicates=duplicates)
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:ties\]"):
        ranked.collect()


def test_equal_scores_in_two_lists_are_no_tie(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id list_id item_id score", ("u", "1", "a", 0.5), ("u", "2", "b", 0.5))
    ranked = rank.to_ranked(log, ties="error", duplicates="best")
    assert tuples(ranked, "list_id", "rank", "_is_tied") == [("1", 1, False), ("2", 1, False)]


def test_the_best_place_of_a_repeated_item_counts_and_the_list_is_numbered_anew(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.9), ("b", 0.8), ("a", 0.7), ("c", 0.6), ("a", 0.1))
    ranked = rank.to_ranked(log, ties="item_asc", duplicates="best")
    assert tuples(ranked, "rank", "item_id", "_n_copies") == [(1, "a", 3), (2, "b", 1), (3, "c", 1)]


def test_copies_of_equal_score_are_no_tie_once_they_are_removed(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.9), ("a", 0.9), ("b", 0.5))
    assert tied(log) == []
    assert order(log, ties="error") == ["a", "b"]


def test_a_repeated_item_fails_the_job_where_the_policy_is_error(spark: SparkSession) -> None:
    with no_spark_jobs(spark):
        ranked = rank.to_ranked(scored(spark, ("a", 0.9), ("a", 0.1)), ties="item_asc", duplicates="error")
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:duplicates\]"):
        ranked.collect()


def test_an_item_in_two_lists_is_not_repeated(spark: SparkSession) -> None:
    rows = [("m", "u", "1"), ("m", "u", "2"), ("n", "u", "1"), ("m", "v", "1")]
    log = recommendations(spark, "model_id user_id list_id item_id score", *((*row, "a", 0.5) for row in rows))
    ranked = rank.to_ranked(log, ties="item_asc", duplicates="error")
    assert tuples(ranked, "model_id", "user_id", "list_id", "_n_copies") == sorted((*row, 1) for row in rows)


def test_both_places_of_a_repeated_item_are_kept_on_request(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.9), ("b", 0.8), ("a", 0.7))
    ranked = rank.to_ranked(log, ties="item_asc", duplicates="keep")
    assert tuples(ranked, "rank", "item_id", "_n_copies") == [(1, "a", 1), (2, "b", 1), (3, "a", 1)]


def test_ranks_of_the_log_order_it_where_there_is_no_score_and_gaps_are_closed(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id rank", ("u", "c", 30), ("u", "a", 7), ("u", "b", 11))
    assert order(log) == ["a", "b", "c"]
    assert tied(log) == []


def test_equal_ranks_of_the_log_are_ties(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id rank", ("u", "b", 1), ("u", "a", 1), ("u", "c", 2))
    assert order(log, ties="rank") == ["a", "b", "c"]
    assert order(log, ties="item_desc") == ["b", "a", "c"]
    assert tied(log) == [2]


def test_the_best_rank_of_a_repeated_item_counts(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id rank", ("u", "a", 1), ("u", "b", 2), ("u", "a", 3), ("u", "c", 4))
    assert order(log) == ["a", "b", "c"]


@pytest.mark.parametrize("order_by", ["score", "rank"])
def test_a_log_without_rows_has_no_ranks(spark: SparkSession, order_by: str) -> None:
    log = recommendations(spark, f"user_id item_id {order_by}")
    assert order(log) == []


def test_scores_are_kept_where_a_measure_needs_them_and_only_there(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.1), ("b", 0.9), ("a", 0.5))
    ranked = rank.to_ranked(log, ties="item_asc", duplicates="best", keep_scores=True)
    assert tuples(ranked, "rank", "item_id", "score") == [(1, "b", 0.9), (2, "a", 0.5)]
    assert "score" not in rank.to_ranked(log, ties="item_asc", duplicates="best").columns


# ---- policies that look at the judgements ---------------------------------------------------------------------------


def judged(spark: SparkSession, *rows: tuple[str, float]) -> DataFrame:
    """Judgements of the one user: (item, gain)."""
    gains = held_out(spark, "user_id item_id gain", *(("u", *row) for row in rows))
    return match.to_judgements(gains, duplicates="max")


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("optimistic", ["first", "three", "one", "unjudged", "zero", "minus", "last"]),
        ("pessimistic", ["first", "minus", "unjudged", "zero", "one", "three", "last"]),
    ],
)
def test_ties_can_be_broken_for_and_against_the_measures(spark: SparkSession, ties: str, expected: list[str]) -> None:
    """By gain, 0 without a judgement, and then by item; scores that differ still come first."""
    tied_items = ("zero", "one", "three", "unjudged", "minus")
    log = scored(spark, ("first", 0.9), *((item, 0.5) for item in tied_items), ("last", 0.1))
    judgements = judged(spark, ("zero", 0.0), ("one", 1.0), ("three", 3.0), ("minus", -1.0), ("last", 5.0))
    with no_spark_jobs(spark):
        ranked = rank.to_ranked(log, ties=ties, duplicates="best", judgements=judgements)
    rows = tuples(ranked, "rank", "item_id", "_is_tied")
    assert [item for _, item, _ in rows] == expected
    assert [place for place, _, is_tied in rows if is_tied] == [3, 4, 5, 6]
    gains = {item: gain for item, gain in tuples(ranked, "item_id", "gain") if gain is not None}
    assert gains == {"zero": 0.0, "one": 1.0, "three": 3.0, "minus": -1.0, "last": 5.0}


def test_items_without_a_judgement_can_be_left_out_and_the_list_closes_up(spark: SparkSession) -> None:
    log = scored(spark, ("x", 0.9), ("a", 0.8), ("y", 0.7), ("b", 0.6))
    ranked = rank.to_ranked(
        log, ties="item_asc", duplicates="best", judgements=judged(spark, ("a", 1.0), ("b", 0.0)), judged_only=True
    )
    assert tuples(ranked, "rank", "item_id", "_is_last") == [(1, "a", False), (2, "b", True)]


def test_only_some_policies_need_the_gains() -> None:
    assert [ties for ties in get_args(Ties) if rank.needs_gains(ties, judged_only=False)] == [
        "optimistic",
        "pessimistic",
    ]
    assert rank.needs_gains("item_asc", judged_only=True)


# ---- ranks of the log as they are -----------------------------------------------------------------------------------


def test_ranks_of_the_log_can_be_kept_with_their_gaps(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id rank", ("u", "c", 30), ("u", "a", 7), ("u", "b", 11), ("u", "a", 12))
    ranked = rank.to_ranked(log, ties="item_asc", duplicates="best", rank_gaps="keep")
    assert tuples(ranked, "rank", "item_id", "_n_copies", "_is_last") == [
        (7, "a", 2, False),
        (11, "b", 1, False),
        (30, "c", 1, True),
    ]


def test_two_items_at_one_rank_fail_the_job_where_ranks_are_kept(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id rank", ("u", "b", 1), ("u", "a", 1))
    ranked = rank.to_ranked(log, ties="rank", duplicates="best", rank_gaps="keep")
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:rank_gaps\] .* and the policy rank_gaps is 'keep'"):
        ranked.collect()


def test_scores_that_single_precision_cannot_tell_apart_can_be_ties(spark: SparkSession) -> None:
    log = scored(spark, ("a", 0.1), ("b", 0.1 + 1e-9), ("c", 0.1 + 1e-7))
    assert order(log.transform(clean.with_score_precision, precision="double")) == ["c", "b", "a"]
    single = log.transform(clean.with_score_precision, precision="single")
    assert order(single) == ["c", "a", "b"]
    assert tied(single) == [3]


def test_ranks_have_no_precision(spark: SparkSession) -> None:
    log = recommendations(spark, "user_id item_id rank", ("u", "a", 16_777_217), ("u", "b", 16_777_216))
    assert order(log.transform(clean.with_score_precision, precision="single")) == ["b", "a"]

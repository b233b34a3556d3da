"""From item rows to one compact row per list, without losing a user on either side."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import schemas
from rankeval_spark.columns import HIT_SCORES, LIST_KEY, OF_RANKS, SEGMENTS
from rankeval_spark.stages import match, rank
from tests.support.frames import after_run, assert_columns, assert_key, by, held_out, recommendations, table, tuples
from tests.support.plans import JOB_FAILED, no_spark_jobs, python_nodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ABSENT = (SEGMENTS, *OF_RANKS)
"""Columns of the table that these lists do not have: segments come later, and the log is one of scores."""

RANKED = "model_id user_id list_id item_id _n_copies rank _is_tied _is_last"
COMPACT = ("n_recommended", "n_duplicates", "hit_ranks", "hit_gains", "judged_gains", "tied_ranks")


def ranked(spark: SparkSession, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """Ranked items: (model, user, list, item, rank), each list together and in order; neither repeated nor tied."""
    lists = [row[:3] for row in rows]
    return table(
        spark,
        RANKED,
        *((*row[:4], 1, row[4], False, row[:3] not in lists[index:]) for index, row in enumerate(rows, 1)),
        ids=ids,
    )


def judged(spark: SparkSession, *rows: tuple[Any, ...], ids: str = "string") -> DataFrame:
    """Judgements: (user, item, gain)."""
    return match.to_judgements(held_out(spark, "user_id item_id gain", *rows, ids=ids), duplicates="max")


def models(spark: SparkSession, *names: str) -> DataFrame:
    """Name the models expected."""
    return table(spark, "model_id", *((name,) for name in names))


def test_a_list_holds_the_ranks_and_gains_of_its_hits_and_all_gains_of_its_user(spark: SparkSession) -> None:
    log = ranked(spark, *(("m", "ann", "", item, rank) for rank, item in enumerate("abcde", 1)))
    judgements = judged(spark, ("ann", "d", 3.0), ("ann", "b", 1.0), ("ann", "x", 5.0), ("ann", "e", 0.0))
    lists = match.to_lists(log, judgements=judgements, models=models(spark, "m"))
    assert tuples(lists, *LIST_KEY, *COMPACT) == [
        ("m", "ann", "", 5, 0, [2, 4, 5], [1.0, 3.0, 0.0], [5.0, 3.0, 1.0, 0.0], [])
    ]
    assert_columns(lists, [field for field in after_run(schemas.LISTS) if field.name not in (*ABSENT, HIT_SCORES)])


def test_nobody_is_lost_on_either_side(spark: SparkSession) -> None:
    """Ann has lists of both models, Bob a list of one, Cat none; Dan was never judged."""
    log = ranked(
        spark, ("m", "ann", "", "a", 1), ("n", "ann", "", "b", 1), ("m", "bob", "", "a", 1), ("n", "dan", "", "a", 1)
    )
    judgements = judged(spark, ("ann", "a", 1.0), ("bob", "b", 2.0), ("cat", "c", 3.0))
    expected_models = models(spark, "m", "n")
    with no_spark_jobs(spark):
        lists = match.to_lists(log, judgements=judgements, models=expected_models)
    assert tuples(lists, "user_id", "model_id", "list_id", "n_recommended", "hit_ranks", "judged_gains") == [
        ("ann", "m", "", 1, [1], [1.0]),
        ("ann", "n", "", 1, [], [1.0]),
        ("bob", "m", "", 1, [], [2.0]),
        ("bob", "n", "", 0, [], [2.0]),
        ("cat", "m", "", 0, [], [3.0]),
        ("cat", "n", "", 0, [], [3.0]),
        ("dan", "n", "", 1, [], []),
    ]
    assert_key(lists, LIST_KEY)
    assert python_nodes(lists) == []


def test_a_user_with_several_lists_has_a_row_for_each_and_none_without_name(spark: SparkSession) -> None:
    log = ranked(spark, ("m", "ann", "am", "a", 1), ("m", "ann", "pm", "b", 1), ("m", "ann", "pm", "a", 2))
    judgements = judged(spark, ("ann", "a", 1.0), ("ann", "z", 2.0))
    lists = match.to_lists(log, judgements=judgements, models=models(spark, "m"))
    assert tuples(lists, "list_id", "hit_ranks", "judged_gains") == [("am", [1], [2.0, 1.0]), ("pm", [2], [2.0, 1.0])]


def test_hits_have_their_scores_where_the_ranked_items_have_them(spark: SparkSession) -> None:
    rows = [("a", 1, 0.9, False), ("b", 2, 0.5, False), ("c", 3, -2.0, True)]
    scored = table(
        spark,
        f"{RANKED} score",
        *(("m", "ann", "", item, 1, place, False, is_last, score) for item, place, score, is_last in rows),
    )
    judgements = judged(spark, ("ann", "c", 1.0), ("ann", "a", 3.0), ("bob", "a", 1.0))
    lists = match.to_lists(scored, judgements=judgements, models=models(spark, "m"))
    assert tuples(lists, "user_id", "hit_ranks", "hit_gains", "hit_scores") == [
        ("ann", [1, 3], [3.0, 1.0], [0.9, -2.0]),
        ("bob", [], [], []),
    ]
    assert_columns(lists, [field for field in after_run(schemas.LISTS) if field.name not in ABSENT])


def test_copies_and_ties_are_counted_on_the_way(spark: SparkSession) -> None:
    rows = [("a", 3, 1, False, False), ("b", 1, 2, True, False), ("c", 2, 3, True, False), ("d", 1, 4, False, True)]
    log = table(spark, RANKED, *(("m", "ann", "", *row) for row in rows))
    lists = match.to_lists(log, judgements=judged(spark, ("ann", "d", 1.0)), models=models(spark, "m"))
    assert tuples(lists, *COMPACT) == [(4, (3 - 1) + (2 - 1), [4], [1.0], [1.0], [2, 3])]


def test_an_item_that_is_kept_twice_is_two_hits(spark: SparkSession) -> None:
    log = ranked(spark, ("m", "ann", "", "a", 1), ("m", "ann", "", "a", 2))
    lists = match.to_lists(log, judgements=judged(spark, ("ann", "a", 1.0)), models=models(spark, "m"))
    assert tuples(lists, "hit_ranks", "hit_gains", "judged_gains") == [([1, 2], [1.0, 1.0], [1.0])]


def test_integer_ids_keep_their_type(spark: SparkSession) -> None:
    log = ranked(spark, ("m", 7, "", 70, 1), ids="bigint")
    judgements = judged(spark, (7, 70, 1.0), (8, 70, 1.0), ids="bigint")
    lists = match.to_lists(log, judgements=judgements, models=models(spark, "m"))
    assert tuples(lists, "user_id", "hit_ranks") == [(7, [1]), (8, [])]


def test_nothing_recommended_leaves_every_judged_user_an_empty_list_of_each_model(spark: SparkSession) -> None:
    lists = match.to_lists(ranked(spark), judgements=judged(spark, ("ann", "a", 1.0)), models=models(spark, "m", "n"))
    assert tuples(lists, "model_id", "n_recommended", "judged_gains") == [("m", 0, [1.0]), ("n", 0, [1.0])]


def test_nothing_held_out_leaves_the_lists_without_judgements(spark: SparkSession) -> None:
    log = ranked(spark, ("m", "ann", "", "a", 1))
    lists = match.to_lists(log, judgements=judged(spark), models=models(spark, "m"))
    assert tuples(lists, *COMPACT) == [(1, 0, [], [], [], [])]


def test_without_rows_on_either_side_there_is_no_list(spark: SparkSession) -> None:
    assert tuples(match.to_lists(ranked(spark), judgements=judged(spark), models=models(spark)), *LIST_KEY) == []


@pytest.mark.parametrize(("policy", "gain"), [("max", 3.0), ("sum", 1.0 + 3.0 + 2.0)])
def test_a_judgement_that_stands_several_times_has_the_gain_of_the_policy(
    spark: SparkSession, policy: str, gain: float
) -> None:
    rows = held_out(spark, "user_id item_id gain", *(("u", "a", each) for each in (1.0, 3.0, 2.0)), ("u", "b", 0.5))
    with no_spark_jobs(spark):
        judgements = match.to_judgements(rows, duplicates=policy)
    assert tuples(judgements, "item_id", "gain", "_n_copies") == [("a", gain, 3), ("b", 0.5, 1)]
    assert_key(judgements, ("user_id", "item_id"))


def test_the_sum_of_gains_does_not_depend_on_the_order_of_the_rows(spark: SparkSession) -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit."""
    gains = [0.1, 0.2, 0.3]
    rows = [(f"{start}", "a", gain) for start in range(3) for gain in gains[start:] + gains[:start]]
    judgements = match.to_judgements(held_out(spark, "user_id item_id gain", *rows, *rows[::-1]), duplicates="sum")
    assert set(by(judgements, "user_id", value="gain").values()) == {((((0.1 + 0.1) + 0.2) + 0.2) + 0.3) + 0.3}


def test_a_repeated_judgement_fails_the_job_where_the_policy_is_error(spark: SparkSession) -> None:
    twice = held_out(spark, "user_id item_id gain", ("u", "a", 1.0), ("u", "a", 1.0))
    with pytest.raises(JOB_FAILED, match=r"\[rankeval:held_out_duplicates\]"):
        match.to_judgements(twice, duplicates="error").collect()


def test_an_item_judged_for_two_users_is_not_repeated(spark: SparkSession) -> None:
    rows = held_out(spark, "user_id item_id gain", ("u", "a", 1.0), ("v", "a", 2.0))
    assert tuples(match.to_judgements(rows, duplicates="error"), "user_id", "gain") == [("u", 1.0), ("v", 2.0)]


def test_the_last_of_several_judgements_can_count(spark: SparkSession) -> None:
    """Of two at one time the larger; one without a time is older than any other."""
    at = dt.datetime(2026, 1, 3, tzinfo=dt.timezone.utc)
    later = at + dt.timedelta(seconds=1)
    rows = held_out(
        spark,
        "user_id item_id gain interacted_at",
        *(("u", "a", 5.0, at), ("u", "a", 1.0, later), ("u", "a", 2.0, later), ("u", "a", 9.0, None)),
        *(("u", "b", 3.0, None), ("u", "b", 4.0, None), ("v", "a", 7.0, at)),
    )
    with no_spark_jobs(spark):
        judgements = match.to_judgements(rows, duplicates="last")
    assert tuples(judgements, "user_id", "item_id", "gain", "_n_copies") == [
        ("u", "a", 2.0, 4),
        ("u", "b", 4.0, 2),
        ("v", "a", 7.0, 1),
    ]


def test_gains_that_are_known_already_are_not_looked_up_again(spark: SparkSession) -> None:
    judgements = judged(spark, ("ann", "b", 2.0), ("ann", "z", 1.0))
    log = recommendations(spark, "user_id item_id score", ("ann", "a", 0.5), ("ann", "b", 0.5))
    known = rank.to_ranked(log, ties="optimistic", duplicates="best", judgements=judgements)
    lists = match.to_lists(known, judgements=judgements, models=models(spark, "m"))
    assert tuples(lists, *COMPACT) == [(2, 0, [1], [2.0], [2.0, 1.0], [2])]

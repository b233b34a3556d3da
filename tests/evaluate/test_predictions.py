"""Measures that read the scores of hits, the whole way: from a log of predictions to means."""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError, JudgementError
from rankeval_spark.measures import Measure
from tests.support import oracles
from tests.support.arrow_frames import by, dicts, table
from tests.support.ratings import list_of, random_ratings, tables

READING: Final = ("RMSE", "MAE", "FCP", "FCP(ties='discordant')", "KendallTau", "Spearman", "AUC(rel=3)")


def test_values_and_means_are_those_of_the_naive_references() -> None:
    predicted, rated = random_ratings(seed=7)
    asked = (*READING, "PredictedShare", "P@3")
    result = evaluate(*tables(predicted, rated), measures=asked)
    found = by(result.user_values, "measure", "user_id", value="value")
    means = by(result.metrics, "measure", value="value")
    for text in asked:
        measure = Measure.parse(text)
        lists = {user: list_of(predicted.get(user, {}), rated.get(user, {})) for user in rated}
        expected = {user: oracles.expected(measure, one) for user, one in lists.items()}
        values = {user: found[measure.label, user] for user in lists}
        assert {user for user, value in values.items() if value is None} == {
            user for user, value in expected.items() if math.isnan(value)
        }
        defined = {user: value for user, value in expected.items() if not math.isnan(value)}
        assert {user: values[user] for user in defined} == pytest.approx(defined, rel=0, abs=1e-12)
        assert means[measure.label] == pytest.approx(sum(defined.values()) / len(defined), rel=0, abs=1e-12)


def test_leaderboard_begins_with_the_smallest_error() -> None:
    predictions = [("far", "a", 1.0), ("near", "a", 4.5), ("none", "b", 5.0)]
    log = table("model_id item_id score user_id", *((*row, "u") for row in predictions))
    held_out = table("user_id item_id gain", ("u", "a", 5.0))
    board = evaluate(log, held_out, measures=["RMSE", "PredictedShare"]).leaderboard()
    assert [tuple(row.values()) for row in dicts(board)] == [
        ("near", 1, 0.5, 1.0),
        ("far", 1, 4.0, 1.0),
        ("none", 1, None, 0.0),
    ]


def test_prediction_that_must_not_be_missing_ends_the_run() -> None:
    log = table("user_id item_id score", ("u", "a", 4.5))
    held_out = table("user_id item_id gain", ("u", "a", 5.0), ("u", "b", 1.0))
    asked = evaluate(log, held_out, measures=["RMSE(missing='error')"])
    message = r"1 of 2 held-out items without a score, in 1 of 1 lists, such as that of user 'u' under model 'model';"
    with pytest.raises(JudgementError, match=message):
        _ = asked.metrics


def test_user_whose_prediction_is_missing_is_named_whatever_the_ids_are() -> None:
    """Of two users the one who lacks a score, also where judgements of an item group alone are looked at."""
    log = table("model_id user_id item_id score", ("als", 7, 1, 4.5), ("als", 8, 1, 4.5), ids="bigint")
    held_out = table("user_id item_id gain", (7, 1, 5.0), (8, 1, 5.0), (8, 2, 1.0), ids="bigint")
    items = table("item_id categories", (1, ["x"]), (2, ["x"]), ids="bigint")
    for text in ("MAE(missing='error')", "MSE(group='x',missing='error')", "RMSE(agg='micro',missing='error')"):
        asked = evaluate(log, held_out, measures=[text], items=items)
        with pytest.raises(JudgementError, match="lists, such as that of user '8' under model 'als'"):
            _ = asked.user_metrics
    score_of_8 = table("model_id user_id item_id score", ("als", 8, 2, 1.0), ids="bigint")
    complete = evaluate(pa.concat_tables([log, score_of_8]), held_out, measures=["MAE(missing='error')"])
    assert by(complete.user_metrics, "user_id", value="mae_missing_error") == {7: 0.5, 8: 0.25}


def test_log_without_scores_is_refused_before_anything_is_computed() -> None:
    ranks = table("user_id item_id rank", ("u", "a", 1))
    held_out = table("user_id item_id gain", ("u", "a", 1.0))
    message = "no column 'score'; expected scores, because RMSE, AUC read them; add the scores to the log"
    with pytest.raises(InputError, match=message):
        evaluate(ranks, held_out, measures=["P@1", "RMSE", "AUC"])

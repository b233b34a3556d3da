"""Measures that read the scores of hits, the whole way: from a log of predictions to means, and again from lists."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import columns as C, evaluate
from rankeval_spark.app.failures import told
from rankeval_spark.app.history import past_nights, score_night
from rankeval_spark.app.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError, InputError
from rankeval_spark.measures import Measure, MeasureSet, Ranking
from rankeval_spark.results import Results
from tests.support import oracles
from tests.support.frames import by, table
from tests.support.nights import FIRST, SECOND
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.nights import Workspace

READING: Final = ("RMSE", "MAE", "FCP", "FCP(ties='discordant')", "KendallTau", "Spearman", "AUC(rel=3)")
ITEMS: Final = tuple("abcdefghijkl")

Rated = dict[str, dict[str, float]]


def random_ratings(seed: int) -> tuple[Rated, Rated]:
    """Predictions of few values, so that there are ties, and ratings; some users have only the one or the other."""
    draw = random.Random(seed)
    predicted, rated = (
        {
            f"u{number}": {item: draw.choice(values) for item in draw.sample(ITEMS, draw.randint(1, len(ITEMS)))}
            for number in range(60)
            if draw.random() < 0.9
        }
        for values in ((0.5, 1.25, 2.5, 3.75, 4.5), (1.0, 2.0, 3.0, 4.0, 5.0))
    )
    return predicted, rated


def frames(spark: SparkSession, predicted: Rated, rated: Rated) -> tuple[DataFrame, DataFrame]:
    """Both tables."""
    log, truth = ([(u, i, v) for u, of_user in side.items() for i, v in of_user.items()] for side in (predicted, rated))
    held_out = table(spark, "user_id item_id gain", *truth)
    return table(spark, "user_id item_id score", *log).repartition(3), held_out


def list_of(predicted: dict[str, float], rated: dict[str, float]) -> Ranking:
    """Build the list of a user."""
    order = sorted(predicted, key=lambda item: (-predicted[item], item))
    missed = [gain for item, gain in rated.items() if item not in predicted]
    return Ranking([rated.get(item) for item in order], missed, [predicted[item] for item in order])


def test_values_and_means_are_those_of_the_naive_references(spark: SparkSession) -> None:
    predicted, rated = random_ratings(seed=7)
    asked = (*READING, "PredictedShare", "P@3")
    result = evaluate(*frames(spark, predicted, rated), measures=asked)
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


def test_leaderboard_begins_with_the_smallest_error(spark: SparkSession) -> None:
    predictions = [("far", "a", 1.0), ("near", "a", 4.5), ("none", "b", 5.0)]
    log = table(spark, "model_id item_id score user_id", *((*row, "u") for row in predictions))
    held_out = table(spark, "user_id item_id gain", ("u", "a", 5.0))
    board = evaluate(log, held_out, measures=["RMSE", "PredictedShare"]).leaderboard()
    assert [tuple(row) for row in board.collect()] == [
        ("near", 1, 0.5, 1.0),
        ("far", 1, 4.0, 1.0),
        ("none", 1, None, 0.0),
    ]


def test_prediction_that_must_not_be_missing_ends_the_run(spark: SparkSession) -> None:
    log = table(spark, "user_id item_id score", ("u", "a", 4.5))
    held_out = table(spark, "user_id item_id gain", ("u", "a", 5.0), ("u", "b", 1.0))
    asked = evaluate(log, held_out, measures=["RMSE(missing='error')"])
    message = r"1 of 2 held-out items without a score, in 1 of 1 lists, such as that of user 'u' under model 'model';"
    with pytest.raises(Exception, match=message):
        asked.metrics.collect()


def test_user_whose_prediction_is_missing_is_named_whatever_the_ids_are(spark: SparkSession) -> None:
    """Of two users the one who lacks a score, also where judgements of an item group alone are looked at."""
    log = table(spark, "model_id user_id item_id score", ("als", 7, 1, 4.5), ("als", 8, 1, 4.5), ids="bigint")
    held_out = table(spark, "user_id item_id gain", (7, 1, 5.0), (8, 1, 5.0), (8, 2, 1.0), ids="bigint")
    items = spark.createDataFrame([(1, ["x"]), (2, ["x"])], "item_id bigint, categories array<string>")
    for text in ("MAE(missing='error')", "MSE(group='x',missing='error')", "RMSE(agg='micro',missing='error')"):
        asked = evaluate(log.coalesce(1), held_out, measures=[text], items=items)
        with pytest.raises(ChecksFailedError, match="lists, such as that of user '8' under model 'als'"), told():
            asked.user_metrics.collect()
    score_of_8 = table(spark, "model_id user_id item_id score", ("als", 8, 2, 1.0), ids="bigint")
    complete = evaluate(log.unionByName(score_of_8), held_out, measures=["MAE(missing='error')"])
    assert by(complete.user_metrics, "user_id", value="mae_missing_error") == {7: 0.5, 8: 0.25}


def test_log_without_scores_is_refused_before_any_job(spark: SparkSession) -> None:
    ranks = table(spark, "user_id item_id rank", ("u", "a", 1))
    held_out = table(spark, "user_id item_id gain", ("u", "a", 1.0))
    message = "no column 'score'; expected scores, which RMSE, AUC read; give the log its scores"
    with no_spark_jobs(spark), pytest.raises(InputError, match=message):
        evaluate(ranks, held_out, measures=["P@1", "RMSE", "AUC"])


def test_score_that_is_no_probability_is_a_readable_fault_of_the_night(
    spark: SparkSession, own_copy: Workspace
) -> None:
    own_copy.change(measures=["LogLoss"])
    with pytest.raises(Exception, match=r"measures, LogLoss.*: found a score of \d.* expected probabilities"):
        run_night(spark, load_config(own_copy.config, ()), FIRST)


def test_published_lists_take_a_measure_of_scores_only_where_they_have_them(
    spark: SparkSession, own_copy: Workspace
) -> None:
    """The second date is run again with RMSE; then MAE can be added to it, and still not to the first."""
    own_copy.change(measures=["RR", "RMSE"])
    run_night(spark, load_config(own_copy.config, ()), SECOND)
    scores = by(Results(spark, own_copy.root).lists(date=SECOND), C.MODEL_ID, C.USER_ID, value=C.HIT_SCORES)
    assert scores["als", "ann"] == [9.0]  # her item is the second of scores 10, 9, 8
    lists = Results(spark, own_copy.root).lists(date=FIRST, evaluation="nightly")
    assert set(by(lists, C.MODEL_ID, C.USER_ID, value=C.HIT_SCORES).values()) == {None}

    asked = MeasureSet.parse(["MAE"])
    with pytest.raises(InputError, match="nightly, 2026-01-01: found lists without hit_scores"):
        past_nights(spark, own_copy.root, evaluation="nightly", needs=asked.needs)
    (night,) = past_nights(spark, own_copy.root, evaluation="nightly", dates=[SECOND], needs=asked.needs)
    score_night(spark, own_copy.root, night, asked)
    metrics = Results(spark, own_copy.root).metrics(date=SECOND, slice="all", model_id="als")
    # als: ann's b has score 9 and gain 1; bob's d has score 10 and gain 1, his a has score 8 and gain 2.
    means = by(metrics, C.MEASURE, C.K, value=C.VALUE)
    assert means["MAE", 0] == pytest.approx((8 + (9 + 6) / 2) / 2, rel=0, abs=1e-12)
    assert means["RMSE", 0] == pytest.approx((8 + math.sqrt((9**2 + 6**2) / 2)) / 2, rel=0, abs=1e-12)

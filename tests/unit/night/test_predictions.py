"""Measures that read the scores of hits: what fails a night, and what published lists take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.published.rescoring import past_nights, score_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import InputError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results
from tests.support.arrow_frames import by
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


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
    scores = by(Results(own_copy.root).lists(date=SECOND), C.MODEL_ID, C.USER_ID, value=C.HIT_SCORES)
    assert scores["als", "ann"] == [9.0]  # her item is the second of scores 10, 9, 8
    lists = Results(own_copy.root).lists(date=FIRST, evaluation="nightly")
    assert set(lists[C.HIT_SCORES].to_pylist()) == {None}

    asked = MeasureSet.parse(["MAE"])
    with pytest.raises(InputError, match="nightly, 2026-01-01: found lists without hit_scores"):
        past_nights(spark, own_copy.root, evaluation="nightly", needs=asked.needs)
    (night,) = past_nights(spark, own_copy.root, evaluation="nightly", dates=[SECOND], needs=asked.needs)
    score_night(spark, own_copy.root, night, asked)
    metrics = Results(own_copy.root).metrics(date=SECOND, slice="all", model_id="als")
    # als: ann's b has score 9 and gain 1; bob's d has score 10 and gain 1, his a has score 8 and gain 2.
    means = by(metrics, C.MEASURE, C.K, value=C.VALUE)
    assert means["MAE", 0] == pytest.approx((8 + (9 + 6) / 2) / 2, rel=0, abs=1e-12)
    assert means["RMSE", 0] == pytest.approx((8 + math.sqrt((9**2 + 6**2) / 2)) / 2, rel=0, abs=1e-12)

"""Measures of the judged items alone, of the lists that a night has published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.published.rescoring import past_nights, score_night
from rankeval_spark.config import load_config
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import Results
from tests.support.arrow_frames import by
from tests.support.nights import FIRST, recommendations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


def test_published_lists_are_scored_with_the_judged_items_alone(spark: SparkSession, own_copy: Workspace) -> None:
    """Of als: ann's list a b c is then a c, bob's b a d is d, eve's c d a is empty, and kim has none."""
    (night,) = past_nights(spark, own_copy.root, evaluation="nightly", dates=[FIRST])
    score_night(spark, own_copy.root, night, MeasureSet.parse(["R(judged_only=True)@1"]))
    rows = Results(own_copy.root).user_metrics(date=FIRST, evaluation="nightly", k=1, model_id="als")
    values = by(rows, "user_id", value="r_judged_only_true")
    assert {user: values[user] for user in ("ann", "bob", "eve", "kim")} == {"ann": 1 / 2, "bob": 1, "eve": 0, "kim": 0}


def test_published_lists_that_kept_their_ranks_are_not_scored_so(spark: SparkSession, own_copy: Workspace) -> None:
    rows = [{**row, "rank": int(11 - row["score"])} for row in recommendations()]
    own_copy.write("recommendations", rows)
    own_copy.change(policies={"rank_gaps": "keep"})
    run_night(spark, load_config(own_copy.config, ()), FIRST)
    (night,) = past_nights(spark, own_copy.root, evaluation="nightly", dates=[FIRST])
    with pytest.raises(ConfigError, match=r"--measure: found RR\(judged_only=True\) with rank_gaps 'keep'"):
        score_night(spark, own_copy.root, night, MeasureSet.parse(["RR(judged_only=True)@2"]))

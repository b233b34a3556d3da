"""Ratios of sums over users in a night: denominators are published with the values, and the audit recomputes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from rankeval_spark import columns as C
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import load_config
from rankeval_spark.results import Results
from tests.support import arrow_frames
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


def test_night_publishes_denominators_with_the_values_and_its_audit_agrees(
    spark: SparkSession, own_copy: Workspace
) -> None:
    own_copy.change(measures=["P(agg='micro')", "RMSE(agg='micro')", "GMAP@2", "RR"])
    run_night(spark, load_config(own_copy.config, ()), FIRST)
    results = Results(own_copy.root)
    rows = results.user_metrics(date=FIRST, evaluation="nightly", k=2, model_id="als")
    weights = arrow_frames.by(rows, C.USER_ID, value="p_agg_micro__weight")
    assert weights == {"ann": 2, "bob": 2, "eve": 2, "kim": 2, "ida": None}
    means = arrow_frames.by(
        results.metrics(date=FIRST, evaluation="nightly", slice="all", model_id="als"), C.MEASURE, C.K, value=C.VALUE
    )
    assert means["P(agg='micro')", 2] == pytest.approx(1 / 8, rel=0, abs=1e-12)
    # Scores are 10, 9, 8. ann: a at 10 for 3, c at 8 for 1; bob: d at 8 for 2; eve and kim have no prediction.
    assert means["RMSE(agg='micro')", 0] == pytest.approx(math.sqrt((7**2 + 7**2 + 6**2) / 3), rel=0, abs=1e-12)
    values = results.user_values(date=FIRST, evaluation="nightly")
    assert set(values[C.MEASURE].to_pylist()) == {"P(agg='micro')", "RMSE(agg='micro')", "GMAP", "RR"}

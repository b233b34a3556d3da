"""The policy ``unit='list'`` in a night: what it publishes, and how it compares it with the night before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.apps.published.comparison import ComparisonSelection, compare_nights
from rankeval_spark.apps.published_runs import published_nights
from rankeval_spark.config import load_config
from rankeval_spark.results import Results
from tests.support import nights
from tests.support.arrow_frames import by, tuples
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.nights import Workspace


def test_night_publishes_means_over_lists_and_compares_them_with_the_night_before(
    spark: SparkSession, own_copy: Workspace
) -> None:
    morning = [{**row, "list_id": "morning"} for row in nights.recommendations()]
    evening = [
        {**row, "list_id": "evening", "score": {"a": 1.0, "b": 2.0}[row["item_id"]]}
        for row in nights.recommendations()
        if row["user_id"] == "ann" and row["item_id"] in ("a", "b")
    ]
    own_copy.write("recommendations", [*morning, *evening])
    rule = {"measure": "RR@2", "margin": 0.9, "against": "previous"}
    own_copy.change(policies={"unit": "list"}, measures=["RR", "P(agg='micro')"], gates=[rule])
    config = load_config(own_copy.config, ())
    run_night(spark, config, FIRST)
    second = run_night(spark, config, SECOND)

    results = Results(own_copy.root)
    of_night: dict[str, Any] = {"date": FIRST, "evaluation": "nightly"}
    rows = results.metrics(**of_night, slice="all", model_id="als", k=2)
    # ann hits at 1 in the morning and at 2 in the evening; bob, eve and kim, who has no list, count 0 once each.
    assert by(rows, "measure", value="value") == {
        "RR": pytest.approx((1 + 1 / 2 + 0 + 0 + 0) / 5, rel=0, abs=1e-12),
        "P(agg='micro')": pytest.approx((1 + 1 + 0 + 0 + 0) / (2 + 2 + 2 + 2 + 2), rel=0, abs=1e-12),
    }
    assert tuples(rows, "n_users", "n_lists") == [(4, 5), (4, 5)]
    two = published_nights(spark, own_copy.root, evaluation="nightly", dates=[FIRST, SECOND])
    assert {one.policies["unit"] for night in two for one in night.definitions.values()} == {"list"}

    compared = compare_nights(
        spark, own_copy.root, two[1], two[0], ComparisonSelection(models=["als"], measures=["RR"], ks=[2])
    ).rows
    means = {
        night.evaluation_date: by(
            results.metrics(date=night.evaluation_date, evaluation="nightly", slice="all", model_id="als", k=2),
            "measure",
            value="value",
        )["RR"]
        for night in two
    }
    assert [(row["value"], row["earlier_value"]) for row in compared] == [
        (pytest.approx(means[SECOND], rel=0, abs=1e-12), pytest.approx(means[FIRST], rel=0, abs=1e-12))
    ]
    assert compared[0]["n_common_users"] == 2
    # Judged, because min_slice_size alone decides about that; four users cannot show it.
    assert [gate["verdict"] for gate in second.gates if gate["model_id"] == "als"] == ["failed"]

"""A judged user for whom a measure is undefined has the measure's worst value where the population counts him."""

from __future__ import annotations

import math

import numpy as np

from rankeval_spark.engine import scorer
from rankeval_spark.measures import Lists, MeasureSet, Ranking

NOTHING_RELEVANT = Ranking([None, 0])
NOT_JUDGED = Ranking([None])


def test_judged_user_without_a_relevant_item_has_the_worst_value_of_each_measure() -> None:
    asked = MeasureSet.parse(["nDCG@5", "LogAP@5", "LogAP(floor=0.01)@5", "RBP@5", "RBPResidual@5"])
    lists = Lists.of([NOTHING_RELEVANT, NOT_JUDGED, Ranking([1])])
    filled = {
        column: scorer.filled(values, asked.is_requested_at(column), asked.by_column[column].without_relevant)[:, 0]
        for column, values in asked.score(lists).items()
    }
    assert {column: values[0] for column, values in filled.items()} == {
        "ndcg": 0,
        "logap": math.log(1e-5),
        "logap_floor_0_01": math.log(1 / 100),
        "rbp_p_0_8": 0,
        "rbpresidual_p_0_8": 1,
    }
    assert filled["ndcg"].tolist() == [0, 0, 1]  # who was not judged at all has no relevant item either


def test_user_without_a_relevant_item_can_count_as_served_perfectly() -> None:
    asked = MeasureSet.parse(["nDCG@5", "LogAP@5", "FirstHit@1"])
    assert {column: one.at_best for column, one in asked.by_column.items()} == {
        "ndcg": 1,
        "logap": math.log(1),
        "firsthit": 1,
    }


def test_cutoff_that_is_not_asked_for_stays_empty() -> None:
    asked = MeasureSet.parse(["LogAP@1", "nDCG@2"])
    lists = Lists.of([NOTHING_RELEVANT])
    values = asked.score(lists)["logap"]
    filled = scorer.filled(values, asked.is_requested_at("logap"), -1.0)
    np.testing.assert_array_equal(filled, [[-1.0, np.nan]])

"""A judged user for whom a measure is undefined has the measure's worst value where the population counts him."""

from __future__ import annotations

import math

import numpy as np

from rankeval_spark.engine.scorer import score_lists
from rankeval_spark.measures import MeasureSet
from tests.support import engine_rows

NOTHING_RELEVANT = {"n_recommended": 2, "hit_ranks": [2], "hit_gains": [0.0], "judged_gains": [0.0]}
NOT_JUDGED = {"n_recommended": 1}
RELEVANT = {"n_recommended": 1, "hit_ranks": [1], "hit_gains": [1.0], "judged_gains": [1.0]}


def test_judged_user_without_a_relevant_item_has_the_worst_value_of_each_measure() -> None:
    asked = MeasureSet.parse(["nDCG@5", "LogAP@5", "LogAP(floor=0.01)@5", "RBP@5", "RBPResidual@5"])
    lists = engine_rows.compact_lists(NOTHING_RELEVANT, NOT_JUDGED, RELEVANT)
    scored = score_lists(lists, asked, zero_relevant="zero", ties="item_asc").values
    filled = {column: values[:, 0] for column, values in scored.items()}
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
    scored = score_lists(engine_rows.compact_lists(NOTHING_RELEVANT), asked, zero_relevant="zero", ties="item_asc")
    np.testing.assert_array_equal(scored.values["logap"], [[math.log(1e-5), np.nan]])

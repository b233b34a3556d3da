"""Users who all have the same value: what their mean, and a comparison of groups, says about other users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from scipy import stats

from rankeval_spark import columns as C, evaluate
from tests.support.arrow_frames import by, table

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

N: Final = 36
MEASURES: Final = ("nDCG@2", "AP@2", "RR@2", "R(agg='micro')@2", "Success@2", "GMAP@2", "DCG@2")
ENDS: Final = ("value", "ci_low", "ci_high", "ci_method")


@pytest.fixture(scope="module")
def evaluated() -> Evaluation:
    """36 users of AT without a hit, 36 of DE with the same hit at rank 1, 36 of FR: every other one has it."""
    users = [(f"{country}{number}", country, number) for country in ("AT", "DE", "FR") for number in range(N)]
    hits = {"AT": "xy", "DE": "ax", "FR": "ax"}
    lists = [(user, "xy" if number % 2 and country == "FR" else hits[country]) for user, country, number in users]
    log = table(
        "user_id item_id score", *((user, item, -place) for user, own in lists for place, item in enumerate(own))
    )
    held_out = table("user_id item_id gain", *((user, "a", 1.0) for user, *_ in users))
    segments = table("user_id country", *((user, country) for user, country, _ in users))
    return evaluate(log, held_out, measures=MEASURES, segments=segments, slices=["country"])


def wilson(n_hits: int, level: float = 0.95) -> tuple[float, float]:
    found = stats.binomtest(n_hits, N).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def test_mean_of_users_who_are_equal_has_the_interval_of_wilson(evaluated: Evaluation) -> None:
    value, low, high, method = (by(evaluated.metrics, C.MEASURE, C.SLICE_VALUE, value=name) for name in ENDS)
    for country, n_hits in (("AT", 0), ("DE", N)):
        for measure in ("nDCG", "AP", "RR", "R(agg='micro')", "Success"):
            key = measure, country
            assert (low[key], high[key]) == pytest.approx(wilson(n_hits), rel=0, abs=1e-12), key
            assert (value[key], method[key]) == (n_hits / N, "wilson"), key
    assert high["GMAP", "AT"] == pytest.approx(wilson(0)[1], rel=0, abs=1e-4)
    assert (value["GMAP", "AT"], method["GMAP", "AT"]) == (pytest.approx(1e-5, rel=1e-12), "wilson")
    assert method["nDCG", "FR"] == "hall"


def test_mean_of_equal_users_has_no_interval_where_the_measure_has_no_greatest_value(evaluated: Evaluation) -> None:
    value, low, high, method = (by(evaluated.metrics, C.MEASURE, C.SLICE_VALUE, value=name) for name in ENDS)
    for country, expected in (("AT", 0.0), ("DE", 1.0)):
        key = "DCG", country
        assert (value[key], low[key], high[key], method[key]) == (expected, None, None, "none")
    assert low["DCG", "FR"] is not None


def test_worst_group_without_a_hit_has_the_bounds_of_success_of_all_groups(evaluated: Evaluation) -> None:
    value, low, high, method = (by(evaluated.group_metrics, C.MEASURE, value=name) for name in ENDS)
    for measure in ("nDCG", "AP", "RR", "R(agg='micro')", "Success"):
        key = f"WorstGroup({measure})"
        assert (value[key], low[key], method[key]) == (0.0, 0.0, "simultaneous")
        assert high[key] == pytest.approx(wilson(0, 1 - 0.05 / 3)[1], rel=0, abs=1e-12), key
        assert high[f"GroupRatio({measure})"] > 0
    gap = low["GroupGap(Success)"], high["GroupGap(Success)"]
    assert (low["GroupGap(nDCG)"], high["GroupGap(nDCG)"]) == pytest.approx(gap, rel=0, abs=1e-12)
    assert {method[f"{kind}(DCG)"] for kind in ("WorstGroup", "GroupGap", "GroupRatio")} == {"none"}

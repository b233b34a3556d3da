"""Intervals of means and p-values of few users: skewed, of equal users, of textbook topics, by bootstrap."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from scipy import stats

from rankeval_spark import columns as C, evaluate
from rankeval_spark.measures import Measure, with_cutoff
from rankeval_spark.statistics import hashed_random, intervals
from tests.support.arrow_frames import by, dicts, in_chunks, table, tuples
from tests.support.logs import Logs
from tests.support.sections import measured
from tests.support.skewed import hall
from tests.support.textbook import X, Z

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark import Evaluation


# ---- intervals of skewed means: within the range of their measure, and marked where few users decide about them ----


BOUNDED: Final = (
    "RR@10",
    "nDCG@10",
    "P@3",
    "R(agg='micro')@10",
    "AP@10",
    "RBP(p=0.8)@10",
    "Success@10",
    "GMAP@10",
    "DCG@10",
)


def judged(n_users: int, n_hits: int) -> tuple[pa.Table, pa.Table]:
    """Each user has a judgement of item a, which is in the lists of the first users, at ranks 1, 2, 3, 1, ..."""
    lists = {f"u{user:03}": (["axy", "xay", "xya"][user % 3] if user < n_hits else "xyz") for user in range(n_users)}
    rows = [(user, item, -float(place)) for user, items in lists.items() for place, item in enumerate(items)]
    return table("user_id item_id score", *rows), table("user_id item_id gain", *((user, "a", 1.0) for user in lists))


@pytest.mark.parametrize("n_users", [1, 2, 3, 5, 30])
@pytest.mark.parametrize("n_hits", [0, 1, 2, 30])
@pytest.mark.parametrize("asked", [{}, {"unit": "list"}, {"intervals": "bootstrap", "replicates": 200}])
def test_no_interval_of_a_mean_leaves_the_range_of_its_measure(n_users: int, n_hits: int, asked: Any) -> None:  # noqa: ANN401 - arguments of any type
    for row in dicts(measured(*judged(n_users, n_hits), measures=BOUNDED, **asked).metrics):
        least, greatest = Measure.parse(with_cutoff(row["measure"], row["k"])).bounds
        if row["ci_low"] is not None:
            assert least <= row["ci_low"] <= row["value"] + 1e-12, row
            assert row["value"] - 1e-12 <= row["ci_high"] <= greatest, row


def test_interval_of_a_mean_is_halls_of_its_users_on_any_chunks() -> None:
    """Of 40 users 13 have a hit: at rank 1 five, at rank 2 four, at rank 3 four."""
    values = [1.0] * 5 + [1 / 2] * 4 + [1 / 3] * 4 + [0.0] * 27
    low, high = hall(values, bounds=(0.0, 1.0))
    for n_chunks in (1, 7):
        inputs = (in_chunks(one, n_chunks) for one in judged(40, 13))
        (row,) = dicts(evaluate(*inputs, measures=["RR@10"]).metrics)
        assert (row["n_nonzero"], row["is_uncertain"], row["ci_method"]) == (13, False, "hall")
        assert row["ci_low"] == pytest.approx(low, rel=0, abs=1e-12)
        assert row["ci_high"] == pytest.approx(high, rel=0, abs=1e-12)


def test_means_that_fewer_than_ten_users_decide_about_are_marked() -> None:
    measures = ("RR@10", "R(agg='micro')@10", "GMAP@10", "LogAP@10", "Success@10")
    for n_hits, is_uncertain in ((0, True), (9, True), (20, False)):
        rows = dicts(evaluate(*judged(60, n_hits), measures=measures).metrics)
        found = {row["measure"]: (row["n_nonzero"], row["is_uncertain"]) for row in rows}
        assert found.pop("Success") == (n_hits, False)  # Wilson's interval needs no spread
        assert set(found.values()) == {(n_hits, is_uncertain)}


def test_one_value_that_decides_alone_marks_a_mean_of_many() -> None:
    """A hundred users have a value, 99 of them 1 and one 1,000."""
    log = table("user_id item_id score", *((f"u{user}", "a", 1.0) for user in range(100)))
    held_out = table("user_id item_id gain", *((f"u{user}", "a", 1000.0 if user == 7 else 1.0) for user in range(100)))
    (row,) = dicts(evaluate(log, held_out, measures=["CG@1"]).metrics)
    assert (row["n_nonzero"], row["is_uncertain"]) == (100, True)


def test_measures_of_all_lists_are_not_marked() -> None:
    (row,) = dicts(evaluate(*judged(40, 13), measures=["ItemCoverage@1"]).metrics)
    assert (row["n_nonzero"], row["is_uncertain"]) == (None, None)


@pytest.mark.parametrize("n_users", [2, 3, 5])
@pytest.mark.parametrize("asked", [{}, {"unit": "list"}])
def test_no_interval_of_a_difference_leaves_the_range_of_differences(n_users: int, asked: Any) -> None:  # noqa: ANN401 - arguments of any type
    """One user has a hit under one model, all others under the other."""
    rows = [
        (model, f"u{user}", "a" if (user > 0) == (model == "new") else "x", 1.0)
        for model in ("base", "mid", "new")
        for user in range(n_users)
    ]
    held_out = table("user_id item_id gain", *((f"u{user}", "a", 1.0) for user in range(n_users)))
    log = table("model_id user_id item_id score", *rows)
    tests = ("t", "bootstrap", "tukey")
    asked |= {"pairs": "all", "tests": tests, "replicates": 100}
    catalogue = table("item_id", ("a",), ("x",))
    measures = ["RR@10", "P@1", "R(agg='micro')@1", "MCC@1"]
    found = measured(log, held_out, measures=measures, items=catalogue, **asked).comparisons
    ends = [row for row in dicts(found) if row["ci_low"] is not None]
    assert {row["test"] for row in ends} >= {"t", "tukey"}
    for row in ends:
        width = 2 if row["measure"] == "MCC" else 1
        assert -width <= row["ci_low"] <= row["delta"] + 1e-12 <= row["ci_high"] + 2e-12 <= width + 2e-12, row
        if row["relative_ci_low"] is not None and row["measure"] != "MCC":
            assert row["relative_ci_low"] >= -1, row


# ---- users who all have the same value: what their mean, and a comparison of groups, says about other users --------


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


# ---- an experiment on a few topics: ``min_slice_size`` alone says whether it has p-values --------------------------


PLACES = 10


def topics() -> tuple[pa.Table, pa.Table]:
    """Make lists of ten items, first the relevant ones: P@10 of a topic is its number in the textbook, in tenths."""
    rows = [
        (model, f"topic{topic}", f"{'hit' if place < hits else 'miss'}{place}", float(-place))
        for model, values in (("x", X), ("z", Z))
        for topic, hits in enumerate(values)
        for place in range(PLACES)
    ]
    judged = [(f"topic{topic}", f"hit{place}", 1.0) for topic in range(len(X)) for place in range(PLACES)]
    return table("model_id user_id item_id score", *rows), table("user_id item_id gain", *judged)


def exact_p() -> float:
    """Share of all signs of the differences whose sum lies as far from 0 as that of the table, or further."""
    sums = Counter({0: 1})
    for difference in (x - z for x, z in zip(X, Z, strict=True)):
        step: Counter[int] = Counter()
        for total, ways in sums.items():
            step[total + difference] += ways
            step[total - difference] += ways
        sums = step
    observed = abs(sum(X) - sum(Z))
    extreme = sum(ways for total, ways in sums.items() if abs(total) >= observed)
    return extreme / float(2 ** len(X))


@pytest.mark.parametrize(("least", "reason"), [(2, None), (20, None), (21, "few_users"), (30, "few_users")])
def test_twenty_topics_have_a_p_where_min_slice_size_lets_them(least: int, reason: str | None) -> None:
    recommendations, held_out = topics()
    result = measured(recommendations, held_out, measures=["P@10"], baseline="z", min_slice_size=least)
    (row,) = dicts(result.comparisons)
    assert (row["n_users"], row["is_small"], row["reason"]) == (20, reason is not None, reason)
    assert row["delta"] == pytest.approx((sum(X) - sum(Z)) / (PLACES * len(X)), rel=0, abs=1e-12)
    assert row["p_value"] == (None if reason else pytest.approx(exact_p(), rel=1e-9))


@pytest.mark.parametrize("least", [20, 21])
def test_few_differences_have_students_p_where_it_is_asked_for(least: int) -> None:
    """Other tests of the same call stay what they are; whether few users have a p is for min_slice_size to say."""
    recommendations, held_out = topics()
    asked: dict[str, Any] = {"baseline": "z", "tests": ["t", "randomization"], "few_differences": "t"}
    result = measured(recommendations, held_out, measures=["P@10"], min_slice_size=least, **asked)
    of_t, of_signs = sorted(dicts(result.comparisons), key=lambda row: str(row["test"] != "t"))
    expected = stats.ttest_rel(X, Z).pvalue
    assert of_t["p_value"] == (pytest.approx(expected, rel=1e-9) if least == 20 else None)
    assert of_signs["p_value"] == (pytest.approx(exact_p(), rel=1e-9) if least == 20 else None)
    assert (of_t["method"], of_signs["method"], of_t["reason"]) == ("t", "exact", None if least == 20 else "few_users")


# ---- bootstrap intervals the whole way: against replicates that are drawn from the users' values in numpy ----------


LOGS: Final = Logs.make(seed=20260107)
MEANS: Final = ("nDCG@3", "Success@3", "R(agg='micro')@3", "GMAP")
REPLICATES: Final = 200
SEED: Final = 11
LEVEL: Final = 0.9
KEY: Final = (C.MODEL_ID, C.SLICE_VALUE, C.MEASURE)
SPREAD: Final = ("std_error", "ci_low", "ci_high", "ci_method")


def drawn(measure: Measure, users: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Draw the users of a slice, whose rows of ``user_metrics`` are given: the columns SPREAD."""
    own = [row for row in users if row["k"] == measure.k and row[measure.column] is not None]
    below = np.array([row[measure.weight_column] if measure.weight_column else 1.0 for row in own])
    above = np.array([row[measure.column] for row in own]) * below
    hashes = hashed_random.hash_ids([row[C.USER_ID] for row in own])
    weights = hashed_random.poisson_weights(hashes, seed=SEED, replicates=REPLICATES).T.astype(np.float64)
    is_there = weights @ below > 0
    if (~is_there).mean() > 0.05:
        return (None, None, None, "none")
    found = (weights @ above)[is_there] / (weights @ below)[is_there]
    ends = intervals.to_published(measure.link, np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return (*(pytest.approx(float(each), rel=0, abs=1e-12) for each in (found.std(ddof=1), *ends)), "bootstrap")


@pytest.mark.parametrize(("n_chunks", "of_all_lists"), [(1, ()), (7, ("ItemCoverage@3",))])
def test_intervals_are_those_of_users_drawn_in_numpy(n_chunks: int, of_all_lists: tuple[str, ...]) -> None:
    """Of two models and of slices, one of them unknown; measures of all lists keep the jackknife."""
    inputs = LOGS.tables().in_chunks(n_chunks)
    result = evaluate(
        inputs.recommendations,
        inputs.held_out,
        measures=[*MEANS, *of_all_lists],
        segments=inputs.segments,
        slices=["country"],
        intervals={"confidence": LEVEL, "method": "bootstrap", "replicates": REPLICATES, "seed": SEED},
    )
    found = {row[:3]: row[3:] for row in tuples(result.metrics, *KEY, *SPREAD)}
    users = dicts(result.user_metrics)
    expected: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for model, country in itertools.product(("als", "popular"), ("", "DE", "FR", C.UNKNOWN)):
        own = [row for row in users if row[C.MODEL_ID] == model and country in ("", country_of(row))]
        for text in MEANS:
            measure = Measure.parse(text)
            expected[model, country, measure.label] = drawn(measure, own)
    of_means = {key: values for key, values in found.items() if key[-1] != "ItemCoverage"}
    assert of_means == expected
    assert "bootstrap" in {values[-1] for values in of_means.values()}
    methods = {values[-1] for key, values in found.items() if key not in of_means}
    assert methods == ({"none"} if of_all_lists else set())  # 12 items are too few for an error of coverage


def country_of(row: dict[str, Any]) -> str:
    """Name the country of a user."""
    return dict(row[C.SEGMENTS]).get("country") or C.UNKNOWN

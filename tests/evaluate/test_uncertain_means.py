"""Intervals of skewed means: within the range of their measure, and marked where few users decide about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.measures import Measure, with_cutoff
from tests.support.arrow_frames import dicts, in_chunks, table
from tests.support.sections import sections
from tests.support.skewed import hall

if TYPE_CHECKING:
    import pyarrow as pa

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
    for row in dicts(evaluate(*judged(n_users, n_hits), **sections(measures=BOUNDED, **asked)).metrics):
        least, greatest = Measure.parse(with_cutoff(row["measure"], row["k"])).entry.published_bounds
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
    found = evaluate(log, held_out, **sections(measures=measures, items=catalogue, **asked)).comparisons
    ends = [row for row in dicts(found) if row["ci_low"] is not None]
    assert {row["test"] for row in ends} >= {"t", "tukey"}
    for row in ends:
        width = 2 if row["measure"] == "MCC" else 1
        assert -width <= row["ci_low"] <= row["delta"] + 1e-12 <= row["ci_high"] + 2e-12 <= width + 2e-12, row
        if row["relative_ci_low"] is not None and row["measure"] != "MCC":
            assert row["relative_ci_low"] >= -1, row

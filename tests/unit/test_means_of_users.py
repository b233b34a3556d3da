"""From scored rows to means with their health counts and intervals."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rankeval_spark import columns as C
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.engine.aggregates import PartialAggregator
from rankeval_spark.engine.outputs import list_count_column, to_user_means
from rankeval_spark.engine.planning import build_outputs
from rankeval_spark.engine.slices import PACKED, segment_column_names
from rankeval_spark.measures import MeasureSet
from rankeval_spark.statistics import intervals
from rankeval_spark.sums.published import pack_segments
from rankeval_spark.sums.sums import Means
from tests.support.arrow_frames import scored_rows, tuples
from tests.support.skewed import hall

if TYPE_CHECKING:
    from collections.abc import Sequence

ASKED = MeasureSet.parse(["P@1", "Success@1"])


def metrics(
    scored: pa.Table,
    slices: Sequence[tuple[str, ...]] = (),
    measures: MeasureSet = ASKED,
    n_partitions: int = 1,
) -> pa.Table:
    """Summarise users, with a smallest slice of 2 users."""
    request = Request(
        measures=tuple(map(str, measures.measures)), slices=tuple(slices), slicing=Slicing(min_slice_size=2)
    )
    users = scored
    if request.segments:
        users = users.append_column(PACKED, pack_segments(scored[C.SEGMENTS].combine_chunks(), request.segments))
    by, lists = tuple(segment_column_names(request.every_slice)), tuple(map(list_count_column, measures.columns))
    has_lists = lists[0] in scored.column_names
    summariser = PartialAggregator(measures.columns, {}, by, measures.ks, None, lists if has_lists else ())
    parts = (users.take(list(range(place, users.num_rows, n_partitions))) for place in range(n_partitions))
    partials = [batch for part in parts for batch in summariser.summarise(iter(part.to_batches()))]
    return Means(request, build_outputs(request, averages_lists=has_lists)).finish(pa.Table.from_batches(partials))


def both(*rows: dict[str, Any]) -> pa.Table:
    """Rows with both measures."""
    return scored_rows(*rows, measures=("p", "success"))


def test_a_mean_comes_with_its_spread_and_its_interval() -> None:
    users = both(*({"user_id": f"{p}", "p": p, "success": float(p > 0)} for p in (0.0, 1 / 2, 1.0)))
    found = metrics(users)
    m2 = 1 / 4 + 1 / 4
    ends = (pytest.approx(end, rel=0, abs=1e-12) for end in hall((0.0, 1 / 2, 1.0), bounds=(0.0, 1.0)))
    names = ("measure", "k", "value", "n_users", "std_dev", "std_error", "ci_low", "ci_high", "ci_level", "ci_method")
    (by_p, by_success) = tuples(found, *names)
    assert by_p == ("P", 1, 1 / 2, 3, sqrt(m2 / 2), pytest.approx(sqrt(m2 / 2 / 3), abs=1e-15), *ends, 0.95, "hall")
    low, high = map(float, intervals.wilson_interval(3, 2 / 3, 3 * 2 / 3 * 1 / 3, 0.95))
    assert by_success[:4] == ("Success", 1, 2 / 3, 3)
    assert by_success[6:] == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12), 0.95, "wilson")


def test_undefined_users_are_counted_and_not_averaged() -> None:
    users = both(
        {"user_id": "ann", "p": 1.0, "success": 1.0},
        {"user_id": "bob", "p": None, "success": 0.0, "n_relevant": 0},
        {"user_id": "cat", "p": 0.0, "success": 0.0, "n_recommended": 0, "has_ties": None},
        {"user_id": "dan", "n_judged": 0, "n_relevant": 0, "_is_evaluated": False, "has_ties": True},
        {"user_id": "eve", "p": 1 / 2, "success": 1.0, "has_ties": True},
    )
    counts = ("n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users", "tie_share")
    assert tuples(metrics(users), "measure", "value", *counts) == [
        ("P", (1 + 0 + 1 / 2) / 3, 3, 1, 1, 1, 1, 1 / 3),
        ("Success", (1 + 0 + 0 + 1) / 4, 4, 0, 1, 1, 1, 1 / 3),
    ]


@pytest.mark.parametrize(("n_users", "method"), [(0, "none"), (1, "none"), (2, "wilson")])
def test_few_users_have_no_spread_and_no_interval(n_users: int, method: str) -> None:
    """Of two users who are equal, Wilson's upper bound of those who are not is z^2 / (2 + z^2)."""
    z = NormalDist().inv_cdf(0.975)
    rows: list[dict[str, Any]] = [{"user_id": "none", "p": None}]
    rows += ({"user_id": f"{n}", "p": 1.0} for n in range(n_users))
    found = metrics(scored_rows(*rows), measures=MeasureSet.parse(["P@1"]))
    low = {"none": None, "wilson": pytest.approx(1 - z**2 / (2 + z**2), abs=1e-12)}[method]
    spread, high = {"none": (None, None), "wilson": (0.0, 1.0)}[method]
    names = ("value", "n_users", "is_small", "std_dev", "std_error", "ci_low", "ci_high", "ci_method")
    assert tuples(found, *names) == [
        (1.0 if n_users else None, n_users, n_users < 2, spread, spread, low, high, method)
    ]


def test_slices_hold_every_value_null_as_unknown_and_crossings_as_pairs() -> None:
    homes = [("FR", "tv", 1.0), ("FR", None, 0.0), (None, None, 1 / 2), ("a*b", "(unknown)", 1 / 4)]
    users = scored_rows(
        *({"user_id": f"{n}", "segments": {"country": c, "device": d}, "p": p} for n, (c, d, p) in enumerate(homes)),
    )
    found = metrics(users, slices=[("country",), ("country", "device")], measures=MeasureSet.parse(["P@1"]))
    assert tuples(found, "slice", "slice_value", "slice_values", "value", "n_users") == [
        ("all", "", [], (1 + 0 + 1 / 2 + 1 / 4) / 4, 4),
        ("country", '"a*b"', ["a*b"], 1 / 4, 1),
        ("country", "(unknown)", [None], 1 / 2, 1),
        ("country", "FR", ["FR"], (1 + 0) / 2, 2),
        ("country*device", '"a*b"*"(unknown)"', ["a*b", "(unknown)"], 1 / 4, 1),
        ("country*device", "(unknown)*(unknown)", [None, None], 1 / 2, 1),
        ("country*device", "FR*(unknown)", ["FR", None], 0.0, 1),
        ("country*device", "FR*tv", ["FR", "tv"], 1.0, 1),
    ]


def test_where_each_user_has_one_list_there_are_as_many_lists_as_users() -> None:
    users = both({"user_id": "ann", "p": 1.0, "success": 1.0}, {"user_id": "bob", "p": None, "success": 0.0})
    assert tuples(metrics(users), "measure", "n_users", "n_lists") == [("P", 1, 1), ("Success", 2, 2)]


def test_each_measure_is_reported_at_its_own_cutoffs_only() -> None:
    rows = [{"user_id": "u", "k": k, "p": None if k == 0 else 1.0, "success": 1.0} for k in (1, 5, 0)]
    asked = MeasureSet.parse(["P@1", "P@5", "Success"])
    found = metrics(both(*rows), measures=asked)
    assert tuples(found, "measure", "k", "value") == [("P", 1, 1.0), ("P", 5, 1.0), ("Success", 0, 1.0)]


def test_a_constant_has_no_spread_however_it_is_partitioned() -> None:
    rows = ({"user_id": f"{n}", "p": 0.1} for n in range(70))
    found = metrics(scored_rows(*rows), measures=MeasureSet.parse(["P@1"]), n_partitions=7)
    ((value, deviation),) = tuples(found, "value", "std_dev")
    assert value == pytest.approx(0.1, abs=1e-15)
    assert 0 <= deviation < 1e-15


def over_lists(*rows: dict[str, Any]) -> pa.Table:
    """Average the lists of each user."""
    return to_user_means(both(*rows), measures=ASKED.columns, denominators={}, unit="user")


def test_a_value_is_the_mean_over_users_of_the_mean_over_their_lists() -> None:
    """One list of 1; lists 1, 0, 0, 0: the mean is 5 / 8 over users, and would be 2 / 5 over lists."""
    lists = [("ann", "1", 1.0), *(("bob", f"{n}", float(n == 0)) for n in range(4))]
    users = over_lists(
        *({"user_id": user, "list_id": name, "p": p, "success": p, "has_ties": p == 1.0} for user, name, p in lists)
    )
    assert tuples(users, "user_id", "p", "has_ties", "_is_evaluated") == [
        ("ann", 1.0, 1.0, True),
        ("bob", 1 / 4, 1 / 4, True),
    ]
    assert tuples(metrics(users), "measure", "value", "n_users", "n_lists", "tie_share") == [
        ("P", (1 + 1 / 4) / 2, 2, 5, (1 + 1 / 4) / 2),
        ("Success", (1 + 1 / 4) / 2, 2, 5, (1 + 1 / 4) / 2),
    ]


def test_a_list_counts_if_its_measure_is_defined_and_its_user_is_in_the_mean() -> None:
    """Ann has a list of two undefined; Bob none, which counts 0; Cat has no value; Dan is outside the population."""
    users = over_lists(
        {"user_id": "ann", "list_id": "1", "p": 1.0, "success": 1.0, "segments": {"country": "FR"}},
        {"user_id": "ann", "list_id": "2", "p": None, "success": 0.0, "segments": {"country": "FR"}},
        {"user_id": "bob", "p": 0.0, "success": 0.0, "n_recommended": 0, "has_ties": None},
        {"user_id": "cat", "list_id": "1", "p": None, "success": 1.0},
        {"user_id": "cat", "list_id": "2", "p": None, "success": 1.0},
        {"user_id": "dan", "list_id": "1", "n_judged": 0, "n_relevant": 0, "_is_evaluated": False},
    )
    found = tuples(metrics(users, slices=[("country",)]), "slice_value", "measure", "n_users", "n_lists")
    assert found == [
        ("", "P", 2, 2),
        ("", "Success", 3, 5),
        ("(unknown)", "P", 1, 1),
        ("(unknown)", "Success", 2, 3),
        ("FR", "P", 1, 1),
        ("FR", "Success", 1, 2),
    ]

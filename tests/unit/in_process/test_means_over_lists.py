"""Means over lists with users as clusters, without a session: moments, spread and intervals against the formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankeval_spark import columns as C
from rankeval_spark.config import Policies
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import ReportedSlices
from rankeval_spark.engine import aggregates, planning
from rankeval_spark.engine.aggregates import AggregateLayout
from rankeval_spark.engine.outputs import list_count_column
from rankeval_spark.engine.scorer import COUNTED, IS_EVALUATED
from rankeval_spark.measures import MeasureSet
from rankeval_spark.result_rows import metric_rows
from tests.support.skewed import hall

ASKED: Final = MeasureSet.parse(["P@1", "Success@1"])
LEVEL: Final = 0.9
NUMBERS: Final = ("value", "n_users", "n_lists", "std_dev", "std_error", "ci_low", "ci_high")

Lists = list[list[float]]
"""Values of the lists of each user."""


def metrics(users: Lists, *, unit: str, n_partitions: int = 1) -> dict[str, dict[str, Any]]:
    """Summarise as the workers do: a row of ``metrics`` by measure; both have the same values."""
    weights = _denominators(ASKED, unit)
    lists = tuple(map(list_count_column, ASKED.columns))
    summariser = aggregates.PartialAggregator(ASKED.columns, dict(weights), ((),), ASKED.ks, None, lists)
    rows = [_row(own) for own in users]
    schema = pa.Table.from_pylist([_row([0.5])]).schema
    parts = (pa.Table.from_pylist(rows[part::n_partitions], schema=schema) for part in range(n_partitions))
    batches = [batch for part in parts for batch in summariser.summarise(iter(part.to_batches()))]
    state = AggregateLayout.from_columns(ASKED.columns, weights, has_lists=True)
    finisher = metric_rows.MetricRows(ASKED, state, ReportedSlices([()], 1, LEVEL))
    found = [row for batch in finisher.finish(iter(batches)) for row in batch.to_pylist()]
    return {row[C.MEASURE]: row for row in found}


def _row(own: list[float]) -> dict[str, Any]:
    """Return the row of a user, as ``to_user_means`` makes it; NULL without a list."""
    mean, n = (sum(own) / len(own), float(len(own))) if own else (None, None)
    values = {name: mean for name in ASKED.columns} | {f"{name}__lists": n for name in ASKED.columns}
    return {C.MODEL_ID: "als", C.K: 1, **dict.fromkeys(COUNTED, 1), IS_EVALUATED: True, **values}


def _denominators(measures: MeasureSet, unit: str) -> Mapping[str, str]:
    policies = Policies.model_validate({"unit": unit})
    request = Request(measures=tuple(map(str, measures.measures)), policies=policies)
    return planning.build_outputs(request, averages_lists=True).denominators


def of_clusters(users: Lists) -> tuple[float, float, int]:
    """Mean over lists and its standard error: var = U/(U-1) sum (S_u - mean L_u)^2 / (sum L)^2; and U."""
    there = [own for own in users if own]
    sums, sizes = np.array([sum(own) for own in there]), np.array([len(own) for own in there], dtype=np.float64)
    n, mean = len(there), sums.sum() / sizes.sum()
    if n == 1:
        return mean, math.nan, n
    return mean, math.sqrt(n / (n - 1) * ((sums - mean * sizes) ** 2).sum()) / sizes.sum(), n


def wilson(n: float, mean: float) -> tuple[float, float]:
    """Wilson's interval of n trials."""
    z = stats.norm.ppf((1 + LEVEL) / 2)
    centre, half = mean + z**2 / 2 / n, z * math.sqrt(mean * (1 - mean) / n + z**2 / 4 / n**2)
    return max(0.0, (centre - half) / (1 + z**2 / n)), min(1.0, (centre + half) / (1 + z**2 / n))


def assert_same_numbers(found: dict[str, dict[str, Any]], wanted: dict[str, dict[str, Any]]) -> None:
    for measure, row in wanted.items():
        numbers, expected = (
            np.array([each[name] for name in NUMBERS], dtype=np.float64) for each in (found[measure], row)
        )
        np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-12, err_msg=measure)


values = st.sampled_from([0.0, 1 / 4, 1 / 2, 3 / 4, 1.0])
some_users = st.lists(st.lists(values, max_size=4), min_size=2, max_size=12).filter(any)


@pytest.mark.parametrize(("unit", "mean"), [("user", 1 / 2), ("list", 1 / 4)])
def test_lists_1_and_0_0_0_of_two_users_give_a_half_or_a_quarter(unit: str, mean: float) -> None:
    row = metrics([[1.0], [0.0, 0.0, 0.0]], unit=unit)["P"]
    assert (row["value"], row["n_users"], row["n_lists"]) == (mean, 2, 4)


@given(users=some_users, n_partitions=st.integers(1, 3))
def test_spread_of_a_mean_over_lists_is_that_of_its_clusters(users: Lists, n_partitions: int) -> None:
    row = metrics(users, unit="list", n_partitions=n_partitions)["P"]
    mean, error, n = of_clusters(users)
    assert (row["n_users"], row["n_lists"]) == (n, sum(map(len, users)))
    assert row["value"] == pytest.approx(mean, rel=0, abs=1e-12)
    if n == 1:
        assert (row["std_error"], row["ci_low"], row["ci_method"]) == (None, None, "none")
        return
    are_equal = error < 1e-9
    most, there = wilson(n, 0.0)[1], [own for own in users if own]
    sums, sizes = [sum(own) for own in there], [float(len(own)) for own in there]
    of_equal = (1 - most) * mean, (1 - most) * mean + most
    ends = of_equal if are_equal else hall(sums, sizes, level=LEVEL, bounds=(0.0, 1.0))
    found = (row["std_error"], row["std_dev"], row["ci_low"], row["ci_high"])
    np.testing.assert_allclose(found, (error, error * math.sqrt(n), *ends), rtol=0, atol=1e-12)
    assert row["ci_method"] == ("wilson" if are_equal else "delta")


@given(users=some_users)
def test_interval_of_a_share_of_lists_is_wilsons_of_as_many_trials_as_vary_as_much(users: Lists) -> None:
    """The variance is that of the clusters without the factor U / (U - 1), so that single lists are U trials."""
    row = metrics(users, unit="list")["Success"]
    mean, error, n = of_clusters(users)
    if n == 1:
        assert row["ci_low"] is None
        return
    trials = n if error < 1e-9 else mean * (1 - mean) / (error**2 * (n - 1) / n)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(wilson(trials, mean), rel=0, abs=1e-12)
    assert row["ci_method"] == "wilson"


@given(one_list_each=st.lists(values, min_size=1, max_size=20))
def test_where_each_user_has_one_list_the_unit_makes_no_difference(one_list_each: list[float]) -> None:
    users = [[value] for value in one_list_each]
    over_users, over_lists = (metrics(users, unit=unit) for unit in ("user", "list"))
    assert_same_numbers(over_lists, over_users)


@given(users=st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=12))
def test_with_as_many_lists_for_every_user_mean_and_interval_are_those_over_users(users: Lists) -> None:
    over_users, over_lists = (metrics(users, unit=unit) for unit in ("user", "list"))
    assert_same_numbers(over_lists, over_users)


def test_denominators_of_ratios_stay_theirs_and_those_of_means_are_numbers_of_lists() -> None:
    asked = MeasureSet.parse(["P@1", "R(agg='micro')@1"])
    assert _denominators(asked, "user") == {"r_agg_micro": "r_agg_micro__weight"}
    assert _denominators(asked, "list") == {"p": "p__lists", "r_agg_micro": "r_agg_micro__weight"}

"""Counts of values: exact while they are few, a grid above, and the same however users are cut; quantiles of them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from rankeval_spark.statistics.value_counts import EXACT, MAX_VALUES, EncodedColumns, ValueCounts, merge_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARES: Final = (0.0, 0.07, 0.1, 0.25, 0.5, 0.9, 1.0)

few_values = arrays(
    np.float64,
    (30, 2),
    elements=st.sampled_from([0.0, -0.0, 0.25, 1 / 3, 1.0, -2.0]) | st.floats(-1, 1) | st.just(np.nan),
)


def naive(values: Sequence[float], share: float) -> float:
    """Give the first of the sorted values that the share does not exceed."""
    ordered = sorted(value for value in values if not math.isnan(value))
    for place, value in enumerate(ordered, 1):
        if Fraction(str(share)) <= Fraction(place, len(ordered)):
            return value
    return math.nan


def assert_equal(one: ValueCounts, other: ValueCounts) -> None:
    for name in ("cell", "value", "count", "exponent"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(values=few_values, group=arrays(np.int64, 30, elements=st.integers(0, 2)))
def test_quantiles_of_few_values_are_values_of_users(values: np.ndarray, group: np.ndarray) -> None:
    counts = EncodedColumns.from_columns(values).by_group(group, 3)
    wanted = [
        [naive(values[group == one, column].tolist(), share) for share in SHARES]
        for one in range(3)
        for column in range(2)
    ]
    np.testing.assert_array_equal(counts.quantiles(SHARES), wanted)
    assert (counts.exponent == EXACT).all()
    assert (counts.error == 0).all()


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1000])
def test_quantiles_are_those_of_numpy_and_duckdb(n: int) -> None:
    values = np.random.default_rng(n).random(n)
    # Shares that are binary fractions: numpy and DuckDB multiply in doubles, where 0.07 x 100 is above 7.
    shares = [0.125, 0.25, 0.5, 0.75, 1.0]
    found = EncodedColumns.from_columns(values[:, None]).by_group(np.zeros(n, dtype=np.int64), 1).quantiles(shares)[0]
    np.testing.assert_array_equal(found, np.quantile(values, shares, method="inverted_cdf"))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE users AS SELECT unnest(?) AS value", [values.tolist()])
        (row,) = connection.execute("SELECT quantile_disc(value, [0.125, 0.25, 0.5, 0.75, 1]) FROM users").fetchall()
    assert row[0] == found.tolist()


def test_a_share_is_taken_as_it_is_written() -> None:
    values = np.arange(1.0, 101.0)[:, None]
    counts = EncodedColumns.from_columns(values).by_group(np.zeros(100, dtype=np.int64), 1)
    assert counts.quantiles([0.07, 0.29, 0.57]).tolist() == [[7.0, 29.0, 57.0]]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-300, 1e-3, 1.0, 1e12]), cuts=st.integers(1, 6))
def test_counts_do_not_depend_on_the_cut_nor_on_the_order(seed: int, scale: float, cuts: int) -> None:
    draw = np.random.default_rng(seed)
    n_users = 7 * MAX_VALUES
    values = np.column_stack([draw.normal(size=n_users) * scale, draw.integers(0, 9, n_users) / 8])
    values[draw.random(values.shape) < 0.1] = np.nan
    group = np.where(draw.random(n_users) < 0.9, 0, 1)
    whole = EncodedColumns.from_columns(values).by_group(group, 2)
    assert (whole.exponent != EXACT).tolist() == [True, False, False, False]
    ends = np.sort(draw.integers(0, n_users, cuts - 1))
    places = np.arange(4)
    parts = [
        (EncodedColumns.from_columns(of_values).by_group(of_group, 2), places)
        for of_values, of_group in zip(np.split(values, ends), np.split(group, ends), strict=True)
    ]
    assert_equal(merge_counts(parts, 4), whole)
    assert_equal(merge_counts([parts[place] for place in draw.permutation(cuts)], 4), whole)
    nested = parts[0]
    for part in parts[1:]:
        nested = (merge_counts([part, nested], 4), places)
    assert_equal(nested[0], whole)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-3, 1.0, 1e12]))
def test_quantiles_of_many_values_are_rounded_down_to_the_grid(seed: int, scale: float) -> None:
    values = np.random.default_rng(seed).random(4 * MAX_VALUES) * scale
    counts = EncodedColumns.from_columns(values[:, None]).by_group(np.zeros(len(values), dtype=np.int64), 1)
    assert len(counts.value) <= MAX_VALUES
    found, (error,) = counts.quantiles(SHARES)[0], counts.error
    exact = np.array([naive(values.tolist(), share) for share in SHARES])
    np.testing.assert_array_equal(found, np.floor(exact / error) * error)
    finer = np.unique(np.floor(values / (error / 2)))
    assert len(finer) > MAX_VALUES  # no finer grid would do


def test_values_between_0_and_1_are_within_half_a_thousandth() -> None:
    values = np.append(np.random.default_rng(0).random(100_000), [0.0, 1.0])
    counts = EncodedColumns.from_columns(values[:, None]).by_group(np.zeros(len(values), dtype=np.int64), 1)
    assert counts.error.tolist() == [2**-11]
    assert counts.quantiles([0.0, 1.0]).tolist() == [[0.0, 1.0]]


def test_values_far_apart_keep_their_own_places() -> None:
    draw = np.random.default_rng(0)
    values = np.concatenate([draw.random(3000), [-1e300, 1e308, -1e308]])
    counts = EncodedColumns.from_columns(values[:, None]).by_group(np.zeros(len(values), dtype=np.int64), 1)
    assert counts.quantiles([0.0, 1.0]).tolist() == [[-1e308, 1e308]]
    assert abs(counts.quantiles([0.5])[0, 0] - np.median(values)) < 2**-10


@given(values=few_values, group=arrays(np.int64, 30, elements=st.integers(0, 2)))
def test_cells_are_written_and_read(values: np.ndarray, group: np.ndarray) -> None:
    counts = EncodedColumns.from_columns(values).by_group(group, 3)
    parts = [
        (ValueCounts.from_bytes(state, 2), 2 * place + np.arange(2)) for place, state in enumerate(counts.to_bytes(2))
    ]
    assert_equal(merge_counts(parts, 6), counts)


def test_cells_that_become_one_are_added_up() -> None:
    counts = EncodedColumns.from_columns(np.array([[0.5], [0.5], [1.0]])).by_group(np.array([0, 1, 1]), 2)
    both = merge_counts([(counts, np.array([0, 0]))], 1)
    assert (both.value.tolist(), both.count.tolist()) == ([0.5, 1.0], [2, 1])


def test_without_users_there_is_no_quantile() -> None:
    for n_rows in (0, 3):
        counts = EncodedColumns.from_columns(np.full((n_rows, 2), np.nan)).by_group(np.zeros(n_rows, dtype=np.int64), 1)
        assert np.isnan(counts.quantiles([0.5])).all()
    assert np.isnan(merge_counts([], 2).quantiles([0.5])).all()

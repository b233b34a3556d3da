"""Moments by group: exact, mergeable, and free of negative variances."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from rankeval_spark.statistics import moments

if TYPE_CHECKING:
    from rankeval_spark.statistics.moments import Moments

N_GROUPS = 4

values_or_undefined = st.floats(-1e3, 1e3) | st.just(np.nan)
shapes = st.tuples(st.integers(0, 30), st.integers(1, 3))


@st.composite
def grouped(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Values of a few columns with the group of each row."""
    shape = draw(shapes)
    values = draw(arrays(np.float64, shape, elements=values_or_undefined))
    return values, draw(arrays(np.int64, shape[0], elements=st.integers(0, N_GROUPS - 1)))


def assert_same(left: Moments, right: Moments) -> None:
    """Compare moments up to rounding of values of the order 1000."""
    np.testing.assert_array_equal(left.n, right.n)
    np.testing.assert_allclose(left.mean, right.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(left.m2, right.m2, rtol=1e-9, atol=1e-6)


@given(rows=grouped())
def test_moments_are_those_of_a_naive_loop(rows: tuple[np.ndarray, np.ndarray]) -> None:
    values, group = rows
    found = moments.moments_by_group(values, group, N_GROUPS)
    for code in range(N_GROUPS):
        for column in range(values.shape[1]):
            own = [value for value in values[group == code, column] if not np.isnan(value)]
            mean = sum(own) / len(own) if own else np.nan
            assert found.n[code, column] == len(own)
            np.testing.assert_allclose(found.mean[code, column], mean, rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.m2[code, column], sum((x - mean) ** 2 for x in own), rtol=1e-9, atol=1e-6)


@given(rows=grouped(), data=st.data())
def test_merging_any_split_gives_the_moments_of_the_whole(
    rows: tuple[np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    values, group = rows
    cut = data.draw(st.integers(0, len(values)))
    parts = [moments.moments_by_group(values[part], group[part], N_GROUPS) for part in (slice(cut), slice(cut, None))]
    assert_same(parts[0].merge(parts[1]), moments.moments_by_group(values, group, N_GROUPS))
    assert_same(parts[1].merge(parts[0]), moments.moments_by_group(values, group, N_GROUPS))


@given(rows=grouped())
def test_groups_of_a_partition_add_up_to_the_whole(rows: tuple[np.ndarray, np.ndarray]) -> None:
    values, group = rows
    by_group = moments.moments_by_group(values, group, N_GROUPS)
    whole = moments.moments_by_group(values, np.zeros_like(group), 1)
    np.testing.assert_array_equal(by_group.n.sum(axis=0), whole.n[0])
    total = np.nansum(by_group.n * by_group.mean, axis=0)
    np.testing.assert_allclose(total, np.nan_to_num(whole.n[0] * whole.mean[0]), rtol=0, atol=1e-6)


eighths = st.integers(-80, 80).map(lambda number: number / 8)


@given(rows=st.lists(eighths, max_size=40), cut=st.integers(0, 40), n_parts=st.integers(1, 5))
def test_cubed_deviations_of_any_split_are_those_of_fractions(rows: list[float], cut: int, n_parts: int) -> None:
    values, group = np.array(rows).reshape(-1, 1), np.zeros(len(rows), dtype=np.int64)
    exact = [Fraction(value) for value in rows]
    mean = sum(exact, Fraction(0)) / max(len(exact), 1)
    expected = float(sum((value - mean) ** 3 for value in exact))

    def cubed(part: slice) -> Moments:
        return moments.Columns.from_values(values[part]).by_group(group[part], 1, has_cubes=True)

    one, other = cubed(slice(cut)), cubed(slice(cut, None))
    place = np.arange(len(rows)) % n_parts
    parts = moments.Columns.from_values(values).by_group(place, n_parts, has_cubes=True)
    whole = (
        cubed(slice(None)),
        one.merge(other),
        other.merge(one),
        parts.merge_rows(np.zeros(n_parts, dtype=np.int64), 1),
    )
    for found in whole:
        assert found.m3 is not None
        np.testing.assert_allclose(found.m3, [[expected]], rtol=1e-12, atol=1e-9)


def test_moments_without_cubes_stay_without_them_whatever_they_are_merged_with() -> None:
    values, group = np.array([[1.0], [2.0]]), np.zeros(2, dtype=np.int64)
    with_cubes, without = (
        moments.Columns.from_values(values).by_group(group, 1, has_cubes=each) for each in (True, False)
    )
    assert with_cubes.merge(without).m3 is None
    assert (len(without.numbers), len(with_cubes.numbers)) == (3, 4)


def test_blocks_of_a_long_column_merge_to_the_same_moments() -> None:
    rng = np.random.default_rng(0)
    values, group = rng.random((30_000, 2)), rng.integers(0, 3, 30_000)
    found = moments.moments_by_group(values, group, 3)
    for code in range(3):
        own = values[group == code]
        np.testing.assert_allclose(found.mean[code], own.mean(axis=0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.variance[code], own.var(axis=0, ddof=1), rtol=1e-12, atol=0)
        np.testing.assert_allclose(found.std_error[code] ** 2 * len(own), found.variance[code], rtol=1e-12, atol=0)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e9 + 0.1])
def test_constant_column_has_a_variance_of_0_and_never_less(constant: float) -> None:
    found = moments.moments_by_group(np.full((20_001, 1), constant), np.zeros(20_001, dtype=np.int64), 1)
    assert 0 <= np.sqrt(found.variance[0, 0]) <= 1e-12 * max(1, constant)


@pytest.mark.parametrize("constant", [0.1, 0.3, 1 / 3, 2 / 3, 1e9 + 0.1])
@pytest.mark.parametrize("n", [4, 1000, 20_001])
def test_mean_of_a_constant_is_the_constant(constant: float, n: int) -> None:
    values = np.full((2 * n, 2), constant)
    values[n:, 1] = np.nan
    found = moments.moments_by_group(values, np.arange(2 * n) % 2, 2)
    np.testing.assert_array_equal(found.mean, np.full((2, 2), constant))
    half = 3 * found.std_error
    assert (found.mean - half <= constant).all()
    assert (found.mean + half >= constant).all()


def test_mean_of_values_that_hardly_differ_is_that_of_an_exact_sum() -> None:
    values = 0.1 + 1e-15 * np.random.default_rng(0).random((8000, 1))
    found = moments.moments_by_group(values, np.zeros(8000, dtype=np.int64), 1)
    exact = math.fsum(values[:, 0]) / 8000
    assert abs(found.mean[0, 0] - exact) <= np.spacing(exact)


@pytest.mark.parametrize("n_users", [3, 7, 10, 1000, 8000])
def test_mean_of_zeros_and_ones_is_their_share(n_users: int) -> None:
    for n_ones in {1, n_users // 3, n_users // 2, n_users - 1}:
        sorted_ones = (np.arange(n_users) < n_ones).astype(float)[:, None]
        found = moments.moments_by_group(sorted_ones, np.zeros(n_users, dtype=np.int64), 1)
        assert found.mean[0, 0] == n_ones / n_users


def test_large_offset_costs_no_precision() -> None:
    values = np.array([[1e9 + 1.0], [1e9 + 2.0], [1e9 + 3.0]])
    assert moments.moments_by_group(values, np.zeros(3, dtype=np.int64), 1).variance[0, 0] == 1.0


def test_one_value_has_no_variance_and_none_has_no_mean() -> None:
    found = moments.moments_by_group(np.array([[5.0], [np.nan]]), np.array([0, 1]), 3)
    np.testing.assert_array_equal(found.n[:, 0], [1, 0, 0])
    np.testing.assert_array_equal(found.mean[:, 0], [5.0, np.nan, np.nan])
    np.testing.assert_array_equal(found.m2[:, 0], [0.0, 0.0, 0.0])
    assert np.isnan(found.variance).all()
    assert np.isnan(found.std_error).all()


@pytest.mark.parametrize("code", [-1, 2])
def test_group_outside_the_range_is_refused(code: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to 1"):
        moments.moments_by_group(np.zeros((1, 1)), np.array([code]), 2)

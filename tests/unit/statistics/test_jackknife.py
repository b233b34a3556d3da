"""The delete-a-group jackknife: that of a mean is the usual error, and what has no spread has none."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from rankeval_spark.statistics import intervals


@given(values=st.lists(st.floats(-5, 5), min_size=2, max_size=20))
def test_of_a_mean_it_is_the_error_and_the_interval_of_the_mean(values: list[float]) -> None:
    each = np.array(values)
    without = np.array([[np.delete(each, place).mean() for place in range(len(each))]])
    found = intervals.delete_a_group(np.array([each.mean()]), without, np.ones_like(without, dtype=int), 0.9, (-99, 99))
    low, high = intervals.t_interval(len(each), each.mean(), ((each - each.mean()) ** 2).sum(), 0.9)
    np.testing.assert_allclose(found.std_error, each.std(ddof=1) / np.sqrt(len(each)), rtol=0, atol=1e-12)
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high], rtol=0, atol=1e-12)


def test_groups_without_users_are_left_out_and_one_group_has_no_spread() -> None:
    value, without = np.array([2.0, 2.0, 2.0]), np.array([[2.5, 2.0, 1.5, 2.0], [9, 9, 9, 9], [2.5, np.nan, 1.5, 2]])
    n_users = np.array([[7, 7, 7, 0], [7, 0, 0, 0], [7, 7, 7, 7]])
    found = intervals.delete_a_group(value, without, n_users, 0.95, (0, 10))
    np.testing.assert_allclose(found.std_error, [np.sqrt(1 / 3), np.nan, np.nan], rtol=0, atol=1e-12)
    assert np.isnan([found.low[1:], found.high[1:]]).all()


def test_the_interval_is_cut_to_the_range() -> None:
    without = np.array([[0.0, 1.0, 0.5]])
    found = intervals.delete_a_group(np.array([0.5]), without, np.ones((1, 3), dtype=int), 0.95, (0, 1))
    assert (found.low[0], found.high[0]) == (0, 1)


def test_a_number_that_grows_with_the_users_hardly_depends_on_group_sizes() -> None:
    """A sum of ones over 20 groups of 40 to 59 users: the error is less than that of one more or less in a group."""
    n_users = np.arange(40, 60)[None]
    total = np.float64(n_users.sum())
    found = intervals.delete_a_group(np.array([total]), total - n_users, n_users, 0.95, (0, 9999))
    assert 0 < found.std_error[0] < 2
    ordinary = np.sqrt(19 / 20 * ((n_users - n_users.mean()) ** 2).sum())
    assert ordinary > 25


def test_the_mean_over_groups_of_unequal_size_has_the_error_of_their_means() -> None:
    """Groups of 1 and 3 users with means 0 and 1: pseudo-values are the means, weights 1/4 and 3/4."""
    found = intervals.delete_a_group(np.array([3 / 4]), np.array([[1.0, 0.0]]), np.array([[1, 3]]), 0.95, (0, 1))
    variance = ((0 - 3 / 4) ** 2 / (4 - 1) + (1 - 3 / 4) ** 2 / (4 / 3 - 1)) / 2
    np.testing.assert_allclose(found.std_error, [np.sqrt(variance)], rtol=0, atol=1e-12)

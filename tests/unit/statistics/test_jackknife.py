"""The delete-a-group jackknife: that of a mean is the usual error, and what has no spread has none."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from rankeval_spark.statistics import intervals


@given(values=st.lists(st.floats(-5, 5), min_size=2, max_size=20))
def test_of_a_mean_it_is_the_error_and_the_interval_of_the_mean(values: list[float]) -> None:
    each = np.array(values)
    without = np.array([[np.delete(each, place).mean() for place in range(len(each))]])
    found = intervals.delete_a_group(
        np.array([each.mean()]), without, np.ones_like(without, dtype=bool), 0.9, (-99, 99)
    )
    low, high = intervals.t_interval(len(each), each.mean(), ((each - each.mean()) ** 2).sum(), 0.9)
    np.testing.assert_allclose(found.std_error, each.std(ddof=1) / np.sqrt(len(each)), rtol=0, atol=1e-12)
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high], rtol=0, atol=1e-12)


def test_groups_without_users_are_left_out_and_one_group_has_no_spread() -> None:
    value, without = np.array([2.0, 2.0, 2.0]), np.array([[2.5, 2.0, 1.5, 2.0], [9, 9, 9, 9], [2.5, np.nan, 1.5, 2]])
    has_users = np.array([[True, True, True, False], [True, False, False, False], [True, True, True, True]])
    found = intervals.delete_a_group(value, without, has_users, 0.95, (0, 10))
    np.testing.assert_allclose(found.std_error, [np.sqrt(1 / 3), np.nan, np.nan], rtol=0, atol=1e-12)
    assert np.isnan([found.low[1:], found.high[1:]]).all()


def test_the_interval_is_cut_to_the_range() -> None:
    without = np.array([[0.0, 1.0, 0.5]])
    found = intervals.delete_a_group(np.array([0.5]), without, np.ones((1, 3), dtype=bool), 0.95, (0, 1))
    assert (found.low[0], found.high[0]) == (0, 1)

"""Intervals are those of scipy where it has them, hold what they promise elsewhere, and the jackknife."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankeval_spark.statistics import intervals

levels = st.sampled_from([0.5, 0.9, 0.95, 0.99])


@given(eighths=st.lists(st.integers(-80, 80), min_size=2, max_size=20, unique=True), level=levels)
def test_t_interval_is_that_of_scipy(eighths: list[int], level: float) -> None:
    values = np.array(eighths) / 8
    n, mean, m2 = len(values), np.mean(values), np.var(values) * len(values)
    expected = stats.t.interval(level, n - 1, mean, stats.sem(values))
    np.testing.assert_allclose(intervals.t_interval(n, mean, m2, level), expected, rtol=1e-9, atol=1e-9)


@given(n=st.integers(2, 500), data=st.data(), level=levels)
def test_wilson_interval_of_zeros_and_ones_is_that_of_scipy(n: int, data: st.DataObject, level: float) -> None:
    hits = data.draw(st.integers(0, n))
    share = hits / n
    expected = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
    found = intervals.wilson_interval(n, share, n * share * (1 - share), level)
    np.testing.assert_allclose(found, (expected.low, expected.high), rtol=0, atol=1e-9)


def test_shares_of_several_lists_a_user_make_a_narrower_interval_than_zeros_and_ones() -> None:
    halves = np.array([0.0, 0.5, 0.5, 1.0])
    ones = np.array([0.0, 0.0, 1.0, 1.0])
    widths = [
        np.subtract(*intervals.wilson_interval(4, values.mean(), ((values - 0.5) ** 2).sum(), 0.95)[::-1])
        for values in (halves, ones)
    ]
    assert widths[0] < widths[1]


def test_n_eff_is_mean_times_rest_over_the_variance_of_the_mean() -> None:
    # Values 0, 1/2, 1/2, 1: m2 / n = 1/8, so n_eff = 4 * (1/4) / (1/8) = 8, as if four of eight had a hit.
    expected = stats.binomtest(4, 8).proportion_ci(0.95, method="wilson")
    found = intervals.wilson_interval(4, 0.5, 4 * 1 / 8, 0.95)
    np.testing.assert_allclose(found, (expected.low, expected.high), rtol=0, atol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1e-30])
def test_users_who_all_have_the_same_share_count_as_one_trial_each(noise: float) -> None:
    expected = stats.binomtest(5, 10).proportion_ci(0.95, method="wilson")
    found = intervals.wilson_interval(10, 0.5, noise, 0.95)
    np.testing.assert_allclose(found, (expected.low, expected.high), rtol=0, atol=1e-9)


@given(n=st.integers(2, 1000), mean=st.floats(0, 1), level=levels)
def test_wilson_interval_holds_the_mean_and_stays_between_0_and_1(n: int, mean: float, level: float) -> None:
    low, high = intervals.wilson_interval(n, mean, n * mean * (1 - mean), level)
    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1


def test_fewer_than_two_users_have_no_interval() -> None:
    counts, means = np.array([0, 1]), np.array([np.nan, 0.5])
    for interval in (intervals.t_interval, intervals.wilson_interval):
        assert np.isnan(interval(counts, means, np.zeros(2), 0.95)).all()


def test_mean_that_is_no_share_has_no_wilson_interval() -> None:
    assert np.isnan(intervals.wilson_interval(10, [-0.5, 2.0], [1.0, 1.0], 0.95)).all()


def test_intervals_keep_the_shape_of_their_input() -> None:
    n = np.array([[2, 30], [5, 1]])
    for interval in (intervals.t_interval, intervals.wilson_interval):
        low, high = interval(n, np.full((2, 2), 0.5), np.full((2, 2), 0.4), 0.95)
        assert low.shape == high.shape == (2, 2)


def test_equal_values_are_bounded_by_the_share_of_users_who_may_have_an_extreme() -> None:
    z = stats.norm.ppf(0.95)
    most = z**2 / (40 + z**2)
    for least, greatest in ((0.0, 1.0), (-1.0, 1.0), (2.0, 10.0)):
        for value in (least, least + (greatest - least) / 4, greatest):
            found = intervals.equal_values_interval(40, value, (least, greatest), 0.9)
            ends = (1 - most) * value + most * least, (1 - most) * value + most * greatest
            np.testing.assert_allclose(found, ends, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "bounds"), [(1, (0, 1)), (40, (0, np.inf)), (40, (-np.inf, np.inf)), (40, (np.nan,) * 2), (40, (0, 0.4))]
)
def test_equal_values_have_no_interval_without_users_or_a_range(n: int, bounds: tuple[float, float]) -> None:
    assert np.isnan(intervals.equal_values_interval(n, 0.5, bounds, 0.95)).all()


def test_values_are_equal_but_for_the_rounding_of_their_mean() -> None:
    rows = [
        (0, np.nan, 0.0),
        (1, 0.5, 0.0),
        (2, 0.5, 0.0),
        (3000, 0.1, 3000 * 1e-30),
        (3000, 0.1, 1e-8),
        (9, 0.0, 1e-9),
    ]
    assert intervals.are_equal(*zip(*rows, strict=True)).tolist() == [False, False, True, True, False, False]


def test_users_who_are_equal_by_chance_do_not_exclude_the_mean() -> None:
    """One user in 50 has a hit, with an nDCG of 1/2: of 2,000 samples of 30 users, more than half are all 0."""
    draw = np.random.default_rng(5)
    values = 0.5 * (draw.random((30, 2000)) < 0.02)
    is_equal = intervals.are_equal(30, values.mean(axis=0), 30 * values.var(axis=0))
    low, high = intervals.equal_values_interval(30, values.mean(axis=0)[is_equal], (0, 1), 0.95)
    assert is_equal.mean() > 0.5
    assert ((low <= 0.01) & (high >= 0.01)).all()


def skewed(values: list[float], bounds: tuple[float, float], level: float = 0.95) -> tuple[float, float]:
    """Interval of the mean of some values."""
    apart = np.array(values) - np.mean(values)
    sums = (apart**2).sum(), (apart**3).sum()
    low, high = intervals.skewed_interval(len(values), np.mean(values), *sums, bounds, level)
    return float(low), float(high)


NOWHERE: Final = (-np.inf, np.inf)


@given(eighths=st.lists(st.integers(-80, 80), min_size=2, max_size=20, unique=True), level=levels)
def test_halls_interval_has_as_ends_where_the_transformed_t_is_that_of_student(
    eighths: list[int], level: float
) -> None:
    values = np.array(eighths) / 8
    n, quantile = len(values), stats.t.ppf((1 + level) / 2, len(values) - 1)
    skewness = stats.skew(values)
    ends = [(values.mean() - end) / stats.sem(values) for end in skewed(values.tolist(), NOWHERE, level)]
    a = skewness / 3 / np.sqrt(n)
    found = [t + a * t**2 + a**2 * t**3 / 3 + skewness / 6 / np.sqrt(n) for t in ends]
    np.testing.assert_allclose(found, (quantile, -quantile), rtol=1e-9, atol=1e-9)


def test_values_that_are_not_skewed_have_students_interval() -> None:
    expected = stats.t.interval(0.95, 4, 3.0, stats.sem([1, 2, 3, 4, 5]))
    np.testing.assert_allclose(skewed([1, 2, 3, 4, 5], NOWHERE), expected, rtol=0, atol=1e-12)


@given(
    values=st.lists(st.integers(-8, 8).map(lambda number: number / 8), min_size=2, max_size=12),
    least=st.sampled_from([-1.0, -3.0, -np.inf]),
    greatest=st.sampled_from([1.0, 2.0, np.inf]),
    level=st.sampled_from([0.05, 0.5, 0.95, 0.999]),
)
def test_halls_interval_holds_the_mean_and_stays_in_the_range(
    values: list[float], least: float, greatest: float, level: float
) -> None:
    low, high = skewed(values, (least, greatest), level)
    assert least - 1e-12 <= low <= np.mean(values) <= high <= greatest + 1e-12


@pytest.mark.parametrize("n_hits", [1, 3, 10])
def test_values_of_0_and_1_have_no_wider_interval_than_a_share(n_hits: int) -> None:
    """Wilson's, with the quantile of t: of 20 users some have 1 and the others 0."""
    share, square = n_hits / 20, stats.t.ppf(0.975, 19) ** 2
    half = np.sqrt(square * (share * (1 - share) / 20 + square / 4 / 20**2))
    low, high = skewed([1.0] * n_hits + [0.0] * (20 - n_hits), (0.0, 1.0))
    assert low >= (share + square / 40 - half) / (1 + square / 20) - 1e-12
    assert high == pytest.approx((share + square / 40 + half) / (1 + square / 20), rel=0, abs=1e-12)


@pytest.mark.parametrize(("values", "expected"), [([0, 0, 0, 1], 2 / np.sqrt(3)), ([1, 1, 1], 0.0), ([0, 1], 0.0)])
def test_skewness_is_that_of_the_users(values: list[float], expected: float) -> None:
    apart = np.array(values) - np.mean(values)
    assert intervals.skewness(len(values), (apart**2).sum(), (apart**3).sum()) == pytest.approx(expected, abs=1e-12)


def test_intervals_of_few_or_very_skewed_values_are_uncertain() -> None:
    """Of 100 users 9 or 13 have 1/2: too few, and enough; one of 200 has a value 100 times that of the others."""
    few, enough = [0.5] * 9 + [0.0] * 91, [0.5] * 13 + [0.0] * 87
    for values, is_uncertain in (
        (few, True),
        (enough, False),
        ([1.0] * 199 + [100.0], True),
        ([1.0, 2.0] * 100, False),
    ):
        apart = np.array(values) - np.mean(values)
        sums = len(values), (apart**2).sum(), (apart**3).sum(), np.count_nonzero(values)
        assert intervals.are_uncertain(*map(np.array, sums)) == is_uncertain


@given(values=st.lists(st.floats(-5, 5), min_size=2, max_size=20))
def test_of_a_mean_it_is_the_error_and_the_interval_of_the_mean(values: list[float]) -> None:
    each = np.array(values)
    without = np.array([[np.delete(each, place).mean() for place in range(len(each))]])
    found = intervals.jackknife(np.array([each.mean()]), without, np.ones_like(without, dtype=int), 0.9, (-99, 99))
    low, high = intervals.t_interval(len(each), each.mean(), ((each - each.mean()) ** 2).sum(), 0.9)
    np.testing.assert_allclose(found.std_error, each.std(ddof=1) / np.sqrt(len(each)), rtol=0, atol=1e-12)
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high], rtol=0, atol=1e-12)


def test_groups_without_users_are_left_out_and_one_group_has_no_spread() -> None:
    value, without = np.array([2.0, 2.0, 2.0]), np.array([[2.5, 2.0, 1.5, 2.0], [9, 9, 9, 9], [2.5, np.nan, 1.5, 2]])
    n_users = np.array([[7, 7, 7, 0], [7, 0, 0, 0], [7, 7, 7, 7]])
    found = intervals.jackknife(value, without, n_users, 0.95, (0, 10))
    np.testing.assert_allclose(found.std_error, [np.sqrt(1 / 3), np.nan, np.nan], rtol=0, atol=1e-12)
    assert np.isnan([found.low[1:], found.high[1:]]).all()


def test_the_interval_is_cut_to_the_range() -> None:
    without = np.array([[0.0, 1.0, 0.5]])
    found = intervals.jackknife(np.array([0.5]), without, np.ones((1, 3), dtype=int), 0.95, (0, 1))
    assert (found.low[0], found.high[0]) == (0, 1)


def test_a_number_that_grows_with_the_users_hardly_depends_on_group_sizes() -> None:
    """A sum of ones over 20 groups of 40 to 59 users: the error is less than that of one more or less in a group."""
    n_users = np.arange(40, 60)[None]
    total = np.float64(n_users.sum())
    found = intervals.jackknife(np.array([total]), total - n_users, n_users, 0.95, (0, 9999))
    assert 0 < found.std_error[0] < 2
    ordinary = np.sqrt(19 / 20 * ((n_users - n_users.mean()) ** 2).sum())
    assert ordinary > 25


def test_the_mean_over_groups_of_unequal_size_has_the_error_of_their_means() -> None:
    """Groups of 1 and 3 users with means 0 and 1: pseudo-values are the means, weights 1/4 and 3/4."""
    found = intervals.jackknife(np.array([3 / 4]), np.array([[1.0, 0.0]]), np.array([[1, 3]]), 0.95, (0, 1))
    variance = ((0 - 3 / 4) ** 2 / (4 - 1) + (1 - 3 / 4) ** 2 / (4 / 3 - 1)) / 2
    np.testing.assert_allclose(found.std_error, [np.sqrt(variance)], rtol=0, atol=1e-12)

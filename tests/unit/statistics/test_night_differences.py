"""Means of two nights that share some users, and a metric that leaves the band of its own recent nights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankeval_spark.statistics import moments, night_differences, ratios
from rankeval_spark.statistics.night_differences import Nights, RatioNights

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark.statistics.night_differences import Shift

Clusters = dict[int, list[float]]
"""Values of the lists of each user."""


def compared(now: dict[int, float], before: dict[int, float]) -> Shift:
    """Compare two nights, each a value by user."""

    def column(values: list[float]) -> np.ndarray:
        return np.array(values, dtype=np.float64).reshape(-1, 1)

    def codes(values: np.ndarray) -> np.ndarray:
        return np.zeros(len(values), dtype=np.int64)

    common = [user for user in now if user in before]
    x, y = column([now[user] for user in common]), column([before[user] for user in common])
    one, other = column(list(now.values())), column(list(before.values()))
    return night_differences.compare_nights(
        Nights(
            moments.moments_by_group(one, codes(one), 1),
            moments.moments_by_group(other, codes(other), 1),
            ratios.ratio_moments_by_group(x, y, codes(x), 1),
        ),
        level=0.95,
    )


shares = st.just(0.0) | st.floats(1e-100, 1)
"""Without values whose squares are no doubles: nights of these have no standard error."""


@given(
    now=st.dictionaries(st.integers(0, 12), shares, min_size=2),
    before=st.dictionaries(st.integers(0, 12), shares, min_size=2),
)
def test_standard_error_takes_the_covariance_of_common_users_off(
    now: dict[int, float], before: dict[int, float]
) -> None:
    x, y = np.array(list(now.values())), np.array(list(before.values()))
    products = sum((now[user] - x.mean()) * (before[user] - y.mean()) for user in now if user in before)
    squares = x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y) - 2 * products / (len(x) * len(y))
    found = compared(now, before)
    np.testing.assert_allclose(found.std_error[0, 0] ** 2, max(squares, 0), rtol=0, atol=1e-12)
    assert found.delta[0, 0] == pytest.approx(x.mean() - y.mean(), abs=1e-12)


@given(values=arrays(np.float64, (2, 50), elements=shares))
def test_with_all_users_in_common_it_comes_near_to_the_paired_test(values: np.ndarray) -> None:
    """The covariance is over n^2, not n (n - 1): the variance is too large by 2 cov / n^2 (n - 1)."""
    x, y = values
    found = compared(dict(enumerate(x)), dict(enumerate(y)))
    paired = (x - y).var(ddof=1) / 50
    surplus = 2 * np.cov(x, y)[0, 1] / 50**2
    np.testing.assert_allclose(found.std_error[0, 0] ** 2, paired + surplus, rtol=0, atol=1e-12)
    assert found.freedom[0, 0] == 49


def test_same_night_twice_has_p_1() -> None:
    night = dict(enumerate(np.linspace(0, 1, 40)))
    found = compared(night, night)
    assert (found.delta[0, 0], found.p[0, 0]) == (0.0, 1.0)
    constant = dict.fromkeys(range(40), 0.5)
    found = compared(constant, constant)
    assert [float(each[0, 0]) for each in (found.delta, found.p, found.p_less, found.p_greater)] == [0, 1, 1, 1]


@pytest.mark.parametrize(("n_now", "n_before"), [(1000, 1013), (40, 47)])
def test_what_rounding_makes_of_equal_values_is_no_change(n_now: int, n_before: int) -> None:
    """The mean of so many times 0.7 is not quite 0.7."""
    now, before = dict.fromkeys(range(n_now), 0.7), dict.fromkeys(range(n_before), 0.7)
    found = compared(now, before)
    assert [float(each[0, 0]) for each in (found.delta, found.std_error, found.low)] == [0, 0, 0]
    assert [float(each[0, 0]) for each in (found.p, found.p_less, found.p_greater)] == [1, 1, 1]
    users, everyone = np.arange(n_before)[:, None], np.zeros(n_before, dtype=np.int64)
    tonight, last_night = np.where(users < n_now, 0.7, np.nan), np.full((n_before, 1), 0.7)
    change = night_differences.relative_change_of_nights(
        night_differences.nights_by_group(tonight, last_night, everyone, everyone, 1), level=0.95
    )
    assert [float(each[0, 0]) for each in change] == [0, 0, 0, 0]


def test_without_common_users_it_is_the_test_of_two_samples() -> None:
    draw = np.random.default_rng(1)
    x, y = draw.random(60), draw.random(60)
    found = compared(dict(enumerate(x)), {user + 100: value for user, value in enumerate(y)})
    oracle = stats.ttest_ind(x, y, equal_var=False)
    assert found.delta[0, 0] / found.std_error[0, 0] == pytest.approx(oracle.statistic, rel=1e-12)
    assert found.p[0, 0] >= oracle.pvalue


def test_one_user_has_no_shift() -> None:
    found = compared({1: 0.5}, {1: 0.4, 2: 0.3})
    assert np.isnan([found.std_error[0, 0], found.low[0, 0], found.p[0, 0]]).all()


@given(
    values=arrays(np.float64, (2, 30), elements=st.floats(0.1, 1)),
    groups=arrays(np.int64, (2, 30), elements=st.integers(0, 1)),
    cut=st.integers(0, 30),
)
def test_nights_merge_as_one_pass_over_all_users_and_survive_the_way_as_bytes(
    values: np.ndarray, groups: np.ndarray, cut: int
) -> None:
    now, before = (each.reshape(-1, 1) for each in values)
    whole = night_differences.nights_by_group(now, before, groups[0], groups[1], 2)
    first, second = (
        night_differences.nights_by_group(now[part], before[part], groups[0][part], groups[1][part], 2)
        for part in (slice(0, cut), slice(cut, None))
    )
    for index, (one, other) in enumerate(zip(first.to_bytes(), second.to_bytes(), strict=True)):
        merged = night_differences.Nights.from_bytes(one).merge(night_differences.Nights.from_bytes(other))
        for found, expected in (
            (merged.now.n, whole.now.n),
            (merged.before.mean, whole.before.mean),
            (merged.common.numerator.n, whole.common.numerator.n),
            (merged.common.cross, whole.common.cross),
        ):
            np.testing.assert_allclose(found[0], expected[index], rtol=0, atol=1e-12)
    in_both = [(groups[0] == groups[1]) & (groups[0] == index) for index in (0, 1)]
    assert whole.common.numerator.n.ravel().tolist() == [int(each.sum()) for each in in_both]


def test_relative_change_is_the_difference_of_nights_scaled_by_the_ratio() -> None:
    """With r = 3/2: the numerator of the delta method is the variance of mean x - r mean y."""
    x, y = np.array([1.0, 2.0, 3.0, 6.0]), np.array([1.0, 3.0, 1.0, 3.0])
    everyone = np.zeros(4, dtype=np.int64)
    found = night_differences.relative_change_of_nights(
        night_differences.nights_by_group(x[:, None], y[:, None], everyone, everyone, 1), level=0.95
    )
    assert found.value[0, 0] == pytest.approx(3 / 2 - 1, abs=1e-12)
    share, products = 3 / 2, float(((x - 3) * (y - 2)).sum())
    squares = x.var(ddof=1) / 4 - 2 * share * products / 16 + share**2 * y.var(ddof=1) / 4
    assert found.std_error[0, 0] == pytest.approx(np.sqrt(squares) / 2, abs=1e-12)
    assert found.high[0, 0] - found.value[0, 0] == pytest.approx(
        stats.t.ppf(0.975, 3) * found.std_error[0, 0], abs=1e-12
    )
    nothing = night_differences.nights_by_group(x[:, None], 0 * y[:, None], everyone, everyone, 1)
    assert np.isnan(night_differences.relative_change_of_nights(nothing, level=0.95).value[0, 0])


some_clusters = st.dictionaries(
    st.integers(0, 12), st.lists(st.sampled_from([0.0, 1 / 4, 1 / 2, 1.0]), min_size=1, max_size=4), min_size=2
)


def over_lists(now: Clusters, before: Clusters, part: slice = slice(None)) -> RatioNights:
    """Aggregate sums and numbers of lists of some of the users of both nights."""
    users = sorted({*now, *before})[part]
    nobody = [math.nan, math.nan]
    sides = (
        np.array([[sum(night[one]), len(night[one])] if one in night else nobody for one in users]).reshape(-1, 2)
        for night in (now, before)
    )
    (own, n_own), (earlier, n_earlier) = ((side[:, :1], side[:, 1:]) for side in sides)
    group = np.zeros(len(users), dtype=np.int64)
    return night_differences.ratio_nights_by_group((own, n_own), (earlier, n_earlier), group, group, 1)


def shifted(found: Nights) -> tuple[float, float]:
    shift = night_differences.compare_nights(found, level=0.95)
    return float(shift.delta[0, 0]), float(shift.std_error[0, 0])


@given(now=some_clusters, before=some_clusters, cut=st.integers(0, 13))
def test_nights_of_lists_are_compared_by_what_each_user_moves_the_means_over_them(
    now: Clusters, before: Clusters, cut: int
) -> None:
    def moved(night: Clusters) -> tuple[float, dict[int, float]]:
        n_lists = sum(map(len, night.values()))
        mean = sum(map(sum, night.values())) / n_lists
        return mean, {one: (sum(own) - mean * len(own)) / (n_lists / len(night)) for one, own in night.items()}

    (mean, off), (earlier_mean, earlier_off) = moved(now), moved(before)
    own, earlier = (np.array(list(each.values())) for each in (off, earlier_off))
    products = sum(off[user] * earlier_off[user] for user in off if user in earlier_off)
    squares = own.var(ddof=1) / len(own) + earlier.var(ddof=1) / len(earlier) - 2 * products / len(own) / len(earlier)
    halves = [over_lists(now, before, part) for part in (slice(cut), slice(cut, None))]
    merged = halves[0].merge(halves[1])
    for found in (merged, RatioNights.from_bytes(merged.to_bytes()[0])):
        delta, error = shifted(found.as_means())
        assert delta == pytest.approx(mean - earlier_mean, rel=0, abs=1e-12)
        assert error**2 == pytest.approx(max(squares, 0.0), rel=0, abs=1e-12)
        assert found.as_means().common.numerator.n[0, 0] == len(set(now) & set(before))


@given(
    now=st.dictionaries(st.integers(0, 12), st.sampled_from([0.0, 1 / 4, 1.0]), min_size=2),
    before=st.dictionaries(st.integers(0, 12), st.sampled_from([0.0, 1 / 4, 1.0]), min_size=2),
)
def test_nights_of_one_list_a_user_are_compared_as_means_over_users(
    now: dict[int, float], before: dict[int, float]
) -> None:
    over_users = compared(now, before)
    own, earlier = ({user: [value] for user, value in night.items()} for night in (now, before))
    delta, error = shifted(over_lists(own, earlier).as_means())
    assert delta == pytest.approx(over_users.delta[0, 0], rel=0, abs=1e-12)
    assert error**2 == pytest.approx(over_users.std_error[0, 0] ** 2, rel=0, abs=1e-12)


def test_user_who_changed_his_group_is_no_common_user_of_either() -> None:
    ones = np.ones((2, 1))
    groups = (np.array([0, 1]), np.array([0, 0]))
    found = night_differences.ratio_nights_by_group((ones, ones), (ones, ones), *groups, 2)
    assert found.common.n.tolist() == [[1], [0]]
    assert (found.now.numerator.n.tolist(), found.before.numerator.n.tolist()) == ([[1], [1]], [[2], [0]])


def test_nights_without_any_spread_have_the_p_of_equal_differences() -> None:
    """Three users who all rise by 1/2: of the 8 assignments of signs, 2 leave them on one side."""
    found = compared(dict.fromkeys(range(3), 1.0), dict.fromkeys(range(3), 0.5))
    assert [float(each[0, 0]) for each in (found.p, found.p_less, found.p_greater)] == [2 / 8, 1, 1 / 8]


@given(values=arrays(np.float64, (2, 9), elements=st.floats(0, 1) | st.just(np.nan)))
def test_band_is_that_of_medians(values: np.ndarray) -> None:
    errors = np.where(np.isnan(values), np.nan, 0.01)
    found = night_differences.expected_band(values, errors)
    for row, own in enumerate(values):
        known = own[~np.isnan(own)]
        assert found.n_nights[row] == len(known)
        if len(known) < 7:
            assert np.isnan([found.low[row], found.high[row], found.centre[row]]).all()
            continue
        half = max(4 * 1.4826 * stats.median_abs_deviation(known), 2 * 0.01)
        expected = np.median(known) + np.array([0, -half, half])
        np.testing.assert_allclose([found.centre[row], found.low[row], found.high[row]], expected, rtol=0, atol=1e-12)


def test_nights_that_are_all_the_same_leave_twice_their_standard_error() -> None:
    band = night_differences.expected_band(
        np.full((1, 8), 0.3), np.array([[0.01, 0.02, 0.03, 0.02, 0.02, 0.9, 0.0, np.nan]])
    )
    assert (band.low[0], band.high[0]) == pytest.approx((0.3 - 2 * 0.02, 0.3 + 2 * 0.02))


def test_one_odd_night_does_not_widen_the_band() -> None:
    calm = np.array([[0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.28, 0.30]])
    odd = np.append(calm[:, :-1], [[9.0]], axis=1)
    bands = [night_differences.expected_band(values, np.full((1, 8), 0.001)) for values in (calm, odd)]
    assert night_differences.has_drifted(np.array([0.5]), bands[1])[0]
    assert bands[1].high[0] - bands[1].low[0] < 3 * (bands[0].high[0] - bands[0].low[0])


def test_no_night_and_no_value_are_no_drift() -> None:
    empty = night_differences.expected_band(np.zeros((2, 0)), np.zeros((2, 0)))
    assert not night_differences.has_drifted(np.array([0.1, np.nan]), empty).any()
    band = night_differences.expected_band(np.full((1, 7), 0.3), np.full((1, 7), np.nan))
    assert not night_differences.has_drifted(np.array([np.nan]), band).any()
    assert night_differences.has_drifted(np.array([0.31]), band).all()  # without errors the nights alone make the band


def weeks(n_weeks: int, weekday: int) -> tuple[np.ndarray, np.ndarray]:
    """Days before tonight, the earliest first, and whether each is of a weekend, tonight too."""
    ages = np.arange(7 * n_weeks, -1, -1)
    return ages[:-1], (weekday - ages) % 7 >= 5


def simulated(ages: np.ndarray, values: np.ndarray, *, drop: float = 0.0) -> float:
    """Return the share of rows whose last value is outside the band of the others."""
    errors = np.full((len(values), len(ages)), 0.5)
    band = night_differences.expected_band(values[:, :-1], errors, ages, n_tests=1.0)
    return float(night_differences.has_drifted(values[:, -1] - drop, band).mean())


def daily(ages: np.ndarray) -> np.ndarray:
    return ages > 0


@pytest.mark.parametrize(
    ("has_night", "slope"),
    [
        (daily, 0.0),
        (daily, 0.1),
        (lambda ages: (ages != 7) & (ages != 15), 0.0),  # missing nights, one of them of tonight's weekday
        (lambda ages: (ages < 15) | (ages >= 36), 0.0),  # a gap of three weeks
    ],
)
def test_a_weekend_is_no_drift_and_a_fall_of_3_deviations_is_found(
    has_night: Callable[[np.ndarray], np.ndarray], slope: float
) -> None:
    """Eight weeks, 10 standard deviations higher at weekends: false alarms on each weekday, falls on a Tuesday."""
    random = np.random.default_rng(41)
    for weekday in range(7):
        ages, is_weekend = weeks(8, weekday)
        values = random.standard_normal((2000, 57)) + 10 * is_weekend + slope * np.arange(57)
        is_there = has_night(ages)
        values = values[:, np.append(is_there, True)]
        assert simulated(ages[is_there], values) < 0.045
        if weekday == 1:
            assert simulated(ages[is_there], values, drop=3.0) > 0.6


@pytest.mark.parametrize("is_run", [lambda weekdays: weekdays < 5, lambda weekdays: weekdays == 1])
def test_an_evaluation_of_some_weekdays_has_the_band_of_these(is_run: Callable[[np.ndarray], np.ndarray]) -> None:
    """Monday to Friday, or on Tuesdays alone; tonight is a Tuesday."""
    ages = np.arange(56, 0, -1)
    ages = ages[is_run((1 - ages) % 7)]
    values = np.random.default_rng(41).standard_normal((4000, len(ages) + 1))
    assert simulated(ages, values) < 0.045
    assert night_differences.expected_band(values[:, :-1], values[:, :-1], ages).knows_weekday.all()


def test_many_means_share_the_false_alarms_of_a_night() -> None:
    """18 means of 300 runs each, with a correlation of .5: in how many runs one of them is outside."""
    random, n_outside = np.random.default_rng(41), 0
    ages, is_weekend = weeks(8, 5)
    for _ in range(300):
        own, common = random.standard_normal((18, 57)), random.standard_normal((1, 57))
        values = np.sqrt(0.5) * (own + common) + 10 * is_weekend
        band = night_differences.expected_band(values[:, :-1], np.zeros((18, 56)), ages)
        n_outside += bool(night_differences.has_drifted(values[:, -1], band).any())
    assert n_outside <= 0.05 * 300


def test_the_band_of_a_weekday_is_the_interval_of_prediction_of_a_line() -> None:
    """Eight weeks: least squares for seven levels and a trend, so 56 - 8 degrees of freedom."""
    ages, _ = weeks(8, 3)
    values = np.random.default_rng(41).uniform(size=(1, 56))
    design = np.column_stack([*(ages % 7 == day for day in range(7)), ages]).astype(float)
    line, (rest,), *_ = np.linalg.lstsq(design, values[0], rcond=None)
    lever = np.linalg.inv(design.T @ design)[0, 0]
    half = stats.t.ppf(1 - 0.03 / 2, 48) * np.sqrt(rest / 48 * (1 + lever))
    band = night_differences.expected_band(values, np.zeros((1, 56)), ages)
    found = [band.centre[0], band.low[0], band.high[0]]
    np.testing.assert_allclose(found, [line[0], line[0] - half, line[0] + half], rtol=0, atol=1e-12)
    assert (band.n_nights[0], band.knows_weekday[0]) == (56, True)


@pytest.mark.parametrize("size", [1e-13, 1.0, 1e9])
def test_nights_that_repeat_each_week_leave_twice_their_standard_error(size: float) -> None:
    """0.5 at weekends and 0.3 else: no spread. One odd night of the same weekday changes nothing."""
    ages, is_weekend = weeks(8, 5)
    values = np.where(is_weekend[:-1], 0.5, 0.3)[None, :] * size
    values[0, ages == 14] = 0.0
    band = night_differences.expected_band(values, np.full((1, 56), 0.01 * size), ages)
    np.testing.assert_allclose([band.low[0], band.high[0]], [0.48 * size, 0.52 * size], rtol=0, atol=1e-12 * size)
    same = night_differences.expected_band(np.full((1, 56), 0.3 * size), np.zeros((1, 56)), ages)
    assert night_differences.has_drifted(np.array([0.3]) * size, same).tolist() == [False]
    assert night_differences.has_drifted(np.array([0.31]) * size, same).tolist() == [True]


def test_below_four_nights_of_its_weekday_a_night_has_the_band_without_weekdays() -> None:
    ages, is_weekend = weeks(4, 5)
    values = np.random.default_rng(41).uniform(size=(2, 28)) + is_weekend[:-1]
    values[1, ages == 21] = np.nan
    errors = np.zeros((2, 28))
    known, unknown = (night_differences.expected_band(values, errors, *each) for each in ([ages], []))
    assert known.knows_weekday.tolist() == [True, False]
    for name in ("centre", "low", "high"):
        with_weekdays, without = getattr(known, name), getattr(unknown, name)
        assert with_weekdays[1] == without[1]
        assert with_weekdays[0] != without[0]
    short = night_differences.expected_band(values[:, ages % 7 == 0], errors[:, :4], ages[ages % 7 == 0])
    assert np.isnan(short.centre).all()  # four weekly nights, where a band needs seven


def test_rounding_of_a_mean_is_no_drift() -> None:
    band = night_differences.DriftBand(*(np.array([0.1]) for _ in night_differences.DriftBand._fields))
    assert not night_differences.has_drifted(np.array([0.09999999999999991]), band).any()
    assert not night_differences.has_drifted(np.array([0.10000000000000009]), band).any()
    assert night_differences.has_drifted(np.array([0.1 - 1e-9]), band).all()


@pytest.mark.parametrize("size", [1e-13, 1.0, 1e9])
def test_a_mean_that_doubles_has_drifted_in_any_unit(size: float) -> None:
    band = night_differences.expected_band(np.full((3, 7), (0.1 + 0.2) * size), np.zeros((3, 7)))
    assert night_differences.has_drifted(np.array([0.3, 0.6, 0.15]) * size, band).tolist() == [False, True, True]

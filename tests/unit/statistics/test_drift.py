"""A metric that leaves the band of its own recent nights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankeval_spark.statistics import night_differences


@given(values=arrays(np.float64, (2, 9), elements=st.floats(0, 1) | st.just(np.nan)))
def test_band_is_that_of_medians(values: np.ndarray) -> None:
    errors = np.where(np.isnan(values), np.nan, 0.01)
    found = night_differences.band_of(values, errors)
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
    band = night_differences.band_of(np.full((1, 8), 0.3), np.array([[0.01, 0.02, 0.03, 0.02, 0.02, 0.9, 0.0, np.nan]]))
    assert (band.low[0], band.high[0]) == pytest.approx((0.3 - 2 * 0.02, 0.3 + 2 * 0.02))


def test_one_odd_night_does_not_widen_the_band() -> None:
    calm = np.array([[0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.28, 0.30]])
    odd = np.append(calm[:, :-1], [[9.0]], axis=1)
    bands = [night_differences.band_of(values, np.full((1, 8), 0.001)) for values in (calm, odd)]
    assert night_differences.has_drifted(np.array([0.5]), bands[1])[0]
    assert bands[1].high[0] - bands[1].low[0] < 3 * (bands[0].high[0] - bands[0].low[0])


def test_no_night_and_no_value_are_no_drift() -> None:
    empty = night_differences.band_of(np.zeros((2, 0)), np.zeros((2, 0)))
    assert not night_differences.has_drifted(np.array([0.1, np.nan]), empty).any()
    band = night_differences.band_of(np.full((1, 7), 0.3), np.full((1, 7), np.nan))
    assert not night_differences.has_drifted(np.array([np.nan]), band).any()
    assert night_differences.has_drifted(np.array([0.31]), band).all()  # without errors the nights alone make the band


def test_rounding_of_a_mean_is_no_drift() -> None:
    band = night_differences.DriftBand(*(np.array([0.1]) for _ in night_differences.DriftBand._fields))
    assert not night_differences.has_drifted(np.array([0.09999999999999991]), band).any()
    assert not night_differences.has_drifted(np.array([0.10000000000000009]), band).any()
    assert night_differences.has_drifted(np.array([0.1 - 1e-9]), band).all()


@pytest.mark.parametrize("size", [1e-13, 1.0, 1e9])
def test_a_mean_that_doubles_has_drifted_in_any_unit(size: float) -> None:
    band = night_differences.band_of(np.full((3, 7), (0.1 + 0.2) * size), np.zeros((3, 7)))
    assert night_differences.has_drifted(np.array([0.3, 0.6, 0.15]) * size, band).tolist() == [False, True, True]

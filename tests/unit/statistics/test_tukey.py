"""More than two models on the same users."""

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankeval_spark.statistics import distributions, hashed_random, moments, multiple_testing
from rankeval_spark.statistics.resampling import Draws
from tests.support import textbook

if TYPE_CHECKING:
    from rankeval_spark.statistics.multiple_testing import Tukey

USERS = hashed_random.hash_ids([f"user {number}" for number in range(1000)])

VALUES = np.array([[0.3, 0.5, 0.4], [0.1, 0.2, 0.4], [0.6, 0.7, 0.7], [0.2, 0.2, 0.5], [0.9, 0.8, 1.0]])


# OLS of statsmodels 0.15.0 with users and models, its mse_resid and compare_f_test with users alone: F = 63/13.
RESIDUAL_VARIANCE = 0.026 / 3


def compared(values: np.ndarray) -> Tukey:
    """Compare the columns of one measure by way of merged moments."""
    centred = multiple_testing.centre_by_user(values[:, :, None])[:, :, 0]
    halves = [
        moments.moments_by_group(part, np.zeros(len(part), dtype=np.int64), 1) for part in (centred[::2], centred[1::2])
    ]
    found = halves[0].merge(halves[1])
    return multiple_testing.tukey_test(found.n[:, 0], found.mean, found.m2, level=0.95)


@pytest.mark.parametrize("n_groups", [2, 3, 5, 20])
@pytest.mark.parametrize("freedom", [4.0, 29.0, 500.0])
def test_studentized_range_is_that_of_scipy(n_groups: int, freedom: float) -> None:
    q = np.array([0.0, 0.5, 2.0, 3.5, 6.0, np.nan])
    found = distributions.studentized_range_tail(q, n_groups, freedom)
    np.testing.assert_allclose(found, stats.studentized_range.sf(q, n_groups, freedom), rtol=0, atol=1e-8)


def test_analysis_of_variance_is_that_of_statsmodels() -> None:
    residuals = VALUES - VALUES.mean(axis=1, keepdims=True) - VALUES.mean(axis=0) + VALUES.mean()
    found = compared(VALUES)
    assert found.residual_variance[0] == pytest.approx((residuals**2).sum() / 8, rel=1e-12)
    assert found.residual_variance[0] == pytest.approx(RESIDUAL_VARIANCE, rel=1e-9)


def test_pairs_have_the_studentized_range_of_their_difference() -> None:
    found = compared(VALUES)
    means, scale = VALUES.mean(axis=0), np.sqrt(RESIDUAL_VARIANCE / 5)
    for pair, (one, other) in enumerate(combinations(range(3), 2)):
        q = abs(means[one] - means[other]) / scale
        assert found.delta[0, pair] == pytest.approx(means[one] - means[other], rel=1e-12)
        assert found.p[0, pair] == pytest.approx(stats.studentized_range.sf(q, 3, 8), rel=1e-6)
        assert found.effect_size[0, pair] == pytest.approx(found.delta[0, pair] / (scale * np.sqrt(5)), rel=1e-9)
        half = stats.studentized_range.ppf(0.95, 3, 8) * scale
        assert found.high[0, pair] - found.low[0, pair] == pytest.approx(2 * half, rel=1e-6)


@pytest.mark.parametrize("n_users", [5, 50_001, 1_000_000])
def test_a_difference_as_wide_as_its_interval_has_the_p_of_the_level(n_users: int) -> None:
    """With 100,000 degrees of freedom too, from which scipy takes the quantile of infinitely many."""
    users, squares = np.array([n_users]), np.array([[1.0, 2.0, 3.0]]) * n_users
    half = multiple_testing.tukey_test(users, np.zeros((1, 3)), squares, level=0.95).high[0, 0]
    found = multiple_testing.tukey_test(users, np.array([[half, 0.0, 0.0]]), squares, level=0.95)
    np.testing.assert_allclose([found.low[0, 0], found.p[0, 0]], [0.0, 1 / 20], rtol=0, atol=1e-9)


@given(values=arrays(np.float64, (30, 2), elements=st.floats(0, 1)))
def test_two_models_have_the_p_of_the_paired_t_test(values: np.ndarray) -> None:
    d = values[:, 0] - values[:, 1]
    if np.ptp(d) < 1e-6:
        return
    assert compared(values).p[0, 0] == pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-7, abs=1e-9)


def test_pairing_finds_what_the_spread_of_users_hides() -> None:
    """Users differ by far more than models do; the unpaired test of scipy sees nothing."""
    draw = np.random.default_rng(3)
    values = draw.random((60, 1)) + np.array([0.0, 0.02, 0.04]) + draw.normal(0, 0.02, (60, 3))
    assert compared(values).p.max() < 0.001
    assert stats.tukey_hsd(*values.T).pvalue[0, 2] > 0.5


def test_textbook_example_is_paired() -> None:
    """The paired p of its first two systems is .257; without the pairing it is .394."""
    values = np.array([textbook.X, textbook.Y, textbook.Z]).T / 10
    found = compared(values)
    np.testing.assert_allclose(found.p[0], [0.2567, 0.0957, 0.8550], rtol=0, atol=5e-5)
    np.testing.assert_allclose(found.p[0], stats.studentized_range.sf(np.sqrt(20) * abs(found.effect_size[0]), 3, 38))
    assert stats.tukey_hsd(*values.T).pvalue[0, 1] == pytest.approx(0.394, abs=5e-4)


def test_complete_users_only() -> None:
    holed = np.vstack([VALUES, [[0.1, np.nan, 0.9]]])
    for left, right in zip(compared(holed), compared(VALUES), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-12)


def test_models_that_are_the_same_have_a_p_of_1() -> None:
    found = compared(np.tile(np.arange(30.0)[:, None], 3))
    np.testing.assert_array_equal(found.delta, np.zeros((1, 3)))
    np.testing.assert_array_equal(found.p, np.ones((1, 3)))
    assert found.residual_variance.tolist() == [0.0]
    assert np.isnan(compared(np.ones((1, 3))).p).all()


def test_models_that_are_the_same_have_a_p_of_1_where_a_third_differs_by_a_constant() -> None:
    found = compared(np.arange(30.0)[:, None] + np.array([0.0, 0.0, 0.5]))
    np.testing.assert_array_equal(found.p, [[1.0, np.nan, np.nan]])


def test_models_that_differ_by_a_constant_have_no_test() -> None:
    """What is left of the variance is rounding, and 1e15 of its roots would fit into the difference."""
    found = compared(np.random.default_rng(1).random(30)[:, None] + np.array([0.0, 0.1, 0.2]))
    assert np.isnan(found.p).all()
    np.testing.assert_allclose(np.abs(found.delta), [[0.1, 0.2, 0.1]], rtol=0, atol=1e-12)


def randomised(values: np.ndarray, replicates: int) -> np.ndarray:
    """Compare models by random orders, of two parts of the users."""
    centred = multiple_testing.centre_by_user(values[:, :, None])
    parts = [
        multiple_testing.permuted_sums(centred[part], USERS[: len(values)][part], Draws(replicates, 2))[0]
        for part in (slice(0, 2), slice(2, None))
    ]
    absolute = np.nansum(np.abs(centred), axis=(0, 1))
    p: np.ndarray = multiple_testing.randomised_p(np.nansum(centred, axis=0), absolute, parts[0] + parts[1])[0]
    return p


def test_random_orders_come_near_to_all_of_them() -> None:
    """Five users with three models in tenths: 6^5 orders, counted in whole numbers."""
    tenths = np.rint(VALUES * 10).astype(int).tolist()
    ranges = []
    for orders in product(list(permutations(range(3))), repeat=5):
        sums = [sum(row[order[place]] for row, order in zip(tenths, orders, strict=True)) for place in range(3)]
        ranges.append(max(sums) - min(sums))
    totals = np.array(tenths).sum(axis=0)
    exact = [np.mean(np.array(ranges) >= abs(totals[one] - totals[other])) for one, other in combinations(range(3), 2)]
    np.testing.assert_allclose(randomised(VALUES, 20_000), exact, rtol=0, atol=0.014)


def test_random_orders_agree_with_the_studentized_range_on_normal_data() -> None:
    draw = np.random.default_rng(6)
    values = draw.normal(0, 1, (300, 1)) + np.array([0.0, 0.05, 0.12]) + draw.normal(0, 0.5, (300, 3))
    np.testing.assert_allclose(randomised(values, 4000), compared(values).p[0], rtol=0, atol=0.03)


def test_order_of_models_within_a_user_does_not_change_their_sum() -> None:
    sums = multiple_testing.permuted_sums(multiple_testing.centre_by_user(VALUES[:, :, None]), USERS[:5], Draws(50, 1))[
        0
    ]
    np.testing.assert_allclose(sums.sum(axis=0), 0, rtol=0, atol=1e-12)

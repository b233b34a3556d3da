"""The Poisson bootstrap: sums that merge in any number of parts, intervals of means and ratios, a studentized p."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from rankeval_spark.statistics import hashed_random, moments, resampling
from rankeval_spark.statistics.resampling import Draws, SliceGroups, bootstrap_spread, ratio_sums

if TYPE_CHECKING:
    from rankeval_spark.statistics.resampling import ReplicateSums

USERS = hashed_random.hash_ids([f"user {number}" for number in range(3000)])
EVERYONE = np.zeros(3000, dtype=np.int64)

matrices = arrays(np.float64, (12, 3), elements=st.floats(-1e3, 1e3) | st.just(np.nan))


def of(values: np.ndarray, replicates: int = 40) -> ReplicateSums:
    """Replicates of the first users."""
    return resampling.weighted_sums(values, USERS[: len(values)], Draws(replicates, 5))


def assert_same(left: ReplicateSums, right: ReplicateSums, scale: float) -> None:
    np.testing.assert_array_equal(left.weights, right.weights)
    np.testing.assert_allclose(left.sums, right.sums, rtol=0, atol=1e-12 * scale)
    assert left.squares is not None
    assert right.squares is not None
    np.testing.assert_allclose(left.squares, right.squares, rtol=1e-12, atol=0)


@given(values=matrices, groups=arrays(np.int64, (2, 12), elements=st.integers(-1, 1)))
def test_sums_are_those_of_a_naive_loop(values: np.ndarray, groups: np.ndarray) -> None:
    groups[1] += 2 * (groups[1] >= 0)
    found = resampling.weighted_sums(values, USERS[:12], Draws(40, 5), SliceGroups(groups, 4))
    weights = hashed_random.poisson_weights(USERS[:12], seed=5, replicates=40).astype(np.float64)
    assert found.squares is not None
    for group in range(4):
        for column in range(3):
            own = (groups == group).any(axis=0) & ~np.isnan(values[:, column])
            np.testing.assert_array_equal(found.weights[group, column], weights[own].sum(axis=0))
            x = values[own, column][:, None]
            np.testing.assert_allclose(found.sums[group, column], (weights[own] * x).sum(axis=0), rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.squares[group, column], (weights[own] * x**2).sum(axis=0), rtol=1e-12)


@given(values=matrices, cut=st.integers(0, 12))
def test_merging_any_split_gives_the_replicates_of_the_whole(values: np.ndarray, cut: int) -> None:
    parts = [
        resampling.weighted_sums(values[part], USERS[:12][part], Draws(40, 5))
        for part in (slice(cut), slice(cut, None))
    ]
    whole = of(values)
    assert_same(parts[0].merge(parts[1]), whole, 1e6)
    assert_same(parts[1].merge(parts[0]), whole, 1e6)


def test_blocks_and_their_order_change_nothing_but_rounding() -> None:
    values = np.random.default_rng(0).random((3000, 2))
    order = np.random.default_rng(1).permutation(3000)
    shuffled = resampling.weighted_sums(values[order], USERS[order], Draws(40, 5))
    assert_same(of(values), shuffled, 3000)


def test_a_constant_has_replicates_without_spread() -> None:
    """Without the normalisation they would vary as the number of users drawn does."""
    low, high = resampling.percentile_interval(of(np.full((200, 1), 0.7)).means, 0.95)
    np.testing.assert_allclose([low, high], 0.7, rtol=0, atol=1e-12)


def test_standard_error_of_a_share_is_the_binomial_one() -> None:
    values = (np.arange(2000) < 1400).astype(np.float64)[:, None]
    spread = of(values, 2000).means.std()
    np.testing.assert_allclose(spread, np.sqrt(0.7 * 0.3 / 2000), rtol=0.05)


@given(values=arrays(np.float64, (3, 21), elements=st.floats(-10, 10)), level=st.sampled_from([0.5, 0.9, 0.95]))
def test_interval_ends_are_linear_quantiles(values: np.ndarray, level: float) -> None:
    low, high = resampling.percentile_interval(values, level)
    ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=1)
    np.testing.assert_allclose([low, high], ends, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n_empty", "is_there"), [(0, True), (5, True), (6, False), (100, False)])
def test_interval_is_undefined_where_over_5_percent_of_replicates_are(n_empty: int, is_there: bool) -> None:
    values = np.arange(100.0)[None]
    values[0, :n_empty] = np.nan
    low, high = resampling.percentile_interval(values, 0.95)
    assert np.isnan([low, high]).any() != is_there
    if is_there:
        np.testing.assert_allclose(low, np.quantile(np.arange(float(n_empty), 100.0), 0.025), rtol=0, atol=1e-12)


def test_replicate_without_a_user_is_undefined() -> None:
    found = of(np.array([[1.0]]), 100)
    np.testing.assert_array_equal(np.isnan(found.means), found.weights == 0)
    assert np.isnan(resampling.percentile_interval(found.means, 0.95)).all()


def test_replicates_of_a_ratio_are_ratios_of_sums() -> None:
    hits, shown = np.array([1.0, 3.0, 0.0]), np.array([2.0, 4.0, 5.0])
    sums = of(np.column_stack([hits, shown]), 50).sums[0]
    weights = hashed_random.poisson_weights(USERS[:3], seed=5, replicates=50).astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = (weights.T @ hits) / (weights.T @ shown)
    np.testing.assert_allclose(resampling.replicate_quotient(sums[0], sums[1]), expected, rtol=0, atol=1e-12)


def test_studentized_p_is_that_of_a_naive_loop() -> None:
    values = np.random.default_rng(4).normal(0.3, 1.0, (60, 1))
    p = resampling.studentized_p(moments.moments_by_group(values, EVERYONE[:60], 1), of(values, 199))
    t = abs(values.mean()) / (values.std(ddof=1) / np.sqrt(60))
    n_extreme = 0
    for weights in hashed_random.poisson_weights(USERS[:60], seed=5, replicates=199).T:
        drawn = np.repeat(values[:, 0], weights)
        n_extreme += abs(drawn.mean() - values.mean()) / (drawn.std(ddof=1) / np.sqrt(len(drawn))) >= t
    assert p[0, 0] == (1 + n_extreme) / 200


def test_swapping_the_runs_keeps_the_p_of_the_bootstrap() -> None:
    values = np.random.default_rng(4).normal(0.1, 1.0, (60, 1))
    one, other = (
        resampling.studentized_p(moments.moments_by_group(each, EVERYONE[:60], 1), of(each, 199))
        for each in (values, -values)
    )
    assert one == other


def test_same_run_twice_has_p_1_and_a_constant_difference_has_none() -> None:
    values = np.column_stack([np.zeros(40), np.full(40, 0.25), np.full(40, np.nan)])
    p = resampling.studentized_p(moments.moments_by_group(values, EVERYONE[:40], 1), of(values, 100))
    np.testing.assert_array_equal(p, [[1.0, np.nan, np.nan]])


@pytest.mark.parametrize(("spread", "is_told"), [(1e-6, False), (1e-5, False), (1e-2, True)])
def test_differences_that_are_nearly_the_same_have_the_least_p_or_none(spread: float, is_told: bool) -> None:
    values = 1 + spread * np.random.default_rng(6).normal(0, 1, (60, 1))
    p = resampling.studentized_p(moments.moments_by_group(values, EVERYONE[:60], 1), of(values, 199))
    np.testing.assert_array_equal(p, [[1 / 200 if is_told else np.nan]])


DRAWS = Draws(replicates=200, seed=7)
FEW = USERS[:300]
LEVEL = 0.9


def naive(numerator: np.ndarray, denominator: np.ndarray, users: np.ndarray) -> tuple[float, float, float]:
    """Draw a replicate at a time: standard error and interval."""
    weights = hashed_random.poisson_weights(users, seed=DRAWS.seed, replicates=DRAWS.replicates).T.astype(np.float64)
    found = [(own @ numerator) / (own @ denominator) for own in weights if own @ denominator > 0]
    return float(np.std(found, ddof=1)), *np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()


def test_intervals_of_means_and_of_ratios_are_those_of_a_naive_loop() -> None:
    draw = np.random.default_rng(0)
    hits, shown = draw.integers(0, 3, 300) * 1.0, draw.integers(1, 9, 300) * 1.0
    is_defined = draw.random(300) < 0.8
    numerators = np.column_stack([hits, np.where(is_defined, hits / shown, 0.0)])
    denominators = np.column_stack([shown, is_defined])
    found = bootstrap_spread(ratio_sums(numerators, denominators, FEW, DRAWS), LEVEL)
    expected = [
        naive(hits, shown, FEW),
        naive((hits / shown)[is_defined], np.ones(is_defined.sum()), FEW[is_defined]),
    ]
    np.testing.assert_allclose(np.column_stack(found), expected, rtol=0, atol=1e-12)


def test_parts_in_any_order_give_the_same_bits_and_any_split_the_same_numbers() -> None:
    values = np.random.default_rng(1).random((300, 2))
    whole = bootstrap_spread(ratio_sums(values, np.ones_like(values), FEW, DRAWS), LEVEL)
    ends = [0, 40, 41, 200, 300]
    parts = np.concatenate(
        [
            ratio_sums(values[start:end], np.ones((end - start, 2)), FEW[start:end], DRAWS)
            for start, end in itertools.pairwise(ends)
        ]
    )
    found = bootstrap_spread(parts, LEVEL)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(bootstrap_spread(parts[[2, 0, 3, 1]], LEVEL), found)


def test_rows_of_a_user_share_his_weights() -> None:
    """The replicates of a column that stands under two models differ by nothing."""
    values = np.random.default_rng(2).random((300, 1))
    twice = np.concatenate([values, values])
    groups = np.repeat([0, 1], 300)[None]
    found = ratio_sums(twice, np.ones_like(twice), np.concatenate([FEW, FEW]), DRAWS, SliceGroups(groups, 2))
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n_users", "is_there"), [(0, False), (1, False), (2, False), (5, True)])
def test_there_is_no_interval_where_many_replicates_draw_no_user(n_users: int, is_there: bool) -> None:
    values = np.arange(n_users, dtype=np.float64)[:, None]
    spread = bootstrap_spread(ratio_sums(values, np.ones_like(values), FEW[:n_users], DRAWS), LEVEL)
    assert np.isfinite(spread).all() == is_there
    assert np.isnan(spread).all() != is_there


def test_values_that_are_all_equal_have_no_spread() -> None:
    spread = bootstrap_spread(ratio_sums(np.full((9, 1), 0.7), np.ones((9, 1)), FEW[:9], DRAWS), LEVEL)
    np.testing.assert_allclose(np.ravel(spread), [0.0, 0.7, 0.7], rtol=0, atol=1e-12)

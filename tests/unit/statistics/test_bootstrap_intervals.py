"""Bootstrap intervals of means and ratios, from sums that were added up in any number of parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankeval_spark.statistics import hashed_random
from rankeval_spark.statistics.resampling import Draws, SliceGroups, ratio_sums, spread_of

DRAWS = Draws(replicates=200, seed=7)
USERS = hashed_random.user_hashes([f"user {number}" for number in range(300)])
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
    found = spread_of(ratio_sums(numerators, denominators, USERS, DRAWS), LEVEL)
    expected = [
        naive(hits, shown, USERS),
        naive((hits / shown)[is_defined], np.ones(is_defined.sum()), USERS[is_defined]),
    ]
    np.testing.assert_allclose(np.column_stack(found), expected, rtol=0, atol=1e-12)


def test_parts_in_any_order_give_the_same_bits_and_any_split_the_same_numbers() -> None:
    values = np.random.default_rng(1).random((300, 2))
    whole = spread_of(ratio_sums(values, np.ones_like(values), USERS, DRAWS), LEVEL)
    ends = [0, 40, 41, 200, 300]
    parts = np.concatenate(
        [
            ratio_sums(values[start:end], np.ones((end - start, 2)), USERS[start:end], DRAWS)
            for start, end in itertools.pairwise(ends)
        ]
    )
    found = spread_of(parts, LEVEL)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(spread_of(parts[[2, 0, 3, 1]], LEVEL), found)


def test_rows_of_a_user_share_his_weights() -> None:
    """The replicates of a column that stands under two models differ by nothing."""
    values = np.random.default_rng(2).random((300, 1))
    twice = np.concatenate([values, values])
    groups = np.repeat([0, 1], 300)[None]
    found = ratio_sums(twice, np.ones_like(twice), np.concatenate([USERS, USERS]), DRAWS, SliceGroups(groups, 2))
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n_users", "is_there"), [(0, False), (1, False), (2, False), (5, True)])
def test_there_is_no_interval_where_many_replicates_draw_no_user(n_users: int, is_there: bool) -> None:
    values = np.arange(n_users, dtype=np.float64)[:, None]
    spread = spread_of(ratio_sums(values, np.ones_like(values), USERS[:n_users], DRAWS), LEVEL)
    assert np.isfinite(spread).all() == is_there
    assert np.isnan(spread).all() != is_there


def test_values_that_are_all_equal_have_no_spread() -> None:
    spread = spread_of(ratio_sums(np.full((9, 1), 0.7), np.ones((9, 1)), USERS[:9], DRAWS), LEVEL)
    np.testing.assert_allclose(np.ravel(spread), [0.0, 0.7, 0.7], rtol=0, atol=1e-12)

"""Signs by lot and all of them: p-values that rounding does not spoil."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from rankeval_spark.statistics import hashed_random, paired_tests
from rankeval_spark.statistics.resampling import Draws
from tests.support import textbook

USERS = hashed_random.user_hashes([f"user {number}" for number in range(400)])

X = [5, 9, 9, 2, 6, 6, 2, 2, 4, 7, 2]
Y = [7, 6, 2, 3, 8, 8, 6, 0, 6, 2, 8]
"""Eleven users' values in tenths."""


def enumerated(differences: list[int]) -> Fraction:
    """Share of the assignments of signs as extreme as the observed one, in whole numbers."""
    sums = [
        sum(sign * one for sign, one in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return Fraction(sum(abs(one) >= abs(sum(differences)) for one in sums), len(sums))


@given(differences=st.lists(st.integers(-9, 9), min_size=0, max_size=9))
def test_enumeration_in_halves_is_that_of_whole_numbers(differences: list[int]) -> None:
    """Tenths are no binary fractions, and equal sums of them differ by rounding."""
    (p,) = paired_tests.all_signs(np.array([[one / 10 for one in differences]]).reshape(1, -1))
    assert p == float(enumerated(differences))


def test_a_plain_comparison_of_floats_would_lose_equal_sums() -> None:
    differences = np.array(X) / 10 - np.array(Y) / 10
    signs = np.array(list(product((1, -1), repeat=11)))
    means = (signs * differences).mean(axis=1)
    naive = (np.abs(means) >= abs(differences.mean())).mean()
    assert paired_tests.all_signs(differences[None])[0] == 961 / 1024
    assert naive < 0.87


def test_textbook_example_has_its_exact_p() -> None:
    """2160 of the 2^15 assignments of signs to the 15 differences."""
    (p,) = paired_tests.all_signs(np.array([textbook.X]) / 10 - np.array([textbook.Y]) / 10)
    assert p == 2160 / 2**15


def test_up_to_20_differences_are_enumerated_and_more_refused() -> None:
    assert paired_tests.all_signs(np.ones((1, 20)))[0] == 2 / 2**20
    with pytest.raises(ValueError, match="at most 20"):
        paired_tests.all_signs(np.ones((1, 21)))


def test_undefined_and_equal_values_change_nothing() -> None:
    p = paired_tests.all_signs(np.array([[0.5, 0.25, np.nan, 0.0], [np.nan, np.nan, np.nan, np.nan]]))
    np.testing.assert_array_equal(p, [1 / 2, 1.0])


@given(values=arrays(np.float64, (12, 2), elements=st.floats(-1e3, 1e3) | st.just(np.nan)), cut=st.integers(0, 12))
def test_sums_of_parts_add_up_to_those_of_a_naive_loop(values: np.ndarray, cut: int) -> None:
    parts = [
        paired_tests.sign_sums(values[part], USERS[:12][part], Draws(70, 5)) for part in (slice(cut), slice(cut, None))
    ]
    signs = hashed_random.signs(USERS[:12], seed=5, replicates=70)
    expected = np.nan_to_num(values).T @ signs.astype(np.float64)
    np.testing.assert_allclose((parts[0] + parts[1])[0], expected, rtol=0, atol=1e-9)


def test_random_signs_come_near_to_all_of_them() -> None:
    differences = np.random.default_rng(2).normal(0.35, 1.0, (18, 1))
    sums = paired_tests.sign_sums(differences, USERS[:18], Draws(20_000, 1))
    found = paired_tests.monte_carlo_p(differences.sum(axis=0)[None], np.abs(differences).sum(axis=0)[None], sums)
    exact = paired_tests.all_signs(differences.T)[0]
    assert abs(found[0, 0] - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_random_signs_of_tenths_count_equal_sums() -> None:
    differences = (np.array(X) / 10 - np.array(Y) / 10)[:, None]
    sums = paired_tests.sign_sums(differences, USERS[:11], Draws(20_000, 1))
    found = paired_tests.monte_carlo_p(differences.sum(axis=0)[None], np.abs(differences).sum(axis=0)[None], sums)
    assert abs(found[0, 0] - 961 / 1024) < 0.007


def test_p_is_never_0_and_1_where_nothing_differs() -> None:
    values = np.column_stack([np.ones(400), np.zeros(400)])
    sums = paired_tests.sign_sums(values, USERS, Draws(100, 1))
    found = paired_tests.monte_carlo_p(values.sum(axis=0)[None], np.abs(values).sum(axis=0)[None], sums)
    np.testing.assert_array_equal(found, [[1 / 101, 1.0]])


def test_swapping_the_runs_keeps_p() -> None:
    differences = np.random.default_rng(2).normal(0.1, 1.0, (300, 1))
    one, other = (
        paired_tests.monte_carlo_p(
            each.sum(axis=0)[None],
            np.abs(each).sum(axis=0)[None],
            paired_tests.sign_sums(each, USERS[:300], Draws(500, 1)),
        )
        for each in (differences, -differences)
    )
    assert one == other

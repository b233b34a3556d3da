"""The gap between groups, and an interval that knows that the extremes were picked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from rankeval_spark.statistics.gaps import gap_of


def test_gap_ratio_and_mean_difference_are_those_of_all_pairs() -> None:
    values = [0.2, 0.5, 0.4, 0.1]
    found = gap_of(np.array(values), np.full(4, 0.1), np.full(4, 20.0), 0.95)
    differences = [abs(one - other) for one, other in itertools.combinations(values, 2)]
    assert found.gap == pytest.approx(0.5 - 0.1, rel=0, abs=1e-12)
    assert found.ratio == pytest.approx(0.1 / 0.5, rel=0, abs=1e-12)
    assert found.mad == pytest.approx(sum(differences) / 6, rel=0, abs=1e-12)


def test_of_two_groups_with_equal_errors_the_interval_is_that_of_welch() -> None:
    """The studentized range of two is sqrt(2) |t|; 2 x 24 degrees of freedom are a whole number of two digits."""
    found = gap_of(np.array([0.5, 0.2]), np.array([0.05, 0.05]), np.array([24.0, 24.0]), 0.9)
    half = stats.t.ppf(0.95, 48) * np.hypot(0.05, 0.05)
    np.testing.assert_allclose([found.low, found.high], [0.3 - half, 0.3 + half], rtol=0, atol=1e-8)


def test_groups_drawn_from_one_population_have_an_interval_that_holds_0() -> None:
    """21 groups of 100 users: the gap is always above 0, and its interval misses 0 in about 5 % of trials at most."""
    draw = np.random.default_rng(20260101)
    missed = 0
    for _ in range(200):
        users = draw.normal(0.3, 0.3, (21, 100))
        errors = users.std(axis=1, ddof=1) / 10
        found = gap_of(users.mean(axis=1), errors, np.full(21, 99.0), 0.95)
        assert found.gap > 0
        missed += found.low > 0
    assert missed <= 20


@pytest.mark.parametrize(("values", "is_there"), [([], False), ([0.5], False), ([0.5, 0.5], True)])
def test_a_difference_takes_two_groups(values: list[float], is_there: bool) -> None:
    found = gap_of(np.array(values), np.zeros(len(values)), np.ones(len(values)), 0.95)
    expected = (0.0, 0.0, 0.0, 1.0, 0.0) if is_there else (np.nan,) * 5
    np.testing.assert_array_equal(found, expected)


def test_without_an_error_there_is_no_interval_and_without_a_positive_value_no_ratio() -> None:
    found = gap_of(np.array([0.0, -1.0]), np.array([np.nan, 0.1]), np.array([0.0, 5.0]), 0.95)
    np.testing.assert_array_equal(found, (1.0, np.nan, np.nan, np.nan, 1.0))

"""Sign test and signed ranks, against scipy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankeval_spark.statistics import rank_tests

if TYPE_CHECKING:
    from rankeval_spark.statistics import Zeros

D = np.array([0.3, -0.1, 0.2, 0.25, 0.05, -0.3, 0.12, 0.01, 0.0, 0.4])


@given(n_wins=st.integers(0, 200), n_losses=st.integers(0, 200))
def test_sign_test_is_the_binomial_one(n_wins: int, n_losses: int) -> None:
    found = float(rank_tests.sign_test_p(np.array([n_wins]), np.array([n_losses]))[0])
    expected = stats.binomtest(n_wins, n_wins + n_losses).pvalue if n_wins + n_losses else 1.0
    assert found == pytest.approx(expected, rel=1e-9)


def test_sign_test_is_that_of_statsmodels() -> None:
    """``descriptivestats.sign_test`` of statsmodels 0.15.0 gives .1796875."""
    assert rank_tests.sign_test_p(np.array([(D > 0).sum()]), np.array([(D < 0).sum()]))[0] == pytest.approx(0.1796875)


def signed_ranks(d: np.ndarray, zeros: Zeros) -> float:
    return rank_tests.wilcoxon_p(rank_tests.count_magnitudes(d), zeros=zeros)


def exact_p(d: np.ndarray, zeros: Zeros) -> float:
    """Add the ranks up one by one, and count the ways to each sum."""
    kept = d if zeros == "pratt" else d[d != 0]
    ranks = stats.rankdata(np.abs(kept))[kept != 0]
    ways = Counter({0.0: 1})
    for rank in ranks.tolist():
        ways += Counter({total + rank: n for total, n in ways.items()})
    observed = ranks[kept[kept != 0] > 0].sum()
    sides = [sum(n for total, n in ways.items() if sign * total >= sign * observed) for sign in (1, -1)]
    return float(min(2 * min(sides) / 2 ** len(ranks), 1.0))


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
@given(tenths=st.lists(st.integers(-9, 9), min_size=1, max_size=70).filter(any))
def test_signed_ranks_are_exact_where_they_are_few_and_else_those_of_scipy(zeros: Zeros, tenths: list[int]) -> None:
    d = np.array(tenths, dtype=np.float64)
    found = signed_ranks(d, zeros)
    oracle = stats.wilcoxon(d, zero_method=zeros, method="asymptotic")
    p = exact_p(d, zeros) if (d != 0).sum() <= rank_tests.EXACT else oracle.pvalue
    assert found == pytest.approx(p, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("n", [6, 20, 50])
def test_distinct_differences_have_the_exact_p_of_scipy(n: int) -> None:
    d = np.random.default_rng(n).permutation(np.arange(1.0, n + 1)) * np.random.default_rng(n).choice([-1, 1], n)
    assert signed_ranks(d, "wilcox") == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
@pytest.mark.parametrize("n", range(1, 60))
def test_no_p_is_less_than_the_least_possible_one(n: int, zeros: Zeros) -> None:
    for d in (np.ones(n), np.arange(1.0, n + 1), np.append(np.ones(n), np.zeros(40))):
        assert signed_ranks(d, zeros) >= 2.0 ** (1 - n) * (1 - 1e-12)


@pytest.mark.parametrize("n_zero", [1000, 10**9])
def test_many_zeros_change_no_order_of_sums(n_zero: int) -> None:
    """Each sum of ranks after so many zeros is first of all a number of positive differences."""
    d = np.array([3.0, -1, 2, 2, -2, 4, 5, 1, -6, 1, 1])
    few = rank_tests.count_magnitudes(d)._replace(n_zero=len(d) ** 2)
    found = rank_tests.wilcoxon_p(few._replace(n_zero=n_zero), zeros="pratt")
    assert found == rank_tests.wilcoxon_p(few, zeros="pratt") == exact_p(np.append(d, np.zeros(121)), "pratt")


def test_values_equal_but_for_rounding_are_tied() -> None:
    """0.3 - 0.2 is not 0.1 in floats, and would rank below it."""
    d = np.array([0.3 - 0.2, -0.1, 0.2, 0.4 - 0.2, -0.3])
    assert len(set(np.abs(d))) > 3
    assert rank_tests.count_magnitudes(d).n_positive.tolist() == [1, 2, 0]


def test_swapping_the_runs_keeps_p() -> None:
    one, other = (rank_tests.wilcoxon_p(rank_tests.count_magnitudes(d), zeros="wilcox") for d in (D, -D))
    assert one == pytest.approx(other, rel=1e-12)


def test_without_a_difference_nothing_is_ranked() -> None:
    assert np.isnan(rank_tests.wilcoxon_p(rank_tests.count_magnitudes(np.zeros(5)), zeros="pratt"))

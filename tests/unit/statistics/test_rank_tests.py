"""Sign test and signed ranks, against scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankeval_spark.statistics.comparisons import rank_tests

if TYPE_CHECKING:
    from rankeval_spark.statistics.comparisons.rank_tests import Zeros

D = np.array([0.3, -0.1, 0.2, 0.25, 0.05, -0.3, 0.12, 0.01, 0.0, 0.4])


@given(n_wins=st.integers(0, 200), n_losses=st.integers(0, 200))
def test_sign_test_is_the_binomial_one(n_wins: int, n_losses: int) -> None:
    found = float(rank_tests.sign_test(np.array([n_wins]), np.array([n_losses]))[0])
    expected = stats.binomtest(n_wins, n_wins + n_losses).pvalue if n_wins + n_losses else 1.0
    assert found == pytest.approx(expected, rel=1e-9)


def test_sign_test_is_that_of_statsmodels() -> None:
    """``descriptivestats.sign_test`` of statsmodels 0.15.0 gives .1796875."""
    assert rank_tests.sign_test(np.array([(D > 0).sum()]), np.array([(D < 0).sum()]))[0] == pytest.approx(0.1796875)


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
@given(tenths=st.lists(st.integers(-9, 9), min_size=12, max_size=60).filter(any))
def test_signed_ranks_are_those_of_scipy(zeros: Zeros, tenths: list[int]) -> None:
    d = np.array(tenths, dtype=np.float64)
    found = rank_tests.wilcoxon(rank_tests.magnitudes(d, float(np.abs(d).mean())), zeros=zeros)
    oracle = stats.wilcoxon(d, zero_method=zeros, method="asymptotic")
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-9, abs=1e-15)
    assert abs(found.z) == pytest.approx(abs(oracle.zstatistic), rel=1e-9, abs=1e-12)


def test_values_equal_but_for_rounding_are_tied() -> None:
    """0.3 - 0.2 is not 0.1 in floats, and would rank below it."""
    d = np.array([0.3 - 0.2, -0.1, 0.2, 0.4 - 0.2, -0.3])
    assert len(set(np.abs(d))) > 3
    assert rank_tests.magnitudes(d, float(np.abs(d).mean())).n_positive.tolist() == [1, 2, 0]


def test_swapping_the_runs_keeps_p() -> None:
    one, other = (rank_tests.wilcoxon(rank_tests.magnitudes(d, 0.2), zeros="wilcox") for d in (D, -D))
    assert one.p == pytest.approx(other.p, rel=1e-12)
    assert one.z == pytest.approx(-other.z, rel=1e-12)


def test_without_a_difference_nothing_is_ranked() -> None:
    assert np.isnan(rank_tests.wilcoxon(rank_tests.magnitudes(np.zeros(5), 0.0), zeros="pratt")).all()

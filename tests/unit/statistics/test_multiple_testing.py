"""Corrections for many tests, against statsmodels and their definitions."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from rankeval_spark.statistics import multiple_testing

if TYPE_CHECKING:
    from rankeval_spark.statistics import Correction

P = [0.0004, 0.03, 0.011, 0.2, 0.03, 0.9, 0.0401, 0.011]

# multipletests of statsmodels 0.15.0: holm, bonferroni, fdr_bh.
OF_STATSMODELS = {
    "holm": [0.0032, 0.15, 0.077, 0.4, 0.15, 0.9, 0.15, 0.077],
    "bonferroni": [0.0032, 0.24, 0.088, 1.0, 0.24, 1.0, 0.3208, 0.088],
    "benjamini-hochberg": [0.0032, 0.048, 0.088 / 3, 1.6 / 7, 0.048, 0.9, 0.3208 / 6, 0.088 / 3],
}

ps = st.lists(st.floats(0, 1) | st.just(np.nan), max_size=20).map(lambda found: np.array(found, dtype=np.float64))


def adjusted(p: np.ndarray, correction: Correction, alpha: float = 0.05) -> np.ndarray:
    return multiple_testing.adjust(p, np.zeros(len(p), dtype=np.int64), correction=correction, alpha=alpha).p


@pytest.mark.parametrize("correction", sorted(OF_STATSMODELS))
def test_adjusted_p_are_those_of_statsmodels(correction: Correction) -> None:
    np.testing.assert_allclose(adjusted(np.array(P), correction), OF_STATSMODELS[correction], rtol=0, atol=1e-12)


@given(p=ps)
def test_benjamini_hochberg_is_that_of_scipy(p: np.ndarray) -> None:
    known = ~np.isnan(p)
    found = adjusted(p, "benjamini-hochberg")
    np.testing.assert_array_equal(np.isnan(found), ~known)
    if known.any():
        np.testing.assert_allclose(found[known], stats.false_discovery_control(p[known]), rtol=0, atol=1e-12)


@given(p=ps)
def test_corrections_keep_their_order(p: np.ndarray) -> None:
    """Raw <= Benjamini-Hochberg <= Holm <= Bonferroni, and the ranks of p."""
    found = [
        adjusted(p, correction)[~np.isnan(p)] for correction in ("none", "benjamini-hochberg", "holm", "bonferroni")
    ]
    for less, more in itertools.pairwise(found):
        assert (less <= more + 1e-12).all()
    for each in found:
        assert (np.diff(each[np.argsort(found[0], kind="stable")]) >= 0).all()


def test_families_are_adjusted_apart_and_rows_without_p_count_in_none() -> None:
    p, family = np.array([0.01, 0.02, 0.03, np.nan, np.nan]), np.array([7, 7, 2, 7, 9])
    found = multiple_testing.adjust(p, family, correction="holm", alpha=0.05)
    np.testing.assert_allclose(found.p, [0.02, 0.02, 0.03, np.nan, np.nan], rtol=0, atol=1e-15)
    assert found.family_size.tolist() == [2, 2, 1, 2, 0]
    assert found.reason.tolist() == [""] * 5


def test_replicates_that_could_find_nothing_leave_no_adjusted_p() -> None:
    """Of 99 replicates the least p is 1/100: six tests could not be below .05 if all are corrected for."""
    family = np.array([0] * 5 + [1] * 6)
    p, drawn = np.full(11, 0.01), np.full(11, 99.0)
    found = multiple_testing.adjust(p, family, correction="holm", alpha=0.05, replicates=drawn)
    np.testing.assert_array_equal(np.isnan(found.p), family == 1)
    assert found.reason.tolist() == [""] * 5 + ["replicates"] * 6
    told = multiple_testing.adjust(p, family, correction="holm", alpha=0.05, replicates=np.full(11, np.nan))
    assert not np.isnan(told.p).any()

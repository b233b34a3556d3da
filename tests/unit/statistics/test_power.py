"""Power of the t test: against the noncentral t, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.power import SHAPES, found_share
from rankeval_spark.statistics.power import detectable, nights_needed, users_needed


@pytest.mark.parametrize("freedom", [9, 29, 199, 9999])
@pytest.mark.parametrize("tail", [0.05, 0.025, 0.025 / 60, 0.025 / 5000])
@pytest.mark.parametrize("power", [0.8, 0.95])
def test_a_detectable_difference_is_found_as_often_as_asked(freedom: int, tail: float, power: float) -> None:
    least = float(detectable(2.0, freedom, tail=tail, power=power)) / 2.0
    found = stats.nct.sf(stats.t.isf(tail, freedom), freedom, least)
    assert found == pytest.approx(power, rel=0, abs=0.004)


def test_without_spread_or_users_nothing_is_detectable() -> None:
    assert np.isnan(detectable([0.0, 1.0, np.nan], [9, 0, 9], tail=0.025)).all()


@pytest.mark.parametrize("gain", [3.0, 0.5, 0.1, 0.003])
@pytest.mark.parametrize("tail", [0.025, 0.025 / 400])
def test_as_few_users_as_detect_the_gain_are_needed(gain: float, tail: float) -> None:
    n = users_needed(gain, 1.0, tail=tail)
    fewer, enough = (float(detectable(1 / math.sqrt(m), m - 1, tail=tail)) for m in (n - 1, n))
    assert enough <= gain < fewer


@pytest.mark.parametrize(("n_users", "correlation"), [(100, 0.0), (100, 0.2), (37, 0.05), (900, 0.5)])
def test_as_few_nights_as_reach_the_precision_are_needed(n_users: int, correlation: float) -> None:
    def variance(n_nights: float) -> float:
        return (1 + (n_nights - 1) * correlation) / n_nights / n_users

    for n_needed in (n_users, 1.5 * n_users, 4 * n_users, 15 * n_users):
        n_nights = nights_needed(n_users, n_needed, correlation)
        if math.isinf(n_nights):
            assert variance(1e9) * n_needed >= 1 - 1e-6
        else:
            assert variance(n_nights) * n_needed <= 1 + 1e-9
            assert n_nights == 1 or variance(n_nights - 1) * n_needed > 1


def test_nights_that_differ_by_chance_count_as_independent() -> None:
    assert nights_needed(204, 7_470, -0.04) == nights_needed(204, 7_470, 0.0) == math.ceil(7_470 / 204)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("family", [1, 20])
def test_a_simulated_gain_of_the_stated_size_is_found_in_80_percent(shape: str, family: int) -> None:
    """Three standard errors of 4,000 runs are .019; Holm may find more, and never fewer than the strictest step."""
    share = found_share(shape, n_users=200, family=family, runs=4_000, seed=3)
    skew = 0.08 if "few great" in shape else 0.0
    assert 0.8 - 0.019 - skew <= share <= 0.8 + 0.025 + skew


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_simulated_nights_find_the_gain_that_they_are_planned_for(correlation: float) -> None:
    draw, n_users, runs, gain = np.random.default_rng(5), 100, 4_000, 0.2
    n_nights = nights_needed(n_users, users_needed(gain, 1.0, tail=0.025), correlation)
    assert math.isfinite(n_nights)
    own = draw.standard_normal((int(n_nights), n_users, runs)).mean(axis=0) * math.sqrt(1 - correlation)
    means = own + math.sqrt(correlation) * draw.standard_normal((n_users, runs)) + gain
    found = (stats.ttest_1samp(means, 0, axis=0).pvalue <= 0.05).mean()
    planned = variance_of_mean(n_users, n_nights, correlation)
    least = float(detectable(math.sqrt(planned), n_users - 1, tail=0.025))
    power = stats.nct.sf(stats.t.isf(0.025, n_users - 1), n_users - 1, gain / math.sqrt(planned))
    assert least <= gain * 1.01
    assert found == pytest.approx(power, rel=0, abs=0.019)
    assert found >= 0.8 - 0.019


def variance_of_mean(n_users: int, n_nights: float, correlation: float) -> float:
    """Return the variance of the mean difference over nights of the same users, whose differences have variance 1."""
    return (1 + (n_nights - 1) * correlation) / n_nights / n_users

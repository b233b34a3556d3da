"""How often nominal 95 % intervals hold the truth, and tests at 5 % reject nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import special, stats

from rankeval_spark.statistics import (
    hashed_random,
    intervals,
    moments,
    night_differences,
    paired_tests,
    ratios,
    resampling,
)
from rankeval_spark.statistics.moments import Columns
from rankeval_spark.statistics.paired_tests import PairedValues
from rankeval_spark.statistics.resampling import Draws

if TYPE_CHECKING:
    from rankeval_spark.statistics.moments import Moments

pytestmark = pytest.mark.slow

DRAWS = 20_000
SEED = 20260131


def covered(low: np.ndarray, high: np.ndarray, truth: float) -> float:
    """Share of the intervals that hold the truth."""
    return float(((low <= truth) & (truth <= high)).mean())


def of(values: np.ndarray) -> Moments:
    """Moments of samples that are columns."""
    return moments.moments_by_group(values, np.zeros(len(values), dtype=np.int64), 1)


def per_user_values(draw: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Values as nDCG has them: 60 % zeros, the others between 0 and 1; their mean is .4 x 2/5."""
    values: np.ndarray = draw.beta(2, 3, shape) * (draw.random(shape) < 0.4)
    return values


def test_t_of_30_normal_values() -> None:
    values = np.random.default_rng(SEED).normal(0.3, 0.2, (30, DRAWS))
    found = of(values)
    assert 0.94 <= covered(*intervals.t_interval(found.n, found.mean, found.m2, 0.95), 0.3) <= 0.96


@pytest.mark.parametrize("n", [30, 100])
@pytest.mark.parametrize(("share", "of_t"), [(0.4, 0.96), (0.1, 0.93)])
def test_halls_interval_of_means_of_many_zeros(n: int, share: float, of_t: float) -> None:
    """With a truth of the share times 2/5; Student's interval lies below it too often."""
    draw = np.random.default_rng(SEED)
    values = draw.beta(2, 3, (n, DRAWS)) * (draw.random((n, DRAWS)) < share)
    found = Columns.from_values(values).by_group(np.zeros(n, dtype=np.int64), 1, has_cubes=True)
    low, high = intervals.skewed_interval(found.n, found.mean, found.m2, found.numbers[-1], (0.0, 1.0), 0.95)
    of_zeros = intervals.equal_values_interval(n, 0.0, (0.0, 1.0), 0.95)
    low, high = (np.where(found.mean == 0, end, each) for end, each in zip(of_zeros, (low, high), strict=True))
    assert 0.94 <= covered(low, high, share * 0.4) <= 0.99
    assert covered(*intervals.t_interval(found.n, found.mean, found.m2, 0.95), share * 0.4) < of_t


def test_halls_interval_of_ratios_of_rare_hits() -> None:
    """Three clicks in a hundred impressions, of 30 users with one to ten."""
    draw = np.random.default_rng(SEED)
    shown = draw.integers(1, 11, (30, DRAWS))
    clicks = draw.binomial(shown, 0.03).astype(np.float64)
    everyone = np.zeros(30, dtype=np.int64)
    found = ratios.ratio_moments_by_group(clicks, shown.astype(np.float64), everyone, 1, has_cubes=True)
    n, mean, m2, below, below_m2, cross, *cubes = found.numbers
    ratio, ratio_m2 = ratios.linearise(mean, m2, below, below_m2, cross)
    m3, lean = ratios.skewness_terms(mean, below, below_m2, cross, cubes)
    ends = intervals.skewed_interval(n, ratio, ratio_m2, m3, (-np.inf, np.inf), 0.95, lean=lean)
    assert covered(*ends, 0.03) > 0.965
    assert covered(*intervals.t_interval(n, ratio, ratio_m2, 0.95), 0.03) < 0.92


def test_wilson_of_3000_rare_hits() -> None:
    hits = np.random.default_rng(SEED).binomial(3000, 0.05, DRAWS) / 3000
    low, high = intervals.wilson_interval(3000, hits, 3000 * hits * (1 - hits), 0.95)
    assert 0.94 <= covered(low, high, 0.05) <= 0.96


def test_wilson_of_users_with_several_lists() -> None:
    """Shares of three lists, of users who differ: their hits are worth fewer trials than lists, more than users."""
    draw = np.random.default_rng(SEED)
    shares = draw.binomial(3, draw.beta(1, 4, (400, 5000))) / 3
    found = of(shares)
    assert 0.94 <= covered(*intervals.wilson_interval(found.n, found.mean, found.m2, 0.95), 0.2) <= 0.96


def test_intervals_of_means_over_lists_of_users_who_differ() -> None:
    """One to six lists a user, more of those whom they fit less; t of a mean over them, Wilson of a share of them."""
    draw = np.random.default_rng(SEED)
    taste = draw.beta(1, 4, (400, 5000))
    n_lists = 1 + draw.binomial(5, 1 - taste)
    hits = draw.binomial(n_lists, taste)
    everyone = np.zeros(400, dtype=np.int64)
    found = ratios.ratio_moments_by_group(hits.astype(np.float64), n_lists.astype(np.float64), everyone, 1)
    above, below = found.numerator, found.denominator
    mean, m2 = ratios.linearise(above.mean, above.m2, below.mean, below.m2, found.cross)
    square = 0.2**2 + 0.2 * 0.8 / 6  # mean of taste^2, of beta(1, 4)
    truth = (0.2 + 5 * (0.2 - square)) / (1 + 5 * 0.8)
    for interval in (intervals.t_interval, intervals.wilson_interval):
        assert 0.94 <= covered(*interval(above.n, mean, m2, 0.95), truth) <= 0.96


def test_delta_method_of_a_micro_average() -> None:
    hits, shown = hits_and_shown(np.random.default_rng(SEED), (400, 5000))
    found = ratios.ratio_moments_by_group(hits, shown, np.zeros(400, dtype=np.int64), 1)
    above, below = found.numerator, found.denominator
    ratio, m2 = ratios.linearise(above.mean, above.m2, below.mean, below.m2, found.cross)
    assert 0.94 <= covered(*intervals.t_interval(above.n, ratio, m2, 0.95), MICRO) <= 0.96


def hits_and_shown(draw: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Count the items that users were shown, and their hits: who is shown more hits less often."""
    shown = draw.integers(1, 11, shape)
    return draw.binomial(shown, 0.5 - 0.04 * shown).astype(np.float64), shown.astype(np.float64)


MICRO = 0.5 - 0.04 * 38.5 / 5.5
"""Hits a shown item: sum of n (.5 - .04 n) over that of n, n being 1 to 10."""


def test_poisson_bootstrap_and_its_p() -> None:
    """2000 samples of 400 users, 100 with each of 20 seeds, for samples in one call share their users' weights."""
    draw = np.random.default_rng(SEED)
    users = hashed_random.hash_ids([str(number) for number in range(400)])
    holds, rejects = [], []
    for seed in range(20):
        values = per_user_values(draw, (400, 100))
        found = resampling.weighted_sums(values - 0.16, users, Draws(1000, seed))
        holds.append(covered(*resampling.percentile_interval(found.means, 0.95), 0.0))
        rejects.append((resampling.studentized_p(of(values - 0.16), found) <= 0.05).mean())
    assert 0.935 <= np.mean(holds) <= 0.965
    assert 0.035 <= np.mean(rejects) <= 0.065


def test_poisson_bootstrap_of_means_and_micro_averages_as_they_are_published() -> None:
    """2000 samples as above; of the intervals, not of the p."""
    draw = np.random.default_rng(SEED)
    users = hashed_random.hash_ids([str(number) for number in range(400)])
    of_means, of_ratios = [], []
    for seed in range(20):
        values = per_user_values(draw, (400, 100))
        hits, shown = hits_and_shown(draw, (400, 100))
        above, below = np.hstack([values, hits]), np.hstack([np.ones_like(values), shown])
        spread = resampling.bootstrap_spread(resampling.ratio_sums(above, below, users, Draws(1000, seed)), level=0.95)
        of_means.append(covered(spread.low[:100], spread.high[:100], 0.16))
        of_ratios.append(covered(spread.low[100:], spread.high[100:], MICRO))
    assert 0.935 <= np.mean(of_means) <= 0.965
    assert 0.935 <= np.mean(of_ratios) <= 0.965


def test_relative_change_at_a_large_uplift() -> None:
    """Twice as good for most users, who vary: the interval of the difference over the baseline covers far less."""
    draw = np.random.default_rng(SEED)
    baseline = per_user_values(draw, (400, 2000))
    values = baseline * 3 * draw.random(baseline.shape) + 0.4 * draw.random(baseline.shape)
    truth = (1.5 * 0.16 + 0.2) / 0.16 - 1
    found = paired_tests.differences_by_group(
        PairedValues.from_values(values, baseline), np.zeros(400, dtype=np.int64), 1
    )
    change = paired_tests.relative_change(found, level=0.95)
    assert 0.93 <= covered(change.low, change.high, truth) <= 0.965
    difference = paired_tests.compare_means(found, level=0.95)
    below = found.moments.denominator.mean
    assert covered(difference.low / below, difference.high / below, truth) < 0.86


def test_paired_comparison_of_equal_models() -> None:
    draw = np.random.default_rng(SEED)
    one, other = (per_user_values(draw, (300, 5000)) for _ in range(2))
    found = paired_tests.differences_by_group(PairedValues.from_values(one, other), np.zeros(300, dtype=np.int64), 1)
    compared = paired_tests.compare_means(found, level=0.95)
    assert 0.94 <= covered(compared.low, compared.high, 0.0) <= 0.96
    assert 0.04 <= (compared.p <= 0.05).mean() <= 0.06


def test_few_differing_users_are_rejected_no_more_often_than_they_should() -> None:
    """Twelve of 100 users differ, by 1 each: t rejects too often, all signs at most in 5 %."""
    draw = np.random.default_rng(SEED)
    d = np.zeros((100, 4000))
    d[:12] = draw.choice([-1.0, 1.0], (12, 4000))
    found = paired_tests.differences_by_group(
        PairedValues.from_values(d, np.zeros_like(d)), np.zeros(100, dtype=np.int64), 1
    )
    assert (paired_tests.compare_means(found, level=0.95).p <= 0.05).mean() <= 0.05
    n_extreme = [count for count in range(13) if stats.binomtest(count, 12).pvalue <= 0.05]
    expected = sum(special.comb(12, count) for count in n_extreme) / 2**12
    assert abs((paired_tests.compare_means(found, level=0.95).p <= 0.05).mean() - expected) < 0.012


def test_nights_that_share_two_thirds_of_their_users() -> None:
    draw = np.random.default_rng(SEED)
    taste = per_user_values(draw, (400, 4000))
    now, before = (taste + draw.normal(0, 0.1, taste.shape) for _ in range(2))
    common = slice(100, 300)
    shared = ratios.ratio_moments_by_group(now[common], before[common], np.zeros(200, dtype=np.int64), 1)
    found = night_differences.compare_nights(
        night_differences.Nights(of(now[:300]), of(before[100:]), shared), level=0.95
    )
    assert 0.94 <= covered(found.low, found.high, 0.0) <= 0.96

"""Models that serve different users: Welch's test, ratios of sums, covariates, and shares of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankeval_spark.statistics.unpaired_tests import Arms, compare_arms, sample_ratio_p

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rankeval_spark.statistics.unpaired_tests import ArmComparison

SE_OF_RUNS = 4.0  # Monte-Carlo errors within which a rate has to lie


def compared(sides: Iterable[np.ndarray], n_outcomes: int = 1) -> ArmComparison:
    """Compare the parts (users, columns, parts) of two models without a common user, in two halves that merge."""
    model, baseline = sides
    absent = [np.full((len(other), *own.shape[1:]), np.nan) for own, other in ((model, baseline), (baseline, model))]
    both = np.concatenate([model, absent[0]]), np.concatenate([absent[1], baseline])
    states = []
    for start in (0, 1):
        first, second = (each[start::2] for each in both)
        states += Arms.by_group(first, second, np.zeros(len(first), dtype=np.int64), 1).to_bytes()
    halves = [Arms.from_bytes(state, model.shape[-1]) for state in states]
    return compare_arms(halves[0].merge(halves[1]), n_outcomes=n_outcomes, level=0.95)


def test_the_numbers_are_those_of_scipys_welch_test() -> None:
    draw = np.random.default_rng(1)
    x, y = draw.exponential(1.0, (60, 3)), draw.exponential(1.3, (140, 3))
    found, expected = compared((x[..., None], y[..., None])), stats.ttest_ind(x, y, equal_var=False)
    ends = expected.confidence_interval(0.95)
    for ours, theirs in ((found.p, expected.pvalue), (found.low, ends.low), (found.high, ends.high)):
        np.testing.assert_allclose(ours[0], theirs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.freedom[0], expected.df, rtol=1e-12)


def test_a_ratio_is_compared_by_the_terms_of_its_users() -> None:
    draw = np.random.default_rng(2)
    shown = [draw.integers(1, 9, n).astype(np.float64) for n in (70, 90)]
    clicks = [draw.binomial(each.astype(int), 0.3).astype(np.float64) for each in shown]
    found = compared((np.stack(each, axis=-1)[:, None] for each in zip(clicks, shown, strict=True)), 2)
    ratios = [a.sum() / b.sum() for a, b in zip(clicks, shown, strict=True)]
    terms = [r + (a - r * b) / b.mean() for a, b, r in zip(clicks, shown, ratios, strict=True)]
    expected = stats.ttest_ind(*terms, equal_var=False)
    assert found.delta[0, 0] == pytest.approx(ratios[0] - ratios[1], rel=0, abs=1e-12)
    assert found.p[0, 0] == pytest.approx(expected.pvalue, rel=0, abs=1e-12)
    errors = [np.std(each, ddof=1) / np.sqrt(len(each)) for each in terms]
    relative = np.hypot(errors[0], errors[1] * ratios[0] / ratios[1]) / ratios[1]
    assert found.change.value[0, 0] == pytest.approx(ratios[0] / ratios[1] - 1, rel=0, abs=1e-12)
    assert found.change.std_error[0, 0] == pytest.approx(relative, rel=0, abs=1e-12)


def test_users_of_both_models_alone_make_the_paired_test() -> None:
    draw = np.random.default_rng(3)
    x = draw.standard_normal((50, 1))
    y = x + 0.3 * draw.standard_normal((50, 1)) + 0.1
    found = compare_arms(
        Arms.by_group(x[..., None], y[..., None], np.zeros(50, dtype=np.int64), 1), n_outcomes=1, level=0.95
    )
    expected = stats.ttest_rel(x, y)
    assert found.p[0, 0] == pytest.approx(expected.pvalue[0], rel=0, abs=1e-12)
    assert found.freedom[0, 0] == 49


def test_a_covariate_gives_the_difference_of_a_regression_by_hand() -> None:
    draw = np.random.default_rng(4)
    n = 80, 120
    before = [draw.standard_normal(each) for each in n]
    values = [2.0 * x + draw.standard_normal(len(x)) + shift for x, shift in zip(before, (0.5, 0.0), strict=True)]
    found = compared(np.stack(each, axis=-1)[:, None] for each in zip(values, before, strict=True))
    centred = [(y - y.mean(), x - x.mean()) for y, x in zip(values, before, strict=True)]
    theta = sum(y @ x for y, x in centred) / sum(x @ x for _, x in centred)
    adjusted = [y - theta * x for y, x in zip(values, before, strict=True)]
    assert found.delta[0, 0] == pytest.approx(adjusted[0].mean() - adjusted[1].mean(), rel=0, abs=1e-12)
    var, raw = (sum(each.var(ddof=1) / len(each) for each in both) for both in (adjusted, values))
    removed = 1 - var * (sum(n) - 2) / (sum(n) - 3) / raw
    assert found.variance_removed[0, 0] == pytest.approx(removed, rel=0, abs=1e-12)
    assert removed > 0.6
    # A covariate that does not vary, or says the same twice, changes nothing.
    twice = (np.stack([y, x, 5 * x, np.ones_like(x)], axis=-1)[:, None] for y, x in zip(values, before, strict=True))
    np.testing.assert_allclose(compared(twice).delta, found.delta, rtol=0, atol=1e-12)


@given(
    parts=arrays(np.float64, (2, 30, 2, 2), elements=st.floats(-5, 5) | st.just(np.nan)),
    group=arrays(np.int64, 30, elements=st.integers(0, 2)),
    cut=st.integers(0, 30),
)
def test_merging_any_split_gives_the_aggregates_of_the_whole(parts: np.ndarray, group: np.ndarray, cut: int) -> None:
    whole = Arms.by_group(parts[0], parts[1], group, 3)
    halves = [Arms.by_group(parts[0][own], parts[1][own], group[own], 3) for own in (slice(cut), slice(cut, None))]
    for merged in (halves[0].merge(halves[1]), halves[1].merge(halves[0])):
        np.testing.assert_array_equal(merged.n_nonzero, whole.n_nonzero)
        for ours, theirs in zip(
            (merged.model, merged.baseline, merged.common), (whole.model, whole.baseline, whole.common), strict=True
        ):
            np.testing.assert_allclose(ours.numbers, theirs.numbers, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("model", "baseline", "reason"),
    [
        ([], [1.0] * 40, "no_users"),
        ([1.0], [1.0] * 40, "one_user"),
        ([1.0] * 29, [1.0] * 40, "few_users"),
        ([1.0] * 9 + [0.0] * 991, [0.0] * 1_000, "few_differences"),
        ([1.0] * 10 + [0.0] * 990, [0.0] * 1_000, ""),
        ([0.0] * 1_000, [0.0] * 1_000, "few_differences"),
        ([1.0] * 10 + [0.0] * 990, [0.0] * 1_100, "few_differences"),
        ([1e170, 2e170] * 20, [1.0, 2.0] * 20, "out_of_range"),
        ([1e-170, 2e-170] * 20, [0.0, 3e-170] * 20, "out_of_range"),
        ([0.1] * 40, [0.1] * 50, ""),
    ],
)
def test_without_a_p_there_is_a_reason(model: list[float], baseline: list[float], reason: str) -> None:
    found = compared(np.array(each).reshape(-1, 1, 1) for each in (model, baseline))
    assert found.reason[0, 0] == reason
    assert np.isnan(found.p[0, 0]) == (reason != "")
    if reason == "out_of_range":
        numbers = (found.std_error, found.low, found.high, found.effect_size, found.change.low, found.change.high)
        assert [float(each[0, 0]) for each in numbers] == pytest.approx([np.nan] * 6, nan_ok=True)
    if model == [0.1] * 40:
        assert (found.delta[0, 0], found.p[0, 0]) == (0, 1)


def values(draw: np.random.Generator, n: int, runs: int) -> np.ndarray:
    return draw.lognormal(0.0, 1.0, (n, runs, 1))


def conversions(draw: np.random.Generator, n: int, runs: int) -> np.ndarray:
    return (draw.random((n, runs, 1)) < 0.05).astype(np.float64)


def clicks_and_shown(draw: np.random.Generator, n: int, runs: int) -> np.ndarray:
    """Draw numbers of impressions, more for users with more clicks in each, and clicks."""
    taste = draw.beta(1.0, 9.0, (n, runs))
    shown = 1.0 + draw.poisson(20 * taste + 2)
    return np.stack([draw.binomial(shown.astype(int), taste).astype(np.float64), shown], axis=-1)


@pytest.mark.parametrize("make", [values, conversions, clicks_and_shown])
def test_equal_models_differ_in_five_of_a_hundred_runs(make: Callable[..., np.ndarray]) -> None:
    runs, draw = 2_000, np.random.default_rng(5)
    found = compared((make(draw, n, runs) for n in (400, 600)), 2 if make is clicks_and_shown else 1)
    error = np.sqrt(0.05 * 0.95 / runs)
    assert abs((found.p < 0.05).mean() - 0.05) < SE_OF_RUNS * error
    assert abs(((found.low <= 0) & (found.high >= 0)).mean() - 0.95) < SE_OF_RUNS * error


@pytest.mark.parametrize("keeps", ["active", "all"])
def test_a_covariate_that_some_users_lack_is_unbiased_and_at_its_size(keeps: str) -> None:
    """Active users have a history more often; it does not depend on the model."""
    runs, draw, effect = 1_500, np.random.default_rng(6), 0.1
    sides = []
    for n, shift in ((300, effect), (500, 0.0)):
        level = draw.exponential(1.0, (n, runs))
        known = draw.random((n, runs)) < (level / (1 + level) if keeps == "active" else 1.0)
        before = level + 0.5 * draw.standard_normal((n, runs))
        value = level + shift + 0.5 * draw.standard_normal((n, runs))
        sides.append(np.stack([value, known, np.where(known, before, 0.0)], axis=-1))
    found = compared(sides)
    error = np.sqrt(0.05 * 0.95 / runs)
    assert abs(found.delta.mean() - effect) < SE_OF_RUNS * found.delta.std() / np.sqrt(runs)
    assert abs(((found.low <= effect) & (found.high >= effect)).mean() - 0.95) < SE_OF_RUNS * error
    spread = np.var(compared(side[..., :1] for side in sides).delta)
    removed = found.variance_removed.mean()
    assert removed == pytest.approx(1 - np.var(found.delta) / spread, abs=0.05)
    assert removed > (0.3 if keeps == "active" else 0.6)


@pytest.mark.parametrize("n_new", [0, 100])
def test_an_older_night_as_covariate_says_nothing_of_users_who_come_back(n_new: int) -> None:
    """It takes out that those who come are more active than those who left: a part of the change of the mean."""
    draw = np.random.default_rng(8)
    level = draw.exponential(1.0, (400 + n_new, 1))
    level[400:] += 1.0
    old, before, now = (level + 0.2 * draw.standard_normal(level.shape) for _ in range(3))
    nights = [np.stack([each, old], axis=-1) for each in (now, before)]
    nights[0][:n_new], nights[1][400:] = np.nan, np.nan
    plain, adjusted = (
        compare_arms(
            Arms.by_group(nights[0][..., :n], nights[1][..., :n], np.zeros(len(level), dtype=np.int64), 1),
            n_outcomes=1,
            level=0.95,
        )
        for n in (1, 2)
    )
    if n_new:
        assert plain.low[0, 0] < n_new / 400 < plain.high[0, 0]
        assert adjusted.high[0, 0] < 0.1
    else:
        assert adjusted.delta[0, 0] == pytest.approx(plain.delta[0, 0], rel=0, abs=1e-12)
        assert adjusted.std_error[0, 0] == pytest.approx(plain.std_error[0, 0], rel=2e-3)


def test_the_p_of_a_split_is_that_of_scipy() -> None:
    counts = [5_200, 4_700, 2_600]
    expected = stats.chisquare(counts, np.array([0.4, 0.4, 0.2]) * sum(counts)).pvalue
    assert sample_ratio_p(counts, [0.4, 0.4, 0.2]) == pytest.approx(expected, rel=1e-10)
    for n in range(10):  # fewer than five of each are expected
        assert sample_ratio_p([n, 9 - n], [0.5, 0.5]) == pytest.approx(stats.binomtest(n, 9, 0.5).pvalue, rel=1e-9)
    assert sample_ratio_p([0, 0], [0.5, 0.5]) == 1.0
    assert sample_ratio_p([0, 3_000], [0.001, 0.999]) == pytest.approx(
        stats.binomtest(0, 3_000, 0.001).pvalue, rel=1e-9
    )


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.9, 0.05, 0.05], [0.002, 0.998]])
def test_a_right_split_is_found_wrong_as_often_as_alpha_says(shares: list[float]) -> None:
    runs, alpha, draw = 4_000, 0.01, np.random.default_rng(7)
    found = np.array([sample_ratio_p(counts, shares) for counts in draw.multinomial(2_000, shares, runs).tolist()])
    assert (found < alpha).mean() < alpha + SE_OF_RUNS * np.sqrt(alpha / runs)
    wrong = draw.multinomial(160_000, [0.51, 0.49], 200).tolist()
    assert np.mean([sample_ratio_p(counts, [0.5, 0.5]) < 0.001 for counts in wrong]) > 0.99

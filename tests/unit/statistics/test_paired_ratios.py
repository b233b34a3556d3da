"""The difference of two micro averages on the same users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankeval_spark.statistics import paired_ratios, ratios

if TYPE_CHECKING:
    from rankeval_spark.statistics.paired_ratios import RatioComparison, RatioPairs

parts = arrays(np.float64, (4, 20, 2), elements=st.floats(0.1, 5) | st.just(np.nan))


def of(found: np.ndarray, group: np.ndarray, n_groups: int) -> RatioPairs:
    return paired_ratios.ratio_pairs_by_group((found[0], found[1]), (found[2], found[3]), group, n_groups)


def compared(found: np.ndarray, level: float = 0.95) -> RatioComparison:
    """Compare one column of users."""
    return paired_ratios.compare_ratios(of(found[..., None], np.zeros(found.shape[1], dtype=np.int64), 1), level=level)


def drawn(n: int, seed: int) -> np.ndarray:
    """Numerators and denominators of a model and of a baseline that is like it."""
    draw = np.random.default_rng(seed)
    shown = draw.integers(1, 9, (2, n)).astype(np.float64)
    taste = draw.random(n)
    return np.array([draw.binomial(shown[0].astype(int), taste), shown[0], taste * shown[1], shown[1]])


@given(found=parts, group=arrays(np.int64, 20, elements=st.integers(0, 2)), cut=st.integers(0, 20))
def test_merging_any_split_gives_the_moments_of_the_whole(found: np.ndarray, group: np.ndarray, cut: int) -> None:
    halves = [of(found[:, part], group[part], 3) for part in (slice(cut), slice(cut, None))]
    whole = of(found, group, 3)
    for merged in (halves[0].merge(halves[1]), halves[1].merge(halves[0])):
        np.testing.assert_array_equal(merged.n, whole.n)
        np.testing.assert_array_equal(merged.n_different, whole.n_different)
        np.testing.assert_allclose(merged.means, whole.means, rtol=0, atol=1e-12)
        np.testing.assert_allclose(merged.cross, whole.cross, rtol=0, atol=1e-11)


def test_interval_and_p_are_those_of_the_users_terms() -> None:
    a, b, c, d = drawn(200, 3)
    found = compared(np.array([a, b, c, d]))
    ratio, below = a.sum() / b.sum(), c.sum() / d.sum()
    terms = (a - ratio * b) / b.mean() - (c - below * d) / d.mean()
    error = terms.std(ddof=1) / np.sqrt(200)
    half = stats.t.ppf(0.975, 199) * error
    assert found.delta[0, 0] == pytest.approx(ratio - below, abs=1e-12)
    np.testing.assert_allclose([found.low[0, 0], found.high[0, 0]], ratio - below + np.array([-half, half]), atol=1e-12)
    assert found.p[0, 0] == pytest.approx(2 * stats.t.sf(abs((ratio - below) / error), 199), rel=1e-9)
    relative = (a - ratio * b) / b.mean() / below - ratio / below**2 * (c - below * d) / d.mean()
    assert found.change.value[0, 0] == pytest.approx(ratio / below - 1, abs=1e-12)
    assert found.change.std_error[0, 0] == pytest.approx(relative.std(ddof=1) / np.sqrt(200), rel=1e-9)


def test_swapping_the_runs_flips_the_difference_and_keeps_p() -> None:
    values = drawn(100, 4)
    one, other = compared(values), compared(values[[2, 3, 0, 1]])
    assert one.delta[0, 0] == pytest.approx(-other.delta[0, 0], abs=1e-15)
    assert one.p[0, 0] == pytest.approx(other.p[0, 0], rel=1e-9)


def test_same_run_twice_differs_by_0_with_a_p_of_1() -> None:
    values = drawn(100, 5)
    found = compared(values[[0, 1, 0, 1]])
    assert [float(each[0, 0]) for each in found[1:6]] == [0, 0, 0, 0, 1]
    assert found.change.value[0, 0] == pytest.approx(0.0, abs=1e-15)


def test_users_who_all_lose_alike_have_the_p_of_their_signs() -> None:
    hits = np.random.default_rng(3).integers(1, 9, 100).astype(np.float64)
    found = compared(np.array([hits - 1, np.full(100, 10.0), hits, np.full(100, 10.0)]))
    assert found.delta[0, 0] == pytest.approx(-0.1, abs=1e-15)
    assert (found.std_error[0, 0], found.p[0, 0]) == (0, 2**-99)


def test_against_a_baseline_that_does_not_vary_it_is_the_interval_of_one_ratio() -> None:
    a, b, _, _ = drawn(80, 6)
    found = compared(np.array([a, b, np.full(80, 0.3), np.ones(80)]))
    one = ratios.ratio_moments_by_group(a[:, None], b[:, None], np.zeros(80, dtype=np.int64), 1)
    ratio, m2 = ratios.linearise(
        one.numerator.mean, one.numerator.m2, one.denominator.mean, one.denominator.m2, one.cross
    )
    assert found.delta[0, 0] == pytest.approx(ratio[0, 0] - 0.3, abs=1e-12)
    assert found.std_error[0, 0] == pytest.approx(np.sqrt(m2[0, 0] / 79 / 80), rel=1e-9)


def test_nearly_equal_models_lose_no_digits() -> None:
    """Numerators of the order 1e6 that differ by 1e-3 for some users, with the same denominators."""
    draw = np.random.default_rng(7)
    shown, gain = draw.integers(1, 9, 100).astype(np.float64), 1e6 * draw.random(100)
    d = 2.0**-10 * (draw.random(100) < 0.5)
    gain = np.rint(gain)
    found = compared(np.array([gain + d, shown, gain, shown]))
    delta = d.sum() / shown.sum()
    terms = (d - delta * shown) / shown.mean()
    assert found.std_error[0, 0] == pytest.approx(terms.std(ddof=1) / 10, rel=1e-5)


@pytest.mark.parametrize("n", [0, 1, 29])
def test_few_users_have_no_p(n: int) -> None:
    assert np.isnan(compared(drawn(n, 8)).p[0, 0])


def test_ratio_without_a_denominator_is_undefined() -> None:
    values = drawn(40, 9)
    values[1] = 0
    assert np.isnan(compared(values).delta[0, 0])
    values = drawn(40, 9)
    values[2] = 0
    assert np.isnan(compared(values).change.value[0, 0])


def test_users_differ_by_numerator_or_denominator() -> None:
    model, baseline = ([[1.0], [2.0], [1.0], [1.0], [np.nan]], [[2.0], [4.0], [2.0], [4.0], [1.0]]), np.ones((5, 1))
    above, below = map(np.array, model)
    pairs = paired_ratios.ratio_pairs_by_group((above, below), (baseline, 2 * baseline), np.zeros(5, dtype=np.int64), 1)
    assert (pairs.n.tolist(), pairs.n_different.tolist()) == ([[4]], [[2]])
    assert paired_ratios.RatioPairs.from_bytes(pairs.to_bytes()[0]).n_different.tolist() == [[2]]


def test_denominators_that_are_no_whole_numbers_are_one_too() -> None:
    above, below = np.ones((1000, 1)), np.full((1000, 1), 0.1)
    group = np.zeros(1000, dtype=np.int64)
    pairs = paired_ratios.ratio_pairs_by_group((above, below), (above, below), group, 1)
    assert pairs.cross[0, 0, 3, 3] > 0, "their mean is rounded"
    assert pairs.has_one_denominator.tolist() == [[True]]


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_denominators_whose_squares_are_no_doubles_are_not_one(scale: float) -> None:
    below = scale * np.array([[1.0], [2.0]])
    with np.errstate(over="ignore", under="ignore"):
        pairs = paired_ratios.ratio_pairs_by_group((below, below), (below, below), np.zeros(2, dtype=np.int64), 1)
    assert pairs.has_one_denominator.tolist() == [[False]]


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_squares_that_are_no_doubles_leave_no_interval_and_no_p(scale: float) -> None:
    values = drawn(80, 6)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = compared(scale * values)
    assert found.delta[0, 0] == pytest.approx(compared(values).delta[0, 0], rel=1e-9)
    assert np.isnan([each[0, 0] for each in (found.std_error, found.low, found.high, found.p)]).all()


@pytest.mark.parametrize(
    ("model", "baseline", "has_one"), [([3, 3], [3, 3], True), ([3, 3], [2, 2], False), ([3, 1], [3, 1], False)]
)
def test_users_of_one_denominator_are_distinct(model: list[int], baseline: list[int], has_one: bool) -> None:
    above, one, other = np.array([[1.0], [0.0]]), *(np.array([each]).T.astype(float) for each in (model, baseline))
    pairs = paired_ratios.ratio_pairs_by_group((above, one), (above, other), np.zeros(2, dtype=np.int64), 1)
    assert pairs.has_one_denominator.tolist() == [[has_one]]

"""Differences of users in one pass, what a paired comparison makes of them, and signs by lot or all of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankeval_spark.statistics import hashed_random, paired_tests
from rankeval_spark.statistics.paired_tests import Differences, PairedValues
from rankeval_spark.statistics.resampling import Draws
from tests.support import textbook

if TYPE_CHECKING:
    from rankeval_spark.statistics.paired_tests import Comparison

values_or_undefined = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1 / 3, 0.7]) | st.floats(-1, 1) | st.just(np.nan)
matrices = arrays(np.float64, (40, 2), elements=values_or_undefined)


def of(values: np.ndarray, baseline: np.ndarray) -> Differences:
    """Differences of everyone, in one column if there is one."""
    values, baseline = (each[:, None] if each.ndim == 1 else each for each in (values, baseline))
    return paired_tests.differences_by_group(
        PairedValues.from_values(values, baseline), np.zeros(len(values), dtype=np.int64), 1
    )


def compared(values: np.ndarray, baseline: np.ndarray, **options: Any) -> Comparison:  # noqa: ANN401 - options of a test
    return paired_tests.compare_means(of(values, baseline), level=0.95, **options)


def assert_same(left: Differences, right: Differences) -> None:
    for name in ("n", "mean", "m2"):
        for side in ("numerator", "denominator"):
            one, other = (getattr(getattr(each.moments, side), name) for each in (left, right))
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    np.testing.assert_allclose(left.moments.cross, right.moments.cross, rtol=0, atol=1e-12)
    np.testing.assert_allclose(left.absolute, right.absolute, rtol=0, atol=1e-12)
    for name in ("low", "high", "n_wins", "n_losses", "few"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@given(
    values=matrices, baseline=matrices, group=arrays(np.int64, 40, elements=st.integers(0, 2)), cut=st.integers(0, 40)
)
def test_merging_any_split_gives_the_aggregates_of_the_whole(
    values: np.ndarray, baseline: np.ndarray, group: np.ndarray, cut: int
) -> None:
    parts = [
        paired_tests.differences_by_group(PairedValues.from_values(values[part], baseline[part]), group[part], 3)
        for part in (slice(cut), slice(cut, None))
    ]
    whole = paired_tests.differences_by_group(PairedValues.from_values(values, baseline), group, 3)
    assert_same(parts[0].merge(parts[1]), whole)
    assert_same(parts[1].merge(parts[0]), whole)


@given(values=matrices, baseline=matrices)
def test_aggregates_are_read_back_from_bytes_as_they_were(values: np.ndarray, baseline: np.ndarray) -> None:
    group = np.repeat([0, 2], [12, 28])  # few users, nobody, and more
    for place, state in enumerate(
        paired_tests.differences_by_group(PairedValues.from_values(values, baseline), group, 3).to_bytes()
    ):
        own = group == place
        alone = paired_tests.differences_by_group(
            PairedValues.from_values(values[own], baseline[own]), np.zeros(own.sum(), dtype=np.int64), 1
        )
        assert_same(Differences.from_bytes(state), alone)


@given(values=matrices, baseline=matrices)
def test_wins_ties_and_losses_are_those_of_the_definition(values: np.ndarray, baseline: np.ndarray) -> None:
    """What is a tie depends on the user's own two values."""
    found = of(values, baseline)
    for column in range(2):
        pairs = [each for each in zip(values[:, column], baseline[:, column], strict=True) if not np.isnan(each).any()]
        signs = [0 if abs(a - b) <= 1e-14 * max(abs(a), abs(b)) else np.sign(a - b) for a, b in pairs]
        expected = [signs.count(sign) for sign in (1, 0, -1)]
        assert [int(each[0, column]) for each in found.wins_ties_losses] == expected


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_what_rounding_leaves_of_equal_values_is_a_tie_at_any_scale(scale: float) -> None:
    values = np.array([0.1 + 0.2, 0.5, 0.7, 0.2] * 10) * scale
    baseline = np.array([0.3, 0.2, 0.9, 0.2] * 10) * scale
    assert [int(each[0, 0]) for each in of(values, baseline).wins_ties_losses] == [10, 20, 10]


def test_the_order_in_which_sums_were_added_up_is_no_difference() -> None:
    """A re-ranker that leaves the items as they are: every user's sum has other last bits, and six found one more."""
    draw = np.random.default_rng(2)
    items = draw.random((500, 10))
    sums, reordered = (np.add.accumulate(each, axis=1)[:, -1] for each in (items, items[:, ::-1]))
    assert (sums != reordered).sum() > 100
    found = of(reordered, sums)
    assert [int(each[0, 0]) for each in found.wins_ties_losses] == [0, 500, 0]
    assert (found.low[0, 0], found.high[0, 0], found.n_nonzero[0, 0]) == (0, 0, 0)
    more = np.where(np.arange(500) < 6, reordered + 0.5, reordered)
    compared_ = compared(more, sums)
    assert (compared_.test[0, 0], compared_.p[0, 0]) == ("exact", 2 / 2**6)


@pytest.mark.parametrize("offset", [0.0, 0.3, 1e6])
def test_t_p_and_interval_are_those_of_scipy(offset: float) -> None:
    draw = np.random.default_rng(5)
    baseline = draw.random((200, 3)) + offset
    values = baseline + draw.normal(0.01, 0.1, (200, 3))
    found = compared(values, baseline)
    oracle = stats.ttest_rel(values, baseline)
    np.testing.assert_allclose(found.p[0], oracle.pvalue, rtol=1e-9, atol=0)
    ends = oracle.confidence_interval(0.95)
    np.testing.assert_allclose([found.low[0], found.high[0]], [ends.low, ends.high], rtol=0, atol=1e-9)
    assert set(found.test.ravel()) == {"t"}
    d = values - baseline
    np.testing.assert_allclose(found.effect_size[0], d.mean(axis=0) / d.std(axis=0, ddof=1), rtol=1e-9)


@given(values=matrices, baseline=matrices)
def test_swapping_the_runs_flips_the_difference_and_keeps_p(values: np.ndarray, baseline: np.ndarray) -> None:
    one, other = compared(values, baseline), compared(baseline, values)
    np.testing.assert_allclose(one.delta, -other.delta, rtol=0, atol=1e-15)
    np.testing.assert_allclose(one.effect_size, -other.effect_size, rtol=1e-9)
    np.testing.assert_allclose(one.p, other.p, rtol=1e-9)
    np.testing.assert_allclose(one.low, -other.high, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(one.n_wins, other.n_losses)
    np.testing.assert_array_equal(one.test, other.test)


@given(values=arrays(np.float64, (30, 2), elements=st.floats(-1, 1)))
def test_same_run_twice_differs_by_0_with_a_p_of_1(values: np.ndarray) -> None:
    found = compared(values, values)
    for each, expected in (
        (found.delta, 0.0), (found.low, 0.0), (found.high, 0.0), (found.p, 1.0),
        (found.n_ties, 30), (found.test, "equal"), (found.reason, ""),
    ):  # fmt: skip  # a pair a line would be a page
        np.testing.assert_array_equal(each, np.full((1, 2), expected))


def test_equal_differences_have_the_p_of_their_signs() -> None:
    """Their spread is what rounding makes of it, and t would be of the order of 1e15."""
    baseline = np.random.default_rng(0).random(35)
    found = compared(baseline + 0.1, baseline)
    assert found.p[0, 0] == pytest.approx(2.0**-34, rel=1e-12)
    assert (found.low[0, 0] == found.high[0, 0], found.test[0, 0]) == (True, "equal")
    assert np.isnan(found.effect_size[0, 0])


@pytest.mark.parametrize(
    ("n", "n_better", "reason"),
    [(1, 1, "one_user"), (0, 0, "one_user"), (29, 10, "few_users"), (30, 5, "few_differences"), (30, 6, "")],
)
def test_without_users_or_differences_there_is_no_p(n: int, n_better: int, reason: str) -> None:
    values = (np.arange(n) < n_better) * 0.5
    found = compared(values, np.zeros(n))
    assert found.reason[0, 0] == reason
    assert np.isnan(found.p[0, 0]) == bool(reason)


def test_few_differences_are_enumerated() -> None:
    """Six better and none worse of 30: 2 of 2^6 assignments of signs, where t has .011."""
    found = compared((np.arange(30) < 6) * 0.5, np.zeros(30))
    assert (found.p[0, 0], found.test[0, 0]) == (2 / 2**6, "exact")


@pytest.mark.parametrize("n_better", [2, 5, 6, 20])
def test_few_differences_have_the_p_of_t_on_request(n_better: int) -> None:
    values = (np.arange(30) < n_better) * np.linspace(0.5, 1, 30)
    found = compared(values, np.zeros(30), few="t")
    assert found.test[0, 0] == "t"
    assert found.p[0, 0] == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-9)


def test_equal_differences_have_no_t_and_keep_their_p() -> None:
    found = compared(np.full(30, 0.5), np.zeros(30), few="t")
    assert (found.test[0, 0], found.p[0, 0]) == ("equal", 2.0**-29)


@pytest.mark.parametrize(("n_different", "test"), [(20, "exact"), (21, "t")])
def test_enumeration_ends_at_20_differences(n_different: int, test: str) -> None:
    d = np.zeros(100)
    d[:n_different] = np.random.default_rng(1).normal(0, 1, n_different)
    assert compared(d, np.zeros(100)).test[0, 0] == test


def test_what_rounding_leaves_does_not_count_as_a_difference() -> None:
    values, baseline = np.full(40, 0.3), np.full(40, 0.3)
    values[:4], values[4:12], baseline[4:12] = 0.1 + 0.2, 0.9, 0.4
    assert compared(values, baseline).p[0, 0] == 2 / 2**8


def test_floor_of_users_can_be_set() -> None:
    values = np.random.default_rng(1).normal(0, 1, 25)
    assert compared(values, np.zeros(25), least_users=25).p[0, 0] == pytest.approx(
        stats.ttest_1samp(values, 0).pvalue, rel=1e-9
    )


def test_relative_change_follows_its_formula() -> None:
    draw = np.random.default_rng(8)
    y = draw.random(500)
    x = 0.6 * y + draw.random(500)
    found = paired_tests.relative_change(of(x, y), level=0.9)
    delta = x.mean() / y.mean() - 1
    s = np.cov(x, y)
    variance = (s[0, 0] - 2 * (1 + delta) * s[0, 1] + (1 + delta) ** 2 * s[1, 1]) / (500 * y.mean() ** 2)
    half = stats.t.ppf(0.95, 499) * np.sqrt(variance)
    got = [float(each[0, 0]) for each in found]
    np.testing.assert_allclose(got, [delta, np.sqrt(variance), delta - half, delta + half], rtol=0, atol=1e-12)


def test_relative_change_from_0_is_undefined() -> None:
    assert np.isnan(paired_tests.relative_change(of(np.ones(40), np.zeros(40)), level=0.95)).all()


def test_users_undefined_under_either_model_are_left_out() -> None:
    values = np.array([1.0, np.nan, 2.0, 4.0])
    found = compared(values, np.array([0.0, 1.0, np.nan, 1.0]))
    assert (found.n[0, 0], found.delta[0, 0]) == (2, 2.0)
    assert of(values, np.array([0.0, 1.0, np.nan, 1.0])).moments.denominator.mean[0, 0] == 0.5


def test_randomization_test_takes_all_signs_where_they_are_few() -> None:
    """Three columns: many differences, eight, and all equal."""
    draw = np.random.default_rng(3)
    d = np.column_stack([draw.normal(0.2, 1, 100), np.zeros(100), np.full(100, 0.1)])
    d[:8, 1] = 1.0
    users = hashed_random.hash_ids([str(number) for number in range(100)])
    sums = paired_tests.sign_sums(d, users, Draws(999, 1))
    p, test, _ = paired_tests.randomization_test(of(d, np.zeros_like(d)), sums)
    n_extreme = (np.abs(sums[0, 0]) >= abs(d[:, 0].sum()) - 1e-9).sum()
    np.testing.assert_allclose(p, [[(1 + n_extreme) / 1000, 2 / 2**8, 2.0**-99]], rtol=1e-12)
    assert test.tolist() == [["randomization", "exact", "equal"]]
    p, _, reason = paired_tests.randomization_test(of(d[:20], np.zeros((20, 3))), sums)
    assert np.isnan(p).all()
    assert set(reason.ravel()) == {"few_users"}


USERS = hashed_random.hash_ids([f"user {number}" for number in range(400)])

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
    (p,) = paired_tests.all_signs_p(np.array([[one / 10 for one in differences]]).reshape(1, -1))
    assert p == float(enumerated(differences))


def test_a_plain_comparison_of_floats_would_lose_equal_sums() -> None:
    differences = np.array(X) / 10 - np.array(Y) / 10
    signs = np.array(list(product((1, -1), repeat=11)))
    means = (signs * differences).mean(axis=1)
    naive = (np.abs(means) >= abs(differences.mean())).mean()
    assert paired_tests.all_signs_p(differences[None])[0] == 961 / 1024
    assert naive < 0.87


def test_textbook_example_has_its_exact_p() -> None:
    """2160 of the 2^15 assignments of signs to the 15 differences."""
    (p,) = paired_tests.all_signs_p(np.array([textbook.X]) / 10 - np.array([textbook.Y]) / 10)
    assert p == 2160 / 2**15


def test_up_to_20_differences_are_enumerated_and_more_refused() -> None:
    assert paired_tests.all_signs_p(np.ones((1, 20)))[0] == 2 / 2**20
    with pytest.raises(ValueError, match="at most 20"):
        paired_tests.all_signs_p(np.ones((1, 21)))


def test_undefined_and_equal_values_change_nothing() -> None:
    p = paired_tests.all_signs_p(np.array([[0.5, 0.25, np.nan, 0.0], [np.nan, np.nan, np.nan, np.nan]]))
    np.testing.assert_array_equal(p, [1 / 2, 1.0])


@given(values=arrays(np.float64, (12, 2), elements=st.floats(-1e3, 1e3) | st.just(np.nan)), cut=st.integers(0, 12))
def test_sums_of_parts_add_up_to_those_of_a_naive_loop(values: np.ndarray, cut: int) -> None:
    parts = [
        paired_tests.sign_sums(values[part], USERS[:12][part], Draws(70, 5)) for part in (slice(cut), slice(cut, None))
    ]
    signs = hashed_random.random_signs(USERS[:12], seed=5, replicates=70)
    expected = np.nan_to_num(values).T @ signs.astype(np.float64)
    np.testing.assert_allclose((parts[0] + parts[1])[0], expected, rtol=0, atol=1e-9)


def test_random_signs_come_near_to_all_of_them() -> None:
    differences = np.random.default_rng(2).normal(0.35, 1.0, (18, 1))
    sums = paired_tests.sign_sums(differences, USERS[:18], Draws(20_000, 1))
    found = paired_tests.monte_carlo_p(differences.sum(axis=0)[None], np.abs(differences).sum(axis=0)[None], sums)
    exact = paired_tests.all_signs_p(differences.T)[0]
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

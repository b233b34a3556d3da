"""The gap between groups, an interval that knows that the extremes were picked, and p of equal means."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from scipy import stats

from rankeval_spark.statistics import distributions, resampling
from rankeval_spark.statistics.group_gaps import (
    GroupMeans,
    compare_groups,
    equal_means_p,
    ratio_interval,
    worst_interval,
)
from rankeval_spark.statistics.hashed_random import hash_ids
from rankeval_spark.statistics.intervals import wilson_interval
from rankeval_spark.statistics.resampling import Draws, ReplicateSums, SliceGroups


def test_gap_ratio_and_mean_difference_are_those_of_all_pairs() -> None:
    values = [0.2, 0.5, 0.4, 0.1]
    found = compare_groups(GroupMeans(np.array(values), np.full(4, 0.1), np.full(4, 20.0), 0.95))
    differences = [abs(one - other) for one, other in itertools.combinations(values, 2)]
    assert found.gap == pytest.approx(0.5 - 0.1, rel=0, abs=1e-12)
    assert found.ratio == pytest.approx(0.1 / 0.5, rel=0, abs=1e-12)
    assert found.mad == pytest.approx(sum(differences) / 6, rel=0, abs=1e-12)


def test_of_two_groups_with_equal_errors_the_interval_is_that_of_welch() -> None:
    """The studentized range of two is sqrt(2) |t|; 2 x 24 degrees of freedom are a whole number of two digits."""
    found = compare_groups(GroupMeans(np.array([0.5, 0.2]), np.array([0.05, 0.05]), np.array([24.0, 24.0]), 0.9))
    half = stats.t.ppf(0.95, 48) * np.hypot(0.05, 0.05)
    np.testing.assert_allclose([found.low, found.high], [0.3 - half, 0.3 + half], rtol=0, atol=1e-8)


def test_groups_drawn_from_one_population_have_an_interval_that_holds_0() -> None:
    """21 groups of 100 users: the gap is always above 0, and its interval misses 0 in about 5 % of trials at most."""
    draw = np.random.default_rng(20260101)
    missed = 0
    for _ in range(200):
        users = draw.normal(0.3, 0.3, (21, 100))
        errors = users.std(axis=1, ddof=1) / 10
        found = compare_groups(GroupMeans(users.mean(axis=1), errors, np.full(21, 99.0), 0.95))
        assert found.gap > 0
        missed += bool(found.low > 0)
    assert missed <= 20


@pytest.mark.parametrize(("values", "is_there"), [([], False), ([0.5], False), ([0.5, 0.5], True)])
def test_a_difference_takes_two_groups(values: list[float], is_there: bool) -> None:
    found = compare_groups(GroupMeans(np.array(values), np.zeros(len(values)), np.ones(len(values)), 0.95))
    expected = (0.0, 0.0, 0.0, 1.0, 0.0) if is_there else (np.nan,) * 5
    np.testing.assert_array_equal(found, expected)


def test_without_an_error_there_is_no_interval_and_without_a_positive_value_no_ratio() -> None:
    found = compare_groups(GroupMeans(np.array([0.0, -1.0]), np.array([np.nan, 0.1]), np.array([0.0, 5.0]), 0.95))
    np.testing.assert_array_equal(found, (1.0, np.nan, np.nan, np.nan, 1.0))


def test_ratio_of_two_groups_has_the_interval_of_fieller() -> None:
    """The ratios r for which x - r y lies within t errors of 0; 2 x 24 degrees of freedom are two digits."""
    low, high = ratio_interval(GroupMeans(np.array([0.2, 0.5]), np.array([0.03, 0.03]), np.full(2, 24.0), 0.95))
    square = (stats.t.ppf(0.975, 48) * 0.03) ** 2
    middle, ends = 0.2 * 0.5, np.sqrt((0.2 * 0.5) ** 2 - (0.2**2 - square) * (0.5**2 - square))
    expected = [(middle - ends) / (0.5**2 - square), (middle + ends) / (0.5**2 - square)]
    np.testing.assert_allclose([low, high], expected, rtol=0, atol=1e-8)


def test_ratio_of_many_groups_lies_between_the_least_ends_of_all_pairs() -> None:
    values, errors = np.array([0.2, 0.5, 0.4]), np.array([0.02, 0.03, 0.01])
    freedom = np.full(3, 1e9)
    found = ratio_interval(GroupMeans(values, errors, freedom, 0.95))
    level = 1 - 2 * stats.norm.sf(distributions.studentized_range_quantile(0.95, 3, 1000) / np.sqrt(2))
    pairs = [
        ratio_interval(GroupMeans(values[list(pair)], errors[list(pair)], freedom[:2], level))
        for pair in itertools.combinations(range(3), 2)
    ]
    np.testing.assert_allclose(found, np.min(pairs, axis=0), rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("values", "errors", "expected"),
    [
        ([0.5], [0.1], (np.nan, np.nan)),
        ([0.0, 0.0], [0.0, 0.0], (np.nan, np.nan)),
        ([0.2, 0.5], [0.1, np.nan], (np.nan, np.nan)),
        ([0.0, 0.1], [0.0, 9.0], (0.0, 1.0)),
        ([0.5, 0.5], [0.0, 0.0], (1.0, 1.0)),
    ],
)
def test_ratio_has_bounds_where_there_is_one(
    values: list[float], errors: list[float], expected: tuple[float, float]
) -> None:
    found = ratio_interval(GroupMeans(np.array(values), np.array(errors), np.full(len(values), 9.0), 0.95))
    np.testing.assert_array_equal(found, expected)


def test_worst_group_lies_between_the_least_simultaneous_bounds() -> None:
    draw = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        users = draw.normal(0.3, 0.3, (8, 100)) + 0.02 * np.arange(8)[:, None]
        errors = users.std(axis=1, ddof=1) / 10
        low, high = worst_interval(GroupMeans(users.mean(axis=1), errors, np.full(8, 99.0), 0.95))
        held += bool(low <= 0.3 <= high)
    assert held >= 285
    assert np.isnan(worst_interval(GroupMeans(np.zeros(0), np.zeros(0), np.zeros(0), 0.95))).all()
    assert np.isnan(
        worst_interval(GroupMeans(np.array([0.1, 0.2]), np.array([0.1, np.nan]), np.full(2, 9.0), 0.95))
    ).all()


def test_rows_are_compared_at_once_each_without_the_groups_that_it_leaves_out() -> None:
    draw = np.random.default_rng(11)
    values, errors = draw.uniform(0.1, 0.9, (5, 6)), draw.uniform(0.01, 0.1, (5, 6))
    freedom = draw.integers(5, 400, (5, 6)).astype(np.float64)
    left_out = draw.uniform(size=(5, 6)) < np.array([0, 0.3, 0.5, 0.8, 1])[:, None]
    together = np.where(left_out, np.nan, values)
    for function in (compare_groups, ratio_interval, worst_interval):
        rows = np.stack(function(GroupMeans(together, errors, freedom, 0.95)), axis=-1)
        for row, out in enumerate(left_out):
            alone = function(GroupMeans(values[row, ~out], errors[row, ~out], freedom[row, ~out], 0.95))
            np.testing.assert_allclose(rows[row], np.stack(alone), rtol=0, atol=1e-12)


def test_the_worst_value_of_an_error_is_the_greatest() -> None:
    values, errors, freedom = np.array([0.2, 0.5]), np.array([0.02, 0.03]), np.full(2, 60.0)
    low, high = worst_interval(GroupMeans(values, errors, freedom, 0.95), is_greatest=True)
    mirrored = worst_interval(GroupMeans(-values, errors, freedom, 0.95))
    np.testing.assert_allclose((low, high), (-mirrored[1], -mirrored[0]), rtol=0, atol=1e-15)
    least = worst_interval(GroupMeans(values, errors, freedom, 0.95))
    twice = (np.tile(values, (2, 1)), np.tile(errors, (2, 1)), np.tile(freedom, (2, 1)))
    both = worst_interval(GroupMeans(*twice, 0.95), is_greatest=np.array([True, False]))
    np.testing.assert_array_equal(np.stack(both, axis=1), [(low, high), least])


def test_quantile_of_the_range_is_that_of_scipy_also_with_little_freedom() -> None:
    for n_groups, freedom in ((2, 48), (21, 99), (5, 3)):
        expected = stats.studentized_range.ppf(0.95, n_groups, freedom)
        assert distributions.studentized_range_quantile(0.95, n_groups, freedom) == pytest.approx(
            expected, rel=0, abs=1e-8
        )


@pytest.mark.parametrize(
    ("n", "shares"), [(30, (0.02, 0.5)), (50, (0.02, 0.5)), (200, (0.005, 0.3)), (30, (0.001, 0.03))]
)
def test_bounds_of_shares_hold_also_where_a_group_has_no_hit_at_all(n: int, shares: tuple[float, float]) -> None:
    """Such a group has no spread, and is no more certain than one with a hit; 2,000 draws of a nominal 95 %."""
    true = np.array(shares)
    hits = np.random.default_rng(7).binomial(n, true, (2000, 2)) / n
    estimates = hits, np.sqrt(hits * (1 - hits) / (n - 1)), np.full((2000, 2), n - 1.0), 0.95
    worst_low, worst_high = worst_interval(GroupMeans(*estimates, is_share=True))
    ratio_low, ratio_high = ratio_interval(GroupMeans(*estimates, is_share=True))
    gap = compare_groups(GroupMeans(*estimates, is_share=True))
    least, greatest, has_ratio = true.min(), true.max(), ~np.isnan(ratio_low)
    assert np.mean((worst_low <= least) & (least <= worst_high)) > 0.95
    assert np.mean((ratio_low <= least / greatest) & (least / greatest <= ratio_high), where=has_ratio) > 0.95
    assert np.mean((gap.low <= greatest - least) & (greatest - least <= gap.high)) > 0.925


def test_a_share_of_zero_has_the_bounds_of_wilson_at_the_level_of_all_groups() -> None:
    low, high = worst_interval(
        GroupMeans(np.array([0.0, 0.5]), np.array([0.0, 0.09]), np.full(2, 29.0), 0.95, is_share=True)
    )
    assert low == 0
    assert high == pytest.approx(float(wilson_interval(30, 0.0, 0.0, 0.975)[1]), rel=1e-12)


def test_a_group_of_equal_users_has_the_bounds_of_the_range_of_the_measure() -> None:
    """Without an error, a group between 0 and 1 is a share; without a greatest value it has no bounds."""
    estimates = np.array([0.0, 0.5]), np.array([0.0, 0.09]), np.full(2, 29.0), 0.95
    _, high = worst_interval(GroupMeans(*estimates, bounds=(0.0, 1.0)))
    assert high == pytest.approx(float(wilson_interval(30, 0.0, 0.0, 0.975)[1]), rel=1e-12)
    assert worst_interval(GroupMeans(*estimates, bounds=(0.0, 1.0))) == worst_interval(
        GroupMeans(*estimates, is_share=True)
    )
    wide = GroupMeans(-4 + 10 * estimates[0], 10 * estimates[1], estimates[2], 0.95, bounds=(-4.0, 6.0))
    assert compare_groups(wide)[:3] == pytest.approx(
        [10 * each for each in compare_groups(GroupMeans(*estimates, bounds=(0, 1)))[:3]]
    )
    for bounds in ((0.0, np.inf), (-np.inf, np.inf)):
        unknown = GroupMeans(*estimates, bounds=bounds)
        assert np.isnan([*worst_interval(unknown), *ratio_interval(unknown), *compare_groups(unknown)[1:3]]).all()
        assert compare_groups(unknown).gap == 0.5


def test_a_value_of_all_lists_together_without_an_error_is_certain() -> None:
    """Its error is not that of a mean over users: it is 0 where leaving any of them out changes nothing."""
    low, high = worst_interval(GroupMeans(np.array([0.0, 0.5]), np.array([0.0, 0.09]), np.full(2, 19.0), 0.95))
    assert (float(low), float(high)) == (0, 0)


def test_equal_users_in_a_gap_are_as_uncertain_as_the_range_of_the_measure_allows() -> None:
    """Of users at 1/4 a share u may have 1, of those at 3/4 a share u may have 0."""
    groups = GroupMeans(np.array([0.25, 0.75]), np.zeros(2), np.full(2, 2000.0), 0.95, bounds=(0.0, 1.0))
    square = distributions.studentized_range_quantile(0.95, 2, 1000) ** 2 / 2
    most = square / (2001 + square)
    found = compare_groups(groups)
    expected = 0.5 - most * np.hypot(0.75, 0.75), 0.5 + most * np.hypot(0.25, 0.25)
    np.testing.assert_allclose([found.low, found.high], expected, rtol=0, atol=1e-12)


def one_limit(values: np.ndarray, bounds: tuple[float, float], *, is_share: bool = False) -> np.ndarray:
    """Limits of a group of users that stands alone, which are those of the worst group of one."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    alone = np.array([values.mean()]), np.array([error]), np.array([len(values) - 1.0]), 0.95
    return np.array(worst_interval(GroupMeans(*alone, bounds=bounds, is_share=is_share)))


def test_limits_of_a_share_are_those_of_clopper_and_pearson() -> None:
    users = np.repeat([0.0, 1.0], [27, 3])
    expected = stats.beta.ppf([0.025, 0.975], [3, 4], [28, 27])
    np.testing.assert_allclose(one_limit(users, (0.0, 1.0), is_share=True), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("least", "greatest"), [(0.0, 1.0), (-1.0, 3.0)])
def test_limits_in_a_range_have_the_error_of_each_possible_mean(least: float, greatest: float) -> None:
    """At a limit m the distance to the mean is t sqrt(c m (1 - m) / n), c being drawn to 1 as by one more hit."""
    users = np.repeat([0.0, 0.5, 1.0], [27, 2, 1])
    low, high = (one_limit(least + (greatest - least) * users, (least, greatest)) - least) / (greatest - least)
    mean, variance = 2 / 30, users.var(ddof=1)
    hits = 30 * mean**2 / (variance + mean**2)
    dispersion = (hits * variance / (mean * (1 - mean)) + 1) / (hits + 1)
    for limit in (low, high):
        error = np.sqrt(dispersion * limit * (1 - limit) / 30)
        assert abs(limit - mean) == pytest.approx(stats.t.ppf(0.975, 29) * error, rel=1e-10)
    mirrored = 1 - (one_limit(greatest - (greatest - least) * users, (least, greatest)) - least) / (greatest - least)
    np.testing.assert_allclose(mirrored[::-1], [low, high], rtol=0, atol=1e-12)


def test_limits_without_a_greatest_value_take_the_variance_to_grow_with_the_mean() -> None:
    users = 2 + np.repeat([0.0, 1.0, 3.0], [20, 40, 40])
    mean, dispersion = (40 + 120) / 100, users.var(ddof=1) / 1.6
    for limit in one_limit(users, (2.0, np.inf)) - 2:
        assert abs(limit - mean) == pytest.approx(stats.t.ppf(0.975, 99) * np.sqrt(dispersion * limit / 100), rel=1e-10)
    alone = np.array([1.6]), np.array([0.1]), np.array([99.0]), 0.95
    is_root = worst_interval(GroupMeans(*alone, bounds=(0.0, np.inf), is_linked=True))
    np.testing.assert_allclose(is_root, 1.6 + 0.1 * stats.t.ppf([0.025, 0.975], 99), rtol=0, atol=1e-12)
    few_hits = 2 + np.repeat([0.0, 1.0, 3.0], [90, 5, 5])
    assert np.isnan(one_limit(few_hits, (2.0, np.inf))).all()
    assert not np.isnan(one_limit(few_hits, (2.0, 9.0))).any()


@pytest.mark.parametrize("rounding", [0.0, 1e-16])
def test_groups_that_are_all_equal_may_lie_apart_and_are_not_told_apart(rounding: float) -> None:
    values = np.array([0.5, 0.5 + rounding, 0.5])
    groups = GroupMeans(values, np.zeros(3), np.array([39.0, 99.0, 59.0]), 0.95, bounds=(0.0, 1.0))
    found = compare_groups(groups)
    assert found.gap == pytest.approx(0, abs=1e-15)
    assert found.low == 0
    assert 0 < found.high < 0.1
    low, high = ratio_interval(groups)
    assert 0.7 < low < 1
    assert high == 1


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7, 1e9, 1e12])
def test_intervals_of_ratios_keep_their_width_far_from_0(offset: float) -> None:
    """Of two large values x and y with the limits x -+ d and y -+ d, 1 - ratio is the difference over y."""
    groups = GroupMeans(offset + np.array([1.2, 1.5]), np.full(2, 0.03), np.full(2, 24.0), 0.95)
    low, high = ratio_interval(groups)
    assert low < (offset + 1.2) / (offset + 1.5) < high < 1
    if offset >= 1e7:
        half = np.hypot(*np.full(2, stats.t.ppf(0.975, 48) * 0.03))
        expected = (0.3 + half) / offset, (0.3 - half) / offset
        np.testing.assert_allclose([1 - low, 1 - high], expected, rtol=max(1e-3, 1e-16 * offset / half), atol=0)


def test_limits_of_geometric_means_are_those_of_their_logarithms() -> None:
    logs, errors = np.array([-6.0, -2.0]), np.array([0.9, 0.5])
    reach = np.log(1e-5), 0.0
    linear = worst_interval(GroupMeans(logs, errors, np.full(2, 29.0), 0.95, bounds=reach))
    geometric = GroupMeans(
        *(np.exp(logs), np.exp(logs) * errors, np.full(2, 29.0), 0.95),
        bounds=(np.array(1e-5), np.array(1.0)),
        is_log=np.array(True),
        has_floor=np.array(True),
        reach=(1e-5, 1.0),
    )
    low, high = worst_interval(geometric)
    np.testing.assert_allclose([low, high], np.exp(linear), rtol=1e-12, atol=0)
    # Of a group without a user at the floor, as many as could be unseen are taken to be there.
    (best, _), unseen = (
        worst_interval(
            replace(geometric, values=geometric.values[1:], std_errors=np.array([1e-6]), freedom=np.array([29.0]))
        ),
        stats.norm.ppf(0.975) ** 2,
    )
    assert best == pytest.approx(np.exp(-2 - unseen / (30 + unseen) * (-2 - reach[0])), rel=1e-9)
    assert 1e-5 <= low < np.exp(-6) < high <= 1
    equal = GroupMeans(np.full(2, 1e-5), np.zeros(2), np.full(2, 29.0), 0.95, bounds=(1e-5, 1.0), is_log=True)
    low, high = worst_interval(equal)
    assert low == pytest.approx(1e-5, rel=1e-9)
    assert low < high < 1


def test_limits_are_cut_off_at_the_reach_of_a_measure() -> None:
    values, errors = np.array([0.05, 0.95]), np.full(2, 0.1)
    groups = GroupMeans(values, errors, np.full(2, 19.0), 0.95, reach=(0.0, 1.0))
    assert worst_interval(groups)[0] == 0
    assert worst_interval(groups, is_greatest=True)[1] == 1
    found = compare_groups(groups)
    assert found.gap < found.high <= 1


@pytest.mark.parametrize(
    ("n_groups", "n_users", "hit_rate"), [(3, 30, 0.1), (10, 30, 0.5), (10, 30, 0.9), (3, 100, 0.5)]
)
@pytest.mark.parametrize("is_log", [True, False], ids=["GMAP", "LogAP"])
def test_intervals_above_a_far_floor_hold_the_truth_of_equal_groups(
    n_groups: int, n_users: int, hit_rate: float, is_log: bool
) -> None:
    draw = np.random.default_rng(20261126)
    ranks = draw.integers(1, 4, (2000, n_groups, n_users))
    logs = np.where(draw.random(ranks.shape) < hit_rate, -np.log(ranks), np.log(1e-5))
    truth = -hit_rate * np.log(6) / 3 + (1 - hit_rate) * np.log(1e-5)
    values, errors = logs.mean(axis=-1), logs.std(axis=-1, ddof=1) / np.sqrt(n_users)
    least, greatest = np.log(1e-5), 0.0
    if is_log:
        truth, values, least, greatest = np.exp(truth), np.exp(values), 1e-5, 1.0
        errors = errors * values
    groups = GroupMeans(
        *(values, errors, np.full(values.shape, n_users - 1.0), 0.95),
        bounds=(np.full(2000, least), np.full(2000, greatest)),
        is_log=np.full(2000, is_log),
        has_floor=np.ones(2000, dtype=np.bool_),
        reach=(np.full(2000, least), np.full(2000, greatest)),
    )
    low, high = worst_interval(groups)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93
    assert np.mean(compare_groups(groups).low <= 1e-15) >= 0.93
    assert not is_log or np.mean(ratio_interval(groups)[1] >= 1) >= 0.93


N_SAMPLES: Final = 500
ALPHA: Final = 0.05

Group = tuple[int, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]]


def normal(n: int, deviation: float) -> Group:
    return n, lambda draw, shape: draw.normal(0.5, deviation, shape)


def hits(n: int, rate: float, low: float, high: float) -> Group:
    """Zeros, and hits whose values are uniform between two ends."""
    return n, lambda draw, shape: np.where(draw.random(shape) < rate, draw.uniform(low, high, shape), 0.0)


def p_values(groups: Sequence[Group], n_replicates: int = 199) -> np.ndarray:
    """P of each sample; a sample is a column, and each replicate draws the users of all samples alike."""
    draw = np.random.default_rng(13)
    values = [own(draw, (n, N_SAMPLES)) for n, own in groups]
    weights = [draw.poisson(1.0, (n, n_replicates)).astype(np.float64) for n, _ in groups]
    means = np.stack([own.mean(axis=0) for own in values])
    errors = np.stack([own.std(axis=0, ddof=1) / np.sqrt(len(own)) for own in values])
    centred = [own - mean for own, mean in zip(values, means, strict=True)]
    sums = ReplicateSums(
        np.stack([np.broadcast_to(own.sum(axis=0), (N_SAMPLES, n_replicates)) for own in weights]),
        np.stack([own.T @ weight for own, weight in zip(centred, weights, strict=True)]),
        np.stack([(own**2).T @ weight for own, weight in zip(centred, weights, strict=True)]),
    )
    return equal_means_p(means, errors, sums)


@pytest.mark.parametrize(
    "groups",
    [
        [normal(300, 0.1), normal(30, 0.3)],
        [normal(300, 0.3), normal(30, 0.1)],
        [normal(300, 0.1), normal(60, 0.2), normal(30, 0.3)],
        [hits(1000, 0.1, 0.5, 1.0), hits(80, 0.5, 0.1, 0.2)],
        [hits(400, 0.1, 0.5, 1.0), hits(1000, 0.5, 0.1, 0.2)],
        [hits(400, 0.1, 0.5, 1.0), hits(100, 0.5, 0.1, 0.2), hits(1000, 0.2, 0.25, 0.5)],
        [hits(2000, 0.05, 0.5, 1.0), hits(60, 1.0, 0.0, 0.075)],
    ],
    ids=range(7),
)
def test_equal_means_are_rejected_in_about_five_of_a_hundred_samples(groups: list[Group]) -> None:
    """Sizes, variances and shares of zeros differ; the size is known to 1 point. Random labels gave 0 to 39 %."""
    assert 0.03 <= np.mean(p_values(groups) <= ALPHA) <= 0.07


def test_unequal_means_are_found() -> None:
    assert (
        np.mean(p_values([normal(100, 0.1), (100, lambda draw, shape: draw.normal(0.56, 0.1, shape))]) <= ALPHA) > 0.9
    )


USERS: Final = hash_ids([f"user {number}" for number in range(300)])
GROUP: Final = np.repeat([0, 1, 2], [150, 100, 50])


def p_of(values: np.ndarray, n_replicates: int = 50) -> float:
    means = np.array([values[group == GROUP].mean() for group in range(3)])
    deviations = np.array([values[group == GROUP].std(ddof=1) for group in range(3)])
    parts = [
        resampling.weighted_sums(
            (values - means[GROUP])[part, None], USERS[part], Draws(n_replicates, 1), SliceGroups(GROUP[None, part], 3)
        )
        for part in (slice(0, 120), slice(120, None))
    ]
    errors = deviations / np.sqrt(np.bincount(GROUP))
    return float(equal_means_p(means[:, None], errors[:, None], parts[0].merge(parts[1]))[0])


def test_p_is_that_of_replicates_by_hand() -> None:
    values = np.random.default_rng(2).normal(0, 1, 300) + 0.5 * (GROUP == 2)
    weights = Draws(50, 1).weights(USERS).astype(np.int64)

    def greatest(samples: list[np.ndarray], centres: list[float]) -> float:
        pairs = [(one, other) for one in range(3) for other in range(one)]
        errors = [own.var(ddof=1) / len(own) for own in samples]
        distances = [own.mean() - centre for own, centre in zip(samples, centres, strict=True)]
        return max(float(abs(distances[g] - distances[h]) / np.sqrt(errors[g] + errors[h])) for g, h in pairs)

    own = [values[group == GROUP] for group in range(3)]
    observed = greatest(own, [0.0] * 3)
    drawn = [
        greatest(
            [np.repeat(each, weights[group == GROUP, b]) for group, each in enumerate(own)],
            [each.mean() for each in own],
        )
        for b in range(50)
    ]
    n_extreme = sum(one >= observed for one in drawn)
    assert 0 < n_extreme < 25
    assert p_of(values) == (1 + n_extreme) / 51


@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3, -1 / 7])
def test_equal_values_have_a_p_of_1_also_where_rounding_sets_them_apart(value: float) -> None:
    values = np.full(300, value)
    values[GROUP == 1] += np.spacing(value)
    assert p_of(values) == 1.0


@pytest.mark.parametrize(("n", "rate"), [(50, 0.98), (100, 0.9), (40, 0.95)])
def test_few_users_without_a_hit_are_no_evidence(n: int, rate: float) -> None:
    """In replicates that draw none of them the group has no error. Without any there is no p at all."""
    shares = [hits(n, rate, 1.0, 1.0), hits(1000, rate, 1.0, 1.0)]
    with np.errstate(divide="ignore", invalid="ignore"):
        p = p_values(shares)
    few = shares[0][1](np.random.default_rng(13), (n, N_SAMPLES))
    assert np.mean(p[few.std(axis=0) > 0] <= ALPHA) <= 0.07

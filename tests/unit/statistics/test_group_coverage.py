"""How often the intervals of group statistics hold the truth, in settings with few hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pytest

from rankeval_spark.statistics.group_gaps import GroupMeans, compare_groups, ratio_interval, worst_interval

N_SAMPLES: Final = 1000
LEAST_COVERAGE: Final = 0.93

Draw = Callable[[np.random.Generator, tuple[int, int], float], np.ndarray]


def reciprocal_ranks(draw: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """RR@3 of users who find their item at a rank from 1 to 3, or not."""
    return np.where(draw.random(shape) < rate, 1 / draw.integers(1, 4, shape), 0.0)


def discounted(draw: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """NDCG@10 of users with one judgement."""
    return np.where(draw.random(shape) < rate, 1 / np.log2(draw.integers(2, 12, shape)), 0.0)


def successes(draw: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    return (draw.random(shape) < rate).astype(np.float64)


def gains(draw: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
    """DCG@10 of users with about three hits, or none."""
    hits = draw.random((*shape, 10)) < 0.3
    return np.where(draw.random(shape) < rate, hits @ (1 / np.log2(np.arange(2, 12))), 0.0)


UNIT_MEANS: Final[Mapping[Draw, float]] = {
    reciprocal_ranks: (1 + 1 / 2 + 1 / 3) / 3,
    discounted: float(np.mean(1 / np.log2(np.arange(2, 12)))),
    successes: 1.0,
    gains: 0.3 * float(np.sum(1 / np.log2(np.arange(2, 12)))),
}


class Covered(NamedTuple):
    """Coverage of each statistic."""

    worst: float
    best: float
    gap: float
    ratio: float


def coverage(kind: Draw, rates: Sequence[float], sizes: Sequence[int]) -> Covered:
    """Share of the samples whose interval holds the truth; samples without one do not count."""
    draw = np.random.default_rng(36)
    users = [kind(draw, (N_SAMPLES, n), rate) for n, rate in zip(sizes, rates, strict=True)]
    means = np.stack([own.mean(axis=1) for own in users], axis=1)
    errors = np.stack([own.std(axis=1, ddof=1) / np.sqrt(own.shape[1]) for own in users], axis=1)
    freedom = np.broadcast_to(np.array(sizes) - 1.0, means.shape)
    bounds = (0.0, np.inf) if kind is gains else (0.0, 1.0)
    groups = GroupMeans(means, errors, freedom, 0.95, is_share=kind is successes, bounds=bounds)
    truth = UNIT_MEANS[kind] * np.array(rates)
    least, greatest = truth.min(), truth.max()

    def held(low: np.ndarray, high: np.ndarray, value: float) -> float:
        is_there = ~np.isnan(low)
        assert is_there.mean() > 0.5
        return float(np.mean((low <= value + 1e-12) & (value <= high + 1e-12), where=is_there))

    gap = compare_groups(groups)
    return Covered(
        held(*worst_interval(groups), least),
        held(*worst_interval(groups, is_greatest=True), greatest),
        held(gap.low, gap.high, greatest - least),
        held(*ratio_interval(groups), least / greatest),
    )


@pytest.mark.parametrize("kind", [reciprocal_ranks, discounted, successes])
@pytest.mark.parametrize(
    ("rates", "sizes"),
    [
        ((0.1,) * 3, (30,) * 3),
        ((0.1,) * 10, (30,) * 10),
        ((0.1,) * 10, (100,) * 10),
        ((0.9,) * 10, (30,) * 10),
        ((0.05, 0.3), (30, 300)),
        ((0.05, 0.3), (300, 30)),
        ((0.02, 0.3), (50, 50)),
        ((0.05, 0.1, 0.2, 0.4), (60,) * 4),
    ],
    ids=str,
)
def test_intervals_of_group_statistics_hold_the_truth_also_with_few_hits(
    kind: Draw, rates: tuple[float, ...], sizes: tuple[int, ...]
) -> None:
    assert min(coverage(kind, rates, sizes)) >= LEAST_COVERAGE


@pytest.mark.parametrize(("rates", "sizes"), [((0.3,) * 5, (200,) * 5), ((0.9,) * 5, (30,) * 5), ((0.5, 1), (80, 30))])
def test_intervals_without_a_greatest_value_hold_the_truth(rates: tuple[float, ...], sizes: tuple[int, ...]) -> None:
    assert min(coverage(gains, rates, sizes)) >= LEAST_COVERAGE


def test_the_interval_of_a_ratio_covers_no_more_than_it_should_where_groups_differ() -> None:
    assert 0.93 <= coverage(reciprocal_ranks, (0.1, 0.2), (1000, 1000)).ratio <= 0.97

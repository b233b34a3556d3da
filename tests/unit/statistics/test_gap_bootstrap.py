"""P of equal means of several groups: its size in simulations, against replicates by hand, and its ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pytest

from rankeval_spark.statistics import resampling
from rankeval_spark.statistics.group_gaps import gap_p
from rankeval_spark.statistics.hashed_random import user_hashes
from rankeval_spark.statistics.resampling import Draws, ReplicateSums, SliceGroups

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
    return gap_p(means, errors, sums)


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


USERS: Final = user_hashes([f"user {number}" for number in range(300)])
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
    return float(gap_p(means[:, None], errors[:, None], parts[0].merge(parts[1]))[0])


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

"""How often intervals of group statistics hold the truth, and tests of equal means reject: tables for docs/slices.md.

``python -m benchmarks.group_statistics`` takes under a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rankeval_spark.statistics import group_gaps
from rankeval_spark.statistics.group_gaps import equal_means_p
from rankeval_spark.statistics.resampling import ReplicateSums

N_SAMPLES: Final = 2000
LEVEL: Final = 0.95


@dataclass(frozen=True)
class Values:
    """Values of users, some of whom have a hit: each hit has one of these values, with equal chances."""

    name: str
    of_hits: Sequence[float]
    greatest: float = 1.0
    is_share: bool = False

    def draw(self, draw: np.random.Generator, shape: tuple[int, int], rate: float) -> np.ndarray:
        """Draw the values of users in samples of so many."""
        return np.where(draw.random(shape) < rate, draw.choice(np.array(self.of_hits), shape), 0.0)


RR: Final = Values("RR@3", [1, 1 / 2, 1 / 3])
NDCG: Final = Values("nDCG@10, one judgement a user", (1 / np.log2(np.arange(2, 12))).tolist())
SUCCESS: Final = Values("Success", [1], is_share=True)
DCG: Final = Values("DCG", (np.random.default_rng(0).binomial(1, 0.3, (64, 10)) @ NDCG.of_hits).tolist(), np.inf)
REVENUE: Final = Values("revenue, lognormal", np.exp(np.random.default_rng(0).normal(0, 1, 4096)).tolist(), np.inf)

SETTINGS: Final = [
    (RR, "3 of 30 users, hit rate 0.1", [30] * 3, [0.1] * 3),
    (RR, "10 of 30, 0.1", [30] * 10, [0.1] * 10),
    (RR, "10 of 100, 0.1", [100] * 10, [0.1] * 10),
    (RR, "2 of 1000, 0.1 and 0.2", [1000] * 2, [0.1, 0.2]),
    (RR, "30 with 0.05, 300 with 0.3", [30, 300], [0.05, 0.3]),
    (RR, "300 with 0.05, 30 with 0.3", [300, 30], [0.05, 0.3]),
    (RR, "10 of 30, 0.9", [30] * 10, [0.9] * 10),
    (NDCG, "10 of 30, 0.1", [30] * 10, [0.1] * 10),
    (NDCG, "3 of 100, 0.03, 0.1, 0.2", [100] * 3, [0.03, 0.1, 0.2]),
    (SUCCESS, "10 of 30, 0.1", [30] * 10, [0.1] * 10),
    (SUCCESS, "10 of 30, 0.9", [30] * 10, [0.9] * 10),
    (SUCCESS, "3 of 100, 0.05, 0.1, 0.3", [100] * 3, [0.05, 0.1, 0.3]),
    (DCG, "5 of 30, 0.9", [30] * 5, [0.9] * 5),
    (DCG, "5 of 200, 0.3", [200] * 5, [0.3] * 5),
    (REVENUE, "3 of 400, 0.3", [400] * 3, [0.3] * 3),
    (REVENUE, "3 of 100, 0.3", [100] * 3, [0.3] * 3),
]


def coverage(kind: Values, sizes: Sequence[int], rates: Sequence[float]) -> list[str]:
    """Return the share of samples whose interval holds the truth, and that of samples with an interval."""
    draw = np.random.default_rng(36)
    users = [kind.draw(draw, (N_SAMPLES, n), rate) for n, rate in zip(sizes, rates, strict=True)]
    means = np.stack([own.mean(axis=1) for own in users], axis=1)
    errors = np.stack([own.std(axis=1, ddof=1) / np.sqrt(own.shape[1]) for own in users], axis=1)
    freedom = np.broadcast_to(np.array(sizes) - 1.0, means.shape)
    groups = group_gaps.GroupMeans(
        means, errors, freedom, LEVEL, is_share=kind.is_share, bounds=(0.0, float(kind.greatest))
    )
    truth = np.mean(kind.of_hits) * np.array(rates)
    least, greatest = truth.min(), truth.max()
    gap = group_gaps.compare_groups(groups)
    found = [
        (*group_gaps.worst_interval(groups), least),
        (gap.low, gap.high, greatest - least),
        (*group_gaps.ratio_interval(groups), least / greatest),
    ]
    has_interval = ~np.isnan(found[0][0])
    if not has_interval.any():
        return ["none"] * 3 + ["0"]
    held = ((low <= value + 1e-12) & (value <= high + 1e-12) for low, high, value in found)
    return [*(f"{np.mean(each, where=has_interval):.3f}" for each in held), f"{has_interval.mean():.2f}"]


def interval_table() -> list[str]:
    """Return the lines of the table of coverage."""
    lines = ["| values | groups | WorstGroup | GroupGap | GroupRatio | with an interval |", "|---|---|---|---|---|---|"]
    for kind, title, sizes, rates in SETTINGS:
        lines.append(f"| {' | '.join([kind.name, title, *coverage(kind, sizes, rates)])} |")
    return lines


N_TESTED: Final = 1000
N_REPLICATES: Final = 199

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(deviation: float) -> Draw:
    """Draw values around 1/2."""
    return lambda draw, shape: draw.normal(0.5, deviation, shape)


def zeros_and(rate: float, low: float, high: float) -> Draw:
    """Draw zeros, and at this rate values that are uniform between two ends."""
    return lambda draw, shape: np.where(draw.random(shape) < rate, draw.uniform(low, high, shape), 0.0)


def revenue(rate: float) -> Draw:
    """Draw zeros, and at this rate lognormal values; the mean is 1."""
    return lambda draw, shape: np.where(draw.random(shape) < rate, draw.lognormal(-0.5, 1.0, shape) / rate, 0.0)


EQUAL_MEANS: Final[list[tuple[str, list[tuple[int, Draw]]]]] = [
    ("300 users (deviation 0.1), 30 (0.3)", [(300, normal(0.1)), (30, normal(0.3))]),
    ("300 (0.3), 30 (0.1)", [(300, normal(0.3)), (30, normal(0.1))]),
    ("300 (0.1), 60 (0.2), 30 (0.3)", [(300, normal(0.1)), (60, normal(0.2)), (30, normal(0.3))]),
    ("5 of 30 (0.1 to 0.5)", [(30, normal(deviation / 10)) for deviation in range(1, 6)]),
    ("1000 and 400, 90 % zeros", [(1000, zeros_and(0.1, 0.3, 1)), (400, zeros_and(0.1, 0.3, 1))]),
    ("1000 (90 % zeros), 80 (50 %)", [(1000, zeros_and(0.1, 0.5, 1)), (80, zeros_and(0.5, 0.1, 0.2))]),
    ("400 (90 %), 1000 (50 %)", [(400, zeros_and(0.1, 0.5, 1)), (1000, zeros_and(0.5, 0.1, 0.2))]),
    (
        "400 (90 %), 100 (50 %), 1000 (80 %)",
        [(400, zeros_and(0.1, 0.5, 1)), (100, zeros_and(0.5, 0.1, 0.2)), (1000, zeros_and(0.2, 0.25, 0.5))],
    ),
    ("2000 (95 %), 60 (none)", [(2000, zeros_and(0.05, 0.5, 1)), (60, zeros_and(1, 0, 0.075))]),
    ("5 of 400, 90 % zeros", [(400, zeros_and(0.1, 0.3, 1))] * 5),
    ("400 and 150, revenue, 70 % zeros", [(400, revenue(0.3)), (150, revenue(0.3))]),
]


def size(groups: Sequence[tuple[int, Draw]]) -> float:
    """Return the share of samples in which equal means are rejected; the weights of users are those of all samples."""
    draw = np.random.default_rng(36)
    parts, means, errors = [], [], []
    for n, own in groups:
        values = own(draw, (n, N_TESTED))
        weights = draw.poisson(1.0, (n, N_REPLICATES)).astype(np.float64)
        means.append(values.mean(axis=0))
        errors.append(values.std(axis=0, ddof=1) / np.sqrt(n))
        distances = values - means[-1]
        total = np.broadcast_to(weights.sum(axis=0), (N_TESTED, N_REPLICATES))
        parts.append((total, distances.T @ weights, (distances**2).T @ weights))
    sums = ReplicateSums(*(np.stack(each) for each in zip(*parts, strict=True)))
    return float(np.mean(equal_means_p(np.stack(means), np.stack(errors), sums) <= 1 - LEVEL))


def size_table() -> list[str]:
    """Return the lines of the table of sizes."""
    rows = [f"| {title} | {100 * size(groups):.1f} % |" for title, groups in EQUAL_MEANS]
    return ["| groups | rejected |", "|---|---|", *rows]


if __name__ == "__main__":
    print("\n".join([*interval_table(), "", *size_table()]))

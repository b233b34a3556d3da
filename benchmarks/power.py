"""How often a gain of the size that is called detectable is found, by simulation: the table of ``docs/comparisons.md``.

``python -m benchmarks.power`` prints the table in two minutes on one core; ``--write`` puts it into the page.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.pages import print_or_write
from rankeval_spark.statistics import distributions, multiple_testing
from rankeval_spark.statistics.power import detectable

RUNS: Final = 20_000
SEED: Final = 20260131
ALPHA: Final = 0.05
SHAPES: Final = ("normal", "three values", "few great wins", "few great losses")
USERS: Final = (30, 100, 1_000)
FAMILIES: Final = (1, 60)


def draw_differences(shape: str, random: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw differences of users, with mean 0 and variance 1.

    ``three values`` are those of Success: seven of ten users have no difference. Few great wins beside many small
    losses have a skewness of 3.
    """
    if shape == "normal":
        drawn: np.ndarray = random.standard_normal(size)
        return drawn
    if shape == "three values":
        signs = random.choice((-1.0, 0.0, 1.0), size, p=(0.15, 0.7, 0.15))
        scaled: np.ndarray = signs / np.sqrt(0.3)
        return scaled
    shift = 4 / 9  # a gamma of this shape has a skewness of 2 / sqrt(shape) = 3
    skewed: np.ndarray = (random.gamma(shift, size=size) - shift) / np.sqrt(shift)
    return skewed if shape == "few great wins" else -skewed


def found_share(shape: str, *, n_users: int, family: int, runs: int, seed: int = SEED) -> float:
    """Return how often the t test, by Holm's correction in a family of equal models, finds a detectable gain."""
    random = np.random.default_rng(seed)
    gain = float(detectable(1 / np.sqrt(n_users), n_users - 1, tail=ALPHA / 2 / family))
    n_found, at_once = 0, max(1, 2_000_000 // n_users)
    for start in range(0, runs, at_once):
        n_runs = min(at_once, runs - start)
        values = draw_differences(shape, random, (n_users, n_runs)) + gain
        t = values.mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(n_users))
        p = np.empty((family, n_runs))
        p[0], p[1:] = distributions.t_tails(t, n_users - 1)[0], random.random((family - 1, n_runs))
        families = np.broadcast_to(np.arange(n_runs), p.shape).ravel()
        adjusted = multiple_testing.adjust(p.ravel(), families, correction="holm", alpha=ALPHA).p.reshape(p.shape)
        n_found += int(((adjusted[0] <= ALPHA) & (t > 0)).sum())
    return n_found / runs


def table() -> str:
    """Write the lines of the page."""
    settings = [(n_users, family) for family in FAMILIES for n_users in USERS]
    heads = [f"{n_users:,} users, {family} test{'s' if family > 1 else ''}" for n_users, family in settings]
    lines = [f"| differences | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for shape in SHAPES:
        shares = [found_share(shape, n_users=n_users, family=family, runs=RUNS) for n_users, family in settings]
        lines.append(f"| {shape} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print_or_write("power", "comparisons.md", __doc__, table)

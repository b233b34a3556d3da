"""How the jackknife errors of measures of all lists compare with simulated deviations: a table for docs/intervals.md.

``python -m benchmarks.all_lists`` takes about a minute.
"""

from __future__ import annotations

import itertools
import sys
from typing import Final, NamedTuple

import numpy as np

from rankeval_spark.engine.buckets import N_GROUPS
from rankeval_spark.measures import Exposure, Measure, Rates
from rankeval_spark.result_rows.exposure_rows import variance_shrinkage
from rankeval_spark.statistics.intervals import jackknife

MEASURES: Final = (
    *("ItemCoverage@10", "Entropy@10", "Gini@10", "Gini(items='recommended')@10", "Personalization@10"),
    *("PopREO@10", "PopRSP@10", "BiasDisparity(category='any')@10"),
)


class Setting(NamedTuple):
    """Users who get lists of ten items, drawn without replacement by popularity ``rank ** -skew``."""

    n_users: int
    n_items: int
    skew: float
    n_tastes: int = 1  # kinds of users, each with other popular items


SETTINGS: Final = (
    *(Setting(50, 200, skew) for skew in (0.0, 1.0)),
    *(Setting(50, 2000, skew) for skew in (0.5, 1.0)),
    Setting(500, 200, 1.0),
    *(Setting(500, 2000, skew) for skew in (0.0, 0.5, 1.0, 1.5)),
    Setting(500, 2000, 1.0, n_tastes=10),
    Setting(2000, 2000, 1.0),
)
K: Final = 10
LOWEST, HIGHEST = 1 / 3, 2 / 3
MOST: Final = 0.5
"""Share of samples with an error below which the table has none."""


def lists_of(setting: Setting, draw: np.random.Generator) -> np.ndarray:
    """Draw the items of each user: the ten with the highest perturbed weights (Gumbel)."""
    weights = -setting.skew * np.log(np.arange(1, setting.n_items + 1))
    shift = draw.integers(0, setting.n_tastes, setting.n_users) * (setting.n_items // setting.n_tastes)
    noise = draw.gumbel(size=(setting.n_users, setting.n_items)).astype(np.float32)
    items = np.argpartition(-(noise + weights), K - 1, axis=1)[:, :K]
    return (items + shift[:, None]) % setting.n_items


def exposure_of(counts: np.ndarray, n_lists: np.ndarray) -> Exposure:
    """Build the exposure of groups of lists from how many lists hold each item, shape (n_groups, n_items)."""
    n_groups, n_items = counts.shape
    group, place = np.nonzero(counts)
    ones, nothing = np.ones(len(group)), np.full(len(group), np.nan)
    times = counts[group, place].astype(np.float64)
    sizes, ks = np.full(n_groups, float(n_items)), np.full(n_groups, K)
    return Exposure(group, times, ones, ones, n_lists.astype(np.float64), ks, sizes, nothing, nothing).merged()


def rates_of(counts: np.ndarray, taken: np.ndarray, n_lists: np.ndarray, name: str) -> Rates:
    """Build the rates: of thirds of the items, or of the first third and all."""
    n_items = counts.shape[1]
    ends = [0, int(n_items * LOWEST), int(n_items * HIGHEST), n_items]
    shown = np.stack([counts[:, start:end].sum(axis=1) for start, end in itertools.pairwise(ends)], axis=1)
    if name == "PopRSP":
        return Rates(shown, n_lists[:, None] * np.diff(ends))
    if name == "PopREO":
        return Rates(taken[:, :3], taken[:, 3:])
    own = taken[:, 3:]
    return Rates(np.stack([shown[:, 0], own[:, 0]], axis=1), np.stack([shown.sum(axis=1), own.sum(axis=1)], axis=1))


def sample(setting: Setting, draw: np.random.Generator) -> np.ndarray:
    """Return value and error of each measure, shape (n_measures, 2)."""
    items, group = lists_of(setting, draw), draw.integers(0, N_GROUPS, setting.n_users)
    counts = np.zeros((N_GROUPS, setting.n_items))
    np.add.at(counts, (np.repeat(group, K), items.ravel()), 1)
    relevant = draw.multinomial(5, [0.5, 0.3, 0.2], setting.n_users)  # of each third
    found = draw.binomial(relevant, [0.4, 0.3, 0.2])
    judged = np.zeros((N_GROUPS, 6))
    np.add.at(judged, group, np.hstack([found, relevant]))
    n_users = np.bincount(group, minlength=N_GROUPS)
    shown, rated, n_lists = (
        np.concatenate([own.sum(axis=0)[None], own.sum(axis=0) - own]) for own in (counts, judged, n_users)
    )
    exposure, everyone = exposure_of(shown, n_lists), exposure_of(shown[:1], n_lists[:1])
    estimates = []
    for measure in map(Measure.parse, MEASURES):
        is_parity = measure.entry.kind == "parity"
        inputs = rates_of(shown, rated, n_lists, measure.name) if is_parity else exposure
        values = measure.entry.values(inputs, measure.options)
        spread = jackknife(values[:1], values[None, 1:], n_users[None], 0.95, (-np.inf, np.inf))
        shrinkage = np.ones(1) if is_parity else variance_shrinkage(measure, everyone, values[:1])
        if measure.name in {"PopREO", "PopRSP"} and spread.low[0] <= 0:
            shrinkage = np.full(1, np.nan)
        estimates.append((values[0], (spread.std_error * np.sqrt(shrinkage))[0]))
    return np.array(estimates)


def table(n_samples: int = 200) -> list[str]:
    """Return the lines of the table: mean error over the standard deviation of the values."""
    names = [name.removesuffix("@10") for name in MEASURES]
    lines = [f"| users | items | skew | {' | '.join(names)} |", f"|{'---|' * (3 + len(names))}"]
    for setting in SETTINGS:
        draw = np.random.default_rng(36)
        found = np.stack([sample(setting, draw) for _ in range(n_samples)])
        has_error = (~np.isnan(found[:, :, 1])).mean(axis=0)
        errors = np.nan_to_num(found[:, :, 1]).sum(axis=0) / np.maximum(has_error * n_samples, 1)
        ratios = errors / found[:, :, 0].std(axis=0, ddof=1)
        cells = [f"{ratio:.2f}" if share > MOST else "none" for ratio, share in zip(ratios, has_error, strict=True)]
        tastes = f", {setting.n_tastes} tastes" if setting.n_tastes > 1 else ""
        lines.append(f"| {setting.n_users} | {setting.n_items} | {setting.skew:g}{tastes} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


if __name__ == "__main__":
    print("\n".join(table()))

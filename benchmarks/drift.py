"""False alarms of the check ``drift`` and the drops that it finds, by simulation: the table of ``docs/checks.md``.

``python -m benchmarks.drift`` prints the table in less than a minute on one core; ``--write`` puts it into the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from benchmarks.pages import print_or_write
from rankeval_spark.statistics.night_differences import expected_band, has_drifted

RUNS: Final = 2_000  # for each day of the week
RUNS_OF_MANY: Final = 60  # where a run has many means
SEED: Final = 20260131
WEEKEND: Final = 10.0  # by how many standard deviations between nights it is higher
DROP: Final = 3.0  # in the same unit
ERROR: Final = 0.5  # standard error of each mean, in the same unit
SATURDAY: Final = 5
TUESDAY: Final = 1


Array: TypeAlias = np.ndarray
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int]], Array]


def normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Nights that differ by chance: runs by nights, the last one tonight."""
    return random.standard_normal(shape)


def heavy(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Nights of which some are far off: Student's t with three degrees of freedom, of variance 1."""
    values: Array = random.standard_t(3, shape) / np.sqrt(3)
    return values


def autocorrelated(share: float) -> Draw:
    """Nights that are like the night before."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Array:
        values = random.standard_normal(shape)
        for night in range(1, shape[1]):
            values[:, night] = share * values[:, night - 1] + np.sqrt(1 - share**2) * values[:, night]
        return values

    return draw


def alike(n_means: int, correlation: float) -> Draw:
    """Means of one run, which move together."""

    def draw(random: np.random.Generator, shape: tuple[int, int]) -> Array:
        own, common = random.standard_normal(shape), random.standard_normal((shape[0] // n_means, shape[1]))
        values: Array = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * np.repeat(common, n_means, axis=0)
        return values

    return draw


@dataclass(frozen=True)
class Setting:
    """Nights of an evaluation before tonight."""

    name: str
    draw: Draw = normal
    n_weeks: int = 8
    weekend: float = WEEKEND
    weekend_spread: float = 1.0  # standard deviation of weekend nights
    slope: float = 0.0  # by which the mean grows from night to night
    weekdays: tuple[int, ...] = tuple(range(7))  # on which there is an evaluation
    gap: tuple[int, int] = (0, 0)  # days before tonight that have no night
    missing: float = 0.0  # share of nights that are missing by chance
    n_odd: int = 0  # earlier nights that were 10 standard deviations too low
    n_means: int = 1

    def alarms(self, weekday: int, random: np.random.Generator, *, drop: float = 0.0) -> Array:
        """Simulate runs of tonight's weekday: whether any mean leaves its band; tonight has a drop."""
        n_runs = RUNS if self.n_means == 1 else RUNS_OF_MANY
        ages = np.arange(7 * self.n_weeks, -1, -1)
        of_week = (weekday - ages) % 7
        is_weekend = of_week >= SATURDAY
        noise = self.draw(random, (n_runs * self.n_means, len(ages)))
        level = self.weekend * is_weekend - self.slope * ages
        values = noise * np.where(is_weekend, self.weekend_spread, 1.0) + level
        odd = random.permuted(np.tile(np.arange(len(ages) - 1) < self.n_odd, (len(values), 1)), axis=1)
        values[:, :-1] -= 10.0 * odd
        values[:, :-1][random.random(odd.shape) < self.missing] = np.nan
        is_there = np.isin(of_week, self.weekdays) & ~((ages >= self.gap[0]) & (ages < self.gap[1]))
        past, nights = values[:, :-1][:, is_there[:-1]], ages[:-1][is_there[:-1]]
        of_run = np.split(np.arange(len(values)), n_runs) if self.n_means > 1 else [np.arange(len(values))]
        n_tests = 1.0 if self.n_means == 1 else None
        errors = np.full(past.shape, ERROR)
        bands = (expected_band(past[rows], errors[rows], nights, n_tests=n_tests) for rows in of_run)
        outside = [has_drifted(values[rows, -1] - drop, band) for rows, band in zip(of_run, bands, strict=True)]
        return np.concatenate(outside) if self.n_means == 1 else np.array([each.any() for each in outside])

    def cells(self) -> list[str]:
        """Simulate one line: false alarms of all nights and of weekends, and drops found on a Tuesday, in percent."""
        random = np.random.default_rng(SEED)
        shares = {weekday: self.alarms(weekday, random).mean() for weekday in self.weekdays}
        of_weekend = [share for weekday, share in shares.items() if weekday >= SATURDAY]
        found = self.alarms(TUESDAY, random, drop=DROP).mean()
        numbers = np.mean([*shares.values()]), np.mean(of_weekend) if of_weekend else np.nan, found
        return ["" if np.isnan(number) else f"{100 * number:.1f}" for number in numbers]


SETTINGS: Final = (
    Setting("every night, 8 weeks"),
    Setting("6 weeks", n_weeks=6),
    Setting("4 weeks", n_weeks=4),
    Setting("3 weeks: weekdays are not known", n_weeks=3),
    Setting("no weekly pattern", weekend=0.0),
    Setting("weekends vary twice as much", weekend_spread=2.0),
    Setting("a trend of 0.1 a night", slope=0.1),
    Setting("one night in ten is missing", missing=0.1),
    Setting("no nights for three weeks, until two weeks ago", gap=(15, 36)),
    Setting("three odd nights", n_odd=3),
    Setting("heavy tails (t, 3 degrees of freedom)", heavy),
    Setting("correlation of .5 from night to night", autocorrelated(0.5)),
    Setting("correlation of .9 from night to night", autocorrelated(0.9)),
    Setting("Monday to Friday only", weekdays=tuple(range(5))),
    Setting("weekly, on Tuesdays", weekdays=(TUESDAY,)),
    Setting("18 means, correlation 0", alike(18, 0.0), n_means=18),
    Setting("18 means, correlation .5", alike(18, 0.5), n_means=18),
    Setting("18 means, correlation .9", alike(18, 0.9), n_means=18),
    Setting("200 means, correlation .9", alike(200, 0.9), n_means=200),
)


def table() -> str:
    """Write the lines of the page."""
    heads = "| history | false alarms, % of nights | of weekends | drops found, % |", "|---|---|---|---|"
    return "\n".join([*heads, *(f"| {' | '.join([each.name, *each.cells()])} |" for each in SETTINGS)])


if __name__ == "__main__":
    print_or_write("drift", "checks.md", __doc__, table)

"""Unpaired tests, covariates and the check ``sample_ratio``, by simulation: the tables of ``docs/ab-tests.md``.

``python -m benchmarks.ab_tests`` prints the tables in a few minutes on one core; ``--write`` puts them there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from benchmarks.pages import print_or_write
from rankeval_spark.statistics.unpaired_tests import Arms, compare_arms, sample_ratio_p

RUNS: Final = 10_000  # the Monte-Carlo error of 5 % is 0.22 %
AT_ONCE: Final = 500  # runs, to bound the memory
RUNS_OF_SPLITS: Final = 20_000
SEED: Final = 777001  # not that by which the limits of `few_differences` were chosen
ALPHA: Final = 0.05
MIN_TESTED: Final = 0.01  # share of the runs with a p below which they have no rates
EFFECT: Final = 0.1  # difference of a value in the tables of covariates

Array: TypeAlias = np.ndarray
Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int]], Array]


def normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Values as those of nDCG of many lists."""
    return random.standard_normal((*shape, 1))


def lognormal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Skewed values, such as revenue: a skewness of 6."""
    return random.lognormal(0.0, 1.0, (*shape, 1))


def conversions(share: float) -> Draw:
    """Users of whom a share converts."""
    return lambda random, shape: (random.random((*shape, 1)) < share).astype(np.float64)


def clicks(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Clicks and impressions: users who see more click more often."""
    taste = random.beta(1.0, 9.0, shape)
    shown = 1.0 + random.poisson(20 * taste + 2)
    return np.stack([random.binomial(shown.astype(np.int64), taste).astype(np.float64), shown], axis=-1)


@dataclass(frozen=True)
class Rates:
    """Rates of many runs of one setting, in percent."""

    rejected: float  # p below 5 %, of the runs with a p
    covered: float  # intervals of 95 % with the true difference
    tested: float  # runs with a p
    bias: float  # mean error of the difference, in its Monte-Carlo errors
    removed: float  # mean share of the variance that covariates remove


def simulate(make: Callable[[int], tuple[Array, Array]], n_outcomes: int, effect: float = 0.0) -> Rates:
    """Compare two models in many runs; ``make`` draws the parts of the users of both, in some runs."""
    p, covered, errors, removed = [], [], [], []
    for _ in range(RUNS // AT_ONCE):
        model, baseline = make(AT_ONCE)
        both = [np.full((len(model) + len(baseline), *model.shape[1:]), np.nan) for _ in range(2)]
        both[0][: len(model)], both[1][len(model) :] = model, baseline
        arms = Arms.by_group(both[0], both[1], np.zeros(len(both[0]), dtype=np.int64), 1)
        found = compare_arms(arms, n_outcomes=n_outcomes, level=0.95)
        p.append(found.p[0])
        covered.append((found.low[0] <= effect) & (found.high[0] >= effect))
        errors.append(found.delta[0] - effect)
        removed.append(found.variance_removed[0])
    all_p, all_errors = np.concatenate(p), np.concatenate(errors)
    is_tested = ~np.isnan(all_p)
    return Rates(
        100 * np.mean(all_p[is_tested] < ALPHA) if is_tested.mean() > MIN_TESTED else np.nan,
        100 * np.mean(np.concatenate(covered)[is_tested]) if is_tested.mean() > MIN_TESTED else np.nan,
        100 * is_tested.mean(),
        all_errors.mean() / all_errors.std() * np.sqrt(len(all_errors)),
        100 * np.concatenate(removed).mean(),
    )


SETTINGS: Final[tuple[tuple[str, Draw, int], ...]] = (
    ("normal values", normal, 1),
    ("skewed values (lognormal, skewness 6)", lognormal, 1),
    ("5 % of users convert", conversions(0.05), 1),
    ("1 % of users convert", conversions(0.01), 1),
    ("clicks of impressions, a ratio of sums", clicks, 2),
)
SIZES: Final = ((500, 500), (200, 800), (100, 1900))


def size_rows() -> list[list[str]]:
    """Simulate equal models: false alarms and coverage, by the users of each model."""
    random, rows = np.random.default_rng(SEED), []
    for name, draw, n_outcomes in SETTINGS:
        for n, n_baseline in SIZES:
            found = simulate(lambda runs: (draw(random, (n, runs)), draw(random, (n_baseline, runs))), n_outcomes)  # noqa: B023 - called at once
            cells = [found.rejected, found.covered, found.tested]
            rows.append(
                [name, f"{n:,} and {n_baseline:,}", *("" if np.isnan(each) else f"{each:.1f}" for each in cells)]
            )
    return rows


HISTORIES: Final[dict[str, Callable[[Array], Array]]] = {  # probability of an earlier value, by the user's activity
    "all users": np.ones_like,
    "half of the users": lambda activity: np.full_like(activity, 0.5),
    "active users more often": lambda activity: activity / (1 + activity),
    "no user": np.zeros_like,
}


def covariate_rows() -> list[list[str]]:
    """Simulate a difference of 0.1, with an earlier value of some users as covariate."""
    random, rows = np.random.default_rng(SEED), []

    def draw(n: int, runs: int, shift: float, correlation: float, share: Callable[[Array], Array]) -> Array:
        activity = random.exponential(1.0, (n, runs))
        noise = np.sqrt(1 / correlation - 1)
        now, before = (activity + noise * random.standard_normal((n, runs)) for _ in range(2))
        is_known = random.random((n, runs)) < share(activity)
        return np.stack([now + shift, is_known, np.where(is_known, before, 0.0)], axis=-1)

    for name, share in HISTORIES.items():
        for correlation in (0.3, 0.8):

            def both(
                runs: int, level: float = correlation, known: Callable[[Array], Array] = share
            ) -> tuple[Array, Array]:
                return draw(400, runs, EFFECT, level, known), draw(600, runs, 0.0, level, known)

            found = simulate(both, 1, EFFECT)
            cells = f"{abs(found.removed):.0f}", f"{found.covered:.1f}", f"{found.bias:+.1f}"
            rows.append([name, f"{correlation:.1f}", *cells])
    return rows


TURNOVER: Final = (
    ("all users come back", 0, 0.0),
    ("half come back, the others by chance", 250, 0.0),
    ("half come back, those who come are more active by 0.5", 250, 0.5),
)


def night_rows() -> list[list[str]]:
    """Simulate two nights of 500 users and an unchanged model, with an older night as covariate of both."""
    random, rows = np.random.default_rng(SEED), []
    for name, n_new, shift in TURNOVER:
        effect, errors, covered = (
            shift * n_new / 500,
            {1: list[Array](), 2: list[Array]()},
            {1: list[Array](), 2: list[Array]()},
        )
        for _ in range(RUNS // AT_ONCE):
            level = random.exponential(1.0, (500 + n_new, AT_ONCE))  # of those who leave, those of both, those who come
            level[500:] += shift
            old, before, now = (level + 0.5 * random.standard_normal(level.shape) for _ in range(3))
            nights = [np.stack([each, old], axis=-1) for each in (now, before)]
            nights[0][:n_new], nights[1][500:] = np.nan, np.nan
            for n_parts, of_runs in errors.items():
                first, second = (night[..., :n_parts] for night in nights)
                arms = Arms.by_group(first, second, np.zeros(len(level), dtype=np.int64), 1)
                found = compare_arms(arms, n_outcomes=1, level=0.95)
                of_runs.append(found.delta[0] - effect)
                covered[n_parts].append((found.low[0] <= effect) & (found.high[0] >= effect))
        spread, of_nights = (
            {n: np.var(each) for n, each in errors.items()},
            [100 * np.mean(each) for each in covered.values()],
        )
        numbers = *(f"{each:.1f}" for each in of_nights), f"{100 * (1 - spread[2] / spread[1]):.0f}"
        rows.append([name, *numbers, f"{np.mean(errors[2]):+.3f}"])
    return rows


def split_rows() -> list[list[str]]:
    """Simulate splits of users, right ones and wrong ones."""
    random, rows = np.random.default_rng(SEED), []
    for plan, truth in (([0.5, 0.5], [0.51, 0.49]), ([0.9, 0.1], [0.905, 0.095])):
        for n in (20, 1_000, 20_000, 50_000, 100_000):
            rates = []
            for shares, alpha in ((plan, 0.05), (plan, 0.001), (truth, 0.001)):
                drawn = random.multinomial(n, shares, RUNS_OF_SPLITS)
                p = {tuple(counts): sample_ratio_p(counts, plan) for counts in np.unique(drawn, axis=0).tolist()}
                rates.append(100 * np.mean([p[tuple(counts)] < alpha for counts in drawn.tolist()]))
            names = ("/".join(f"{100 * share:g}" for share in each) for each in (plan, truth))
            rows.append([*names, f"{n:,}", f"{rates[0]:.2f}", f"{rates[1]:.3f}", f"{rates[2]:.1f}"])
    return rows


def table() -> str:
    """Write the tables of the page, each below its title."""
    tables = (
        (
            "False alarms and coverage of equal models",
            ("value of a user", "users of each model", "false alarms, %", "coverage, %", "runs with a p, %"),
            size_rows,
        ),
        (
            f"Covariates of 400 and 600 users, a difference of {EFFECT:g}",
            ("who has an earlier value", "correlation", "variance removed, %", "coverage, %", "bias, in its errors"),
            covariate_rows,
        ),
        (
            "A covariate of two nights",
            ("users of the two nights", "coverage without, %", "coverage with, %", "variance removed, %", "bias with"),
            night_rows,
        ),
        (
            "Splits that the check finds, %",
            ("plan, %", "truth, %", "users", "at 0.05 if as planned", "at 0.001 if as planned", "at 0.001 if not"),
            split_rows,
        ),
    )
    parts = []
    for title, heads, rows in tables:
        lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows())]
        parts.append("\n".join([f"**{title}.**", "", *lines]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print_or_write("ab_tests", "ab-tests.md", __doc__, table)

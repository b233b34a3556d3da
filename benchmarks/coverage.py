"""Coverage of the published intervals by simulation: the table of ``docs/intervals.md``.

``python -m benchmarks.coverage`` prints the table in about a minute on one core; ``--write`` puts it into the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from benchmarks.pages import print_or_write
from rankeval_spark.statistics import intervals, paired_tests, ratios
from rankeval_spark.statistics.moments import Columns
from rankeval_spark.statistics.paired_tests import PairedValues

SAMPLES: Final = 20_000
AT_ONCE: Final = 2_000
SIZES: Final = (30, 100, 400)  # numbers of users
LEVEL: Final = 0.95
SEED: Final = 20260131
HIT_RATE: Final = 0.1
SHARE: Final = (0.0, 1.0)
AMOUNT: Final = (0.0, np.inf)


Array: TypeAlias = np.ndarray
Shape: TypeAlias = tuple[int, int]
Draw: TypeAlias = Callable[[np.random.Generator, Shape], Array]
DrawTwo: TypeAlias = Callable[[np.random.Generator, Shape], tuple[Array, Array]]
Ends: TypeAlias = tuple[Array, Array]


class Intervals(NamedTuple):
    """Intervals of some samples: those published, those of Student's t, and which are marked as uncertain."""

    published: Ends
    student: Ends
    is_uncertain: Array


@dataclass(frozen=True)
class Setting:
    """Users drawn from a known distribution: samples are columns, and ``truth`` is what is estimated."""

    name: str
    truth: float
    estimate: Callable[[np.random.Generator, Shape], Intervals]


def zeros(draw: Draw, share: float) -> Draw:
    """Replace this share of the values by 0."""
    return lambda random, shape: draw(random, shape) * (random.random(shape) >= share)


def beta(random: np.random.Generator, shape: Shape) -> Array:
    """Values between 0 and 1 with a mean of 0.4, as those of nDCG with several relevant items."""
    return random.beta(2, 3, shape)


def at_rank(values: Array) -> Draw:
    """Value of a hit at one of ten ranks, each as likely as the others."""
    return lambda random, shape: values[random.integers(0, 10, shape)]


def lognormal(random: np.random.Generator, shape: Shape) -> Array:
    """Amounts with a heavy tail."""
    return np.exp(1.5 * random.standard_normal(shape))


def of_means(draw: Draw, bounds: tuple[float, float]) -> Callable[[np.random.Generator, Shape], Intervals]:
    """Estimate means over users, as ``metrics`` does."""

    def estimate(random: np.random.Generator, shape: Shape) -> Intervals:
        values = draw(random, shape)
        found = Columns.from_values(values).by_group(np.zeros(shape[0], dtype=np.int64), 1, has_cubes=True)
        n, mean, m2, m3 = (number[0] for number in found.numbers)
        published = intervals.skewed_interval(n, mean, m2, m3, bounds, LEVEL)
        is_equal = intervals.are_equal(n, mean, m2)
        equal = intervals.equal_values_interval(n, mean, bounds, LEVEL)
        low, high = (np.where(is_equal, own, end) for own, end in zip(equal, published, strict=True))
        is_uncertain = intervals.are_uncertain(n, m2, m3, np.count_nonzero(values, axis=0))
        return Intervals((low, high), intervals.t_interval(n, mean, m2, LEVEL), is_uncertain)

    return estimate


def of_shares(hit_rate: float) -> Callable[[np.random.Generator, Shape], Intervals]:
    """Estimate a share of users, which has Wilson's interval."""

    def estimate(random: np.random.Generator, shape: Shape) -> Intervals:
        share = random.binomial(shape[0], hit_rate, shape[1]) / shape[0]
        sums = shape[0], share, shape[0] * share * (1 - share)
        published = intervals.wilson_interval(*sums, LEVEL)
        return Intervals(published, intervals.t_interval(*sums, LEVEL), np.zeros(shape[1], dtype=np.bool_))

    return estimate


def of_ratios(draw: DrawTwo, bounds: tuple[float, float]) -> Callable[[np.random.Generator, Shape], Intervals]:
    """Estimate ratios of sums over users: micro averages, and means over lists."""

    def estimate(random: np.random.Generator, shape: Shape) -> Intervals:
        above, below = draw(random, shape)
        found = ratios.ratio_moments_by_group(above, below, np.zeros(shape[0], dtype=np.int64), 1, has_cubes=True)
        n, mean, m2, below_mean, below_m2, cross, *cubes = (number[0] for number in found.numbers)
        ratio, ratio_m2 = ratios.linearise(mean, m2, below_mean, below_m2, cross)
        m3, lean = ratios.skewness_terms(mean, below_mean, below_m2, cross, cubes)
        low, high = intervals.skewed_interval(n, ratio, ratio_m2, m3, (-np.inf, np.inf), LEVEL, lean=lean)
        is_uncertain = intervals.are_uncertain(n, ratio_m2, m3, np.count_nonzero(above, axis=0))
        published = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
        return Intervals(published, intervals.t_interval(n, ratio, ratio_m2, LEVEL), is_uncertain)

    return estimate


def of_differences(draw: DrawTwo, *, is_relative: bool = False) -> Callable[[np.random.Generator, Shape], Intervals]:
    """Estimate paired differences of two models, or the relative change, as ``comparisons`` does."""

    def estimate(random: np.random.Generator, shape: Shape) -> Intervals:
        pairs = PairedValues.from_values(*draw(random, shape))
        found = paired_tests.differences_by_group(pairs, np.zeros(shape[0], dtype=np.int64), 1)
        compared = (paired_tests.relative_change if is_relative else paired_tests.compare_means)(found, level=LEVEL)
        ends = compared.low[0], compared.high[0]
        return Intervals(ends, ends, np.zeros(shape[1], dtype=np.bool_))

    return estimate


def impressions(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Clicks and impressions of users: one to ten impressions, of which 3 % are clicked."""
    shown = random.integers(1, 11, shape)
    return random.binomial(shown, 0.03).astype(np.float64), shown.astype(np.float64)


def weighted_rewards(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Rewards of an off-policy estimate: one to five impressions, one in ten with a reward by its propensity."""
    shown = random.integers(1, 6, shape)
    each = ((place < shown) * (random.random(shape) < HIT_RATE) / random.uniform(0.05, 1, shape) for place in range(5))
    return sum(each, np.zeros(shape)), shown.astype(np.float64)


def lists(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """nDCG@10 summed over one to six lists of a user, with one relevant item and a hit in one list of ten."""
    n_lists, of_list = 1 + random.binomial(5, 0.5, shape), zeros(at_rank(NDCG), 0.9)
    return sum(((place < n_lists) * of_list(random, shape) for place in range(6)), np.zeros(shape)), n_lists * 1.0


def heavy_users(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
    """Hits and items of users of whom few have many items, and these fewer hits an item."""
    shown = np.ceil(np.exp(1.2 * random.standard_normal(shape)))
    return random.binomial(shown.astype(np.int64), 0.3 / (1 + 0.2 * shown)).astype(np.float64), shown


def two_models(share: float, gain: float) -> DrawTwo:
    """Two models: hits at this share of users each, of these half by both; the first is better by the factor."""

    def draw(random: np.random.Generator, shape: Shape) -> tuple[Array, Array]:
        common, own, other = (random.random(shape) < share / 2 for _ in range(3))
        values, others = beta(random, shape), beta(random, shape)
        return gain * np.where(common | own, values, 0.0), np.where(common | other, others, 0.0)

    return draw


NDCG: Final = 1 / np.log2(np.arange(2, 12))
RR: Final = 1 / np.arange(1, 11)
_GEOMETRIC: Final = np.arange(1, 4000)
_SHOWN: Final = np.ceil(np.exp(1.2 * np.random.default_rng(SEED).standard_normal(4_000_000)))

MEANS: Final = (
    Setting("60 % zeros, else beta(2, 3)", 0.4 * 0.4, of_means(zeros(beta, 0.6), SHARE)),
    Setting("90 % zeros, else beta(2, 3)", 0.1 * 0.4, of_means(zeros(beta, 0.9), SHARE)),
    Setting("nDCG@10, leave-one-out, hit rate .1", 0.1 * NDCG.mean(), of_means(zeros(at_rank(NDCG), 0.9), SHARE)),
    Setting("RR@10, leave-one-out, hit rate .1", 0.1 * RR.mean(), of_means(zeros(at_rank(RR), 0.9), SHARE)),
    Setting(
        "RR, first hit at a geometric rank",
        float((0.3 * 0.7 ** (_GEOMETRIC - 1) / _GEOMETRIC).sum()),
        of_means(lambda random, shape: 1 / random.geometric(0.3, shape), SHARE),
    ),
    Setting(
        "P@10, users of different taste",
        0.1,
        of_means(lambda random, shape: random.binomial(10, random.beta(1, 9, shape)) / 10, SHARE),
    ),
    Setting("uniform", 0.5, of_means(lambda random, shape: random.random(shape), SHARE)),
    Setting(
        "90 % ones, else 1 - beta(2, 3)",
        1 - 0.1 * 0.4,
        of_means(lambda random, shape: 1 - zeros(beta, 0.9)(random, shape), SHARE),
    ),
    Setting("revenue: 70 % zeros, else lognormal", 0.3 * np.exp(1.5**2 / 2), of_means(zeros(lognormal, 0.7), AMOUNT)),
    Setting("Success, hit rate .1 (Wilson)", 0.1, of_shares(0.1)),
)
RATIOS: Final = (
    Setting("clicks by impressions, 3 %", 0.03, of_ratios(impressions, SHARE)),
    Setting("IPS, rewards by propensities", 0.1 * np.log(20) / 0.95, of_ratios(weighted_rewards, AMOUNT)),
    Setting("mean over lists, nDCG@10, hit rate .1", 0.1 * NDCG.mean(), of_ratios(lists, SHARE)),
    Setting(
        "hits by items, few users with many",
        float((_SHOWN * 0.3 / (1 + 0.2 * _SHOWN)).sum() / _SHOWN.sum()),
        of_ratios(heavy_users, SHARE),
    ),
)
COMPARISONS: Final = (
    Setting("difference of equal models, 44 % hits", 0.0, of_differences(two_models(0.5, 1.0))),
    Setting("difference of equal models, 10 % hits", 0.0, of_differences(two_models(0.1, 1.0))),
    Setting(
        "difference, a model better by half, 10 % hits",
        0.5 * 0.4 * (1 - 0.95**2),
        of_differences(two_models(0.1, 1.5)),
    ),
    Setting("relative_delta of .5, 44 % hits", 0.5, of_differences(two_models(0.5, 1.5), is_relative=True)),
    Setting("relative_delta of .5, 10 % hits", 0.5, of_differences(two_models(0.1, 1.5), is_relative=True)),
)


def cells(setting: Setting, n: int) -> list[str]:
    """Simulate one line: coverage and misses of both intervals, their widths, and how many are marked."""
    random = np.random.default_rng([SEED, n])
    parts = [setting.estimate(random, (n, AT_ONCE)) for _ in range(SAMPLES // AT_ONCE)]
    both = [np.concatenate([part[place] for part in parts], axis=1) for place in (0, 1)]
    student, published = (_coverage(low, high, setting.truth) for low, high in (both[1], both[0]))
    widths = [np.nanmean(high - low) for low, high in both]
    uncertain = np.concatenate([part.is_uncertain for part in parts]).mean()
    is_own = not np.array_equal(both[0], both[1], equal_nan=True)
    return [student, published, f"{widths[0] / widths[1]:.2f}", f"{100 * uncertain:.0f}"] if is_own else [student]


def _coverage(low: Array, high: Array, truth: float) -> str:
    """Coverage, and in brackets the share of intervals that lie below the truth and above it, in percent."""
    is_there = ~np.isnan(low)
    below, above = (high < truth)[is_there].mean(), (low > truth)[is_there].mean()
    return f"{1 - below - above:.3f} ({100 * below:.1f}/{100 * above:.1f})".replace("0.", ".", 1)


def table() -> Iterator[str]:
    """Write the lines of the page."""
    yield from (
        "| means over users | Student's t | published | width | uncertain, % |",
        "|---|---|---|---|---|",
    )
    yield from map(_line, MEANS)
    yield from (
        "",
        "| ratios of sums over users | delta method with t | published | width | uncertain, % |",
        "|---|---|---|---|---|",
    )
    yield from map(_line, RATIOS)
    yield from ("", "| comparisons | published |", "|---|---|")
    yield from map(_line, COMPARISONS)


def _line(setting: Setting) -> str:
    """Write the cells of all numbers of users into one row."""
    columns = zip(*(cells(setting, n) for n in SIZES), strict=True)
    return f"| {' | '.join([setting.name, *map(', '.join, columns)])} |"


if __name__ == "__main__":
    print_or_write("coverage", "intervals.md", __doc__, lambda: "\n".join(table()))

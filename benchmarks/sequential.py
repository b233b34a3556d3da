"""Rules that are asked on every of 30 nights, by simulation: the table of ``docs/gates.md``.

``python -m benchmarks.sequential`` prints the table in a minute on one core; ``--write`` puts it into the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from benchmarks.pages import print_or_write
from rankeval_spark.config import Gate
from rankeval_spark.statistics import distributions

RUNS: Final = 16_000
AT_ONCE: Final = 500
USERS: Final = 200
NIGHTS: Final = 30
ALPHA: Final = 0.05
SEED: Final = 20260131
LOSSES: Final = (1, 2, 3)  # real losses, in standard errors of one night
SHARE: Final = Gate(measure="nDCG@10", alpha=ALPHA, sequential=True, horizon=NIGHTS).error_share

Array: TypeAlias = np.ndarray


@dataclass(frozen=True)
class Setting:
    """How the users' differences of one night are like those of another."""

    correlation: float
    fades: bool = False  # by its power with the nights between (AR(1)); else the same between any two nights
    returning: float = 1.0  # share of the users who are there on a night
    winners: float = 0.0  # share of the users who win what the others lose together; 0: differences are normal
    users: int = USERS

    def draw(self, random: np.random.Generator) -> tuple[Array, Array]:
        """Draw the mean and standard error of the differences of equal models, each (nights, runs)."""
        shape = (NIGHTS, AT_ONCE, self.users)
        values, own = random.standard_normal(shape, dtype=np.float32), np.sqrt(1 - self.correlation)
        if self.winners:
            values = (random.random(shape, dtype=np.float32) < self.winners) - np.float32(self.winners)
        elif self.fades:
            for night in range(1, NIGHTS):
                values[night] *= np.sqrt(1 - self.correlation**2)
                values[night] += self.correlation * values[night - 1]
        else:
            values = own * values + np.sqrt(self.correlation) * random.standard_normal(shape[1:], dtype=np.float32)
        values[random.random(shape, dtype=np.float32) >= self.returning] = np.nan
        n = (~np.isnan(values)).sum(axis=2)
        return np.nanmean(values, axis=2), np.nanstd(values, axis=2, ddof=1) / np.sqrt(n)

    def cells(self) -> list[str]:
        """Simulate one line of the table."""
        random = np.random.default_rng(SEED)
        draws = [self.draw(random) for _ in range(RUNS // AT_ONCE * USERS // self.users)]
        mean, error = (np.concatenate(each, axis=1) for each in zip(*draws, strict=True))
        freedom = self.returning * self.users - 1
        tail = distributions.t_tails(mean / error, freedom)[1]
        mirrored = distributions.t_tails(-mean / error, freedom)[1]  # a false pass is a gain that chance shows
        counts = [found_in(tail <= ALPHA), found_in(tail <= SHARE * ALPHA)]
        counts += [found_in(mirrored <= ALPHA / 2), found_in(mirrored <= SHARE * ALPHA / 2), found_in(as_one(mean))]
        powers = []
        for loss in LOSSES:
            of_loss = distributions.t_tails(mean / error - loss, freedom)[1]
            hits = of_loss <= SHARE * ALPHA
            first = np.where(hits.any(axis=0), hits.argmax(axis=0) + 1, np.inf)
            median = np.median(first)
            when = f", night {median:.0f}" if np.isfinite(median) else ""
            powers.append(f"{found_in(of_loss <= ALPHA)} → {found_in(hits)}{when}")
        return [f"{counts[0]} → {counts[1]}", f"{counts[2]} → {counts[3]}", counts[4], *powers]

    def __str__(self) -> str:
        """Name the setting in the table."""
        kind = ", fades" if self.fades else ""
        kind += f", {self.winners:.0%} of {self.users:,} users win".replace("%", " %") if self.winners else ""
        back = "all" if self.returning == 1 else f"{self.returning:.0%}".replace("%", " %")
        return f"{self.correlation:g}{kind} | {back}"


def found_in(hits: Array) -> str:
    """Write the share of the runs with a hit on any night, in percent."""
    return f"{100 * hits.any(axis=0).mean():.1f}"


def as_one(mean: Array) -> Array:
    """Test the running mean as if nights were independent: a normal mixture at the level ALPHA, one-sided."""
    nights, prior = np.arange(1, NIGHTS + 1)[:, None], 5.0
    z = -np.cumsum(mean / mean.std(), axis=0) / np.sqrt(nights)
    ratio = (nights + prior) / nights
    bounds = np.sqrt(ratio * (np.log((nights + prior) / prior) - 2 * np.log(2 * ALPHA)))
    crossed: Array = z > bounds
    return crossed


SETTINGS: Final = (
    *(Setting(0.0, returning=share) for share in (1.0, 0.5)),
    *(Setting(r, fades, share) for r in (0.5, 0.9) for fades in (False, True) for share in (1.0, 0.5)),
    *(Setting(0.0, winners=0.05, users=n) for n in (200, 1_000)),
)


def table() -> str:
    """Write the lines of the page."""
    powers = " | ".join(f"a loss of {loss} se is found" for loss in LOSSES)
    head = f"| correlation | users back | false stops | false passes | running mean | {powers} |"
    return "\n".join([head, "|---" * 8 + "|", *(f"| {each} | {' | '.join(each.cells())} |" for each in SETTINGS)])


if __name__ == "__main__":
    print_or_write("sequential", "gates.md", __doc__, table)

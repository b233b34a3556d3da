"""Timing that noise spoils least: contenders take turns, and ratios are taken within a turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.processes import Peak, cpu_seconds, watched


@dataclass(frozen=True)
class Contender:
    """Something to time: its name in the table, and what runs."""

    name: str
    run: Callable[[], object]


@dataclass
class Timing:
    """The turns of one contender and the largest memory seen in them.

    Attributes
    ----------
    seconds : list of float
        By the clock.
    cpu_seconds : list of float
        Of all cores, of Spark's processes; where other work shares the machine, this is the figure to compare.
    """

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak: Peak = field(default_factory=Peak)

    @property
    def median(self) -> float:
        """Median of the turns."""
        return median(self.seconds)

    def ratios(self, reference: Timing) -> list[float]:
        """Ratio to the reference, turn by turn: what slowed the machine down for a while slowed both."""
        return [own / other for own, other in zip(self.seconds, reference.seconds, strict=True)]


def interleaved(
    contenders: Sequence[Contender],
    *,
    repeats: int,
    before_each: Callable[[], object],
    report: Callable[[str], object] = lambda _: None,
) -> dict[str, Timing]:
    """Run all contenders once unmeasured, then ``repeats`` times in turn (A B C A B C ...).

    Parameters
    ----------
    contenders : sequence of Contender
        Each with a name of its own.
    repeats : int
        Measured turns of each.
    before_each : callable
        Called, unmeasured, before each turn: what one contender leaves behind costs the next one nothing.
    report : callable
        Called with a line after each turn.
    """
    timings = {one.name: Timing(one.name) for one in contenders}
    for turn in range(repeats + 1):
        for contender in contenders:
            before_each()
            cpu_before = cpu_seconds()
            seconds, peak = _timed(contender.run)
            label = f"turn {turn}/{repeats}" if turn else "warm-up"
            report(f"{label:9s}  {seconds:8.2f} s  {contender.name}")
            timings[contender.name].peak.raise_to(peak.jvm, peak.workers, peak.worker)
            if turn:
                timings[contender.name].seconds.append(seconds)
                timings[contender.name].cpu_seconds.append(cpu_seconds() - cpu_before)
    return timings


def _timed(run: Callable[[], object]) -> tuple[float, Peak]:
    with watched() as peak:
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
    return seconds, peak

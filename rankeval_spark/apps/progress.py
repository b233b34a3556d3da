"""Progress of a long run, and the seconds of each stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Progress:
    """Whoever wants to know how far a run is: the terminal or a log; by itself it shows nothing."""

    def say(self, text: str) -> None:
        """Hear what the run comes to."""

    def begin(self, stage: str) -> None:
        """Hear that a stage begins."""

    def advance(self, n_rows: int, n_all: int) -> None:
        """Hear how many rows of all are done in the stage under way; from any thread."""

    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:
        """Hear that a stage ended, after how many seconds and with how many rows."""


@dataclass
class Step:
    """The stage under way; ``n_rows`` is what it wrote or looked at, where that is known."""

    name: str
    n_rows: int | None = None


@dataclass
class Steps:
    """The stages of one run: announced to a listener and timed."""

    listener: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    current: str = "start"

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Announce a stage, time it, and keep its name: a failure inside belongs to it."""
        self.current = name
        step = Step(name)
        self.listener.begin(name)
        started = time.perf_counter()
        yield step
        self.seconds[name] = time.perf_counter() - started
        self.listener.end(name, self.seconds[name], step.n_rows)

"""Progress of a long run, and the seconds of each stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Progress:
    """Listener of a run, such as the terminal or a log; this one ignores all events."""

    def say(self, text: str) -> None:
        """Receive a result of the run."""

    def begin(self, stage: str) -> None:
        """Receive the start of a stage."""

    def advance(self, n_rows: int, n_all: int) -> None:
        """Receive how many rows of all are done in the current stage; called from any thread."""

    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:
        """Receive the end of a stage."""


@dataclass
class Step:
    """The current stage."""

    name: str
    n_rows: int | None = None  # rows that it wrote or looked at, where that is known


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

"""Timings as a plain table for people and as JSON for later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from benchmarks.timing import Timing

HEADER: Final = (
    *("", "seconds", "lowest", "highest", "ratio", "lowest", "highest"),
    *("CPU s", "JVM GB", "Python GB", "of one"),
)
_MICROSECONDS: Final = 1e6


@dataclass(frozen=True)
class Report:
    """The outcome of a benchmark.

    Attributes
    ----------
    name : str
        Of the benchmark; part of the file name.
    machine : mapping
        What it ran on.
    timings : mapping of str to Timing
        The contenders, in the order of the table.
    reference : str
        The contender that ratios are taken to; left out where it was not timed.
    n_rows : int
        Recommendation rows.
    floors : mapping of str to str
        Another reference, by the contender that it belongs to.
    """

    name: str
    machine: Mapping[str, str]
    timings: Mapping[str, Timing]
    reference: str
    n_rows: int
    floors: Mapping[str, str] = field(default_factory=dict)

    def as_table(self) -> str:
        """Lay out machine and timings in fixed columns."""
        about = [f"{key:22s}{value}" for key, value in self.machine.items()]
        width = max(len(name) for name in self.timings)
        heads = "".join(f"{title:>10s}" for title in HEADER[1:])
        rows = [f"{name:{width}s}" + "".join(f"{cell:>10s}" for cell in self._cells(name)) for name in self.timings]
        return "\n".join(["", *about, "", " " * width + heads, *rows])

    def headline(self, name: str) -> str:
        """Say what the benchmark is for, in one line."""
        timing = self.timings[name]
        per_row = f"{timing.median / self.n_rows * _MICROSECONDS:.2f} microseconds a row"
        if self.reference not in self.timings:
            return f"{name}: {timing.median:.2f} s, {per_row}"
        ratio = median(timing.ratios(self.timings[self.reference]))
        return f"{name}: {timing.median:.2f} s, {per_row}, {ratio:.2f} times the floor"

    def save(self, folder: Path) -> Path:
        """Write everything as JSON, named by the time; return the path."""
        now = datetime.now(UTC)
        path = folder / f"{self.name}-{self.n_rows}-{now:%Y%m%dT%H%M%SZ}.json"
        content = {
            "recorded_at": now.isoformat(timespec="seconds"),
            "machine": dict(self.machine),
            "n_rows": self.n_rows,
            "timings": [asdict(timing) for timing in self.timings.values()],
        }
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        return path

    def _cells(self, name: str) -> list[str]:
        timing = self.timings[name]
        reference = self.timings.get(self.floors.get(name, self.reference))
        ratios = timing.ratios(reference) if reference else []
        spread = [f"{value:.2f}" for value in (median(ratios), min(ratios), max(ratios))] if ratios else [""] * 3
        seconds = [f"{value:.2f}" for value in (timing.median, min(timing.seconds), max(timing.seconds))]
        return [
            *seconds,
            *spread,
            f"{median(timing.cpu_seconds):.1f}",
            f"{timing.peak.jvm:.2f}",
            f"{timing.peak.workers:.2f}",
            f"{timing.peak.worker:.2f}",
        ]

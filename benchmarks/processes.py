"""Memory and processor time of everything that this process started: the driver's JVM and Python workers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

INTERVAL_SECONDS: Final = 0.2
_PROC: Final = Path("/proc")
_USER_TIME: Final = 11
"""Place of utime in /proc/PID/stat after the name of the process; stime, cutime and cstime follow."""

_KILOBYTES_PER_GIGABYTE: Final = 1 << 20


@dataclass
class Peak:
    """Largest memory seen, in gigabytes.

    Attributes
    ----------
    jvm : float
        Of the driver's JVM.
    workers : float
        Of all Python workers at one moment.
    worker : float
        Of the largest one.
    """

    jvm: float = 0.0
    workers: float = 0.0
    worker: float = 0.0

    def raise_to(self, jvm: float, workers: float, worker: float) -> None:
        """Take one more look into account."""
        self.jvm = max(self.jvm, jvm)
        self.workers = max(self.workers, workers)
        self.worker = max(self.worker, worker)


@contextmanager
def watched() -> Iterator[Peak]:
    """Sample the memory of the JVM and of its Python workers within the block; zeros where there is no /proc."""
    peak, is_over = Peak(), threading.Event()

    def sample() -> None:
        while not is_over.wait(INTERVAL_SECONDS):
            peak.raise_to(*_now())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        is_over.set()
        thread.join()
        peak.raise_to(*_now())


def cpu_seconds() -> float:
    """Return the processor time that this process and those below it have used so far, those that ended included.

    Other work on the machine stretches the clock far more than this.
    """
    return sum(_ticks(pid) for pid in (os.getpid(), *_descendants())) / os.sysconf("SC_CLK_TCK")


def high_water_mark() -> float:
    """Return the kernel's own peak of the JVM's resident memory since it started, in gigabytes."""
    jvms = [pid for pid in _descendants() if _name(pid) == "java"]
    return sum(_field(_PROC / str(pid) / "status", "VmHWM") for pid in jvms)


def _now() -> tuple[float, float, float]:
    jvm, of_workers = 0.0, [0.0]
    for pid in _descendants():
        name = _name(pid)
        if name == "java":
            jvm += _field(_PROC / str(pid) / "status", "VmRSS")
        elif name.startswith("python"):  # not a fork of the JVM, which for a moment has its memory and a thread's name
            # Workers are forks of one daemon: the pages that they share count once.
            of_workers.append(_field(_PROC / str(pid) / "smaps_rollup", "Pss"))
    return jvm, sum(of_workers), max(of_workers)


def _descendants() -> list[int]:
    """List the processes below this one."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended since
            continue
        children.setdefault(parent, []).append(int(entry.parent.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        born = children.get(waiting.pop(), [])
        found += born
        waiting += born
    return found


def _ticks(pid: int) -> int:
    """Return user and system time of a process and of the children that it has waited for."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[_USER_TIME : _USER_TIME + 4]))


def _name(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def _field(file: Path, name: str) -> float:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0.0
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]
    return sum(kilobytes) / _KILOBYTES_PER_GIGABYTE

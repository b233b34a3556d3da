"""Who holds a lock, and whether that process is known to be gone."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process, distinct from one that got the same number later or in another container."""

    machine: str
    pid: int
    started: str

    def is_gone(self) -> bool:
        """Whether it certainly ended: it ran on this machine, and its number is free or was given to another.

        A process of another machine is never known to be gone; only its heartbeat can tell.
        """
        if self.machine != this_machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return _start_of(self.pid) != self.started


def this_process() -> Process:
    """Describe the process that runs this code."""
    return Process(this_machine(), os.getpid(), _start_of(os.getpid()))


def this_machine() -> str:
    """Host name, boot and process namespace: process numbers can be compared only where all three agree."""
    boot = _read("/proc/sys/kernel/random/boot_id")[:8]
    try:
        namespace = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        namespace = ""
    return "/".join(part for part in (platform.node(), boot, namespace) if part)


def _start_of(pid: int) -> str:
    """Start time of a process in clock ticks since boot; '' where unknown, 'ended' for one not yet reaped."""
    # The name, second field of the line, is in brackets and may hold spaces: read what follows the last bracket.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return ""
    state, start_time = fields[0], fields[19]
    return "ended" if state in "ZX" else start_time


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""

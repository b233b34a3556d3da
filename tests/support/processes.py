"""Processes that are stopped or killed in the middle of their work, each in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rankeval_spark.results import failpoints
from tests.support.cli import PROJECT, Finished

SECONDS: Final = 180
"""Patience with a process that starts a JVM next to others."""

SHORT_LIVED_JVM: Final = " ".join(
    [
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:-BytecodeVerificationRemote",
    ]
)
"""Options of a JVM that is to begin soon rather than to run fast: see tests/conftest.py."""

SETTINGS: Final = {
    "spark.driver.memory": "1g",
    # As those of tests/conftest.py.
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC {SHORT_LIVED_JVM}",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
"""Settings of a driver that does little and is not the only one on the machine."""


@dataclass(frozen=True)
class Running:
    """A process that was started; what it says goes to two files."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def out(self) -> str:
        """What it said on standard output so far."""
        return (self.folder / "out").read_text(errors="replace")

    @property
    def err(self) -> str:
        """What it said on standard error so far."""
        return (self.folder / "err").read_text(errors="replace")

    def wait_until_it_says(self, text: str) -> None:
        """Wait for some words of its; it must not have ended before."""
        until = time.monotonic() + SECONDS
        while text not in self.out + self.err:
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.out}{self.err}"
            assert time.monotonic() < until, f"did not say {text!r}: {self.out}{self.err}"
            time.sleep(0.05)

    def wait_until_gone(self, sign: Path) -> None:
        """Make a file and wait until another process has removed it."""
        sign.touch()
        until = time.monotonic() + SECONDS
        while sign.exists():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.out}{self.err}"
            assert time.monotonic() < until, f"{sign} is still there: {self.out}{self.err}"
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send its process group a signal, as schedulers do."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End its process group and whatever it started at once, without a chance to clean up."""
        family = _descendants(self.process.pid)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        _kill(family)
        self.process.wait()

    def kill_children(self) -> None:
        """End whatever it started, its JVM above all."""
        _kill(_descendants(self.process.pid))

    def finish(self) -> Finished:
        """Wait for its end."""
        self.process.wait(timeout=SECONDS)
        return Finished(self.process.returncode, self.out, self.err)


@contextmanager
def started(command: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Start a command from a folder that is not the project's; it does not outlive the block."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            list(map(str, command)),
            env={**os.environ, "PYTHONPATH": str(PROJECT), **(environment or {})},
            cwd=folder,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    running = Running(process, folder)
    try:
        yield running
    finally:
        if process.poll() is None:
            running.kill()


def rankeval_command(*arguments: object) -> list[object]:
    """Return the command line of the program."""
    return [sys.executable, "-m", "rankeval_spark", *arguments]


def held_at(failpoint: str) -> dict[str, str]:
    """Return the variable that makes a run hold still at a failpoint until it is killed."""
    return {failpoints.ENVIRONMENT_VARIABLE: f"{failpoint}=hold"}


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """List the processes that a process started, and those that they did, wherever their groups are."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal():
                # The name, second field of the line, is in brackets and may hold anything.
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]

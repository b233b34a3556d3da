"""A daemon of Python workers, one of which ends in the way that the test requests.

For ``spark.python.daemon.module``. The variable ``RANKEVAL_TESTS_END`` holds the kind of the end and, after a colon, a
file, which the test makes when it is time: whoever answers first from then on removes it. The other workers, and the
task when it is repeated, live on.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import daemon

if TYPE_CHECKING:
    import socket

VARIABLE: Final = "RANKEVAL_TESTS_END"


ENOUGH: Final = 200
"""Bytes of an answer, more than its beginning: Spark has something of a result in its hands when the end comes."""


class Answer:
    """What a worker writes to Spark; in the middle of it, its end comes."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - a file, as pyspark made it
        self._stream = stream
        self._n_bytes = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the stream has it
        """Be the stream in everything else."""
        return getattr(self._stream, name)

    def write(self, content: Any) -> int:  # noqa: ANN401 - bytes, or a buffer of Arrow
        """Write, and meet the end."""
        written = int(self._stream.write(content))
        self._n_bytes += written
        if self._n_bytes > ENOUGH:
            self._stream.flush()
            meet_end()
        return written


def meet_end() -> None:
    """Meet the end if it is time, and this is the first process to come here."""
    kind, _, sign = os.environ[VARIABLE].partition(":")
    try:
        Path(sign).unlink()
    except FileNotFoundError:
        return
    if kind == "worker":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "executor":
        os.kill(parent_of(os.getppid()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        time.sleep(3600)


def parent_of(pid: int) -> int:
    """Return the parent of a process: that of a worker's daemon is the executor."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass
class Mortal:
    """Pyspark's own function of a worker, with an :class:`Answer` for its output."""

    main: Callable[[Any, Any], None]

    def __call__(self, infile: Any, outfile: Any) -> None:  # noqa: ANN401 - files, as pyspark made them
        """Do what it does."""
        self.main(infile, Answer(outfile))


def run(sock: socket.socket, authenticated: bool) -> int:
    """Do what a worker of pyspark does in its forked process."""
    from pyspark import worker  # noqa: PLC0415 - it may start threads, which a process that forks must not have

    if not isinstance(worker.main, Mortal):
        worker.main = Mortal(worker.main)
    try:
        return immortal(sock, authenticated)
    except (
        BrokenPipeError
    ):  # its task was killed while it wrote: a race between pyspark's own processes, which prints it
        return 1


if __name__ == "__main__":
    immortal = daemon.worker
    daemon.worker = run
    daemon.manager()

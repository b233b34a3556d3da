"""A command that is suspended before one of its changes of the results, while others go through.

``python -m tests.support.suspensions FOLDER TASK`` copies FOLDER/before for each change of the command of the task, and
prints a line of JSON for each. All commands are forks of one process, which has imported what they need.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from rankeval_spark.results.locks import LockTimes

CHANGES: Final = {"os.link": 1, "os.rename": 1, "os.remove": 0, "os.rmdir": 0, "os.mkdir": 0, "shutil.rmtree": 0}
"""Audited events of Python, each with the place of the path that it changes among its arguments."""

LONG_AGO: Final = (0, 0)


class Suspended(NamedTuple):
    """A command that was suspended: before which change, and how it and the others ended."""

    step: int
    change: str
    code: int
    others: list[int]
    said: str


def suspend_before(root: Path, step: int, changes: Sequence[str]) -> None:
    """Let this process suspend itself before a change below a folder; the first one is 1."""
    seen = count(1)

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        place = CHANGES.get(event) if event in changes else None
        if place is None or not isinstance(arguments[place], str | Path):
            return
        path = str(arguments[place])
        if path.startswith(str(root)) and next(seen) == step:
            (root.parent / "change").write_text(f"{event} {path.removeprefix(str(root) + '/')}")
            os.kill(os.getpid(), signal.SIGSTOP)

    sys.addaudithook(look)


def fork(command: Sequence[str], out: Path, step: int = 0, changes: Sequence[str] = ()) -> int:
    """Start a command of the program in a fork; return its process."""
    process = os.fork()
    if process:
        return process
    with out.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if step:
        suspend_before(out.parent / "results", step, changes)
    code = run(command)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(command: Sequence[str]) -> int:
    """Run a command of the program, and return its exit code; a fork must not go on as its parent."""
    from rankeval_spark.cli import main  # noqa: PLC0415 - in the fork, in which it may start threads

    try:
        main(list(command))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 70


def run_step(folder: Path, step: int, task: dict[str, Any]) -> Suspended | None:
    """Suspend the first command at a step while the second runs, and run the others; None after the last step."""
    workspace = Path(shutil.copytree(folder / "before", folder / f"{step:03d}"))
    config = str(workspace / "nightly.yaml")
    commands = [[part.format(config=config, root=workspace / "results") for part in one] for one in task["commands"]]
    process = fork(commands[0], workspace / "out", step, task["changes"])
    _, status = os.waitpid(process, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        return None
    for lock in (workspace / "results" / "_locks").glob("*/*"):
        os.utime(lock, LONG_AGO)
    others = [code_of(fork(commands[1], workspace / "others"))]
    os.kill(process, signal.SIGCONT)
    code = code_of(process)
    others += [code_of(fork(one, workspace / "others")) for one in commands[2:]]
    said = "".join((workspace / name).read_text() for name in ("out", "others"))
    return Suspended(step, (workspace / "change").read_text(), code, others, said)


def code_of(process: int) -> int:
    """Wait for a process, and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(folder: str, task_text: str) -> None:
    """Run every step of a task, or every so many."""
    import rankeval_spark.apps.nightly.night  # noqa: PLC0415 - for all forks
    import rankeval_spark.cli.run  # noqa: F401, PLC0415 - for all forks

    # A holder whose lock looks old is watched for 40 s, in every step: the lock of a suspended process never changes.
    times = LockTimes(watch=0.1)
    LockTimes.__init__.__defaults__ = tuple(asdict(times).values())
    task = json.loads(task_text)
    for step in count(1, task.get("every", 1)):
        done = run_step(Path(folder), step, task)
        if done is None:
            return
        print(json.dumps(done._asdict()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The command line, called in this process: the session that is active already serves it."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from rankeval_spark.cli import main

PROJECT: Final = Path(__file__).parents[2]

JAVA_WORDS: Final = ("Traceback", "at org.apache", "at java.", "Py4JJavaError", "SQLSTATE", "JVM stacktrace")
"""What a user must never see without --debug."""


@dataclass(frozen=True)
class Finished:
    """A command that ended: its exit code and what it said."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The error message in one line, as it wraps on no terminal."""
        return " ".join(self.err.partition("error: ")[2].split())

    def assert_readable(self) -> None:
        """Check that the one message is for people."""
        assert self.err.count("error: ") == 1, self.err
        found = [word for word in JAVA_WORDS if word in self.out + self.err]
        assert not found, f"{found} in {self.err}"


def rankeval(*arguments: object) -> Finished:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    log = logging.getLogger("rankeval")
    handlers, log.handlers = log.handlers, []  # as in a new process; pytest has some of its own
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = _code_of(list(map(str, arguments)))
    finally:
        log.handlers = handlers  # one that the command added has the error output of now
    return Finished(code, out.getvalue(), err.getvalue())


def json_of(*arguments: object) -> Any:  # noqa: ANN401 - whatever the JSON is
    """Run a command that succeeds, and return its JSON."""
    done = rankeval(*arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@contextmanager
def without_session() -> Iterator[None]:
    """Hide the session that other tests of this process left active: commands would choose it."""
    with pytest.MonkeyPatch.context() as patched:
        if (sql := sys.modules.get("pyspark.sql")) is not None:
            patched.setattr(sql.SparkSession, "getActiveSession", lambda: None)
        yield


def rankeval_process(*arguments: object) -> Finished:
    """Run a command in a process of its own, from a folder that is not the project's."""
    done = subprocess.run(
        [sys.executable, "-m", "rankeval_spark", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def _code_of(arguments: list[str]) -> int:
    try:
        main(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)

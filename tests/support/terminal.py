"""Programs whose output is a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from tests.support.cli import PROJECT

ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(PROJECT), "TERM": "xterm", "COLUMNS": "100"}


def on_a_terminal(script: str, *, environment: Mapping[str, str] | None = None, keeps_codes: bool = False) -> str:
    """Run a script with a terminal as its output and return what that was sent.

    Parameters
    ----------
    environment : mapping, optional
        Variables in addition to :data:`ENVIRONMENT`.
    keeps_codes : bool
        Whether colours and movements of the cursor stay.
    """
    ours, theirs = pty.openpty()
    given = {**ENVIRONMENT, **(environment or {})}
    process = subprocess.Popen([sys.executable, "-c", script], env=given, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 1 << 16):
            said += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 0, said
    return said.decode() if keeps_codes else re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())

"""Named places where a test can make a run fail, to prove that a crash there does no harm.

A failpoint does nothing unless it is armed: by the environment (``RANKEVAL_FAILPOINTS="after_intent=exit"``, several
separated by commas) or, inside one process, by :func:`armed`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rankeval_spark.errors import RankevalError

ENVIRONMENT_VARIABLE: Final = "RANKEVAL_FAILPOINTS"
EXIT_STATUS: Final = 70  # status with which an armed `exit` ends the process (EX_SOFTWARE)
_armed: set[str] = set()


class FailpointError(RankevalError):
    """The failure that an armed failpoint simulates."""

    def __init__(self, name: str) -> None:
        super().__init__(f"failpoint {name!r} was armed")


def failpoint(name: str) -> None:
    """Fail here if a test armed it: ``raise``, ``exit`` without clean-up, or ``hold`` still until a kill."""
    pairs = (pair.partition("=") for pair in os.environ.get(ENVIRONMENT_VARIABLE, "").split(","))
    in_environment = {armed_name.strip(): action.strip() for armed_name, _, action in pairs}
    action = "raise" if name in _armed else in_environment.get(name)
    if action == "raise":
        raise FailpointError(name)
    if action == "exit":
        os._exit(EXIT_STATUS)
    if action == "hold":
        print(f"failpoint {name} holds", flush=True)  # the test that kills us waits for this line
        time.sleep(3600)


@contextmanager
def armed(name: str) -> Iterator[None]:
    """Arm one failpoint of this process to raise an error within the block."""
    _armed.add(name)
    try:
        yield
    finally:
        _armed.remove(name)

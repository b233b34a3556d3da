"""Progress of what takes longer than two seconds: a line on a terminal or in a notebook, and a line of the log."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

SWITCH: Final = "RANKEVAL_PROGRESS"
"""Variable of the environment that switches progress off, by ``off`` or 0."""
SECONDS_OF_QUIET: Final = 2.0
_SECONDS_BETWEEN: Final = 0.5
_logger: Final = logging.getLogger("rankeval")
_is_shown: Final = threading.Lock()  # by one block at a time, so that a block within another shows no second line


@contextmanager
def show_progress(what: str, *, has_rows: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show what a block computes, from two seconds on; the value hears, from any thread, how many rows of all are done.

    On a terminal the line is on standard error and goes away at the end, in a notebook it is an output. Elsewhere
    nothing is shown; a line of the log ``rankeval`` has what it was and the seconds. Without ``has_rows`` the line of a
    terminal is written once: Spark has its own bar there.
    """
    if os.environ.get(SWITCH, "").lower() in ("0", "off", "no", "false") or not _is_shown.acquire(blocking=False):
        yield lambda _, __: None
        return
    began, rows, is_over = time.monotonic(), [""], threading.Event()

    def advance(n_rows: int, n_all: int) -> None:
        rows[0] = f", {n_rows:,} of {n_all:,} rows"

    def keep_shown() -> None:
        if is_over.wait(SECONDS_OF_QUIET):
            return
        with suppress(Exception), _open_line(is_live=has_rows) as show:  # a front end that is gone stops nothing
            while not is_over.is_set():
                show(f"rankeval: {what}{rows[0]}, {time.monotonic() - began:.0f} s")
                is_over.wait(_SECONDS_BETWEEN)
            show(f"rankeval: {what}, {time.monotonic() - began:.0f} s")  # which stays in a notebook

    thread = threading.Thread(target=keep_shown, name="rankeval-progress", daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        is_over.set()
        thread.join(_SECONDS_BETWEEN)
        _is_shown.release()
    if (seconds := time.monotonic() - began) > SECONDS_OF_QUIET:
        _logger.info("%s took %.1f s", what, seconds)


@contextmanager
def _open_line(*, is_live: bool) -> Iterator[Callable[[str], object]]:
    """Open the line that shows a text in place of the one before: of a notebook, of a terminal, or none."""
    if _is_notebook():
        handle = import_module("IPython.display").display({"text/plain": ""}, raw=True, display_id=True)
        yield lambda text: handle.update({"text/plain": text}, raw=True)
        return
    from rich.console import Console  # noqa: PLC0415 - takes 0.1 s, which nothing short needs
    from rich.live import Live  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    out = Console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
    elif is_live:
        line = Live(console=out, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
        with line as live:
            yield lambda text: live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
    else:
        once = iter([out.print])
        yield lambda text: next(once, lambda *_, **__: None)(text.rpartition(",")[0], markup=False)


def _is_notebook() -> bool:
    """Return True in the kernel of a notebook; IPython is not imported for it."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")

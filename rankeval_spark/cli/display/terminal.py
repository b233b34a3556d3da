"""What the user sees while a run works: a moving line on a terminal, one log line a stage elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.console import Console
from rich.markup import escape
from typing_extensions import override

from rankeval_spark.apps.progress import Progress
from rankeval_spark.errors import RankevalError, first_line, notes_of, visible

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text

WIDTH_OF_A_LOG: Final = 120
"""Columns of a table that goes to a file or a pipe, where there is no terminal to ask."""

_SECONDS_BETWEEN_LOOKS: Final = 0.5

logger = logging.getLogger("rankeval")

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


def headline(error: BaseException) -> str:
    """Say what went wrong: the message of an error of ours, one line of any other instead of Java's stack trace."""
    return "\n".join([_said(error), *notes_of(error)])


def _said(error: BaseException) -> str:
    if isinstance(error, RankevalError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "stopped"
    return f"unexpected {type(error).__name__}: {first_line(str(error))}"


class InertConsole(Console):
    """A console on which names from data are only seen: they steer no terminal, turn no text round, are no emoji."""

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - rich's own
        """Render text; every string that is printed, cells and titles of tables too, comes this way."""
        return super().render_str(visible(text, keep="\n\t"), **options)


def console(*, is_error: bool = False) -> Console:
    """Return a console on standard output or standard error."""
    stream = sys.stderr if is_error else sys.stdout
    width = None if stream.isatty() else WIDTH_OF_A_LOG
    return InertConsole(stderr=is_error, width=width, highlight=False, soft_wrap=False, emoji=False)


@contextmanager
def quietly(wanted: bool) -> Iterator[None]:
    """Show no progress and no advice within the block, if that is wanted."""
    before = _is_quiet.set(wanted)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def is_quiet() -> bool:
    """Return True if the user wants results and faults only."""
    return _is_quiet.get()


def say_note(text: str) -> None:
    """Say on standard error what goes with a result, so that the result stays readable for programs."""
    if not is_quiet():
        console(is_error=True).print(f"note: {text}", markup=False, soft_wrap=True)


def say_done(text: str) -> None:
    """Say on standard output what was done, or what to do next; nothing where the user wants neither."""
    if not is_quiet():
        console().print(text, markup=False, soft_wrap=True)


def write_out(text: str) -> None:
    """Write the text unchanged; on a terminal, without control characters."""
    if sys.stdout.isatty():
        text = visible(text.replace("\r\n", "\n"), keep="\n\t")
    sys.stdout.write(text)


class Tasks(NamedTuple):
    """Tasks of the stages of Spark that run at a time."""

    n_done: int
    n_all: int


def tasks_under_way() -> Tasks | None:
    """Count the tasks of the stages under way, from any thread; None between two jobs.

    It counts none without a session, nor through Spark Connect, which does not report tasks. A session that starts
    later is found too. Nothing is imported: whoever has no session need not wait for pyspark.
    """
    classes = sys.modules.get("pyspark.core.context")
    context = getattr(getattr(classes, "SparkContext", None), "_active_spark_context", None)
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    if not stages:
        return None
    return Tasks(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))


class LiveLine(Progress):
    """Progress on a terminal: one line of the stage under way, and one that a finished stage leaves."""

    def __init__(self, status: Status, title: str, tasks: Callable[[], Tasks | None]) -> None:
        self._status = status
        self._title = title
        self._tasks = tasks
        self._stage = ""
        self._rows = ""
        self._began = time.monotonic()
        self.is_live = True

    @override
    def say(self, text: str) -> None:
        self._status.console.print(f"  {text}", markup=False, soft_wrap=True)

    @override
    def begin(self, stage: str) -> None:
        self._stage, self._rows, self._began = stage, "", time.monotonic()
        if self.is_live:  # otherwise the line is that of the next run
            self._show("")

    @override
    def advance(self, n_rows: int, n_all: int) -> None:
        self._rows = f", {n_rows:,} of {n_all:,} rows"

    @override
    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:
        rows = "" if n_rows is None else f"{n_rows:>14,} rows"
        self._status.console.print(f"  [green]done[/green] {stage:<12}{seconds:>8.1f} s{rows}")

    @contextmanager
    def kept_current(self) -> Iterator[None]:
        """Bring tasks and seconds up to date from a thread of its own, while the block runs."""
        is_over = threading.Event()
        thread = threading.Thread(target=self._keep_current, args=(is_over,), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(_SECONDS_BETWEEN_LOOKS)

    def _keep_current(self, is_over: threading.Event) -> None:
        while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
            self._show(self._rows or self._tasks_done())

    def _tasks_done(self) -> str:
        """Say how many tasks are done; nothing where Spark does not report it, as when the driver is gone."""
        tasks = None
        with suppress(Exception):
            tasks = self._tasks()
        return "" if tasks is None else f", {tasks.n_done} of {tasks.n_all} tasks"

    def _show(self, done: str) -> None:
        seconds = time.monotonic() - self._began
        self._status.update(f"{self._title}: {self._stage}{done}, {seconds:.0f} s")


class LogLines(Progress):
    """Progress without a terminal: one line a stage, at its end."""

    def __init__(self, title: str) -> None:
        self._title = title

    @override
    def say(self, text: str) -> None:
        logger.info("%s %s", self._title, text)

    @override
    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:
        rows = "-" if n_rows is None else n_rows
        logger.info("%s stage=%s seconds=%.1f rows=%s", self._title, stage, seconds, rows)


@contextmanager
def progress(title: str, out: Console | None = None) -> Iterator[Progress]:
    """Show the progress of one run.

    Parameters
    ----------
    out : Console, optional
        Where it is shown; that of standard error where left out. Runs that report at the same time share one.
    """
    out, title = out or console(is_error=True), visible(title)
    if is_quiet():
        yield Progress()
        return
    if not out.is_terminal:
        _log_to_stderr()
        yield LogLines(title)
        return
    with out.status(escape(title)) as status:
        line = LiveLine(status, escape(title), tasks_under_way)
        with line.kept_current():
            yield line
    line.is_live = False


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what is waited for, and how long already; elsewhere nothing."""
    out = console(is_error=True)
    if is_quiet() or not out.is_terminal:
        yield
        return
    with out.status(what) as status:
        line = LiveLine(status, "rankeval", lambda: None)
        line.begin(what)
        with line.kept_current():
            yield


def keep_libraries_quiet() -> None:
    """Keep the log of libraries off the terminal: py4j writes a trace of every call that a dead driver did not answer.

    What they have to say reaches the user as the error that they raise; whoever logs by himself gets it all.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())


def _log_to_stderr() -> None:
    if logger.handlers:
        return
    handler = logging.StreamHandler()
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False

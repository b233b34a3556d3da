"""Consoles, messages and progress: a live line on a terminal, one log line per stage elsewhere."""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.console import Console
from rich.markup import escape
from typing_extensions import override

from rankeval_spark.apps.progress import Progress
from rankeval_spark.errors import RankevalError, exit_code_of, first_line, notes_of, visible, without_secrets

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text

WIDTH_OF_A_LOG: Final = 120  # columns of a table in a file or a pipe
_SECONDS_BETWEEN_LOOKS: Final = 0.5
logger = logging.getLogger("rankeval")
_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
_is_json: ContextVar[bool] = ContextVar("is_json", default=False)  # of the log on standard error


def headline(error: BaseException) -> str:
    """Return the message of our error, or one line for any other instead of Java's stack trace."""
    if isinstance(error, RankevalError):
        text = str(error)
    elif isinstance(error, KeyboardInterrupt):
        text = str(error) or "stopped"
    else:
        text = f"unexpected {type(error).__name__}: {first_line(str(error))}"
    return "\n".join([text, *notes_of(error)])


class InertConsole(Console):
    """A console that prints names from data literally: no control characters, no bidirectional text, no emoji."""

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - rich's own
        """Render text. Every printed string, also of a cell or title, passes here."""
        return super().render_str(visible(text, keep="\n\t"), **options)


def console(*, is_error: bool = False) -> Console:
    """Return a console on standard output or standard error."""
    stream = sys.stderr if is_error else sys.stdout
    width = None if stream.isatty() else WIDTH_OF_A_LOG
    return InertConsole(stderr=is_error, width=width, highlight=False, soft_wrap=False, emoji=False)


@contextmanager
def quietly(wanted: bool) -> Iterator[None]:
    """Suppress progress and advice within the block, if that is wanted."""
    before = _is_quiet.set(wanted)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def is_quiet() -> bool:
    """Return whether the user wants results and faults only."""
    return _is_quiet.get()


class JsonLines(logging.Formatter):
    """Log lines as JSON objects: `time`, `level`, `message`, and the facts of a record."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        time_ = f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        line = {
            "time": time_,
            "level": record.levelname.lower(),
            "message": without_secrets(record.getMessage()).strip(),
        }
        return json_text({**line, **getattr(record, "facts", {})}, indent=None).rstrip("\n")


@contextmanager
def logged_as_json(wanted: bool) -> Iterator[None]:
    """Log whatever goes to standard error within the block as JSON lines, if that is wanted; warnings too."""
    if not wanted:
        yield
        return
    before, handler = _is_json.set(True), logging.StreamHandler()
    handler.setFormatter(JsonLines())
    loggers = (logger, logging.getLogger("py.warnings"))
    logging.captureWarnings(True)
    for each in loggers:
        each.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(handler)
        logging.captureWarnings(False)
        _is_json.reset(before)


def say_note(text: str) -> None:
    """Print a note on standard error, so that the result stays readable for programs."""
    if is_quiet():
        return
    if _is_json.get():
        logger.info(text)
    else:
        console(is_error=True).print(f"note: {text}", markup=False, soft_wrap=True)


def say_warning(text: str) -> None:
    """Print a warning on standard error, also where the user wants results and faults only."""
    if _is_json.get():
        logger.warning(text)
    else:
        console(is_error=True).print(f"warning: {text}", markup=False, soft_wrap=True)


def say_error(error: BaseException, *, trace: str, hint: str) -> None:
    """Print the error that a command ends with, and its trace or else how to get one, if there are any."""
    if _is_json.get():
        facts = {"exit_code": int(exit_code_of(error)), **({"trace": trace} if trace else {})}
        logger.error(headline(error), extra={"facts": facts})
        return
    out = console(is_error=True)
    if trace:
        out.print(trace, markup=False, style="dim", soft_wrap=True)
    out.print("error: ", style="bold red", end="")
    out.print(headline(error), markup=False, soft_wrap=True)
    if hint:
        out.print(hint, style="dim")


def say_done(text: str) -> None:
    """Print what was done or what to do next on standard output, unless quiet."""
    if not is_quiet():
        console().print(text, markup=False, soft_wrap=True)


def write_out(text: str) -> None:
    """Write the text unchanged; on a terminal, without control characters."""
    if sys.stdout.isatty():
        text = visible(text.replace("\r\n", "\n"), keep="\n\t")
    sys.stdout.write(text)


def json_text(document: object, *, indent: int | None = 2) -> str:
    """Return one JSON document: dates and times in ISO 8601, NULL for NaN and infinite numbers.

    With ``indent=None`` it is one line.

    >>> from datetime import date
    >>> print(json_text({"day": date(2026, 1, 3), "mean": float("nan"), "names": ("a", "b")}), end="")
    {
      "day": "2026-01-03",
      "mean": null,
      "names": [
        "a",
        "b"
      ]
    }
    """
    return json.dumps(_to_json_value(document), indent=indent, allow_nan=False) + "\n"


def _to_json_value(value: Any) -> Any:  # noqa: ANN401 - a value of any kind
    """Return a value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(element) for key, element in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_value(element) for element in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date):  # a datetime too
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)


class Tasks(NamedTuple):
    """Tasks of the running stages of Spark."""

    n_done: int
    n_all: int


def active_context() -> Any:  # noqa: ANN401 - a SparkContext
    """Return the running context of Spark, if any, without an import: nothing waits for pyspark here."""
    context = getattr(sys.modules.get("pyspark.core.context"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None)


def tasks_under_way() -> Tasks | None:
    """Count the tasks of the running stages, from any thread; None between jobs, and through Spark Connect."""
    context = active_context()
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    if not stages:
        return None
    return Tasks(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))


class LiveLine(Progress):
    """Progress on a terminal: a live line of the running stage, and a line for each finished one."""

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
    def updated_in_background(self) -> Iterator[None]:
        """Update tasks and seconds from another thread, while the block runs."""
        is_over = threading.Event()

        def keep_current() -> None:
            while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
                tasks = None
                with suppress(Exception):  # the driver may be gone
                    tasks = self._tasks()
                self._show(self._rows or ("" if tasks is None else f", {tasks.n_done} of {tasks.n_all} tasks"))

        thread = threading.Thread(target=keep_current, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(_SECONDS_BETWEEN_LOOKS)

    def _show(self, done: str) -> None:
        seconds = time.monotonic() - self._began
        self._status.update(f"{self._title}: {self._stage}{done}, {seconds:.0f} s")


class LogLines(Progress):
    """Progress without a terminal: one log line per stage, at its end."""

    def __init__(self, title: str) -> None:
        self._title = title

    @override
    def say(self, text: str) -> None:
        logger.info("%s %s", self._title, text)

    @override
    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:
        rows = "-" if n_rows is None else n_rows
        facts = {"run": self._title, "stage": stage, "seconds": round(seconds, 3), "rows": n_rows}
        logger.info("%s stage=%s seconds=%.1f rows=%s", self._title, stage, seconds, rows, extra={"facts": facts})


@contextmanager
def progress(title: str, out: Console | None = None) -> Iterator[Progress]:
    """Show the progress of one run, by default on standard error; simultaneous runs share one console."""
    out, title = out or console(is_error=True), visible(title)
    if is_quiet():
        yield Progress()
        return
    if _is_json.get() or not out.is_terminal:
        _log_to_stderr()
        yield LogLines(title)
        return
    with out.status(escape(title)) as status:
        line = LiveLine(status, escape(title), tasks_under_way)
        with line.updated_in_background():
            yield line
    line.is_live = False


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what the command waits for, and for how long; elsewhere nothing."""
    out = console(is_error=True)
    if is_quiet() or _is_json.get() or not out.is_terminal:
        yield
        return
    with out.status(what) as status:
        line = LiveLine(status, "rankeval", lambda: None)
        line.begin(what)
        with line.updated_in_background():
            yield


def keep_libraries_quiet() -> None:
    """Keep logs of libraries off the terminal, such as traces of py4j for a dead driver; errors are raised anyway."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())


def _log_to_stderr() -> None:
    """Send log lines with the time in UTC to standard error, unless they go somewhere already."""
    if logger.handlers:
        return
    handler = logging.StreamHandler()
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False

"""A signal to end becomes an exception, an exit code and one line, whatever a command is doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date
from types import SimpleNamespace

import pytest

from rankeval_spark.apps.nightly import backfill as filling
from rankeval_spark.apps.nightly.night import NightResult
from rankeval_spark.cli.main import stoppable
from rankeval_spark.cli.terminal import headline
from rankeval_spark.errors import Stopped, exit_code_of, interruption, note
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND

TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Let signals be heard as in the foreground of a terminal, whatever this process was started with."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (TERM, INT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def stop(number: int) -> None:
    """Send this process a signal and let Python hear it."""
    os.kill(os.getpid(), number)
    for _ in range(1000):  # a handler runs between two steps of Python
        pass


@pytest.mark.parametrize(("number", "code"), [(TERM, 143), (INT, 130)])
def test_a_signal_ends_a_command_with_one_line_and_its_code(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = []
    context = SimpleNamespace(cancelAllJobs=lambda: jobs.append(threading.current_thread()))
    pyspark = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    monkeypatch.setitem(sys.modules, "pyspark.core.context", pyspark)

    def app(*_: object, **__: object) -> None:
        try:
            stop(number)
        except KeyboardInterrupt as stopped:
            stop(TERM)  # is ignored: we clean up
            note(stopped, "run r could not be recorded as FAILED: gone")
            sys.exit(130)  # what typer makes of it

    monkeypatch.setattr(sys.modules["rankeval_spark.cli.main"], "app", app)  # the package gives that name to a function
    done = rankeval("run")

    assert done.code == code
    assert done.err == f"error: stopped by {signal.Signals(number).name}\nrun r could not be recorded as FAILED: gone\n"
    assert [thread is threading.main_thread() for thread in jobs] == [False]
    assert {signal.getsignal(each) for each in (TERM, INT)} == {signal.default_int_handler}


def test_a_second_ctrl_c_ends_the_cleaning_up() -> None:
    with stoppable() as ending:
        with pytest.raises(Stopped, match="stopped by SIGTERM"):
            stop(TERM)
        with pytest.raises(Stopped, match="stopped by SIGINT"):
            stop(INT)
        assert ending.stopped is not None
        assert ending.stopped.exit_code == 143


def test_an_error_that_a_signal_led_to_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(*_: object, **__: object) -> None:
        try:
            stop(TERM)
        except KeyboardInterrupt:
            failure = RuntimeError("Job 3 cancelled")
            note(failure, "run r could not be recorded as FAILED: gone")
            raise failure from None

    monkeypatch.setattr(sys.modules["rankeval_spark.cli.main"], "app", app)  # the package gives that name to a function
    done = rankeval("run")
    told = "error: stopped by SIGTERM\nrun r could not be recorded as FAILED: gone\n"
    assert (done.code, done.err) == (143, told)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(INT, signal.SIG_IGN)
    with stoppable() as ending:
        stop(INT)
        assert ending.stopped is None
        assert signal.getsignal(INT) is signal.SIG_IGN


def test_a_thread_runs_commands_without_handlers() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(rankeval("--version").code))
    thread.start()
    thread.join()
    assert codes == [0]


def test_who_stops_one_date_stops_them_all_and_sees_how_far_it_came() -> None:
    def be_stopped(_: date) -> NightResult:
        stop(TERM)
        raise AssertionError

    with stoppable():
        outcomes = filling.backfill_dates([FIRST, SECOND], be_stopped)
        first = next(outcomes)
        assert (first.evaluation_date, first.exit_code) == (FIRST, 143)
        with pytest.raises(Stopped):
            next(outcomes)


class Computed:
    """A date that is computed, and must not be published."""

    def __init__(self) -> None:
        self.causes: list[BaseException] = []

    def publish(self) -> NightResult:
        """Do what must not be done."""
        raise AssertionError

    def abandon(self, cause: BaseException) -> None:
        """Keep why."""
        self.causes.append(cause)


class PublishedOnceStopped(Computed):
    """A date that is stopped while its publish is waited for, which succeeds."""

    def __init__(self, is_computed: threading.Event) -> None:
        super().__init__()
        self.is_computed = is_computed

    def publish(self) -> NightResult:
        """Stop the process once the next date is computed."""
        assert self.is_computed.wait(60)
        time.sleep(0.2)  # until it is waited for
        os.kill(os.getpid(), TERM)
        time.sleep(0.2)
        return NightResult("nightly", FIRST, "run", {}, {})


def test_a_date_that_is_computed_when_a_signal_comes_is_not_published() -> None:
    is_computed, second = threading.Event(), Computed()

    def run(day: date) -> Computed:
        if day == FIRST:
            return PublishedOnceStopped(is_computed)
        is_computed.set()
        return second

    with stoppable():
        outcomes = filling.backfill_dates([FIRST, SECOND], run)
        seen = [(one.evaluation_date, one.exit_code) for one in (next(outcomes), next(outcomes))]
        with pytest.raises(Stopped):
            next(outcomes)
    assert seen == [(FIRST, 0), (SECOND, 143)]
    assert [str(one) for one in second.causes] == ["stopped by SIGTERM"]


class StoppedWhileDeleted:
    """An object that a signal meets while it is deleted, where Python drops the exception of the handler."""

    def __del__(self) -> None:
        """Be met."""
        stop(TERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_after_a_signal_that_python_dropped_stops_all_dates() -> None:
    def run(_: date) -> NightResult:
        deleted = StoppedWhileDeleted()
        del deleted
        message = "Job 3 cancelled"
        raise RuntimeError(message)

    with stoppable():
        outcomes = filling.backfill_dates([FIRST, SECOND], run)
        assert next(outcomes).exit_code == 143
        with pytest.raises(Stopped):
            next(outcomes)
    assert interruption(RuntimeError()) is None


def test_an_error_of_the_clean_up_after_a_signal_stops_all_dates() -> None:
    def run(_: date) -> NightResult:
        try:
            stop(TERM)
        finally:
            message = "the lock was lost"
            raise RuntimeError(message)
        raise AssertionError

    with stoppable():
        outcomes = filling.backfill_dates([FIRST, SECOND], run)
        assert next(outcomes).exit_code == 143
        with pytest.raises(Stopped):
            next(outcomes)


def test_the_signal_behind_an_error_is_found() -> None:
    def read() -> None:
        """End as pyspark does where a signal comes while it reads an answer."""
        try:
            raise Stopped(TERM)
        finally:
            message = "the job was cancelled"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError) as raised:
        read()
    assert str(interruption(raised.value)) == "stopped by SIGTERM"
    assert interruption(ValueError("x")) is None
    assert interruption(KeyboardInterrupt()) is not None


def test_codes_of_interruptions_are_those_of_a_shell() -> None:
    assert exit_code_of(KeyboardInterrupt()) == exit_code_of(Stopped(INT)) == 130
    assert (exit_code_of(Stopped(TERM)), exit_code_of(ValueError())) == (143, 1)
    assert (headline(KeyboardInterrupt()), headline(Stopped(TERM))) == ("stopped", "stopped by SIGTERM")


def test_what_libraries_log_is_kept_off_the_terminal() -> None:
    code = (
        "import logging; from rankeval_spark.cli.terminal import keep_libraries_quiet as quiet; "
        "quiet(); logging.error('a trace of py4j')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""

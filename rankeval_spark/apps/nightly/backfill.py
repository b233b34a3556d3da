"""Many nights in turn: one that fails does not stop the others, and one that is published can be left as it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import date, timedelta
from threading import Thread
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from rankeval_spark.errors import ConfigError, DriverLostError, ExitCode, Fault, exit_code_of, interruption

if TYPE_CHECKING:
    from rankeval_spark.apps.nightly.night import NightResult


SECONDS_TO_END: Final = 10
"""Patience with a publish when the backfill is to end, out of the half minute that schedulers give."""

MAX_DATES: Final = 3660  # ten years: more is a typing error in one of the dates


@dataclass(frozen=True)
class DateOutcome:
    """Outcome of one date: its result, the error that it ended with, or why it was not run."""

    evaluation_date: date
    result: NightResult | None = None
    error: BaseException | None = None
    seconds: float = 0.0  # how long it took, of a date that failed too
    kept: str | None = None  # what was published of the date before, and was left as it is

    @property
    def exit_code(self) -> int:
        """Exit code of this date alone."""
        if self.error is None:
            is_blocked = self.result is not None and self.result.is_blocked
            return ExitCode.GATE_FAILED if is_blocked else ExitCode.DONE
        return exit_code_of(self.error)


def dates_between(first: date, last: date) -> list[date]:
    """List the days from first to last; raises ConfigError if the last is before the first, or above ten years."""
    n_days = (last - first).days + 1
    if not 1 <= n_days <= MAX_DATES:
        expected = f"1 to {MAX_DATES:,} days, the first one first"
        fix = f"did you mean --from {last} --to {first}?" if n_days < 1 else ""
        raise ConfigError(Fault("--from, --to", f"{first} to {last}", expected, fix))
    return [first + timedelta(days=offset) for offset in range(n_days)]


def list_dates(first: date | None, last: date | None, days: Sequence[date]) -> list[date]:
    """List the dates of a backfill, those named first, each once; ConfigError without any, or for half a range."""
    if (first is None) != (last is None):
        found = "--from alone" if last is None else "--to alone"
        raise ConfigError(Fault("--from, --to", found, "both ends of the range"))
    between = dates_between(first, last) if first and last else []
    if not between and not days:
        raise ConfigError(Fault("backfill", "no date", "--from and --to, or --date, which may be repeated"))
    return list(dict.fromkeys([*days, *between]))


@runtime_checkable
class Prepared(Protocol):
    """A date that is computed and not published yet."""

    def publish(self) -> NightResult:
        """Publish it, from any thread."""

    def abandon(self, cause: BaseException) -> None:
        """End it without a publish, as failed for ``cause``."""


def backfill_dates(
    dates: Sequence[date], run: Callable[[date], NightResult | Prepared], *, kept: Mapping[date, str] | None = None
) -> Iterator[DateOutcome]:
    """Run each date in turn and yield what became of it; those of ``kept`` are not run.

    A prepared date is published while the next date is run; its outcome comes after that. No other date can be run
    after one that lost the driver: this one is the last, and a date that is prepared by then fails with it.
    Raises KeyboardInterrupt when one date is stopped, after the outcomes of all that are over.
    """
    publishing: _Publishing | None = None
    for day in dates:
        started, prepared = time.perf_counter(), None
        try:
            if kept and day in kept:
                outcome = DateOutcome(day, kept=kept[day])
            else:
                result = run(day)
                prepared = result if isinstance(result, Prepared) else None
                published = None if isinstance(result, Prepared) else result
                outcome = DateOutcome(day, result=published, seconds=time.perf_counter() - started)
        except (Exception, KeyboardInterrupt) as error:  # a date that fails must not stop the others; it is reported
            outcome = DateOutcome(day, error=interruption(error) or error, seconds=time.perf_counter() - started)
        is_stopped = isinstance(outcome.error, KeyboardInterrupt)
        found, stopped = ([], None) if publishing is None else publishing.outcomes(is_stopped=is_stopped)
        ending = stopped or _find_ending([*found, outcome])
        if prepared is not None and ending is not None:
            prepared.abandon(ending)
            outcome = DateOutcome(day, error=ending, seconds=time.perf_counter() - started)
        yield from found if prepared is not None and ending is None else [*found, outcome]
        if isinstance(ending, KeyboardInterrupt):
            raise ending
        if ending is not None:
            return
        publishing = None if prepared is None else _Publishing(day, started, prepared.publish)
    if publishing is not None:
        found, stopped = publishing.outcomes()
        yield from found
        if isinstance(ending := stopped or _find_ending(found), KeyboardInterrupt):
            raise ending


def _find_ending(outcomes: Sequence[DateOutcome]) -> BaseException | None:
    """Return the error after which no other date is run: an interruption, else that the driver was lost."""
    errors = [outcome.error for outcome in outcomes]
    kinds = (KeyboardInterrupt, DriverLostError)
    return next((error for kind in kinds for error in errors if isinstance(error, kind)), None)


class _Publishing:
    """A date that is published in a thread, which does not outlive the process; its seconds end with its publish."""

    def __init__(self, day: date, started: float, publish: Callable[[], NightResult]) -> None:
        self.day, self.started, self.future = day, started, Future[DateOutcome]()

        def work() -> None:
            result: NightResult | None = None
            error: BaseException | None = None
            try:
                result = publish()
            except BaseException as failure:
                error = failure
            self.future.set_result(DateOutcome(day, result, error, seconds=time.perf_counter() - started))

        Thread(target=work, name="publish", daemon=True).start()

    def outcomes(self, *, is_stopped: bool = False) -> tuple[list[DateOutcome], KeyboardInterrupt | None]:
        """Wait for its outcome, some seconds only if the backfill is to end; also return an interruption meanwhile."""
        stopped: KeyboardInterrupt | None = None
        try:
            wait([self.future], timeout=SECONDS_TO_END if is_stopped else None)
        except KeyboardInterrupt as interruption:
            stopped = interruption
            wait([self.future], timeout=SECONDS_TO_END)
        if self.future.done():
            return [self.future.result()], stopped
        seconds = time.perf_counter() - self.started
        return [DateOutcome(self.day, error=stopped, seconds=seconds)] if stopped else [], stopped


def exit_code(outcomes: Sequence[DateOutcome]) -> int:
    """Exit code of all dates: that of the first one that was not published, else 6 where a gate failed."""
    codes = [outcome.exit_code for outcome in outcomes if outcome.exit_code]
    return next((code for code in codes if code != ExitCode.GATE_FAILED), codes[0] if codes else ExitCode.DONE)

"""Many nights in turn: one that fails does not stop the others, and one that is published can be left as it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from rankeval_spark.errors import ConfigError, DriverLostError, Fault, exit_code_of

if TYPE_CHECKING:
    from rankeval_spark.app.night import NightResult

GATE_FAILED: Final = 6
"""Exit code where the results were published and a rule was not met."""

MOST_DATES: Final = 3660
"""Ten years: more is a typing error in one of the dates."""


@dataclass(frozen=True)
class Outcome:
    """What became of one date: its result, the error that it ended with, or why it was not run.

    Attributes
    ----------
    seconds : float
        How long it took, of a date that failed too.
    kept : str or None
        What was published of the date before, and was left as it is.
    """

    evaluation_date: date
    result: NightResult | None = None
    error: BaseException | None = None
    seconds: float = 0.0
    kept: str | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of this date alone."""
        if self.error is None:
            return GATE_FAILED if self.result is not None and self.result.is_blocked else 0
        return exit_code_of(self.error)


def dates_between(first: date, last: date) -> list[date]:
    """List the days from ``first`` to ``last``, both included.

    Raises
    ------
    ConfigError
        If the last day is before the first, or there are more than ten years of them.
    """
    n_days = (last - first).days + 1
    if not 1 <= n_days <= MOST_DATES:
        expected = f"1 to {MOST_DATES:,} days, the first one first"
        fix = f"did you mean --from {last} --to {first}?" if n_days < 1 else ""
        raise ConfigError(Fault("--from, --to", f"{first} to {last}", expected, fix))
    return [first + timedelta(days=offset) for offset in range(n_days)]


def chosen_dates(first: date | None, last: date | None, days: Sequence[date]) -> list[date]:
    """List the dates of a backfill: those named, in the order given, then the others of the range; each once.

    Raises
    ------
    ConfigError
        If there is no date at all, or only one end of the range.
    """
    if (first is None) != (last is None):
        found = "--from alone" if last is None else "--to alone"
        raise ConfigError(Fault("--from, --to", found, "both ends of the range"))
    between = dates_between(first, last) if first and last else []
    if not between and not days:
        raise ConfigError(Fault("backfill", "no date", "--from and --to, or --date, which may be repeated"))
    return list(dict.fromkeys([*days, *between]))


class Prepared(Protocol):
    """A date that is computed and not published yet."""

    def publish(self) -> NightResult:
        """Publish it, from any thread."""


def backfill(
    dates: Sequence[date],
    run: Callable[[date], NightResult | Prepared],
    *,
    kept: Mapping[date, str] | None = None,
) -> Iterator[Outcome]:
    """Run each date in turn and yield what became of it; those of ``kept`` are not run.

    What is only prepared is published while the next date is run; its outcome comes after that. Without a driver no
    other date can be run: that of which it was lost is the last one.

    Raises
    ------
    KeyboardInterrupt
        Whoever stops one date stops them all; its outcome is yielded before.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="publish") as publisher:
        for outcome in _outcomes(dates, run, kept or {}, publisher):
            yield outcome
            if isinstance(outcome.error, KeyboardInterrupt):
                raise outcome.error


def _outcomes(
    dates: Sequence[date],
    run: Callable[[date], NightResult | Prepared],
    kept: Mapping[date, str],
    publisher: ThreadPoolExecutor,
) -> Iterator[Outcome]:
    """Yield the outcomes in the order of the dates, each when it is certain."""
    publishing: _Publishing | None = None
    for day in dates:
        begun = Outcome(day, kept=kept[day]) if day in kept else _begun(day, run, publisher)
        found = [] if publishing is None else publishing.outcomes()
        found += [begun] if isinstance(begun, Outcome) else []
        yield from found
        if any(isinstance(one.error, DriverLostError | KeyboardInterrupt) for one in found):
            return
        publishing = None if isinstance(begun, Outcome) else begun
    if publishing is not None:
        yield from publishing.outcomes()


@dataclass(frozen=True)
class _Publishing:
    """A date whose publish is under way."""

    evaluation_date: date
    started: float
    future: Future[NightResult]

    def outcomes(self) -> list[Outcome]:
        """Wait for what becomes of it; an interruption meanwhile is one more outcome, because the publish goes on."""
        stopped: list[Outcome] = []
        while not self.future.done():
            try:
                wait([self.future])
            except KeyboardInterrupt as interruption:
                stopped.append(Outcome(self.evaluation_date, error=interruption))
        error = self.future.exception()
        result = None if error else self.future.result()
        own = Outcome(self.evaluation_date, result, error, seconds=time.perf_counter() - self.started)
        return [own, *stopped[:1]]


def _begun(
    day: date, run: Callable[[date], NightResult | Prepared], publisher: ThreadPoolExecutor
) -> Outcome | _Publishing:
    """Run a date, and have it published where it is only prepared."""
    started = time.perf_counter()
    try:
        result = run(day)
    except (Exception, KeyboardInterrupt) as error:  # a date that fails must not stop the others; it is reported
        return Outcome(day, error=error, seconds=time.perf_counter() - started)
    if hasattr(result, "publish"):
        return _Publishing(day, started, publisher.submit(result.publish))
    return Outcome(day, result=result, seconds=time.perf_counter() - started)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Exit code of all dates: that of the first one that was not published, else 6 where a gate failed."""
    codes = [one.exit_code for one in outcomes if one.exit_code]
    return next((code for code in codes if code != GATE_FAILED), codes[0] if codes else 0)

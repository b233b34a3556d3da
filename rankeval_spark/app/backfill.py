"""Many nights in turn: one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from rankeval_spark.errors import ConfigError, Fault, RankevalError

if TYPE_CHECKING:
    from rankeval_spark.app.night import NightResult

GATE_FAILED: Final = 6
"""Exit code where the results were published and a rule was not met."""

MOST_DATES: Final = 3660
"""Ten years: more is a typing error in one of the dates."""


@dataclass(frozen=True)
class Outcome:
    """What became of one date: its result, or the error that it ended with."""

    evaluation_date: date
    result: NightResult | None = None
    error: Exception | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of this date alone."""
        if self.error is None:
            return GATE_FAILED if self.result is not None and self.result.is_blocked else 0
        return self.error.exit_code if isinstance(self.error, RankevalError) else 1


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


def backfill(dates: list[date], run: Callable[[date], NightResult]) -> Iterator[Outcome]:
    """Run each date in turn and yield what became of it."""
    for day in dates:
        try:
            yield Outcome(day, result=run(day))
        except Exception as error:  # a date that fails must not stop the others; it is reported
            yield Outcome(day, error=error)


def exit_code(outcomes: list[Outcome]) -> int:
    """Exit code of all dates: that of the first one that failed."""
    return next((one.exit_code for one in outcomes if one.exit_code), 0)

"""A backfill publishes one date while it computes the next, and what depends on published dates waits for that."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

import deltalake
import pytest

from rankeval_spark.apps.nightly.backfill import backfill_dates
from rankeval_spark.apps.nightly.night import NightResult, PreparedNight, prepare_night
from rankeval_spark.apps.nightly.night_plan import NightPlan
from rankeval_spark.apps.progress import Progress
from rankeval_spark.config import load_config
from rankeval_spark.errors import DriverLostError, Fault, InputError, Stopped
from rankeval_spark.results import failpoints
from rankeval_spark.spark.session import on_demand
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, SECOND, Workspace, no_session

SECONDS = 60


def lost_driver() -> DriverLostError:
    return DriverLostError(Fault("Spark driver", "its JVM gone", "one that answers"))


class Signal(Progress):
    """Sets an event when a stage ends."""

    def __init__(self, stage: str, is_over: Event) -> None:
        self.stage, self.is_over = stage, is_over

    def end(self, stage: str, seconds: float, n_rows: int | None) -> None:  # noqa: ARG002 - as Progress has it
        """Set it where this is the stage."""
        if stage == self.stage:
            self.is_over.set()


def prepared(
    workspace: Workspace, day: date, *, stage: str = "", over: Event | None = None, after: PreparedNight | None = None
) -> PreparedNight:
    config = load_config(workspace.config)
    listener = Signal(stage, over or Event())
    return prepare_night(on_demand(no_session), NightPlan.of(config, day), progress=listener, publishing_first=after)


def test_next_date_is_scored_before_the_one_before_it_is_published(tmp_path: Path) -> None:
    """The publish begins when the next date was scored: one after the other, it never would."""
    workspace, is_scored = nights.workspace(tmp_path), Event()
    first = prepared(workspace, FIRST)
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(lambda: is_scored.wait(SECONDS) and first.publish())
        second = prepared(workspace, SECOND, stage="score", over=is_scored, after=first)
        assert publishing.result(SECONDS)  # its checks waited for it
    second.publish()
    events = deltalake.DeltaTable(f"{workspace.root}/runs").to_pyarrow_table().sort_by("recorded_at").to_pylist()
    assert [(row["evaluation_date"], row["status"]) for row in events] == [
        (FIRST, "RUNNING"),
        (SECOND, "RUNNING"),
        (FIRST, "PUBLISHING"),
        (FIRST, "PUBLISHED"),
        (SECOND, "PUBLISHING"),
        (SECOND, "PUBLISHED"),
    ]


def test_checks_of_a_date_see_the_dates_before_it(tmp_path: Path) -> None:
    """As many rows as on the three nights before: the third of these is published while the fourth is computed."""
    days = [FIRST + timedelta(days=number) for number in range(4)]
    workspace = nights.workspace(tmp_path)
    workspace.write("recommendations", nights.recommendations({day: nights.LISTS[FIRST] for day in days}))
    workspace.write("held_out", nights.held_out({day: nights.GAINS[FIRST] for day in days}))
    workspace.write("segments", nights.segments(days))
    done = rankeval("backfill", workspace.config, "--from", days[0], "--to", days[-1])
    assert done.code == 0, done.err
    checks = deltalake.DeltaTable(f"{workspace.root}/checks").to_pyarrow_table().to_pylist()
    volumes = {row["evaluation_date"] for row in checks if row["check"] == "volume"}
    assert volumes == {days[3]}


def test_date_whose_publish_fails_does_not_stop_the_next(tmp_path: Path) -> None:
    workspace = nights.workspace(tmp_path)
    begun: list[PreparedNight] = []

    def run(day: date) -> PreparedNight:
        begun.append(prepared(workspace, day, after=begun[-1] if begun else None))
        return begun[-1]

    with failpoints.armed("after_metrics"):
        outcomes = backfill_dates([FIRST, SECOND], run)
        failed = next(outcomes)
    assert isinstance(failed.error, failpoints.FailpointError)
    (published,) = outcomes
    assert published.exit_code == 0, published.error


class Begun:
    """A date that is prepared, and must not be abandoned."""

    def abandon(self, cause: BaseException) -> NoReturn:
        """Fail."""
        raise AssertionError from cause


class Slow(Begun):
    """A date that is published when an event is set."""

    def __init__(self, day: date, event: Event) -> None:
        self.day, self.event = day, event

    def publish(self) -> NightResult:
        """Wait for the event; the second date fails."""
        assert self.event.wait(SECONDS)
        if self.day == SECOND:
            raise InputError(Fault("inputs.held_out", "nothing", "rows"))
        return NightResult("nightly", self.day, "run", {}, {})


def test_outcomes_come_in_the_order_of_the_dates_each_when_it_is_certain() -> None:
    third, event, seen = date(2026, 1, 3), Event(), list[tuple[date, int]]()

    def run(day: date) -> Any:  # noqa: ANN401 - prepared, or done
        if day == SECOND:  # the first one waits for this
            event.set()
        if day == third:
            raise KeyboardInterrupt
        return Slow(day, event)

    outcomes = backfill_dates([FIRST, SECOND, third], run)
    for _ in range(3):
        outcome = next(outcomes)
        seen.append((outcome.evaluation_date, outcome.exit_code))
    assert seen == [(FIRST, 0), (SECOND, 4), (third, 130)]
    with pytest.raises(KeyboardInterrupt):
        next(outcomes)


def test_seconds_of_a_date_are_without_those_of_the_next() -> None:
    event = Event()
    event.set()

    def run(day: date) -> Any:  # noqa: ANN401 - prepared, or done
        if day == SECOND:
            time.sleep(0.5)
            raise InputError(Fault("inputs.held_out", "nothing", "rows"))
        return Slow(day, event)

    first, second = backfill_dates([FIRST, SECOND], run)
    assert first.seconds < 0.5 <= second.seconds


@pytest.mark.parametrize("ending", [Stopped(signal.SIGTERM), lost_driver()], ids=["a signal", "no driver"])
def test_a_computed_date_fails_with_the_one_before_it_and_returns_its_lock(
    tmp_path: Path, ending: BaseException
) -> None:
    workspace = nights.workspace(tmp_path)

    class Ending(Begun):
        def publish(self) -> NoReturn:
            raise ending

    def run(day: date) -> Any:  # noqa: ANN401 - prepared
        return Ending() if day == FIRST else prepared(workspace, day)

    outcomes = backfill_dates([FIRST, SECOND, date(2026, 1, 3)], run)
    seen = [next(outcomes) for _ in range(2)]
    assert [(one.evaluation_date, one.error) for one in seen] == [(FIRST, ending), (SECOND, ending)]
    with pytest.raises(Stopped) if isinstance(ending, Stopped) else pytest.raises(StopIteration):
        next(outcomes)
    events = deltalake.DeltaTable(f"{workspace.root}/runs").to_pyarrow_table().sort_by("recorded_at").to_pylist()
    assert [(row["evaluation_date"], row["status"]) for row in events] == [(SECOND, "RUNNING"), (SECOND, "FAILED")]
    assert events[1]["error"]["type"] == type(ending).__name__
    assert not [*Path(workspace.root, "_staging").glob("*")]
    prepared(workspace, SECOND).publish()


def test_a_date_that_is_stopped_is_shown_where_the_publish_before_it_is_stopped_too() -> None:
    class Ending(Begun):
        def publish(self) -> NoReturn:
            raise Stopped(signal.SIGTERM)

    def run(day: date) -> Any:  # noqa: ANN401 - prepared, or done
        if day == SECOND:
            raise Stopped(signal.SIGTERM)
        return Ending()

    outcomes = backfill_dates([FIRST, SECOND], run)
    assert [(one.evaluation_date, one.exit_code) for one in (next(outcomes), next(outcomes))] == [
        (FIRST, 143),
        (SECOND, 143),
    ]
    with pytest.raises(Stopped):
        next(outcomes)


def test_waiting_ends_for_a_night_whose_publish_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = prepared(nights.workspace(tmp_path), FIRST)

    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError

    monkeypatch.setattr(first.recorded, "publish", fail)
    with pytest.raises(RuntimeError):
        first.publish()
    first.wait()

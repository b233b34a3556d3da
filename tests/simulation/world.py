"""A world of drivers that take turns: virtual time, one task at a time, and faults that a seed chooses.

Each task is a greenlet. It hands the turn over when it sleeps or sends a request; the task that wakes first goes on.
So the seed decides the order of all that happens, and the same seed gives the same schedule.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from greenlet import getcurrent, greenlet

from rankeval_spark.results.locks import Process

START: Final = datetime(2026, 1, 10, tzinfo=UTC)  # the virtual date at which every schedule starts
MAX_TURNS: Final = 60_000
TAKEN: Final = "its lock is taken"
COMMITTED: Final = "another one commits to a table"
LOOKED_AT: Final = "another one looks at its lock"
AWAITED: Final = ("", TAKEN, TAKEN, LOOKED_AT, LOOKED_AT, COMMITTED)
KINDS: Final[Mapping[str, tuple[int, int]]] = {
    "request": (130, 30),
    "change": (26, 8),  # of locks and logs
    "commit": (8, 3),  # to the published tables and `runs`
    "held": (26, 10),  # any, under the publish lock
}
"""Kinds of requests at which something may happen, with the highest number of such a request and the likely one."""


class KilledError(BaseException):
    """Raised in a driver that died, wherever it is; nothing that it does afterwards has an effect."""


class ViolationError(AssertionError):
    """Raised by the world, outside of all drivers, when the state of the store breaks an invariant."""

    trace: Sequence[str] = ()  # what happened


@dataclass
class Faults:
    """What may go wrong in a schedule: each kind in some schedules only, so that they do not mask each other."""

    slow: float = 0.0  # share of the requests that take seconds, or minutes
    refused: float = 0.0  # answered by 503, repeated by the client, and given up now and then
    lost: float = 0.0  # done, without an answer: repeated by the client, or given up
    late: float = 0.0  # given up or repeated by the client, and done later
    dies: float = 0.0  # chance of a driver to die at some request, before or after it is done
    suspended: float = 0.0  # chance of a driver to stand still at some request for up to 15 minutes
    jumps: float = 0.0  # chance of a clock to jump at some request, by up to ten minutes
    away: float = 0.0  # chance of the store to be out of reach for up to three minutes
    swept: float = 0.0  # chance of a driver to stand still while somebody deletes all that is staged

    @classmethod
    def drawn(cls, random: Random) -> Faults:
        """Draw the kinds of a schedule."""
        rates = {"slow": 0.03, "refused": 0.05, "lost": 0.05, "late": 0.03}
        chances = {"dies": 0.6, "suspended": 0.8, "jumps": 0.5, "away": 0.5, "swept": 0.3}
        shares = {"suspended": 0.6}
        return cls(**{name: at for name, at in (rates | chances).items() if random.random() < shares.get(name, 0.35)})


@dataclass
class Driver:
    """A process that works on the root, on some machine."""

    name: str
    world: World
    process: Process
    skew: float = 0.0  # of its clock, in seconds
    is_dead: bool = False
    is_done: bool = False  # its program has ended
    suspended_until: float = 0.0
    awaits: str = ""  # what ends its suspension early
    n_requests: Counter[str] = field(default_factory=Counter)  # by kind
    incidents: dict[tuple[str, int], str] = field(default_factory=dict)  # by kind and number of the request
    was_disturbed: bool = False  # whether a fault may have ended it
    given_up: set[str] = field(default_factory=set)  # locks that it failed to write once: they may stay unreleased
    hindered_at: float = -1e9  # when a fault last kept it from its work
    storage: Any = None  # its ObjectStorage
    error: BaseException | None = None

    def meets(self, incident: str, kind: str, *numbers: int) -> None:
        """Let something happen at one of its requests of a kind, with one of some numbers."""
        random = self.world.random
        self.incidents[kind, random.choice(numbers or (int(random.triangular(1, *KINDS[kind])),))] = incident
        self.was_disturbed = True

    def disturb(self, seconds: float = 0.0) -> None:
        """Note that a fault hinders it for some time."""
        self.was_disturbed, self.hindered_at = True, max(self.hindered_at, self.world.now + seconds)

    def is_hindered(self, since: float) -> bool:
        """Return whether a fault may have kept it from a heartbeat since a time."""
        return max(self.hindered_at, self.suspended_until) >= since

    def clock(self) -> float:
        """Return the seconds since the start by its own clock."""
        return self.world.now + self.skew


@dataclass(order=True)
class Task:
    """Something that a driver does: its program, or the heartbeat of a lock."""

    wakes: float
    order: int
    driver: Driver = field(compare=False)
    greenlet: greenlet = field(compare=False)
    due: float = field(compare=False)  # when it wakes unless its driver is suspended


class World:
    """All drivers, their tasks and the time."""

    current: Task
    violation = ""  # the first invariant that was broken

    def __init__(self, seed: object, faults: Faults | None = None) -> None:
        self.random = Random(str(seed))
        self.faults = faults or Faults.drawn(self.random)
        self.now = 0.0
        self.away_until = 0.0
        self.drivers: list[Driver] = []
        self.trace: list[str] = []
        self._tasks: list[Task] = []
        self._orders = count()
        self._hub = getcurrent()

    def driver(self, name: str, machine: str, *, starts: float) -> Driver:
        """Add a driver, and choose what happens to it."""
        made = Driver(name, self, Process(machine, len(self.drivers) + 1, name))
        for incident in ("dies", "suspended", "jumps", "away", "swept"):
            if self.random.random() < getattr(self.faults, incident):
                made.meets(incident, self.random.choice([*KINDS]))
        if self.faults.jumps:
            made.skew = self.random.uniform(-600, 600)
        self.drivers.append(made)
        self.say(f"{name} starts at {starts:.1f} on {machine}: {made.incidents}")
        return made

    def spawn(self, driver: Driver, program: Callable[[], object], delay: float = 0.0) -> None:
        """Start a task of a driver."""

        def run() -> None:
            try:
                program()
            except KilledError:
                pass
            except Exception as error:
                driver.error = error
                self.say(f"{driver.name} ends with {type(error).__name__}: {str(error)[:200]}")

        at = self.now + delay
        heapq.heappush(self._tasks, Task(at, next(self._orders), driver, greenlet(run, self._hub), at))

    def run(self) -> None:
        """Let all tasks take turns until none is left."""
        turns = 0
        while self._tasks:
            task = heapq.heappop(self._tasks)
            turns += 1
            if turns > MAX_TURNS:
                self.require(False, f"{task.driver.name} does not end: {MAX_TURNS} turns, {self.now:.0f} seconds")
            if self.violation:
                raise ViolationError(self.violation)
            driver = task.driver
            if not driver.is_dead and driver.suspended_until > task.wakes:
                task.wakes = driver.suspended_until
                heapq.heappush(self._tasks, task)
                continue
            self.now, self.current = max(self.now, task.wakes), task
            if not driver.is_dead:
                task.greenlet.switch()
            elif task.greenlet:  # it has begun
                task.greenlet.throw(KilledError)
        if self.violation:
            raise ViolationError(self.violation)

    def sleep(self, seconds: float) -> None:
        """Hand the turn over, and go on after some seconds; KilledError if the driver died meanwhile."""
        task = self.current
        if task.driver.is_dead:
            raise KilledError
        task.wakes = task.due = self.now + seconds
        task.order = next(self._orders)
        heapq.heappush(self._tasks, task)
        self._hub.switch()
        if task.driver.is_dead:
            raise KilledError

    def suspend(self, driver: Driver, at_most: float, awaits: str = "") -> None:
        """Let a driver stand still for some seconds, or until shortly after something happens."""
        driver.suspended_until, driver.awaits = self.now + at_most, awaits

    def is_awaited(self, what: str) -> bool:
        """Return whether a driver that stands still awaits this."""
        return any(driver.awaits == what and driver.suspended_until > self.now for driver in self.drivers)

    def happened(self, what: str, driver: Driver) -> None:
        """Wake a driver soon if it awaits this."""
        if driver.awaits != what or driver.suspended_until <= self.now:
            return
        longest = self.random.choice((0.0, 0.1, 1.0, 10.0, 100.0))
        self.suspend(driver, self.random.uniform(0, longest))
        for task in self._tasks:
            if task.driver is driver:
                task.wakes = max(task.due, driver.suspended_until)
        heapq.heapify(self._tasks)
        self.say(f"{driver.name} wakes at {driver.suspended_until:.2f}: {what}")

    def later(self, seconds: float, effect: Callable[[], object]) -> None:
        """Let something happen that no driver waits for, such as a request that was given up."""
        nobody = Driver("the network", self, Process("", 0, ""))
        self.spawn(nobody, effect, seconds)

    def require(self, holds: object, violation: str) -> None:
        """Note that an invariant is broken, at which the schedule ends."""
        if not holds and not self.violation:
            self.violation = violation
            self.say(f"BROKEN: {violation}")

    def say(self, what: str) -> None:
        """Keep a line for whoever reads a failed schedule."""
        self.trace.append(f"{self.now:8.2f}  {what}")

    def stop(self) -> None:
        """End what is left of all tasks."""
        for driver in self.drivers:
            driver.is_dead = True
        for task in self._tasks:
            self.current = task
            if task.greenlet:
                task.greenlet.throw(KilledError)
        self._tasks.clear()


class Mutex:
    """A lock between the tasks of a driver."""

    def __init__(self, world: World) -> None:
        self._world, self._is_taken = world, False

    def __enter__(self) -> None:
        while self._is_taken:
            self._world.sleep(0.7)
        self._is_taken = True

    def __exit__(self, *_: object) -> None:
        self._is_taken = False


class Signal:
    """An event between the tasks of a driver."""

    def __init__(self, world: World) -> None:
        self._world, self._is_set = world, False

    def set(self) -> None:
        self._is_set = True

    def wait(self, seconds: float) -> bool:
        if not self._is_set:
            self._world.sleep(seconds)
        return self._is_set


def turns_of(world: World) -> Any:  # noqa: ANN401 - in place of modules
    """Return what stands for the modules ``time`` and ``threading``, and has a ``ThreadPoolExecutor``."""

    def map_in_any_order(call: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
        given = list(values)
        made = {place: call(given[place]) for place in world.random.sample(range(len(given)), len(given))}
        return [made[place] for place in range(len(given))]

    def thread(target: Callable[[], object], **_: object) -> Any:  # noqa: ANN401 - has only `start`
        return SimpleNamespace(start=lambda: world.spawn(world.current.driver, target))

    return SimpleNamespace(
        monotonic=lambda: world.now,  # it runs on while a driver is suspended
        time=lambda: START.timestamp() + world.current.driver.clock(),
        # Longer than asked, as on a busy machine, so that whoever waits for minutes asks less often.
        sleep=lambda seconds: world.sleep(max(seconds, world.random.uniform(1, 15))),
        Lock=partial(Mutex, world),
        Event=partial(Signal, world),
        Thread=thread,
        ThreadPoolExecutor=lambda _: nullcontext(SimpleNamespace(map=map_in_any_order)),
    )


def clock_of(world: World) -> Any:  # noqa: ANN401 - in place of a class
    """Return what stands for the class ``datetime``: the time by the clock of the current driver."""
    return SimpleNamespace(now=lambda _: START + timedelta(seconds=world.current.driver.clock()))

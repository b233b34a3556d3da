"""Seeded schedules: two or three drivers on one root in a simulated store, and what must hold whatever happens.

``python -m tests.simulation SEED`` runs one and prints what its drivers did.
"""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import secrets
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import cache, partial
from random import Random
from types import ModuleType
from typing import Any, Final, Literal
from unittest import mock

import deltalake

from rankeval_spark import schemas
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.results import (
    Results,
    ResultsStore,
    journal,
    locks,
    maintenance,
    object_storage,
    publish,
    results_store,
    run,
    tables,
)
from rankeval_spark.results.locks import LockTimes
from tests.simulation.invariants import TABLES, Invariants
from tests.simulation.opened import Tables
from tests.simulation.store import SimulatedStore, Stored
from tests.simulation.world import COMMITTED, Driver, Faults, ViolationError, World, clock_of, turns_of
from tests.spark.results import nights

ROOT: Final = "s3://simulated/results"
QUIET: Final = Faults()
NIGHTS: Final = (date(2026, 1, 1), date(2026, 1, 2))
USERS: Final = ("ann", "bob", "eve", "joe", "kim")
SMALL: Final = (schemas.LISTS, schemas.METRICS)  # published tables of a schedule: one of users and one of means
TIMES: Final = LockTimes(poll=2.0)


class Schedule:
    """One schedule; ``plant`` puts a fault into the product."""

    def __init__(self, seed: object, objects: dict[str, Stored], faults: Faults | None = None) -> None:
        self.seed = seed
        self.world = World(seed, faults)
        self.objects = dict(objects)
        self.invariants = Invariants(self.world, self.objects)
        # Both take a third of the time.
        self.checkpoint_every = 3 if self.world.random.random() < 0.15 else 100
        self.merge_every = 4 if self.world.random.random() < 0.25 else 100
        self.nights = NIGHTS if self.world.random.random() < 0.6 else self.world.random.sample(NIGHTS, 1)
        self._n_runs = 0

    def add(self, program: Callable[[Driver], object], *, machine: str, starts: float) -> Driver:
        """Add a driver with a program."""
        driver = self.world.driver(f"d{len(self.world.drivers) + 1}", machine, starts=starts)
        store = SimulatedStore(self.world, driver, self.objects, self.invariants)

        def run_program() -> None:
            driver.storage = object_storage.ObjectStorage(f"{ROOT}/{driver.name}", store)
            driver.storage.checkpoint_every, driver.storage.merge_every = self.checkpoint_every, self.merge_every
            try:
                program(driver)
            finally:
                driver.is_done = True

        self.world.spawn(driver, run_program, starts)
        return driver

    def draw(self) -> None:
        """Let drivers do what the seed says."""
        random = self.world.random
        machines = ("here",) if random.random() < 0.5 else ("here", "there")
        if random.random() < 0.4:  # a publish stands still while others want its lock
            if random.random() < 0.6:
                self.add(self.run, machine="here", starts=0.0).meets("suspended", "held")
            else:  # after its intent, and before it commits to both tables
                run_second = partial(self.run, day=NIGHTS[1])
                self.add(run_second, machine="here", starts=0.0).meets("swept", "commit", 3, 4)
            for program in random.sample((self.run, self.maintain, self.maintain), random.choice((1, 1, 2))):
                self.add(program, machine=random.choice(machines), starts=random.uniform(1, 60))
            return
        for _ in range(random.choice((2, 2, 2, 3))):
            program = random.choices((self.run, self.maintain, self.read), (6, 2, 2))[0]
            starts = random.choice((0.0, random.uniform(0, 6), random.uniform(0, 60)))
            self.add(program, machine=random.choice(machines), starts=starts)

    def run(self, driver: Driver, day: date | None = None) -> None:
        """Publish a night, as the command `run` does."""
        random = self.world.random
        day = day or random.choice(self.nights)
        self._n_runs += 1
        facts = nights.facts(f"seed-{self.seed}-{self._n_runs}", day, measures=nights.MEASURES[:1])
        self.world.say(f"{driver.name} runs {day} as {facts.run_id}")
        ranks = dict.fromkeys(random.sample(USERS, random.randint(1, len(USERS))), 1)
        rows = {schemas.LISTS: nights.list_rows(ranks), schemas.METRICS: nights.metric_rows(ranks)[:1]}
        store = ResultsStore.open(ROOT, times=TIMES)
        on_busy: Literal["wait", "fail"] = "wait" if random.random() < 0.75 else "fail"
        with store.run_lock(facts.evaluation, day, facts.run_id, on_busy=on_busy):
            started = store.start(facts)
            try:
                self.world.sleep(random.choice((0.0, random.uniform(0, 30), random.uniform(0, 900))))  # it computes
                for schema in random.sample(SMALL, len(SMALL)):
                    started.stage(schema.name, nights.table(schema, rows[schema]))
                started.audit()
                started.publish()
            except Exception as error:
                started.fail("publish", error)
                raise
        done = [(event["run_id"], event["status"]) for event in self.invariants.events]
        self.world.require((facts.run_id, journal.PUBLISHED) in done, f"{facts.run_id} returned, but is not published")
        self.world.say(f"{driver.name} published {day}")

    def maintain(self, driver: Driver) -> None:
        """Maintain the root, as the command `maintain` does."""
        random = self.world.random
        steps = ResultsStore.open(ROOT, times=TIMES).maintenance()
        todo: list[Callable[[], object]] = [
            steps.remove_staging,
            lambda: steps.keep_days(random.choice((0, 1))),
            lambda: steps.compact("lists"),
            lambda: steps.compact("runs"),
        ]
        for step in random.sample(todo, random.randint(1, 2)):
            step()
        self.world.say(f"{driver.name} maintained")

    def read(self, driver: Driver) -> None:
        """Read the results a few times; each time all tables are as of one moment, whatever is published meanwhile."""
        for _ in range(3):
            results, before = Results(ROOT), self.invariants.published()
            try:
                results.table_versions()
            except (ConfigError, InputError):
                if self.invariants.published():
                    raise
                continue  # nothing is published yet
            is_sure = before == self.invariants.published()
            self._pause(driver)
            found = {table: results.arrow(table, columns=["evaluation_date", "run_id"]).to_pylist() for table in TABLES}
            runs = {table: {(row["evaluation_date"], row["run_id"]) for row in rows} for table, rows in found.items()}
            lacking = runs["metrics"] - runs["lists"]
            is_whole = len(dict(runs["metrics"])) == len(runs["metrics"]) and runs["lists"] <= runs["metrics"]
            self.world.require(is_whole, f"{driver.name} reads {runs}")
            seen = {str(day): run_id for day, run_id in runs["metrics"]}
            self.world.require(not is_sure or seen == before, f"{driver.name} reads {seen}, not {before} as it began")
            if lacking:
                deleted = {(night, "lists") for (_, night), names in results.deleted().items() if "lists" in names}
                self.world.require(
                    all((night, "lists") in deleted for night, _ in lacking), f"{driver.name} misses rows: {lacking}"
                )

    def _pause(self, driver: Driver) -> None:
        """Let a reader wait for some seconds, or for the next commit to a table."""
        random = self.world.random
        if random.random() < 0.5:
            self.world.suspend(driver, random.uniform(10, 600), COMMITTED)
        self.world.sleep(random.uniform(0, 10))

    def converge(self) -> None:
        """Let the store be well again, and check that a rerun of a night leaves it as it should be."""
        world = self.world
        for driver in world.drivers:
            if driver.error and not driver.was_disturbed and not self._is_excused(driver.error):
                world.require(False, f"{driver.name} failed without a fault: {driver.error!r}")
        world.faults, world.away_until = QUIET, 0.0
        world.now += 1000
        day = world.random.choice(NIGHTS)
        last = self.add(lambda driver: self.run(driver, day), machine="later", starts=0.0)
        last.was_disturbed, last.skew = False, max(driver.skew for driver in world.drivers)
        world.run()
        world.require(last.error is None and not last.is_dead, f"a rerun failed: {last.error!r}")
        for table in TABLES:
            self.invariants.check_table(table, self.invariants.newest(table))
        left = [key for key in self.objects if key.startswith("_staging/") and str(day) in key]
        world.require(not left, f"a rerun leaves {left[:1]}")
        if world.violation:
            raise ViolationError(world.violation)

    def _is_excused(self, error: BaseException) -> bool:
        return type(error).__name__ == "ResultsBusyError"


def broken(seeds: Iterable[int]) -> Iterator[str]:
    """Run schedules in several processes; yield what is broken, each with the command that repeats it."""
    folder()  # one for all processes, which this one removes
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), _prepare) as pool:
        yield from filter(None, pool.imap_unordered(_broken, seeds, chunksize=10))


def _prepare() -> None:
    """Spare a process what only takes time: several threads of deltalake, and many looks for garbage."""
    os.environ["TOKIO_WORKER_THREADS"] = "1"
    gc.set_threshold(50_000)


def _broken(seed: int) -> str:
    try:
        run_schedule(seed)
    except ViolationError as error:
        return "; ".join([str(error), *getattr(error, "__notes__", ["in the root of all schedules"])])
    return ""


def run_schedule(
    seed: object, draw: Callable[[Schedule], object] | None = None, faults: Faults | None = None
) -> Schedule:
    """Run the schedule of a seed; ViolationError, with the command that repeats it, if an invariant is broken.

    A test may choose drivers by ``draw``, and faults.
    """
    is_new = Random(f"root {seed}").random() < 0.1
    objects, start = published_root()
    schedule, opened = Schedule(seed, {} if is_new else objects, faults), Tables(start)
    with simulated(schedule.world, opened):
        (draw or Schedule.draw)(schedule)
        try:
            schedule.world.run()
            schedule.converge()
        except ViolationError as error:
            error.trace = schedule.world.trace
            error.add_note(f"repeat it by: python -m tests.simulation {seed}")
            raise
        finally:
            schedule.world.stop()
            opened.remove()
            for driver in schedule.world.drivers:
                if driver.storage:
                    shutil.rmtree(driver.storage.root, ignore_errors=True)
    return schedule


@cache
def folder() -> str:
    """Make a folder for the mirrors of drivers, in memory if there is one: there they cost half as much."""
    made = tempfile.mkdtemp(prefix="rankeval-schedules-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def published_root() -> tuple[dict[str, Stored], Tables]:
    """Return the objects of a root in which one night is published, and its tables."""
    schedule, opened = Schedule("root", {}, QUIET), Tables()
    schedule.checkpoint_every = schedule.merge_every = 100
    with simulated(schedule.world, opened):
        schedule.add(lambda driver: schedule.run(driver, NIGHTS[0]), machine="here", starts=0.0)
        schedule.world.run()
    return {key: stored._replace(at=-1000.0) for key, stored in schedule.objects.items()}, opened


@contextmanager
def simulated(world: World, opened: Tables) -> Iterator[None]:
    """Let the product run in a world: its clocks, its processes, its threads, and a small set of tables."""
    turns, clock = turns_of(world), clock_of(world)
    small = (schemas.RUNS, *SMALL)
    parts: Sequence[tuple[ModuleType | type, str, Any]] = (
        (object_storage, "open_objects", lambda _: world.current.driver.storage),
        (object_storage, "ThreadPoolExecutor", turns.ThreadPoolExecutor),
        (object_storage, "time", turns),
        (locks, "time", turns),
        (locks, "threading", turns),
        (locks, "_released", {}),  # by address, of which each driver has its own: a process knows what it released
        (locks, "this_process", lambda: world.current.driver.process),
        (locks, "this_machine", lambda: world.current.driver.process.machine),
        (locks.Process, "is_gone", lambda process: _is_gone(world, process)),
        *((module, "datetime", clock) for module in (locks, journal, maintenance)),
        (deltalake, "DeltaTable", opened.open),
        (tempfile, "tempdir", folder()),
        (uuid, "uuid4", lambda: uuid.UUID(int=world.random.getrandbits(128))),
        (secrets, "token_hex", lambda n: world.random.randbytes(n).hex()),
        (schemas, "PUBLISHED", SMALL),
        *((module, "TABLES", small) for module in (tables, results_store)),
        *((module, "OF_USERS", ("lists",)) for module in (run, publish, maintenance)),
    )
    with ExitStack() as stack:
        for owner, name, value in parts:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def _is_gone(world: World, process: locks.Process) -> bool:
    here = world.current.driver.process
    known = next((driver for driver in world.drivers if driver.process.pid == process.pid), None)
    return process.machine == here.machine and (known is None or known.is_dead or known.is_done)

"""Faults of a store and of its drivers: nothing is lost, nothing is seen in part, and the next run repairs the rest."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.errors import ResultsBusyError
from rankeval_spark.results import Results, ResultsStore, locks
from tests.spark.results import nights
from tests.spark.results.nights import FIRST, SECOND
from tests.stores import proxy as faults
from tests.stores.proxy import Fate, once
from tests.support.processes import held_at, started

if TYPE_CHECKING:
    from tests.stores.conftest import Drivers
    from tests.stores.proxy import Proxy

CHANGED: Final[nights.Ranks] = {"ann": 2, "kim": 1}
POINTS: Final = (
    *("before_staging", "after_staging", "after_list", "after_intent"),
    *(f"after_{schema.name}" for schema in schemas.PUBLISHED),
    "before_marker",
)
IN_CI: Final = ("before_marker",)

CHILD: Final = f"""
import sys
from tests.spark.results import nights
nights.publish(sys.argv[1], nights.facts(sys.argv[2]), {CHANGED!r})
print("published")
"""

RACER: Final = """
import sys, time
from datetime import timedelta
from pathlib import Path
from rankeval_spark.errors import ResultsBusyError
from tests.spark.results import nights

root, name, others, meetings, n_races = *sys.argv[1:4], Path(sys.argv[4]), int(sys.argv[5])
for number in range(n_races):
    day = nights.FIRST + timedelta(days=number)
    Path(meetings, f"{number}-{name}").touch()
    while not Path(meetings, f"{number}-{others}").exists():
        time.sleep(0.001)
    try:
        nights.publish(root, nights.facts(f"{day}-{name}", day))
    except ResultsBusyError:
        continue
    print(f"{day}-{name}", flush=True)
"""


def publish(drivers: Drivers, run_id: str, day: date = FIRST, proxy: Proxy | None = None) -> None:
    with drivers.driving(proxy):
        nights.publish(drivers.root, nights.facts(run_id, day), CHANGED if day == FIRST else nights.RANKS)


def seen(drivers: Drivers) -> dict[date, str]:
    """Return the run of each night as a new reader sees it; of each night and table there is one, and no key twice."""
    with drivers.driving():
        results = Results(drivers.root)
        found: dict[date, set[str]] = {}
        for schema in schemas.PUBLISHED:
            rows = results.published(schema.name)
            keys = Counter(tuple(map(str, row.values())) for row in rows.select(list(schema.key)).to_pylist())
            assert set(keys.values()) <= {1}, f"{schema.name}: a key twice"
            for row in rows.select([C.EVALUATION_DATE, C.RUN_ID]).to_pylist():
                found.setdefault(row[C.EVALUATION_DATE], set()).add(row[C.RUN_ID])
    assert all(len(runs) == 1 for runs in found.values()), found
    return {day: min(runs) for day, runs in found.items()}


def statuses(drivers: Drivers, run_id: str) -> list[str]:
    with drivers.driving():
        events = Results(drivers.root).runs().sort_by("recorded_at").to_pylist()
    return [event["status"] for event in events if event[C.RUN_ID] == run_id]


def repair(drivers: Drivers) -> None:
    """Publish another night, then the first one again: both are there, and whole."""
    publish(drivers, "other", SECOND)
    assert seen(drivers)[SECOND] == "other"
    publish(drivers, "again")
    assert seen(drivers) == {FIRST: "again", SECOND: "other"}
    with drivers.driving() as storage:
        assert storage.names("_staging") == []


@pytest.mark.parametrize(
    "n_requests", [pytest.param(n, marks=[pytest.mark.in_ci] if n == 63 else []) for n in range(3, 90, 3)]
)
def test_a_driver_that_dies_between_two_requests_leaves_whole_runs(drivers: Drivers, n_requests: int) -> None:
    publish(drivers, "first")
    proxy = drivers.proxy()
    proxy.fate = faults.dead_after(n_requests)
    try:
        publish(drivers, "dead", proxy=proxy)
    except (OSError, Exception):
        is_over = False
    else:
        is_over = True
    found = seen(drivers)
    assert found in ({FIRST: "first"}, {FIRST: "dead"})
    if is_over:
        assert found == {FIRST: "dead"}
    repair(drivers)


@pytest.mark.parametrize("point", [pytest.param(p, marks=[pytest.mark.in_ci] if p in IN_CI else []) for p in POINTS])
def test_a_driver_that_is_killed_leaves_whole_runs(drivers: Drivers, point: str, tmp_path: Path) -> None:
    publish(drivers, "first")
    environment = {**drivers.server.environment(), **held_at(point)}
    with started([sys.executable, "-c", CHILD, drivers.root, "killed"], tmp_path, environment) as running:
        running.wait_until_it_says(f"failpoint {point} holds")
        running.kill()
    assert seen(drivers) == {FIRST: "first"}
    publish(drivers, "other", SECOND)
    is_announced = point not in POINTS[:3]
    assert seen(drivers) == {FIRST: "killed" if is_announced else "first", SECOND: "other"}
    repair(drivers)
    assert statuses(drivers, "killed")[-1] == ("PUBLISHED" if is_announced else "FAILED")


LOSSES: Final = {
    "of a commit": ("PUT", r"/metrics/_delta_log/\d+\.json"),
    "of an intent": ("PUT", r"/runs/_delta_log/\d+4\.json"),
    "of a marker": ("PUT", r"/runs/_delta_log/\d+5\.json"),
    "of a lock": ("PUT", r"/_locks/publish"),
    "of a night's lock": ("PUT", r"/_locks/run-"),
    "of a probe": ("PUT", r"/_locks/probe-"),
    "of a file": ("PUT", r"/lists/evaluation.*\.parquet"),
    "of a list": ("PUT", r"/_staging/"),
    "of a checkpoint": ("PUT", r"checkpoint"),
    "of a deletion": ("POST", r"delete"),
}


@pytest.mark.parametrize(
    "what", [pytest.param(w, marks=[pytest.mark.in_ci] if w in ("of a commit", "of a lock") else []) for w in LOSSES]
)
def test_an_answer_that_is_lost_changes_nothing(drivers: Drivers, what: str) -> None:
    publish(drivers, "first")
    proxy = drivers.proxy()
    proxy.fate = once(faults.LOST, *LOSSES[what])
    publish(drivers, "second", proxy=proxy)
    assert proxy.fate(*LOSSES[what][:1], "") == faults.ANSWERED
    assert seen(drivers) == {FIRST: "second"}
    assert statuses(drivers, "second") == ["RUNNING", "PUBLISHING", "PUBLISHED"]
    with drivers.driving() as storage:
        versions = ResultsStore.open(drivers.root).tables.latest_versions(s.name for s in schemas.PUBLISHED)
        assert versions == dict(Results(drivers.root).table_versions()), "no commit was made twice"
        assert storage.names("_staging") == []


def after(seconds: float, fate: Fate) -> Fate:
    begun = time.monotonic()
    return lambda method, path: fate(method, path) if time.monotonic() - begun > seconds else faults.ANSWERED


@pytest.mark.parametrize("seconds", [pytest.param(4, marks=pytest.mark.in_ci), 20])
@pytest.mark.parametrize("at", ["begin", "publish"])
def test_a_store_that_is_gone_for_a_while_delays_a_night(drivers: Drivers, seconds: float, at: str) -> None:
    proxy, gone = drivers.proxy(), list[float]()

    def fate(_method: str, path: str) -> str:
        if not gone and (at == "begin" or "_locks/publish" in path):
            gone.append(time.monotonic() + seconds)
        return faults.AWAY if gone and time.monotonic() < gone[0] else faults.ANSWERED

    proxy.fate = fate
    publish(drivers, "patient", proxy=proxy)
    assert seen(drivers) == {FIRST: "patient"}
    assert statuses(drivers, "patient") == ["RUNNING", "PUBLISHING", "PUBLISHED"]


@pytest.mark.in_ci
def test_a_store_that_refuses_a_tenth_of_all_requests_delays_a_night(drivers: Drivers) -> None:
    proxy = drivers.proxy()
    proxy.fate = faults.share(faults.SLOW_DOWN, 0.1)
    for run_id in ("first", "second"):
        publish(drivers, run_id, proxy=proxy)
        assert seen(drivers) == {FIRST: run_id}


@pytest.mark.in_ci
def test_a_listing_that_is_late_hides_no_run_from_the_next_one(drivers: Drivers) -> None:
    proxy = drivers.proxy()
    proxy.late = 1e9
    publish(drivers, "first", proxy=proxy)
    publish(drivers, "second", proxy=proxy)
    publish(drivers, "other", SECOND, proxy=proxy)
    proxy.late = 0.0
    assert seen(drivers) == {FIRST: "second", SECOND: "other"}


@pytest.mark.in_ci
@pytest.mark.parametrize("minutes", [-5, 5])
def test_a_clock_that_is_off_takes_no_lock_of_a_living_driver(drivers: Drivers, minutes: int) -> None:
    times = locks.LockTimes(heartbeat=0.2, stale_after=2.0, watch=1.0, poll=0.05)
    proxy = drivers.proxy()
    proxy.skew = timedelta(minutes=minutes)
    with drivers.driving() as one, locks.Lock(one, "night", owner="one", times=times) as held:
        other = locks.Lock(drivers.storage(proxy), "night", owner="other", wait_seconds=4.0, times=times)
        with pytest.raises(ResultsBusyError, match="run one"):
            other.acquire()
        assert held.is_held
    with locks.Lock(drivers.storage(proxy), "night", owner="other", times=times) as freed:
        assert freed.is_held


def race(drivers: Drivers, day: date, n_drivers: int) -> list[str]:
    """Let drivers begin a night at once; return how each ended."""
    gate = threading.Barrier(n_drivers)

    def drive(number: int) -> str:
        with drivers.driving():
            store = ResultsStore.open(drivers.root)
            run = nights.facts(f"{day}-{number}", day)
            gate.wait()
            try:
                with store.run_lock(run.evaluation, run.evaluation_date, run.run_id):
                    begun = store.start(run)
                    nights.stage(begun, nights.RANKS)
                    begun.audit()
                    begun.publish()
            except ResultsBusyError as busy:
                return f"code {busy.exit_code}"
            return run.run_id

    with ThreadPoolExecutor(n_drivers) as pool:
        return list(pool.map(drive, range(n_drivers)))


@pytest.mark.parametrize("n_races", [pytest.param(2, marks=pytest.mark.in_ci), 30])
def test_of_two_drivers_of_one_date_one_publishes_and_one_has_code_5(drivers_of_each: Drivers, n_races: int) -> None:
    drivers, winners = drivers_of_each, {}
    for number in range(n_races):
        day = FIRST + timedelta(days=number)
        ended = race(drivers, day, 2)
        (winners[day],) = [run_id for run_id in ended if run_id != "code 5"]
        assert "code 5" in ended
    assert seen(drivers) == winners


def test_of_two_processes_of_one_date_one_publishes_and_one_has_code_5(drivers: Drivers, tmp_path: Path) -> None:
    publish(drivers, "first")
    command, environment = [sys.executable, "-c", CHILD, drivers.root], drivers.server.environment()
    held = {**environment, **held_at("after_staging")}
    with started([*command, "one"], tmp_path / "one", held) as one:
        one.wait_until_it_says("failpoint after_staging holds")
        with started([*command, "two"], tmp_path / "two", environment) as two:
            ended = two.finish()
        assert "ResultsBusyError" in ended.err
        assert "run one" in ended.err
    assert seen(drivers) == {FIRST: "first"}
    publish(drivers, "two")
    assert seen(drivers) == {FIRST: "two"}
    assert statuses(drivers, "one") == ["RUNNING", "FAILED"]


@pytest.mark.parametrize("n_races", [pytest.param(2, marks=pytest.mark.in_ci), 32])
def test_two_processes_that_begin_each_date_at_once_leave_one_run_of_each(
    drivers: Drivers, tmp_path: Path, n_races: int
) -> None:
    publish(drivers, "before", FIRST - timedelta(days=1))  # else they would race for the root
    environment = drivers.server.environment()
    (meetings := tmp_path / "meetings").mkdir()
    commands = [
        [sys.executable, "-c", RACER, drivers.root, name, other, str(meetings), str(n_races)]
        for name, other in (("one", "two"), ("two", "one"))
    ]
    with (
        started(commands[0], tmp_path / "one", environment) as one,
        started(commands[1], tmp_path / "two", environment) as two,
    ):
        ended = [one.finish(), two.finish()]
    assert [each.code for each in ended] == [0, 0], [each.err for each in ended]
    winners = [run_id for each in ended for run_id in each.out.split()]
    found = seen(drivers)
    assert len(found) == n_races + 1
    # Both publish where one began when the other had ended, as on a busy machine.
    assert set(found.values()) - {"before"} <= set(winners)
    assert n_races <= len(winners) < 2 * n_races

"""Schedules that a seed decides: drivers on one root, in a simulated store in which anything may go wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from obstore.store import MemoryStore

from rankeval_spark import schemas
from rankeval_spark.errors import ResultsBusyError
from rankeval_spark.results import ResultsStore, delta_log, locks
from rankeval_spark.results.object_storage import ObjectStorage
from rankeval_spark.results.roots import claim_root
from rankeval_spark.results.tables import create_table
from tests.simulation.planted import PLANTED, RARE
from tests.simulation.schedules import NIGHTS, ROOT, TIMES, Schedule, run_schedule
from tests.simulation.world import Faults
from tests.support.cli import PROJECT

if TYPE_CHECKING:
    from rankeval_spark.results.storage import Storage
    from tests.simulation.world import Driver

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1_000), id="first-thousand", marks=[pytest.mark.in_ci, pytest.mark.timeout(600)]),
        pytest.param(range(1_000, 10_000), id="ten-thousand", marks=pytest.mark.timeout(3_000)),
    ],
)
def test_whatever_happens_readers_see_whole_nights_and_none_is_lost(seeds: range) -> None:
    done = run_schedules(seeds)
    assert done.returncode == 0, done.stdout + done.stderr


# In CI those that a few seconds find.
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[] if name in RARE else [pytest.mark.in_ci]) for name in PLANTED]
)
def test_a_planted_fault_is_found_within_a_thousand_schedules(fault: str) -> None:
    done = run_schedules(range(1_000), fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f'"{fault}"' in done.stdout, done.stdout + done.stderr


def run_schedules(seeds: range, fault: str = "") -> subprocess.CompletedProcess[str]:
    """Run schedules as a command does, which prints those that are broken."""
    command = [sys.executable, "-m", "tests.simulation", str(seeds[0]), str(seeds[-1]), *filter(None, [fault])]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


@pytest.mark.in_ci
def test_a_seed_repeats_a_schedule() -> None:
    one, again = (run_schedule(3).world.trace for _ in range(2))

    assert one == again
    assert len(one) > 100


@pytest.mark.in_ci
def test_a_commit_that_the_next_holder_did_not_know_is_rolled_back_too() -> None:
    def draw(schedule: Schedule) -> None:
        def repair(_: Driver) -> None:
            steps = ResultsStore.open(ROOT, times=TIMES).maintenance()  # it knows the logs as of now
            while not dies.is_dead:
                schedule.world.sleep(10)
            for key in [key for key in schedule.objects if key.startswith("_staging/")]:
                del schedule.objects[key]
            steps.remove_staging()

        dies = schedule.add(partial(schedule.run, day=NIGHTS[1]), machine="here", starts=5.0)
        dies.incidents["commit", 4] = "dies"  # when one of two tables has the new night
        schedule.add(repair, machine="here", starts=0.0)

    for seed in range(8):
        events = run_schedule(f"hand-{seed}", draw, Faults()).invariants.events
        assert "MAINTAINED" in [event["status"] for event in events]


@pytest.mark.in_ci
def test_a_table_that_the_holder_before_us_makes_at_once_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    mine, other = (ObjectStorage("memory:///results", store) for _ in range(2))
    is_free = delta_log.is_free

    def make_first(storage: Storage, table: str) -> bool:
        monkeypatch.setattr(delta_log, "is_free", is_free)
        create_table(other, schemas.METRICS)
        return is_free(storage, table)

    monkeypatch.setattr(delta_log, "is_free", make_first)
    create_table(mine, schemas.METRICS)

    assert delta_log.versions(mine, "metrics") == [0]


@pytest.mark.in_ci
def test_a_holder_that_was_suspended_while_it_waited_for_an_answer_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = MemoryStore(), [0.0]
    monkeypatch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: now[0]))
    storage = ObjectStorage("memory:///results", store)
    lock = locks.Lock(storage, "publish", owner="first")
    swap = storage.swap

    def swap_and_stand_still(*request: Any) -> Any:  # noqa: ANN401 - as the method
        mark = swap(*request)
        now[0] += 400
        return mark

    monkeypatch.setattr(storage, "swap", swap_and_stand_still)
    monkeypatch.setattr(lock, "_beat", lambda: None)
    storage.has_locks = True
    lock.acquire()
    store.put("_locks/publish", replace(lock._holder, owner="second", token="other").to_json())

    assert not lock.is_held


@pytest.mark.in_ci
def test_a_waiter_whose_clock_is_ahead_gives_up_on_a_living_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = MemoryStore(), [0.0]
    holder = locks.Holder("first", replace(locks.this_process(), machine="elsewhere"), "today", token="first")

    def sleep(_: float) -> None:
        now[0] += 15
        assert now[0] < 100, "it still waits"
        store.put("_locks/night", replace(holder, beat=int(now[0])).to_json())

    monkeypatch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    storage = ObjectStorage("memory:///results", store)
    monkeypatch.setattr(storage, "age_of", lambda *_: 1_000.0)
    sleep(0)

    with pytest.raises(ResultsBusyError, match="run first"):
        locks.Lock(storage, "night", owner="second").acquire()


@pytest.mark.in_ci
def test_what_another_first_run_left_of_its_probe_does_not_make_a_root_unusable() -> None:
    storage = ObjectStorage("memory:///results", MemoryStore())
    storage.create("_locks/probe-1", b"1")

    claim_root(storage, create=True)

    assert storage.names("") == ["_locks", "_rankeval.json"]

"""Schedules that a seed decides: drivers on one root, in a simulated store in which anything may go wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest
from obstore.store import MemoryStore

from rankeval_spark.results.object_storage import ObjectStorage
from rankeval_spark.results.roots import claim_root
from tests.simulation.planted import PLANTED
from tests.simulation.schedules import run_schedule
from tests.simulation.world import ViolationError
from tests.support.cli import PROJECT

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(250), id="first", marks=[pytest.mark.in_ci, pytest.mark.timeout(1_200)]),
        pytest.param(range(250, 10_000), id="ten-thousand", marks=pytest.mark.timeout(5_400)),
    ],
)
def test_whatever_happens_readers_see_whole_nights_and_none_is_lost(seeds: range) -> None:
    command = [sys.executable, "-m", "tests.simulation", str(seeds[0]), str(seeds[-1])]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# In CI but the release, which takes 135 schedules to be found.
@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[] if "release" in name else [pytest.mark.in_ci]) for name in PLANTED]
)
def test_a_planted_fault_is_found_within_a_thousand_schedules(fault: str) -> None:
    with PLANTED[fault](), pytest.raises(ViolationError):
        [*map(run_schedule, range(1_000))]


@pytest.mark.in_ci
def test_a_seed_repeats_a_schedule() -> None:
    one, again = (run_schedule(3).world.trace for _ in range(2))

    assert one == again
    assert len(one) > 100


@pytest.mark.in_ci
def test_what_another_first_run_left_of_its_probe_does_not_make_a_root_unusable() -> None:
    storage = ObjectStorage("memory:///results", MemoryStore())
    storage.create("_locks/probe-1", b"1")

    claim_root(storage, create=True)

    assert storage.names("") == ["_locks", "_rankeval.json"]

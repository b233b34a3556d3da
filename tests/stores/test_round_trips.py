"""Requests are what a night on a store costs: how many there are, and how long they take where each waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark.results import Results, ResultsStore
from tests.spark.results import nights
from tests.spark.results.nights import FIRST
from tests.support import nights as workspaces
from tests.support.cli import rankeval, without_session

if TYPE_CHECKING:
    from tests.stores.conftest import Drivers
    from tests.stores.proxy import Proxy

N_NIGHTS: Final = 10
FAR: Final = 0.03  # seconds before each answer, as of a store in the same region


def publish_far(drivers: Drivers, day: int) -> tuple[int, float]:
    """Publish a night as a process of its own; return requests and seconds from the audit to the end."""
    run, proxy = nights.facts(f"run{day}", FIRST + timedelta(days=day)), drivers.proxy()
    with drivers.driving(proxy):
        store = ResultsStore.open(drivers.root)
        with store.run_lock(run.evaluation, run.evaluation_date, run.run_id):
            started = store.start(run)
            nights.stage(started, nights.RANKS)
            started.audit()
            before, proxy.delay, begin = len(proxy.log), FAR, time.monotonic()
            started.publish()
    return len(proxy.log) - before, time.monotonic() - begin


@pytest.mark.in_ci
def test_a_publish_takes_at_most_60_requests_on_any_night(drivers: Drivers) -> None:
    found = [publish_far(drivers, day) for day in range(N_NIGHTS)]
    print("requests and seconds of a publish:", [(n_requests, round(seconds, 2)) for n_requests, seconds in found])
    assert max(n_requests for n_requests, _ in found) <= 60
    assert min(seconds for _, seconds in found) <= 2.0, "the least: other processes use this machine too"


def test_a_command_that_reads_takes_at_most_12_requests_after_ten_nights(
    drivers: Drivers, in_environment: Callable[[Proxy | None], None]
) -> None:
    with drivers.driving():
        for day in range(N_NIGHTS):
            nights.publish(drivers.root, nights.facts(f"run{day}", FIRST + timedelta(days=day)))
    proxy = drivers.proxy()
    in_environment(proxy)
    shown = rankeval("show", drivers.root)
    print("requests of show:", len(proxy.log))
    assert shown.code == 0, shown.err
    assert len(proxy.log) <= 12, proxy.log


def test_a_night_by_its_command_takes_at_most_120_requests(
    drivers: Drivers, in_environment: Callable[[Proxy | None], None], tmp_path: Path
) -> None:
    made = workspaces.workspace(tmp_path / "workspace", results__root=drivers.root)
    counts = []
    for day in (workspaces.FIRST, workspaces.SECOND, workspaces.SECOND):
        proxy = drivers.proxy()
        in_environment(proxy)
        with without_session():
            done = rankeval("run", made.config, "--date", day)
        assert done.code == 0, done.err
        counts.append(len(proxy.log))
    print("requests of a night:", counts)
    assert max(counts) <= 160, "the first one makes eight tables"
    assert max(counts[1:]) <= 120
    in_environment(None)
    assert len(Results(drivers.root).nights()) == 2

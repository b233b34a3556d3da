"""What a user reads where a store cannot be used: the right code, and one message that names the place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.results import Results
from tests.stores import proxy as faults
from tests.stores.proxy import Proxy
from tests.support import nights
from tests.support.cli import Finished, rankeval, without_session

if TYPE_CHECKING:
    from tests.stores.conftest import Drivers
    from tests.support.nights import Workspace

Choose = Callable[[Proxy | None], None]


@pytest.fixture
def made(drivers: Drivers, tmp_path: Path) -> Workspace:
    """Give a workspace whose results go to the store."""
    return nights.workspace(tmp_path / "workspace", results__root=drivers.root)


def run(made: Workspace, *more: str) -> Finished:
    with without_session():
        return rankeval("run", made.config, "--date", nights.FIRST, *more)


@pytest.mark.in_ci
def test_a_bucket_that_does_not_exist_is_named_with_code_2(made: Workspace, in_environment: Choose) -> None:
    in_environment(None)
    made.change(results__root="s3://no-such-bucket/results")
    for done in (
        run(made),
        rankeval("show", "s3://no-such-bucket/results"),
        rankeval("maintain", "s3://no-such-bucket/results"),
    ):
        assert done.code == 2, done.err
        assert "no such bucket or container" in done.err
        assert "s3://no-such-bucket/results" in done.err
        assert "Kernel" not in done.err


@pytest.mark.in_ci
def test_a_store_that_may_only_be_read_is_refused_with_code_2(
    made: Workspace, drivers: Drivers, in_environment: Choose
) -> None:
    in_environment(None)
    assert run(made).code == 0
    proxy = drivers.proxy()
    proxy.fate = lambda method, _path: faults.DENIED if method in ("PUT", "POST", "DELETE") else faults.ANSWERED
    in_environment(proxy)
    refused = run(made)
    assert refused.code == 2, refused.err
    assert "Permission denied" in refused.err
    assert drivers.root in refused.err
    shown = rankeval("show", drivers.root)
    assert shown.code == 0, shown.err
    empty = rankeval("show", f"{drivers.root}/nothing")
    assert empty.code == 2, empty.err


@pytest.mark.in_ci
def test_credentials_that_expire_end_a_run_and_the_next_one_repairs_it(
    made: Workspace, drivers: Drivers, in_environment: Choose
) -> None:
    in_environment(None)
    assert run(made).code == 0
    before = Results(drivers.root).table_versions()
    proxy, left = drivers.proxy(), ["until the intent"]

    def fate(method: str, path: str) -> str:
        if method == "PUT" and "/metrics/_delta_log" in path and "_staging" not in path:
            left.clear()
        return faults.ANSWERED if left else faults.EXPIRED

    proxy.fate = fate
    in_environment(proxy)
    ended = run(made)
    assert ended.code == 2, ended.err
    assert "ExpiredToken" in ended.err
    in_environment(None)
    assert Results(drivers.root).table_versions() == before
    assert run(made).code == 0
    events = Results(drivers.root).runs().sort_by("recorded_at")
    assert [event["status"] for event in events.to_pylist()].count("PUBLISHED") == 3
    secrets = [value for name, value in drivers.server.variables.items() if "SECRET" in name]
    assert not any(secret in ended.err + str(events.to_pylist()) for secret in secrets)


def test_a_store_that_is_not_there_is_waited_for_as_long_as_stated(
    made: Workspace, drivers: Drivers, in_environment: Choose
) -> None:
    proxy = drivers.proxy()
    proxy.fate = faults.always(faults.AWAY)
    in_environment(proxy)
    ended = run(made)
    assert ended.code == 8, ended.err
    assert re.search("in 6[0-9][.][0-9]+s, after", ended.err), ended.err
    assert "expected a store that answers" in ended.err

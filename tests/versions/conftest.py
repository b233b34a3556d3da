"""The session of ``make test-versions``: of the pyspark of its environment, by itself or on a Spark Connect server."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark.spark.session import build_session
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.connect import connect_server
from tests.support.processes import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THROUGH_CONNECT: Final = os.environ.get("RANKEVAL_TEST_CONNECT") == "1"


def pytest_report_header() -> str:
    """Say what is tested."""
    way = "through Spark Connect" if THROUGH_CONNECT else "with the driver in this process"
    return f"pyspark {version('pyspark')}, {way}, Python {platform.python_version()}"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give the session that the commands run in too."""
    if not THROUGH_CONNECT:
        session = build_session("rankeval versions", master="local[2]", settings=SETTINGS)
        yield session
        session.stop()
        return
    with connect_server(tmp_path_factory.mktemp("server"), SETTINGS) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_REMOTE", address)
        session = build_session("rankeval versions")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def _published(
    spark: SparkSession,  # noqa: ARG001 - the commands find it
    tmp_path_factory: pytest.TempPathFactory,
) -> nights.Workspace:
    made = nights.workspace(tmp_path_factory.mktemp("nights") / "workspace", comparisons={"baseline": "pop"})
    done = rankeval("backfill", made.config, "--from", nights.FIRST, "--to", nights.SECOND)
    assert done.code == 0, done.err
    return made


@pytest.fixture
def published(_published: nights.Workspace, tmp_path: Path) -> nights.Workspace:
    """Give a copy of two published nights."""
    return _published.copy(tmp_path)

"""Fixtures that more than one test module needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rankeval_spark.measures import definition, registry
from tests.support import nights
from tests.support.cli import Finished, rankeval, without_session
from tests.support.processes import SHORT_LIVED_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# ranx takes a minute to compile for a tenth of a second of work, and numba reads this once, when it is imported.
os.environ["NUMBA_DISABLE_JIT"] = "1"

# As wide as without a terminal; processes that run tests in parallel say 80.
os.environ["COLUMNS"] = "120"

# A JVM that a test starts for itself lives for seconds. It runs what it runs in production all the same, generated code
# too.
os.environ["SPARK_SUBMIT_OPTS"] = SHORT_LIVED_JVM

TEST_SETTINGS = {
    # The driver is its own executor; tests are small and share the machine with other test processes.
    "spark.driver.memory": "2g",
    # ALS serialises a deep lineage, for which the default stack can be too small. A test runs each plan once or twice:
    # of the CPU of a test process 40 % went into HotSpot's second compiler and Spark's generated code, which pay later.
    # (The first one alone has a small cache for its code unless told otherwise, and when that is full, nothing is
    # compiled any more.) Nor are Spark's classes verified: a sixth of the time until a first night is published.
    "spark.driver.extraJavaOptions": f"-XX:+UseParallelGC -Xss4m {SHORT_LIVED_JVM}",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Two partitions show what a shuffle does and cost two tasks; the default is 200.
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # Plans are tested as they run in production, so adaptive execution stays on and merges nothing away.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    # No test looks at the plans that Spark writes down for its pages, again with each stage of adaptive execution, nor
    # doubts those that its rules make: of a night a tenth of the time.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.lightweightPlanChangeValidation": "false",
    # Rows in memory go through the plan as those of a table do; Spark's own tests leave this rule out too.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    # A worker that failed says where in Python.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}


LAST = "tests/spark/"
"""What the two test processes end with: while one runs these with a JVM, the other begins without one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests on a cluster first, and those on Spark last."""
    items.sort(key=lambda item: (not item.nodeid.startswith("tests/cluster/"), item.nodeid.startswith(LAST)))


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """Write an interpreter without packages of its own; Spark hands it pyspark on its path."""
    path = tmp_path / "python3"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def _shared_session() -> Iterator[SparkSession]:
    """Start one session, at the first test that asks for it: unit tests never do."""
    from rankeval_spark.spark.session import build_session  # noqa: PLC0415  (imports pyspark, which unit tests do without)

    session = build_session("rankeval tests", master="local[2]", settings=TEST_SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def _settings(_shared_session: SparkSession) -> tuple[str, dict[str, str]]:
    """Give the settings that each test begins with, as text and by their keys."""
    from tests.support import plans  # noqa: PLC0415  (as above)

    return plans.settings_text(_shared_session), _shared_session.conf.getAll


@pytest.fixture
def spark(_shared_session: SparkSession, _settings: tuple[str, dict[str, str]]) -> Iterator[SparkSession]:
    """Give the shared session, and leave nothing of a test in it for the next one."""
    from tests.support import plans  # noqa: PLC0415  (as above)

    yield _shared_session
    _shared_session.catalog.clearCache()
    for name in plans.temporary_views(_shared_session):
        _shared_session.catalog.dropTempView(name)
    text, by_key = _settings
    if plans.settings_text(_shared_session) != text:
        _restore_settings(_shared_session, by_key)


def _restore_settings(session: SparkSession, before: dict[str, str]) -> None:
    """Undo what a test set."""
    now = session.conf.getAll
    for key in now.keys() - before.keys():
        session.conf.unset(key)
    for key, value in before.items():
        if now.get(key) != value:
            session.conf.set(key, value)


@pytest.fixture
def workspace(tmp_path: Path) -> nights.Workspace:
    """Make a workspace in which nothing was published."""
    return nights.workspace(tmp_path / "workspace")


@pytest.fixture(scope="session")
def _published(tmp_path_factory: pytest.TempPathFactory) -> tuple[nights.Workspace, Finished, Finished]:
    """Publish three dates and a sample in this process; ``tests/spark/test_night_hosts.py`` shows that Spark agrees."""
    made = nights.workspace(tmp_path_factory.mktemp("published") / "workspace")
    first, last = nights.FIRST.isoformat(), nights.WITHOUT_ROWS.isoformat()
    asked = ("--sample-users", "0.75", "--set", "results.lists=false", "--set", "models=[als]")
    with without_session():
        filled = rankeval("backfill", made.config, "--from", first, "--to", last)
        sample = rankeval("run", made.config, "--date", first, *asked)
    return made, filled, sample


@pytest.fixture
def published(_published: tuple[nights.Workspace, Finished, Finished]) -> nights.Workspace:
    """Give the published workspace, only to be read: two dates with rows, one without, and a sample."""
    return _published[0]


@pytest.fixture
def backfilled(_published: tuple[nights.Workspace, Finished, Finished]) -> Finished:
    """Give what the command said that published the three dates."""
    return _published[1]


@pytest.fixture
def sampled(_published: tuple[nights.Workspace, Finished, Finished]) -> Finished:
    """Give what the command said that published the sample."""
    return _published[2]


@pytest.fixture
def own_copy_of_delta(published: nights.Workspace, tmp_path: Path) -> nights.Workspace:
    """Give a copy of the published workspace, to change and to run again."""
    return published.copy(tmp_path)


@pytest.fixture
def own_copy(own_copy_of_delta: nights.Workspace) -> nights.Workspace:
    """Give the same with inputs that have no versions: see ``nights.PARQUET``."""
    return own_copy_of_delta.rewritten(nights.PARQUET)


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a copy of the registry."""
    monkeypatch.setattr(definition, "DEFINED", dict(definition.DEFINED))
    monkeypatch.setattr(definition, "SPELLINGS", dict(definition.SPELLINGS))


@pytest.fixture
def team_measures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process import ``team.measures``, of which it knows nothing yet."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "support" / "plugins")
    monkeypatch.setattr(registry, "LOADED", {})
    monkeypatch.setattr(registry, "RECORDED", {})
    yield
    for name in ("team", "team.measures"):
        sys.modules.pop(name, None)

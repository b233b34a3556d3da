"""A night that Spark computes with its root in a store: workers write the files, this process makes all commits."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import Results
from rankeval_spark.results.staging import QUARANTINE_FOLDER
from rankeval_spark.results.table_scans import scan
from tests.support import nights
from tests.support.cli import rankeval, without_session
from tests.support.hosts import assert_same
from tests.support.nights import FIRST
from tests.support.processes import SETTINGS, rankeval_command, started

if TYPE_CHECKING:
    from tests.stores.conftest import Drivers

TABLES: Final = [schema.name for schema in schemas.PUBLISHED]


@pytest.mark.slow
def test_workers_of_spark_write_the_files_of_a_night_and_its_driver_commits_them(
    drivers: Drivers, tmp_path: Path
) -> None:
    driver, workers = drivers.proxy(), drivers.proxy()
    settings = {**SETTINGS, "spark.executorEnv.AWS_ENDPOINT_URL": workers.url}
    spark = {"always": True, "master": "local[2]", "settings": settings}
    rows = [*nights.recommendations(), {**nights.recommendations()[0], "user_id": None}]
    changes: dict[str, Any] = {"results__quarantine": True, "results__root": drivers.root, "spark": spark}
    there = nights.workspace(tmp_path / "there", **changes)
    here = nights.workspace(tmp_path / "here")
    for workspace in (there, here):
        workspace.write("recommendations", rows)

    environment = {**os.environ, **drivers.server.environment(driver)}
    with started(rankeval_command("run", there.config, "--date", FIRST), tmp_path / "run", environment) as running:
        done = running.finish()
    assert done.code == 0, done.err
    with without_session():
        assert rankeval("run", here.config, "--date", FIRST).code == 0

    written = Counter(path.split("/")[3] for method, path in workers.log if method in ("PUT", "POST"))
    assert set(written) == {"lists", "user_metrics", QUARANTINE_FOLDER}, written
    assert not [path for _, path in workers.log if "_delta_log" in path or "_locks" in path]
    with drivers.driving() as storage:
        results = Results(drivers.root)
        for table in TABLES:
            found, expected = (each.published(table).drop_columns([C.RUN_ID]) for each in (results, Results(here.root)))
            assert_same(found, expected, tolerance=1e-12)
        (slug,) = storage.names(QUARANTINE_FOLDER)
        kept = scan(storage, f"{QUARANTINE_FOLDER}/{slug}").to_table().to_pylist()
        assert [(row["input"], row["check"]) for row in kept] == [("recommendations", "null_keys")]
        assert storage.names("_staging") == []

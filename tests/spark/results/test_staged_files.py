"""Files of a run before and after a version names them; all of it in this process."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pytest

from rankeval_spark import schemas
from rankeval_spark.results import Results, ResultsStore
from rankeval_spark.results.failpoints import FailpointError, armed
from tests.spark.results import nights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankeval_spark.results import Run

CHANGED: nights.Ranks = {"ann": 2, "kim": 1}


@contextmanager
def started(root: str, run_id: str) -> Iterator[Run]:
    store = ResultsStore.open(root)
    with store.run_lock(nights.NIGHTLY, nights.FIRST, run_id):
        yield store.start(nights.facts(run_id))


def files_of(root: str, run_id: str) -> dict[Path, float]:
    """Return the files of a run with their times."""
    return {file: file.stat().st_mtime_ns for file in Path(root).rglob(f"{run_id}.*.parquet")}


def named(root: str) -> set[Path]:
    """Return the files that the newest versions name."""
    tables = (deltalake.DeltaTable(f"{root}/{schema.name}") for schema in schemas.PUBLISHED)
    return {Path(file) for table in tables for file in table.file_uris()}


def test_staged_files_are_those_that_are_published_and_nobody_sees_them_before(root: str) -> None:
    before = nights.rows_of(Results(root).user_metrics(), without=())
    with started(root, "early") as run:
        nights.stage(run, CHANGED)
        staged = files_of(root, "early")
        assert {file.relative_to(root).parts[0] for file in staged} == {schema.name for schema in nights.STAGED}
        assert not named(root) & set(staged)
        assert nights.rows_of(Results(root).user_metrics(), without=()) == before
        assert not Path(root, "_staging").exists() or not [*Path(root, "_staging").iterdir()]
        run.audit()
        run.publish()
    assert named(root) == set(staged)
    assert files_of(root, "early") == staged  # none was written again


@pytest.mark.parametrize("point", ["after_staging", "after_list"])
def test_a_run_that_fails_removes_its_files(root: str, point: str) -> None:
    with started(root, "failing") as run:
        nights.stage(run, CHANGED)
        with armed(point):
            try:
                run.audit()
                run.publish()
            except FailpointError as failed:
                run.fail("publish", failed)
    assert files_of(root, "failing") == {}
    assert [*Path(root, "_staging").glob("*")] == []
    assert "FAILED" in Results(root).runs()["status"].to_pylist()
    nights.publish(root, nights.facts("next"))
    assert [*Path(root, "_staging").iterdir()] == []


def test_files_of_tasks_that_were_repeated_go_with_the_publish(root: str) -> None:
    rows = nights.table(schemas.LISTS, nights.list_rows(CHANGED))
    with started(root, "tasks") as run:
        with run.staged_in_parts("lists") as writer:
            drained = []
            for _ in range(2):  # a task, and its second attempt, which counts
                copy = pickle.loads(pickle.dumps(writer))
                copy.add(rows)
                drained.append(pa.Table.from_batches([copy.drain()]))
            writer.adopt(drained[1])
        assert (len(files_of(root, "tasks")), run.n_rows) == (2, {"lists": 2})
        run.audit()
        run.publish()
    (file,) = files_of(root, "tasks")
    assert file in named(root)
    assert Results(root).lists()["user_id"].to_pylist() == ["ann", "kim"]


def test_a_night_that_is_set_back_has_the_files_of_its_published_version(root: str) -> None:
    before = named(root)
    with armed("after_user_metrics"), pytest.raises(FailpointError):
        nights.publish(root, nights.facts("torn"), CHANGED)
    assert named(root) != before
    for listed in Path(root, "_staging").iterdir():
        listed.unlink()
    nights.publish(root, nights.facts("next", nights.SECOND))
    assert {file for file in named(root) if "2026-01-01" in str(file)} == before

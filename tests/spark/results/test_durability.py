"""What is on the disk once a night is published: all of it, whenever the power fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from rankeval_spark import schemas
from rankeval_spark.results import Results, delta_log
from rankeval_spark.results.failpoints import FailpointError, armed
from rankeval_spark.results.storage import Storage
from rankeval_spark.results.table_scans import delta_table
from tests.spark.results import nights

if TYPE_CHECKING:
    from collections.abc import Callable


TABLES = [schema.name for schema in schemas.PUBLISHED]
CHANGED: nights.Ranks = {"ann": 2, "kim": 1}


class Disk:
    """What a disk has certainly got: contents that were synced, and the names in folders when these were."""

    def __init__(self, root: Path, fsync: Callable[[int], None]) -> None:
        self._root = root
        self._fsync = fsync
        self._contents: set[int] = set()
        self._names: dict[int, set[str]] = {}

    def sync(self, descriptor: int) -> None:
        """Sync a file or a folder."""
        self._fsync(descriptor)
        number, path = os.fstat(descriptor).st_ino, Path(f"/proc/self/fd/{descriptor}").resolve()
        if path.is_dir():
            self._names[number] = set(os.listdir(path))
        else:
            self._contents.add(number)

    def lacking(self, path: Path) -> list[str]:
        """Name the file, and the folders up to the root, that a power loss could take."""
        found = [] if path.stat().st_ino in self._contents else [f"content of {path}"]
        for one in (path, *path.parents):
            if one == self._root:
                break
            if one.name not in self._names.get(one.parent.stat().st_ino, ()):
                found.append(f"name of {one}")
        return found


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Give the disk of a results root, which sees what is synced."""
    watched = Disk(tmp_path / "results", os.fsync)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", watched.sync)
        yield watched


def files_of(root: Path, table: str) -> list[Path]:
    """List what a reader of the newest version needs: the log, and the files with its rows."""
    opened = delta_table(Storage(str(root)), table)
    return [*map(Path, opened.file_uris()), *(root / table / "_delta_log").glob("[0-9]*")]


def test_all_of_a_night_is_on_the_disk_before_the_row_that_says_it_is_published(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, commit, published = tmp_path / "results", delta_log.commit, []

    def look_and_commit(storage: Storage, table: str, version: int, *args: object, **options: str) -> None:
        if table == "runs" and version % 3 == 0 and version:  # RUNNING, PUBLISHING, PUBLISHED
            for name in (*TABLES, "runs"):
                assert [fault for file in files_of(root, name) for fault in disk.lacking(file)] == []
            published.append(version)
        commit(storage, table, version, *args, **options)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(delta_log, "commit", look_and_commit)
    nights.publish(str(root), nights.facts("first"))
    nights.publish(str(root), nights.facts("second", nights.SECOND))
    nights.publish(str(root), nights.facts("rerun"), CHANGED)

    assert published == [3, 6, 9]
    assert [fault for name in (*TABLES, "runs") for file in files_of(root, name) for fault in disk.lacking(file)] == []


def test_a_version_that_somebody_else_made_is_refused_and_stays(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    delta_log.create_log(storage, "numbers", columns='{"type":"struct","fields":[]}', partitions=())
    delta_log.commit(storage, "numbers", 1, [{"txn": {"appId": "first", "version": 1}}])
    before = (tmp_path / "numbers/_delta_log/00000000000000000001.json").read_bytes()

    with pytest.raises(delta_log.OvertakenError, match="table numbers: found a version 1 of another writer"):
        delta_log.commit(storage, "numbers", 1, [{"txn": {"appId": "second", "version": 1}}])
    with pytest.raises(delta_log.OvertakenError):
        delta_log.create_log(storage, "numbers", columns='{"type":"struct","fields":[]}', partitions=())

    assert (tmp_path / "numbers/_delta_log/00000000000000000001.json").read_bytes() == before
    delta_log.commit(storage, "numbers", 2, [])
    assert delta_log.versions(storage, "numbers") == [0, 1, 2]
    assert sorted(path.name for path in (tmp_path / "numbers/_delta_log").iterdir())[0].startswith("0")  # no draft


def test_a_checkpoint_is_on_the_disk_too(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankeval_spark.results.storage.Storage.checkpoint_every", 2)
    root = tmp_path / "results"
    nights.publish(str(root), nights.facts("first"))

    checkpoints = [*root.glob("*/_delta_log/*.checkpoint.parquet"), *root.glob("*/_delta_log/_last_checkpoint")]
    assert len(checkpoints) > len(TABLES)
    assert [fault for file in checkpoints for fault in disk.lacking(file)] == []
    assert deltalake.DeltaTable(str(root / "runs")).to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("becomes", ["cut", "gone"])
def test_a_staged_file_that_a_power_loss_took_sets_its_night_back(root: str, becomes: str) -> None:
    with armed("after_intent"), pytest.raises(FailpointError):
        nights.publish(root, nights.facts("torn"), CHANGED)
    (staged,) = Path(root).glob("user_metrics/*/*/torn.*.parquet")
    if becomes == "cut":
        staged.write_bytes(staged.read_bytes()[:100])
    else:
        staged.unlink()

    nights.publish(root, nights.facts("next", nights.SECOND))

    of_torn = [event for event in Results(root).runs().to_pylist() if event["run_id"] == "torn"]
    assert [event["status"] for event in of_torn if event["status"] == "MAINTAINED"] == ["MAINTAINED"]
    assert set(Results(root).user_metrics(date=nights.FIRST)["run_id"].to_pylist()) == {"first"}

"""Files of tables on a local disk: those that are rewritten, merged, or needed by no version."""

from __future__ import annotations

import os
import pickle
import resource
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deltalake
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rankeval_spark.errors import ResultsError
from rankeval_spark.results import local_tables, local_writes
from rankeval_spark.results.file_store import LocalStorage
from rankeval_spark.results.local_writes import DataFile, LocalTables
from rankeval_spark.results.run_record import NightKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TABLE: Final = "numbers"
ODD: Final = NightKey("nightly 100%/é=:x", date(2026, 1, 1))
PLAIN: Final = NightKey("nightly", date(2026, 1, 2))


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """Give a root with a table of two nights, one of them with a name that has to be escaped."""
    storage = LocalStorage(str(tmp_path / "results"))
    local_writes.write_new(storage, TABLE, rows({ODD: [1, 2, 3], PLAIN: [4]}))
    return storage


def rows(values: Mapping[NightKey, list[int]]) -> pa.Table:
    flat = [(night.evaluation, night.evaluation_date, value) for night, own in values.items() for value in own]
    return pa.table(
        dict(zip(("evaluation", "evaluation_date", "value"), map(list, zip(*flat, strict=True)), strict=True))
    )


def values_of(storage: LocalStorage) -> list[int]:
    return sorted(local_tables.scan(storage, TABLE).to_table()["value"].to_pylist())


def file_of(storage: LocalStorage, night: NightKey) -> DataFile:
    (file,) = local_writes.data_files(storage, TABLE, night=night)
    return file


def rewrite(storage: LocalStorage, files: dict[DataFile, Callable[[pa.RecordBatch], pa.RecordBatch] | None]) -> None:
    LocalTables(None, storage).rewrite_files(TABLE, files, after=0)


def merged(storage: LocalStorage) -> tuple[int, int]:
    return LocalTables(None, storage).merge_files(TABLE)


def new_table(storage: LocalStorage) -> local_writes.NewTable:
    """Plan a table of one column, whose night is added to every part."""
    Path(storage.root, "staged", local_writes.folder_of(ODD)).mkdir(parents=True)
    return local_writes.NewTable(storage, "staged", ODD, rows({ODD: [1]}).schema, with_night)


def with_night(part: pa.Table) -> pa.Table:
    return rows({ODD: part["value"].to_pylist()})


def staged(storage: LocalStorage) -> list[int]:
    return sorted(local_tables.scan(storage, "staged").to_table()["value"].to_pylist())


def test_files_of_copies_are_in_the_table_that_adopts_them(storage: LocalStorage) -> None:
    table = new_table(storage)
    table.add(pa.table({"value": [1]}))
    first, again, second = (pickle.loads(pickle.dumps(table)) for _ in range(3))
    for copy, values in ((first, [2, 3]), (again, [2, 3]), (second, [4])):
        copy.add(pa.table({"value": values}))
    drained = [pa.Table.from_batches([copy.drain()]) for copy in (first, again, second)]
    table.adopt(pa.concat_tables([drained[1], drained[2]]))  # the first attempt of a task was repeated
    table.commit()
    assert staged(storage) == [1, 2, 3, 4]
    assert first.drain().num_rows == 0
    files = {path.name for path in Path(storage.root, "staged").rglob("*.parquet")}
    assert len(files) == 4


def test_a_copy_without_a_row_writes_no_file(storage: LocalStorage) -> None:
    table = new_table(storage)
    table.adopt(pa.Table.from_batches([pickle.loads(pickle.dumps(table)).drain()]))
    table.commit()
    assert staged(storage) == []


def test_a_copy_that_outlives_the_staging_area_leaves_nothing(storage: LocalStorage) -> None:
    copy = pickle.loads(pickle.dumps(new_table(storage)))
    storage.remove("staged")
    copy.add(pa.table({"value": [1]}))
    with pytest.raises(FileNotFoundError):
        copy.drain()
    assert not Path(storage.root, "staged").exists()


def test_a_file_that_only_a_worker_sees_is_refused(storage: LocalStorage) -> None:
    table = new_table(storage)
    copy = pickle.loads(pickle.dumps(table))
    copy.add(pa.table({"value": [1]}))
    files = pa.Table.from_batches([copy.drain()])
    for path in Path(storage.root, "staged").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(ResultsError, match="the file that a worker wrote there; use a folder that all machines share"):
        table.adopt(files)


def test_files_are_listed_as_they_are_named_on_the_disk(storage: LocalStorage) -> None:
    for file in local_writes.data_files(storage, TABLE):
        assert Path(storage.root, TABLE, file.path).stat().st_size == file.size
    read = pq.ParquetFile(Path(storage.root, TABLE, file_of(storage, ODD).path)).read()
    assert read.to_pydict() == {"value": [1, 2, 3]}


def test_rows_of_a_file_change_in_one_commit_and_other_readers_see_it(storage: LocalStorage) -> None:
    odd, plain = (file_of(storage, night) for night in (ODD, PLAIN))
    rewrite(storage, {odd: lambda part: part.filter(pc.field("value") > 1), plain: None})
    assert values_of(storage) == [2, 3]
    assert sorted(polars.read_delta(f"{storage.root}/{TABLE}")["value"]) == [2, 3]
    opened = deltalake.DeltaTable(f"{storage.root}/{TABLE}")
    assert (opened.version(), [file["num_records"] for file in pa.table(opened.get_add_actions()).to_pylist()]) == (
        1,
        [2],
    )


def test_a_file_without_a_row_left_is_not_added(storage: LocalStorage) -> None:
    before = set(Path(storage.root, TABLE).rglob("*.parquet"))
    rewrite(storage, {file_of(storage, ODD): lambda part: part.slice(0, 0)})
    assert values_of(storage) == [4]
    assert set(Path(storage.root, TABLE).rglob("*.parquet")) == before


def test_a_disk_that_fails_leaves_the_table_and_no_file(storage: LocalStorage) -> None:
    before = set(Path(storage.root, TABLE).rglob("*.parquet"))

    def fail(_: pa.RecordBatch) -> pa.RecordBatch:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        rewrite(storage, {file_of(storage, ODD): fail})
    assert values_of(storage) == [1, 2, 3, 4]
    assert set(Path(storage.root, TABLE).rglob("*.parquet")) == before


def test_small_files_of_a_night_become_one(storage: LocalStorage) -> None:
    opened = deltalake.DeltaTable(f"{storage.root}/{TABLE}")
    for value in (5, 6):
        deltalake.write_deltalake(opened, rows({ODD: [value]}), mode="append")
    assert merged(storage) == (3, 1)
    assert merged(storage) == (0, 0)
    assert values_of(storage) == [1, 2, 3, 4, 5, 6]


def test_files_that_lack_a_newer_column_are_merged_with_those_that_have_it(storage: LocalStorage) -> None:
    more = {"name": "more", "type": "double", "nullable": True, "metadata": {}}
    LocalTables(None, storage).add_columns(TABLE, [more])
    newer = rows({ODD: [5]}).append_column("more", pa.array([0.5]))
    deltalake.write_deltalake(f"{storage.root}/{TABLE}", newer, mode="append")
    before = local_tables.scan(storage, TABLE).to_table().sort_by("value")
    assert merged(storage) == (2, 1)
    assert local_tables.scan(storage, TABLE).to_table().sort_by("value") == before
    assert before["more"].to_pylist() == [None, None, None, None, 0.5]
    assert sorted(polars.read_delta(f"{storage.root}/{TABLE}")["value"]) == [1, 2, 3, 4, 5]


def test_large_files_stay_and_merged_ones_end_near_the_limit(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (5, 6, 7):
        deltalake.write_deltalake(f"{storage.root}/{TABLE}", rows({ODD: [value]}), mode="append")
    sizes = sorted(file.size for file in local_writes.data_files(storage, TABLE) if file.night == ODD)
    monkeypatch.setattr(local_writes, "SMALL", sizes[-1] + 1)  # two of them exceed it
    assert merged(storage) == (4, 2)
    assert values_of(storage) == [1, 2, 3, 4, 5, 6, 7]
    monkeypatch.setattr(local_writes, "SMALL", 1)
    assert merged(storage) == (0, 0)


def test_a_disk_that_is_full_while_files_are_merged_leaves_the_table_and_no_file(storage: LocalStorage) -> None:
    many = list(range(20_000))
    for _ in range(2):
        deltalake.write_deltalake(f"{storage.root}/{TABLE}", rows({ODD: many}), mode="append")
    before, n_rows = set(Path(storage.root, TABLE).rglob("*.parquet")), len(values_of(storage))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            merged(storage)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert set(Path(storage.root, TABLE).rglob("*.parquet")) == before
    assert len(values_of(storage)) == n_rows


@pytest.mark.parametrize("is_vacuumed", [True, False])
def test_only_files_that_no_version_needs_and_that_are_old_are_deleted(
    storage: LocalStorage, is_vacuumed: bool
) -> None:
    folder = Path(storage.root, TABLE)
    deltalake.DeltaTable(str(folder)).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 8 days"}
    )
    changed = {file_of(storage, ODD): lambda part: part.filter(pc.field("value") > 1)}
    LocalTables(None, storage).rewrite_files(TABLE, changed, after=1)
    for name, mtime in (("old.parquet", 0), ("new.parquet", None)):
        (folder / name).touch()
        if mtime is not None:
            os.utime(folder / name, (mtime, mtime))
    before = set(folder.rglob("*.parquet"))
    assert LocalTables(None, storage).vacuum(TABLE, deletes=is_vacuumed) == 1
    assert before - set(folder.rglob("*.parquet")) == ({folder / "old.parquet"} if is_vacuumed else set())
    assert values_of(storage) == [2, 3, 4]
    assert sorted(local_tables.scan(storage, TABLE, version=0).to_table()["value"].to_pylist()) == [1, 2, 3, 4]


def test_a_list_of_unneeded_files_that_names_a_needed_one_is_refused(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = pa.table(deltalake.DeltaTable(f"{storage.root}/{TABLE}").get_add_actions())["path"].to_pylist()
    monkeypatch.setattr(deltalake.DeltaTable, "vacuum", lambda *_, **__: needed[:1])
    with pytest.raises(ResultsError, match="1 files of its newest version among those to be deleted"):
        LocalTables(None, storage).vacuum(TABLE, deletes=True)

"""Tables on a local disk: nights that are replaced, files that are rewritten, merged, or needed by no version."""

from __future__ import annotations

import os
import pickle
import resource
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deltalake
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rankeval_spark import schemas
from rankeval_spark.errors import ResultsError
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import data_files, delta_log, table_scans, tables
from rankeval_spark.results.data_files import FileWriter, restore_action
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import Storage
from tests.support.delta_tables import write_by_night, write_new

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rankeval_spark.results.data_files import DataFile

CHECKS: Final = schemas.CHECKS.name
NUMBERS: Final = "numbers"
ODD: Final = NightKey("nightly 100%/é=:x", date(2026, 1, 1))
PLAIN: Final = NightKey("nightly", date(2026, 1, 1))
EVENT: Final = {"evaluation": "a", "evaluation_date": date(2026, 1, 1), "run_id": "r", "recorded_at": 0}


@pytest.fixture
def root(tmp_path: Path) -> ResultTables:
    """Give a root with an empty table of checks, and numbers of two nights, one with a name that is escaped."""
    storage = Storage(str(tmp_path / "results"))
    tables.create_table(storage, schemas.CHECKS)
    write_new(storage, NUMBERS, rows({ODD: [1, 2, 3], PLAIN: [4]}))
    return ResultTables(storage)


def rows(values: Mapping[NightKey, list[int]]) -> pa.Table:
    flat = [(night.evaluation, night.evaluation_date, value) for night, own in values.items() for value in own]
    return pa.table(
        dict(zip(("evaluation", "evaluation_date", "value"), map(list, zip(*flat, strict=True)), strict=True))
    )


def read(root: ResultTables, table: str, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of a scan
    return table_scans.to_rows(table_scans.scan(root.storage, table, **options).to_table())


def values_of(root: ResultTables, table: str = NUMBERS, **options: Any) -> list[int]:  # noqa: ANN401 - of a scan
    return sorted(row["value"] for row in read(root, table, **options))


def publish(root: ResultTables, night: NightKey, run_id: str, *checks: str) -> int:
    """Write a row for each check and let these be the rows of a night; return the version."""
    row = {"run_id": run_id, "evaluation": night.evaluation, "evaluation_date": night.evaluation_date, "input": "items"}
    counted = {"severity": "warn", "count": 1, "verdict": "ok", "sample_keys": ["a"]}
    columns = pa.schema(deltalake.DeltaTable(f"{root.storage.root}/{CHECKS}").schema().to_arrow())
    written = pa.Table.from_pylist([{**row, **counted, "check": check} for check in checks], schema=columns)
    return root.replace_night(CHECKS, night, run_id, write_by_night(root.storage, CHECKS, written, run_id=run_id))


def checks_of(root: ResultTables, version: int | None = None) -> list[tuple[str, str, str]]:
    return sorted((row["evaluation"], row["run_id"], row["check"]) for row in read(root, CHECKS, version=version))


def test_rows_of_a_night_are_replaced_and_others_stay(root: ResultTables) -> None:
    publish(root, PLAIN, "other", "rows")
    publish(root, ODD, "first", "rows", "models")
    publish(root, ODD, "second", "rows")
    other, name = ("nightly", "other", "rows"), ODD.evaluation
    assert checks_of(root) == [other, (name, "second", "rows")]
    assert checks_of(root, version=2) == [other, (name, "first", "models"), (name, "first", "rows")]
    assert delta_log.find_commit(root.storage, CHECKS, tag="second", after=0) == 3
    assert root.reader.nights(CHECKS) == {(night.evaluation, night.evaluation_date) for night in (PLAIN, ODD)}
    own = [("evaluation", "=", ODD.evaluation), ("evaluation_date", "in", [ODD.evaluation_date])]
    assert [row["run_id"] for row in read(root, CHECKS, where=own)] == ["second"]


def test_night_without_files_has_no_rows(root: ResultTables) -> None:
    publish(root, ODD, "first", "rows")
    assert root.reader.nights(CHECKS) == {(ODD.evaluation, ODD.evaluation_date)}
    root.replace_night(CHECKS, ODD, "second", [])
    assert root.reader.nights(CHECKS) == set()
    assert checks_of(root) == []


def test_an_earlier_version_of_a_night_is_restored_by_the_names_of_its_files(root: ResultTables) -> None:
    publish(root, PLAIN, "other", "rows")
    first = publish(root, ODD, "first", "rows", "models")
    before = set(Path(root.storage.root, CHECKS).rglob("*.parquet"))
    publish(root, ODD, "second", "rows")
    restored = root.restore_night(CHECKS, ODD, "third", first)
    assert [run for _, run, _ in checks_of(root)] == ["other", "first", "first"]
    assert {Path(file) for file in deltalake.DeltaTable(f"{root.storage.root}/{CHECKS}").file_uris()} == before
    assert polars.read_delta(f"{root.storage.root}/{CHECKS}").height == 3
    assert root.restore_night(CHECKS, ODD, "again", first) == restored  # which has these files
    assert root.restore_night(CHECKS, ODD, "none", None) == restored + 1
    assert [run for _, run, _ in checks_of(root)] == ["other"]


def test_files_that_a_version_names_are_not_committed_twice(root: ResultTables) -> None:
    columns = pa.schema(deltalake.DeltaTable(f"{root.storage.root}/{CHECKS}").schema().to_arrow())
    version = publish(root, ODD, "first", "rows")
    adds = [restore_action(file) for file in data_files.data_files(root.storage, CHECKS, night=ODD)]
    assert root.replace_night(CHECKS, ODD, "first", adds) == version
    assert columns.names == deltalake.DeltaTable(f"{root.storage.root}/{CHECKS}").schema().to_arrow().names


def test_readers_that_take_the_night_from_the_folders_find_it(root: ResultTables) -> None:
    publish(root, PLAIN, "first", "rows")
    columns = ["evaluation", "evaluation_date", "check"]
    found = polars.read_delta(f"{root.storage.root}/{CHECKS}", columns=columns)
    assert found.rows() == [(PLAIN.evaluation, PLAIN.evaluation_date, "rows")]


def test_row_without_a_value_that_its_table_demands_is_not_appended(root: ResultTables) -> None:
    tables.create_table(root.storage, schemas.RUNS)
    with pytest.raises(ValueError, match="table runs: no value for status"):
        root.append_events([EVENT], tag="r", after=0)
    root.append_events([{**EVENT, "status": "RUNNING"}], tag="r", after=0)
    assert [row["status"] for row in read(root, "runs")] == ["RUNNING"]


def test_rows_of_several_nights_are_one_commit(root: ResultTables) -> None:
    tables.create_table(root.storage, schemas.RUNS)
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    nights = [{"evaluation": name, "evaluation_date": day} for name in ("a", "é %/") for day in days]
    root.append_events([{**EVENT, **night, "status": "MAINTAINED"} for night in nights], tag="r", after=0)
    found = read(root, "runs", where=[("evaluation", "=", "é %/")])
    assert {row["evaluation_date"] for row in found} == {*days}
    assert delta_log.latest_version(root.storage, "runs") == 1


@pytest.fixture
def writer(root: ResultTables) -> FileWriter:
    """Write rows of one column, to each part of which the night is added."""
    made = FileWriter(root.storage, NUMBERS, ODD, "run", with_night)
    made.make_folder()
    return made


def with_night(part: pa.Table) -> pa.Table:
    return rows({ODD: part["value"].to_pylist()})


def copy_of(writer: FileWriter, values: list[int]) -> FileWriter:
    """Give a copy as a worker of Spark has it, with some rows."""
    copy: FileWriter = pickle.loads(pickle.dumps(writer))
    if values:
        copy.add(pa.table({"value": values}))
    return copy


def test_files_of_copies_are_in_the_table_that_adopts_them(root: ResultTables, writer: FileWriter) -> None:
    writer.add(pa.table({"value": [1]}))
    first, again, second = (copy_of(writer, values) for values in ([2, 3], [2, 3], [4]))
    drained = [pa.Table.from_batches([copy.drain()]) for copy in (first, again, second)]
    writer.adopt(pa.concat_tables([drained[1], drained[2]]))  # the first attempt of a task was repeated
    before = files_on_disk(root)
    root.replace_night(NUMBERS, ODD, "run", writer.finish())
    assert values_of(root, where=[("evaluation", "=", ODD.evaluation)]) == [1, 2, 3, 4]
    assert first.drain().num_rows == 0
    assert len([path for path in files_on_disk(root) if path.name.startswith("run.")]) == 4
    assert len(files_on_disk(root) - before) == 1  # that of this process, which had waited for more rows


def test_a_copy_without_a_row_writes_no_file(root: ResultTables, writer: FileWriter) -> None:
    before = files_on_disk(root)
    writer.adopt(pa.Table.from_batches([copy_of(writer, []).drain()]))
    assert (writer.finish(), files_on_disk(root)) == ([], before)


def test_a_file_that_only_a_worker_sees_is_refused(root: ResultTables, writer: FileWriter) -> None:
    files = pa.Table.from_batches([copy_of(writer, [1]).drain()])
    for path in Path(root.storage.root, NUMBERS).rglob("run.*.parquet"):
        path.unlink()
    with pytest.raises(ResultsError, match="the file that a worker wrote there; use a folder that all machines share"):
        writer.adopt(files)


def files_on_disk(root: ResultTables) -> set[Path]:
    return set(Path(root.storage.root, NUMBERS).rglob("*.parquet"))


def rewrite(
    root: ResultTables, change: Callable[[pa.RecordBatch], pa.RecordBatch], *nights: NightKey, after: int = 0
) -> None:
    """Change the rows of the odd night, and delete those of others."""
    (own,) = data_files.data_files(root.storage, NUMBERS, night=ODD)
    others = [file for night in nights for file in data_files.data_files(root.storage, NUMBERS, night=night)]
    files: dict[DataFile, Callable[[pa.RecordBatch], pa.RecordBatch] | None] = {own: change}
    root.rewrite_files(NUMBERS, {**files, **dict.fromkeys(others)}, after=after)


def above_one(part: pa.RecordBatch) -> pa.RecordBatch:
    return part.filter(pc.field("value") > 1)


def append(root: ResultTables, values: list[int]) -> None:
    deltalake.write_deltalake(f"{root.storage.root}/{NUMBERS}", rows({ODD: values}), mode="append")


def test_files_are_listed_as_they_are_named_on_the_disk(root: ResultTables) -> None:
    folder = Path(root.storage.root, NUMBERS)
    for file in data_files.data_files(root.storage, NUMBERS):
        assert (folder / file.path).stat().st_size == file.size
    (odd,) = data_files.data_files(root.storage, NUMBERS, night=ODD)
    assert pq.ParquetFile(folder / odd.path).read().to_pydict() == {"value": [1, 2, 3]}


def test_rows_of_a_file_change_in_one_commit_and_other_readers_see_it(root: ResultTables) -> None:
    rewrite(root, above_one, PLAIN)
    assert values_of(root) == [2, 3]
    assert sorted(polars.read_delta(f"{root.storage.root}/{NUMBERS}")["value"]) == [2, 3]
    opened = deltalake.DeltaTable(f"{root.storage.root}/{NUMBERS}")
    n_records = [file["num_records"] for file in pa.table(opened.get_add_actions()).to_pylist()]
    assert (opened.version(), n_records) == (1, [2])


def test_a_file_without_a_row_left_is_not_added(root: ResultTables) -> None:
    before = files_on_disk(root)
    rewrite(root, lambda part: part.slice(0, 0))
    assert values_of(root) == [4]
    assert files_on_disk(root) == before


def test_a_disk_that_fails_leaves_the_table_and_no_file(root: ResultTables) -> None:
    def fail(_: pa.RecordBatch) -> pa.RecordBatch:
        raise OSError(28, "No space left on device")

    before = files_on_disk(root)
    with pytest.raises(OSError, match="No space left"):
        rewrite(root, fail)
    assert values_of(root) == [1, 2, 3, 4]
    assert files_on_disk(root) == before


def test_small_files_of_a_night_become_one(root: ResultTables) -> None:
    for value in (5, 6):
        append(root, [value])
    assert root.merge_files(NUMBERS) == (3, 1)
    assert root.merge_files(NUMBERS) == (0, 0)
    assert values_of(root) == [1, 2, 3, 4, 5, 6]


def test_files_that_lack_a_newer_column_are_merged_with_those_that_have_it(root: ResultTables) -> None:
    root.add_columns(NUMBERS, [{"name": "more", "type": "double", "nullable": True, "metadata": {}}])
    newer = rows({ODD: [5]}).append_column("more", pa.array([0.5]))
    deltalake.write_deltalake(f"{root.storage.root}/{NUMBERS}", newer, mode="append")
    before = sorted(read(root, NUMBERS), key=lambda row: row["value"])
    assert root.merge_files(NUMBERS) == (2, 1)
    assert sorted(read(root, NUMBERS), key=lambda row: row["value"]) == before
    assert [row["more"] for row in before] == [None, None, None, None, 0.5]
    assert sorted(polars.read_delta(f"{root.storage.root}/{NUMBERS}")["value"]) == [1, 2, 3, 4, 5]


def test_large_files_stay_and_merged_ones_end_near_the_limit(
    root: ResultTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (5, 6, 7):
        append(root, [value])
    largest = max(file.size for file in data_files.data_files(root.storage, NUMBERS, night=ODD))
    monkeypatch.setattr(data_files, "SMALL", largest + 1)  # two of them exceed it
    assert root.merge_files(NUMBERS) == (4, 2)
    assert values_of(root) == [1, 2, 3, 4, 5, 6, 7]
    monkeypatch.setattr(data_files, "SMALL", 1)
    assert root.merge_files(NUMBERS) == (0, 0)


def test_a_disk_that_is_full_while_files_are_merged_leaves_the_table_and_no_file(root: ResultTables) -> None:
    for _ in range(2):
        append(root, list(range(20_000)))
    before, n_rows = files_on_disk(root), len(values_of(root))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            root.merge_files(NUMBERS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files_on_disk(root) == before
    assert len(values_of(root)) == n_rows


@pytest.mark.parametrize("is_vacuumed", [True, False])
def test_only_files_that_no_version_needs_and_that_are_old_are_deleted(root: ResultTables, is_vacuumed: bool) -> None:
    folder = Path(root.storage.root, NUMBERS)
    retention = {"delta.deletedFileRetentionDuration": "interval 8 days"}
    deltalake.DeltaTable(str(folder)).alter.set_table_properties(retention)
    rewrite(root, above_one, after=1)
    (folder / "new.parquet").touch()
    (folder / "old.parquet").touch()
    os.utime(folder / "old.parquet", (0, 0))
    before = files_on_disk(root)
    assert root.vacuum(NUMBERS, deletes=is_vacuumed) == 1
    assert before - files_on_disk(root) == ({folder / "old.parquet"} if is_vacuumed else set())
    assert values_of(root) == [2, 3, 4]
    assert values_of(root, version=0) == [1, 2, 3, 4]


def test_a_list_of_unneeded_files_that_names_a_needed_one_is_refused(
    root: ResultTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = pa.table(deltalake.DeltaTable(f"{root.storage.root}/{NUMBERS}").get_add_actions())["path"].to_pylist()
    monkeypatch.setattr(deltalake.DeltaTable, "vacuum", lambda *_, **__: needed[:1])
    with pytest.raises(ResultsError, match="1 files of its newest version among those to be deleted"):
        root.vacuum(NUMBERS, deletes=True)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"key": "check string"}, r"table checks: found other columns than this version declares \(no check\)"),
        ({"key": "share double"}, r"table checks: found other columns than this version declares \(no share\)"),
        ({"type": "count int"}, r"table checks: found other columns .* \(count int\)"),
        ({"more": "hint string"}, r"table checks: found other columns .* \(hint string\)"),
    ],
)
def test_a_table_of_other_columns_than_declared_is_refused(change: dict[str, str], found: str) -> None:
    fields = {field["name"]: field for field in columns_json(schemas.CHECKS)["fields"]}
    ((kind, column),) = change.items()
    name, type_ = column.split()
    if kind == "key":
        del fields[name]
    else:
        fields[name] = {"name": name, "type": {"int": "integer"}.get(type_, type_)}
    with pytest.raises(ResultsError, match=found):
        tables.require_declared({"fields": [*fields.values()]}, schemas.CHECKS)

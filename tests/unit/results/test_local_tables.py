"""Tables on a local disk: what a commit of ours does to a table, and which roots are left to Spark."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any, Final

import deltalake
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from rankeval_spark import schemas
from rankeval_spark.results import delta_log, local_tables, local_writes, tables
from rankeval_spark.results.file_store import LocalStorage
from rankeval_spark.results.local_writes import LocalTables
from rankeval_spark.results.run_record import NightKey

TABLE: Final = schemas.CHECKS.name
NIGHT: Final = NightKey("nightly 100%/é", date(2026, 1, 1))
OTHER: Final = NightKey("nightly", date(2026, 1, 1))


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """Give a root with an empty table of checks."""
    storage = LocalStorage(str(tmp_path / "results"))
    tables.create_table(storage, schemas.CHECKS)
    return storage


def publish(storage: LocalStorage, night: NightKey, run_id: str, *checks: str) -> None:
    """Stage a row for each check and let these be the rows of a night."""
    staged = f"_staging/{run_id}/{TABLE}"
    row = {"run_id": run_id, "evaluation": night.evaluation, "evaluation_date": night.evaluation_date, "input": "items"}
    counted = {"severity": "warn", "count": 1, "verdict": "ok", "sample_keys": ["a"]}
    columns = pa.schema(deltalake.DeltaTable(f"{storage.root}/{TABLE}").schema().to_arrow())
    rows = pa.Table.from_pylist([{**row, **counted, "check": check} for check in checks], schema=columns)
    local_writes.write_new(storage, staged, rows)
    LocalTables(None, storage).replace_by_staged(TABLE, night, run_id, staged)


def rows_of(table: ds.Dataset) -> list[dict[str, Any]]:
    return local_tables.to_rows(table.to_table())


def nights_of(storage: LocalStorage) -> set[tuple[str, date]]:
    return local_tables.NativeReader(storage.root).nights(TABLE)


def found(storage: LocalStorage, version: int | None = None) -> list[tuple[str, str, str]]:
    rows = rows_of(local_tables.scan(storage, TABLE, version=version))
    return sorted((row["evaluation"], row["run_id"], row["check"]) for row in rows)


def test_rows_of_a_night_are_replaced_and_others_stay(storage: LocalStorage) -> None:
    publish(storage, OTHER, "other", "rows")
    publish(storage, NIGHT, "first", "rows", "models")
    publish(storage, NIGHT, "second", "rows")

    assert found(storage) == [("nightly", "other", "rows"), ("nightly 100%/é", "second", "rows")]
    assert found(storage, version=2) == [
        ("nightly", "other", "rows"),
        ("nightly 100%/é", "first", "models"),
        ("nightly 100%/é", "first", "rows"),
    ]
    assert delta_log.find_commit(storage, TABLE, tag="second", after=0) == 3
    assert nights_of(storage) == {(night.evaluation, night.evaluation_date) for night in (OTHER, NIGHT)}
    own = [("evaluation", "=", NIGHT.evaluation), ("evaluation_date", "in", [NIGHT.evaluation_date])]
    assert [row["run_id"] for row in rows_of(local_tables.scan(storage, TABLE, where=own))] == ["second"]


def test_night_without_files_has_no_rows(storage: LocalStorage) -> None:
    publish(storage, NIGHT, "first", "rows")
    assert nights_of(storage) == {(NIGHT.evaluation, NIGHT.evaluation_date)}
    LocalTables(None, storage).replace_by_staged(TABLE, NIGHT, "second", None)
    assert nights_of(storage) == set()
    assert found(storage) == []


def test_published_rows_stay_when_their_staging_is_removed(storage: LocalStorage) -> None:
    publish(storage, NIGHT, "first", "rows")
    storage.remove("_staging")
    assert found(storage) == [("nightly 100%/é", "first", "rows")]


def test_readers_that_take_the_night_from_the_folders_find_it(storage: LocalStorage) -> None:
    publish(storage, OTHER, "first", "rows")
    found = polars.read_delta(f"{storage.root}/{TABLE}", columns=["evaluation", "evaluation_date", "check"])
    assert found.rows() == [(OTHER.evaluation, OTHER.evaluation_date, "rows")]


def test_files_are_copied_where_a_disk_has_no_links(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    publish(storage, NIGHT, "first", "rows")
    assert found(storage) == [("nightly 100%/é", "first", "rows")]


def test_row_without_a_value_that_its_table_demands_is_not_appended(storage: LocalStorage) -> None:
    tables.create_table(storage, schemas.RUNS)
    event = {"evaluation": "a", "evaluation_date": date(2026, 1, 1), "run_id": "r", "recorded_at": 0}
    with pytest.raises(ValueError, match="table runs: no value for status"):
        LocalTables(None, storage).append_events([event], tag="r", after=0)
    LocalTables(None, storage).append_events([{**event, "status": "RUNNING"}], tag="r", after=0)
    assert [row["status"] for row in rows_of(local_tables.scan(storage, "runs"))] == ["RUNNING"]


def test_rows_of_several_nights_are_one_commit(storage: LocalStorage) -> None:
    tables.create_table(storage, schemas.RUNS)
    event = {"run_id": "r", "recorded_at": 0, "status": "MAINTAINED"}
    nights = [(name, date(2026, 1, day)) for name in ("a", "é %/") for day in (1, 2)]
    rows = [{**event, "evaluation": name, "evaluation_date": day} for name, day in nights]
    LocalTables(None, storage).append_events(rows, tag="r", after=0)
    found = rows_of(local_tables.scan(storage, "runs", where=[("evaluation", "=", "é %/")]))
    assert {row["evaluation_date"] for row in found} == {date(2026, 1, 1), date(2026, 1, 2)}
    assert delta_log.latest_version(storage, "runs") == 1


@pytest.mark.parametrize(
    ("root", "is_ours"),
    [("/data/a b{c}", True), ("/data/100%", True), ("/data/a[1]", False), ("/data/a%20b", False), ("/data/a|b", False)],
)
def test_roots_that_the_library_cannot_open_are_left_to_spark(root: str, is_ours: bool) -> None:
    assert local_tables.are_at(LocalStorage(root)) is is_ours

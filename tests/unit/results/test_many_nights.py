"""Results of thousands of nights: ``runs`` has few files, and commands read few files of the other tables."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark.report.night import MAX_NIGHTS
from rankeval_spark.results import data_files, journal, tables
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.roots import claim_root
from rankeval_spark.results.run_record import NightKey, RunRecord
from rankeval_spark.results.storage import Storage
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST, Workspace

N_NIGHTS: Final = 2_000
"""Nights before the first of the workspace, as many as there are rows in three files of ``runs``."""

MOST_FILES: Final = 64
"""Files of one table that a command plans to read: a few of ``runs``, and those of the 56 nights of the drift check."""

SECONDS: Final = 10.0
"""Of the processor; it takes about one. With a file for each event it was ten on this many nights."""


def storage_at(folder: Path) -> Storage:
    storage = Storage(str(folder))
    claim_root(storage, create=True)
    for schema in tables.missing_tables(storage):
        tables.create_table(storage, schema)
    return storage


def record(storage: Storage, number: int) -> None:
    facts = RunRecord("nightly", date(2026, 1, 1) + timedelta(number), f"run-{number}")
    journal.record(ResultTables(storage), journal.run_event(facts, "RUNNING"))


def opened(storage: Storage, table: str = "runs", version: int | None = None) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(f"{storage.root}/{table}", version=version)


def test_events_of_many_nights_are_merged_while_they_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Storage.merge_every == 100
    monkeypatch.setattr(Storage, "merge_every", 55)
    storage, n_events = storage_at(tmp_path), 2 * Storage.merge_every + 10
    for number in range(n_events):
        record(storage, number)
    runs = opened(storage)
    assert len(runs.file_uris()) < Storage.merge_every
    assert runs.protocol().min_reader_version == 1
    assert sorted(runs.to_pyarrow_table()["run_id"].to_pylist()) == sorted(f"run-{n}" for n in range(n_events))
    assert opened(storage, version=Storage.merge_every).to_pyarrow_table().num_rows == Storage.merge_every
    assert (tmp_path / "runs/_delta_log/_last_checkpoint").exists()


def test_full_files_of_events_are_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "FEW_EVENTS", 5)
    storage = storage_at(tmp_path)
    for number in range(7):
        record(storage, number)
    assert ResultTables(storage).merge_files("runs") == (7, 2)
    (full,) = (file for file in opened(storage).file_uris() if pq.read_metadata(file).num_rows == 5)
    record(storage, 7)
    assert ResultTables(storage).merge_files("runs") == (2, 1)
    assert full in opened(storage).file_uris()
    assert opened(storage).to_pyarrow_table().num_rows == 8


def with_history(workspace: Workspace) -> None:
    """Give a workspace with one published night as many before it, each with rows of every table, in few commits."""
    storage = Storage(workspace.root)
    days = [FIRST - timedelta(days=number) for number in range(N_NIGHTS, 0, -1)]
    for schema in tables.TABLES[1:]:
        opened_table = opened(storage, schema.name)
        files = data_files.data_files(storage, schema.name, night=NightKey("nightly", FIRST))
        adds = [add_of(storage, schema.name, file, day) for day in days for file in files]
        data_files.commit(storage, schema.name, opened_table.version(), adds)
    events = journal.event_frame(storage.root)
    start = datetime(2000, 1, 1, tzinfo=UTC)
    rows = []
    for n, day in enumerate(days):
        own = {"evaluation_date": day, "run_id": f"run-{day}"}
        times = (start + timedelta(minutes=3 * n + step) for step in range(len(events)))
        rows += [{**event, **own, "recorded_at": at} for event, at in zip(events, times, strict=True)]
    version = opened(storage).version()
    ResultTables(storage).append_events(rows, tag="history", after=version)
    versions = {schema.name: opened(storage, schema.name).version() for schema in tables.TABLES[1:]}
    newest = {**events[-1], "table_versions": versions, "recorded_at": datetime.now(UTC)}
    ResultTables(storage).append_events([newest], tag="newest", after=version + 1)


def add_of(storage: Storage, table: str, file: data_files.DataFile, day: date) -> dict[str, Any]:
    night = NightKey("nightly", day)
    path = f"{data_files.folder_of(night)}/{Path(file.path).name}"
    target = Path(storage.root, table, path)
    target.parent.mkdir(parents=True)
    target.hardlink_to(Path(storage.root, table, file.path))
    return data_files.add_action(f"{storage.root}/{table}", path, night, stats=json.dumps({"numRecords": file.n_rows}))


@pytest.fixture(scope="module")
def long_history(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    rules = [
        {"measure": "nDCG@2", "at_least": 0.0},
        {"measure": "nDCG@2", "against": "previous", "least_gain": -1.0},
    ]
    workspace = nights.workspace(tmp_path_factory.mktemp("long"), comparisons__baseline="pop", gates=rules)
    assert rankeval("run", workspace.config, "--date", FIRST).code == 0
    with_history(workspace)
    return workspace


COMMANDS: Final[dict[str, tuple[Any, ...]]] = {
    "show": ("show",),
    "comparisons of the first night": ("show", "--date", FIRST - timedelta(days=N_NIGHTS), "--comparisons"),
    "runs": ("runs", "--json"),
    "gate": ("gate",),
    "compare": ("compare", "--against", "previous"),
    "report": ("report", "--out", "report.html"),
    "user": ("user", "ann"),
    "maintain": ("maintain",),
    "run": ("run", "--date", nights.SECOND),
    "backfill": ("backfill", "--missing", "--from", FIRST - timedelta(days=30), "--to", FIRST),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reads_few_files_after_thousands_of_nights(
    long_history: Workspace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command, *arguments = COMMANDS[name]
    n_files: dict[str, int] = {}
    planned = deltalake.DeltaTable.to_pyarrow_dataset

    def counted(table: deltalake.DeltaTable, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - a dataset
        dataset, of_table = planned(table, *arguments, **options), Path(table.table_uri).name
        n_files[of_table] = max(n_files.get(of_table, 0), len(dataset.files))
        return dataset

    if command != "maintain":  # it reads all there is to merge
        monkeypatch.setattr(deltalake.DeltaTable, "to_pyarrow_dataset", counted)
    where = long_history.config if command in ("run", "backfill") else long_history.root
    began = time.process_time()
    monkeypatch.chdir(Path(long_history.root).parent)  # where the report goes
    done = rankeval(command, where, *arguments)
    seconds = time.process_time() - began
    assert done.code in (0, 6), done.err
    assert done.out
    assert seconds < SECONDS
    most = MAX_NIGHTS if command == "report" else MOST_FILES
    assert {table: n for table, n in n_files.items() if n > most} == {}


def test_a_run_opens_each_version_of_a_table_once(long_history: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    opened_versions: list[tuple[str, int]] = []
    plain = deltalake.DeltaTable.__init__

    def counted(table: deltalake.DeltaTable, location: str, version: int | None = None) -> None:
        plain(table, location, version=version)
        opened_versions.append((location, table.version()))

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", counted)
    done = rankeval("run", long_history.config, "--date", nights.SECOND)
    assert done.code == 0, done.err
    of_results = [one for one in opened_versions if one[0].startswith(long_history.root)]
    assert len(of_results) == len(set(of_results)) >= len(tables.TABLES)


def test_every_event_of_thousands_of_nights_is_there(long_history: Workspace) -> None:
    runs = opened(Storage(long_history.root)).to_pyarrow_table()
    per_run = pa.table(runs).group_by("run_id").aggregate([("status", "count")])
    assert set(per_run["status_count"].to_pylist()) >= {3}
    assert per_run.num_rows >= N_NIGHTS + 1

"""Tables on an object store in memory: what the mirror of this machine must not hide."""

from __future__ import annotations

from datetime import date
from typing import Final

import deltalake
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from rankeval_spark import allowed_folders
from rankeval_spark.results import delta_log
from rankeval_spark.results.object_storage import ObjectStorage, open_objects
from rankeval_spark.results.result_tables import ResultTables
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.tables import PARTITIONS
from tests.support.delta_tables import write_by_night

ADDRESS: Final = "memory:///results"
NUMBERS: Final = "numbers"
FIRST, SECOND = (NightKey("nightly", date(2026, 1, day)) for day in (1, 2))


def rows(night: NightKey, value: int) -> pa.Table:
    return pa.table({
        "evaluation": [night.evaluation],
        "evaluation_date": [night.evaluation_date],
        "value": [value],
    })  # fmt: skip  # a column a line


def files_in(store: MemoryStore) -> set[str]:
    """Return the data files of the store itself."""
    paths = (entry["path"] for batch in store.list(prefix=NUMBERS) for entry in batch)
    return {path for path in paths if path.endswith(".parquet") and delta_log.LOG_FOLDER not in path}


@pytest.fixture
def store() -> MemoryStore:
    """Give a store with a table of two nights, of which the first was deleted, and a file that no version names."""
    store = MemoryStore()
    storage = ObjectStorage(ADDRESS, store)
    adds = [*write_by_night(storage, NUMBERS, rows(FIRST, 1))]
    adds += write_by_night(storage, NUMBERS, rows(SECOND, 2))
    delta_log.create_log(
        storage,
        NUMBERS,
        columns=deltalake.Schema.from_arrow(rows(FIRST, 1).schema).to_json(),
        partitions=PARTITIONS,
        adds=adds,
        configuration={"delta.deletedFileRetentionDuration": "interval 0 days"},
    )
    ResultTables(storage).delete_nights(NUMBERS, [FIRST])
    store.put(f"{NUMBERS}/evaluation=nightly/evaluation_date=2026-01-02/orphan.parquet", b"PAR1")
    return store


def test_files_that_no_version_needs_are_deleted_by_a_process_that_never_read_them(store: MemoryStore) -> None:
    before = files_in(store)
    tables = ResultTables(ObjectStorage(ADDRESS, store))

    assert tables.vacuum(NUMBERS, deletes=False) == 2
    assert files_in(store) == before
    assert tables.vacuum(NUMBERS, deletes=True) == 2

    (kept,) = files_in(store)
    assert kept.startswith(f"{NUMBERS}/evaluation=nightly/evaluation_date=2026-01-02/")
    assert "orphan" not in kept
    found = tables.reader.scan(NUMBERS).to_table()
    assert found["value"].to_pylist() == [2]


def test_a_root_of_one_address_is_another_at_another_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed_folders, "STORE_SETTINGS", settings := {})
    opened = []
    for endpoint in ("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:1"):
        settings["endpoint"] = endpoint
        opened.append(open_objects("s3://bucket/results"))
    first, second, again = opened
    assert first is again
    assert first is not second

"""Faults that a test plants into the product, to show that schedules find such faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from rankeval_spark import schemas
from rankeval_spark.results import journal, locks, publish, readers, run, table_scans
from rankeval_spark.results.locks import Lock
from rankeval_spark.results.object_storage import ObjectStorage
from rankeval_spark.results.result_tables import ResultTables

if TYPE_CHECKING:
    from rankeval_spark.results.staging import Staging

_is_free: Final = Lock._is_free


def _create(storage: Any, path: str, content: bytes) -> bool:  # noqa: ANN401 - in place of a method
    """Write a file whether it exists or not."""
    storage._store.put(path, content)
    return True


def _end(lock: Any, *, is_released: bool) -> None:  # noqa: ANN401 - in place of a method
    """Release a lock, whoever holds it by now."""
    lock._stop.set()
    with lock._writing, suppress(Exception):
        if is_released:
            lock._storage._store.put(lock._path, replace(lock._holder, released_at="now").to_json())
    lock._mark = None


def _mark_first(tables: ResultTables, event: journal.Event, staging: Staging, *, on_intent: Callable[[], None]) -> Any:  # noqa: ANN401 - in place of `publish`
    """Write the marker, with the versions that will be, before the tables."""
    state = publish.recover(tables)
    on_intent()
    announced = journal.record(tables, event, after=state.last_recorded)
    names = [schema.name for schema in schemas.PUBLISHED]
    versions = {table: version + 1 for table, version in tables.latest_versions(names).items()}
    journal.record(tables, {**event, "status": journal.PUBLISHED, "table_versions": versions}, after=announced)
    return publish._replace_night(tables, staging)


def _announce_nothing(tables: ResultTables, event: journal.Event, staging: Staging, **_: object) -> Any:  # noqa: ANN401 - as above
    """Replace the tables without an intent in the journal."""
    state = publish.recover(tables)
    versions = publish._replace_night(tables, staging)
    commit = {**event, "status": journal.PUBLISHED, "table_versions": versions}
    journal.record(tables, commit, after=state.last_recorded)
    return versions


def _read_newest(reader: Any, table: str, *, version: int | None = None, where: Any = ()) -> Any:  # noqa: ANN401, ARG001 - in place of a method
    """Read a table as it is now, whatever version is published."""
    return table_scans.scan(reader._storage, table, where=where)


def _take_soon(lock: Any, content: bytes, mark: Any) -> bool:  # noqa: ANN401 - in place of a method
    """Take the lock of a holder that was silent for ten seconds, less than it takes between two heartbeats."""
    now = vars(locks)["time"].monotonic()
    return _is_free(lock, content, mark) or now - lock._seen[1] > 10


def _trust_clocks(lock: Any, content: bytes, mark: Any) -> bool:  # noqa: ANN401 - in place of a method
    """Take a lock whose object looks old by the clock of this machine."""
    return _is_free(lock, content, mark) or lock._storage.age_of(lock._path, mark) > lock._times.stale_after


def _do_nothing(*_: object) -> None:
    """Do nothing, in place of a method."""


RARE: Final = (
    "an old holder that is not fenced off",
    "a holder that goes on without its lock",
    "a waiter that trusts its clock",
    "a dead run that nobody completes",
)
"""Faults that one in a hundred schedules finds, or one in two hundred."""

Plant = Callable[[], Any]  # returns a context in which the product has the fault
PLANTED: Final[Mapping[str, Plant]] = {
    "a commit without its condition": lambda: mock.patch.object(ObjectStorage, "create", _create),
    "a release that is not checked": lambda: mock.patch.object(Lock, "_end", _end),
    "a marker before its tables": lambda: mock.patch.object(run, "publish", _mark_first),
    "a publish without its intent": lambda: mock.patch.object(run, "publish", _announce_nothing),
    "an old holder that is not fenced off": lambda: mock.patch.object(ResultTables, "fence", _do_nothing),
    "a holder that goes on without its lock": lambda: mock.patch.object(Lock, "assert_held", _do_nothing),
    "a reader of the newest versions": lambda: mock.patch.object(readers.ArrowReader, "scan", _read_newest),
    "a holder that does not beat": lambda: mock.patch.object(Lock, "_beat", _do_nothing),
    "a waiter without patience": lambda: mock.patch.object(Lock, "_is_free", _take_soon),
    "a waiter that trusts its clock": lambda: mock.patch.object(Lock, "_is_free", _trust_clocks),
    "a dead run that nobody completes": lambda: mock.patch.object(publish, "recover", journal.read_state),
}

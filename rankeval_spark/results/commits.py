"""Commits to the tables of a root: locks, retries and fences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeGuard, TypeVar

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, local_tables
from rankeval_spark.results.delta_log import NO_OTHER_WRITER
from rankeval_spark.results.locks import Lock, LockTimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.file_store import LocalStorage, Storage

Made = TypeVar("Made")
ATTEMPTS: Final = 3
RUNS_LOCK: Final = "runs"
RUNS_WAIT_SECONDS: Final = 600.0
"""Patience with another commit to ``runs``, which takes a second; an abandoned lock is free after five minutes."""

_CONFLICT: Final = re.compile(r"\bDELTA_(?:CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)\b")
"""Delta's names for them. Its classes of exceptions are those of a Python package that a cluster need not have."""


@dataclass(frozen=True)
class Root:
    """A results root, and the lock under which its tables are written."""

    spark: SparkSession
    storage: Storage
    lock: Lock


class LocalRoot(Root):
    """A root on a disk of this machine."""

    storage: LocalStorage


def is_local_root(root: Root) -> TypeGuard[LocalRoot]:
    """Return whether this process writes the tables of a root itself."""
    return local_tables.are_at(root.storage)


def retried(storage: Storage, table: str, commit: Callable[[int], Made], *, held: Sequence[Lock]) -> Made:
    """Commit to a table while locks are held; retry a commit that was overtaken.

    A writer that was suspended for too long loses its locks, and may wake up at any line. So the newest version is read
    before the locks are checked, and ``commit`` makes the next one or fails: the process that takes over makes that
    version first, see :func:`fence`.
    """
    for attempt in range(1, ATTEMPTS + 1):
        seen = delta_log.latest_version(storage, table)
        for lock in held:
            lock.assert_held()
        try:
            return commit(seen)
        except Exception as error:
            for lock in held:  # whoever took one may be the cause
                lock.assert_held()
            if attempt == ATTEMPTS or not is_conflict(error):
                raise
    raise AssertionError  # pragma: no cover - the last attempt returned or raised


def fence(storage: Storage, owner: str) -> None:
    """Fence off a holder that lost the publish lock and may still be at work: it cannot commit to any table."""
    for schema in schemas.PUBLISHED:
        if delta_log.exists(storage, schema.name):
            delta_log.fence(storage, schema.name)
    if delta_log.exists(storage, schemas.RUNS.name):
        with turn_for_runs(storage, owner):
            delta_log.fence(storage, schemas.RUNS.name)


def is_conflict(error: Exception) -> bool:
    """Return whether a commit failed because another writer made the version, or wrote without the lock."""
    return isinstance(error, delta_log.OvertakenError) or _CONFLICT.search(str(error)) is not None


def turn_for_runs(storage: Storage, owner: str) -> Lock:
    """Return the lock under which one process at a time commits to ``runs``.

    Runs append to it side by side, and on a local disk Delta looks whether a commit exists before it renames its own
    into place: of two drivers that do so at once, the second would replace the commit of the first.
    """
    return Lock(storage, RUNS_LOCK, owner=owner, wait_seconds=RUNS_WAIT_SECONDS, times=LockTimes(poll=0.05))


def lost(table: str, run_id: str, before: int) -> ResultsError:
    """Build the error for a new commit that is not in the log of its table; Delta leaves it out after a fence."""
    found = f"no commit of run {run_id} after version {before}"
    return ResultsError(Fault(f"table {table}", found, "the commit that this run just made", NO_OTHER_WRITER))

"""Commits to the tables of a root: who may make them, and what happens to one that is overtaken."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeGuard, TypeVar

from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results.storage import local_tables
from rankeval_spark.results.storage.locks import Lock, LockTimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.storage.file_store import LocalStorage, Storage

Made = TypeVar("Made")

ATTEMPTS: Final = 3

RUNS_LOCK: Final = "runs"
RUNS_WAIT_SECONDS: Final = 600.0
"""Patience with another commit to ``runs``, which takes a second; a lock that was left behind is free after five
minutes."""

NO_OTHER_WRITER: Final = (
    "another writer without the lock, or a store that loses writes: let nothing else write to the root"
)
"""What to do where a commit has no effect."""

_CONFLICT: Final = re.compile(r"\bDELTA_(?:CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)\b")
"""Delta's names for them. Its classes of exceptions are those of a Python package that a cluster need not have."""


@dataclass(frozen=True)
class Root:
    """The results root, and the lock under which its tables are written."""

    spark: SparkSession
    storage: Storage
    lock: Lock


class LocalRoot(Root):
    """A root on a disk of this machine."""

    storage: LocalStorage


def is_local_root(root: Root) -> TypeGuard[LocalRoot]:
    """Return True if this process writes the tables of a root itself."""
    return local_tables.are_at(root.storage)


def retried(root: Root, commit: Callable[[], Made]) -> Made:
    """Commit to a table, while the lock is held; a commit that was overtaken is made again."""
    for attempt in range(1, ATTEMPTS + 1):
        root.lock.assert_held()
        try:
            return commit()
        except Exception as error:
            if attempt == ATTEMPTS or not is_conflict(error):
                raise
    raise AssertionError  # pragma: no cover - the last attempt returned or raised


def is_conflict(error: Exception) -> bool:
    """Return True if a commit failed because another program wrote to the table without the lock."""
    return isinstance(error, local_tables.CONFLICTS) or _CONFLICT.search(str(error)) is not None


def turn_for_runs(storage: Storage, owner: str) -> Lock:
    """Give the lock under which one process at a time commits to ``runs``.

    Runs append to it side by side, and on a local disk Delta looks whether a commit exists before it renames its own
    into place: of two drivers that do so at once, the second would replace the commit of the first.
    """
    return Lock(storage, RUNS_LOCK, owner=owner, wait_seconds=RUNS_WAIT_SECONDS, times=LockTimes(poll=0.05))


def lost(table: str, run_id: str, before: int) -> ResultsError:
    """Say that a commit that was just made is not in the log of its table."""
    found = f"no commit of run {run_id} after version {before}"
    return ResultsError(Fault(f"table {table}", found, "the commit that this run just made", NO_OTHER_WRITER))

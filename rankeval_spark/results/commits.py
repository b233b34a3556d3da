"""Commits to the tables of a root: who may make them, and what happens to one that is overtaken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from delta import exceptions as delta_exceptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.storage import Storage

Made = TypeVar("Made")

ATTEMPTS: Final = 3

CONFLICTS: Final = (
    delta_exceptions.DeltaConcurrentModificationException,
    delta_exceptions.ConcurrentWriteException,
    delta_exceptions.MetadataChangedException,
    delta_exceptions.ProtocolChangedException,
    delta_exceptions.ConcurrentAppendException,
    delta_exceptions.ConcurrentDeleteReadException,
    delta_exceptions.ConcurrentDeleteDeleteException,
    delta_exceptions.ConcurrentTransactionException,
)
"""Somebody wrote to a table without the lock; Delta's exceptions share no base class of their own."""


@dataclass(frozen=True)
class Root:
    """The results root, and the lock under which its tables are written."""

    spark: SparkSession
    storage: Storage
    lock: Lock


def retried(root: Root, commit: Callable[[], Made]) -> Made:
    """Commit to a table, while the lock is held; a commit that was overtaken is made again."""
    for attempt in range(1, ATTEMPTS + 1):
        root.lock.assert_held()
        try:
            return commit()
        except CONFLICTS:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError  # pragma: no cover - the last attempt returned or raised

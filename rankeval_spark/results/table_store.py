"""The Delta tables of a results root for writing: the one interface by which rows are staged, committed and changed.

:class:`local_writes.LocalTables` writes to a disk of this machine, :class:`spark_tables.SparkTables` to any store that
Spark reaches. Locks are of :mod:`locks`, commits of :mod:`delta_log`, reads of :mod:`readers`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.engine.arrays import to_arrow, to_numpy
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.result_rows.column_types import columns_json
from rankeval_spark.results import delta_log
from rankeval_spark.results.delta_log import NO_OTHER_WRITER
from rankeval_spark.results.locks import turn_for_runs
from rankeval_spark.results.tables import require_declared

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from rankeval_spark.measures.arrays import BoolVector
    from rankeval_spark.result_rows.column_types import Json
    from rankeval_spark.results.file_store import Storage
    from rankeval_spark.results.locks import Lock
    from rankeval_spark.results.readers import Reader
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.schemas import Schema

Made = TypeVar("Made")
MAX_ATTEMPTS: Final = 3
STAGED_VERSION: Final = 0
"""Version of a staged table. Sessions that compact on their own make later ones, of a part of its rows."""

_CONFLICT: Final = re.compile(r"\bDELTA_(?:CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)\b")
"""Delta's names for them. Its classes of exceptions are those of a Python package that a cluster need not have."""


NAMED_IN: Final = (schemas.CHECKS.name, schemas.RUNS.name)  # tables whose texts can name a user
WITHOUT_USERS: Final = (schemas.METRICS.name, "items")  # inputs whose checks name other things than users, as BANDS
_BETWEEN_KEYS: Final = re.compile(r"[\s;,]+", re.ASCII)
REMOVED: Final = "removed: it named a user who was erased"  # replacement of an error message


@dataclass(frozen=True)
class RowChange:
    """A change of some rows; it travels to workers of Spark."""

    columns: list[str]  # read to find the affected rows
    affects: Callable[[pa.RecordBatch], BoolVector]  # (n_rows,) affected rows of a batch with these columns
    apply: Callable[[pa.RecordBatch, BoolVector], pa.RecordBatch]  # whole batch and affected rows -> new batch

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the new rows of a batch."""
        return self.apply(batch, self.affects(batch))


class TableStore(ABC):
    """The tables of one results root. A part of a table is rewritten as a whole: a file, or a night."""

    def __init__(self, spark: SparkSession | None, storage: Storage) -> None:
        self.spark: Any = spark  # a SparkSession; None in a process without Spark, for tables on its disk
        self.storage = storage
        self._held: tuple[Lock, ...] = ()

    def holding(self, lock: Lock) -> Self:
        """Return the same tables, to which nothing is committed once this lock is lost, too."""
        tables = copy(self)
        tables._held = (*self._held, lock)
        return tables

    @contextmanager
    def turn_for(self, table: str, owner: str) -> Iterator[Self]:
        """Yield the tables under the lock of ``runs``, to which runs append side by side; others need no turn."""
        if table != schemas.RUNS.name:
            yield self
            return
        with turn_for_runs(self.storage, owner) as turn:
            yield self.holding(turn)

    @property
    @abstractmethod
    def reader(self) -> Reader[Any, Any]:
        """The reader of small tables; it reads as of now."""

    def commit(self, table: str, make: Callable[[int], Made]) -> Made:
        """Commit to a table while locks are held; retry a commit that was overtaken.

        A writer that was suspended for too long loses its locks, and may wake up at any line. So the newest version is
        read before the locks are checked, and ``make`` makes the next one or fails: the process that takes over makes
        that version first, see :meth:`fence`.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            seen = delta_log.latest_version(self.storage, table, is_fresh=attempt > 1)
            self.assert_held()
            try:
                return make(seen)
            except Exception as error:
                self.assert_held()  # whoever took a lock may be the cause
                if attempt == MAX_ATTEMPTS or not is_conflict(error):
                    raise
        raise AssertionError  # pragma: no cover - the last attempt returned or raised

    def assert_held(self) -> None:
        """Raise ResultsBusyError if another run took a lock."""
        for lock in self._held:
            lock.assert_held()

    def own_commit(self, table: str, run_id: str, *, after: int) -> int:
        """Return the version that a run just made; ResultsError if its commit is not in the log, as after a fence."""
        version = delta_log.find_commit(self.storage, table, tag=run_id, after=after)
        if version is None:
            found = f"no commit of run {run_id} after version {after}"
            raise ResultsError(Fault(f"table {table}", found, "the commit that this run just made", NO_OTHER_WRITER))
        return version

    def fence(self, owner: str) -> None:
        """Fence off a holder that lost the publish lock and may still be at work: it cannot commit to any table."""
        for schema in (*schemas.PUBLISHED, schemas.RUNS):
            if delta_log.exists(self.storage, schema.name):
                with self.turn_for(schema.name, owner):
                    delta_log.fence(self.storage, schema.name)

    def latest_versions(self, names: Iterable[str]) -> dict[str, int]:
        """Return the newest versions of some tables."""
        return {table: delta_log.latest_version(self.storage, table) for table in names}

    def lacking_columns(self, schema: Schema) -> list[Json]:
        """Return declared columns that an older table lacks, which are NULL in its rows; see ``require_declared``."""
        columns = self.columns(schema.name)
        require_declared(columns, schema)
        names = {field["name"] for field in columns["fields"]}
        return [{**field, "nullable": True} for field in columns_json(schema)["fields"] if field["name"] not in names]

    def add_columns(self, table: str, wanted: Sequence[Json]) -> None:
        """Add those columns that a table lacks, in a commit without rows."""

        def add(seen: int) -> None:
            present = self.columns(table)["fields"]
            names = {field["name"] for field in present}
            if lacking := [field for field in wanted if field["name"] not in names]:
                self._extend(table, {"type": "struct", "fields": [*present, *lacking]}, after=seen)

        self.commit(table, add)

    def change_rows(self, table: str, change: RowChange, evaluation: str | None) -> int:
        """Change or delete rows of one evaluation or all; return how many were affected."""
        n_rows = 0

        def write(seen: int) -> None:
            nonlocal n_rows
            counts = self._affected_rows(table, change, evaluation, seen)
            n_rows = sum(counts.values())
            if counts:
                self._rewrite(table, counts, change, after=seen)

        self.commit(table, write)
        newest = delta_log.latest_version(self.storage, table)
        self._require_none(table, sum(self._affected_rows(table, change, evaluation, newest).values()))
        return n_rows

    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Delete the rows of a user; return how many there were."""
        return self.change_rows(table, without_rows(user), evaluation)

    def _require_none(self, table: str, n_rows: int) -> None:
        """Raise ResultsError if rows are still there after they were deleted or changed."""
        self.assert_held()
        if n_rows:
            where = f"table {table}, version {delta_log.latest_version(self.storage, table)}"
            raise ResultsError(Fault(where, "rows that were just deleted or changed", "none of them", NO_OTHER_WRITER))

    @abstractmethod
    def columns(self, table: str) -> Json:
        """Return the columns of a table as it is now, in the form of ``StructType.fromJson``."""

    @abstractmethod
    def append_events(self, rows: Sequence[Mapping[str, Any]], *, tag: str, after: int) -> None:
        """Append rows to ``runs``, in the commit after a version that was seen, which carries a tag."""

    @abstractmethod
    def replace_by_staged(self, table: str, night: NightKey, run_id: str, staged: str | None) -> int:
        """Replace a night's rows by those of the staged table at a path, None by no rows; return the version."""

    @abstractmethod
    def restore_night(self, table: str, night: NightKey, run_id: str, version: int | None) -> int:
        """Replace a night's rows by those of an earlier version, None by no rows; return the new version."""

    @abstractmethod
    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        """Return the nights of earlier dates that have rows, of one evaluation or all."""

    @abstractmethod
    def delete_nights(self, table: str, nights: Collection[NightKey]) -> None:
        """Delete the rows of some nights, in one commit."""

    @abstractmethod
    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files of each night, of ``runs`` across nights; return their number before and after."""

    @abstractmethod
    def vacuum(self, table: str, *, deletes: bool) -> int:
        """Count, or delete, the files that no version within the retention needs."""

    @abstractmethod
    def properties(self, table: str) -> dict[str, str]:
        """Return the properties of a table."""

    def is_by_night(self, table: str) -> bool:  # noqa: ARG002 - of a disk of this machine
        """Return whether a table has partitions that this process can remove, as ``runs`` had in earlier versions."""
        return False

    def give_up_damaged_events(self) -> list[str]:
        """Remove missing or damaged files from ``runs``, not from the disk, where we can; return the damage of each."""
        return []

    @abstractmethod
    def _extend(self, table: str, columns: Json, *, after: int) -> None:
        """Extend a table to more columns, in the commit after a version; ``columns`` include those that it has."""

    @abstractmethod
    def _affected_rows(self, table: str, change: RowChange, evaluation: str | None, version: int) -> dict[Any, int]:
        """Return the number of affected rows of each part that has any."""

    @abstractmethod
    def _rewrite(self, table: str, parts: Collection[Any], change: RowChange, *, after: int) -> None:
        """Rewrite some parts of a table, in the commit after a version that was seen."""


def is_conflict(error: Exception) -> bool:
    """Return whether a commit failed because another writer made the version, or wrote without the lock."""
    return isinstance(error, delta_log.OvertakenError) or _CONFLICT.search(str(error)) is not None


def names_user(text: str | None, user: str) -> bool:
    """Return whether a user id is in a text between blanks, commas or semicolons, which separate keys.

    >>> names_user("m ann, m bob", "ann"), names_user("ann;m", "ann"), names_user("m anna", "ann")
    (True, True, False)
    """
    if text is None:
        return False
    key, keys = (f" {_BETWEEN_KEYS.sub(' ', words)} " for words in (user, text))
    return key in keys


def without_rows(user: str) -> RowChange:
    """Return the change that deletes the rows of a user."""

    def affects(batch: pa.RecordBatch) -> BoolVector:
        return to_numpy(pc.equal(batch[C.USER_ID], user).fill_null(False))

    return RowChange([C.USER_ID], affects, lambda batch, own: batch.filter(to_arrow(~own)))


def without_name(table: str, user: str, evaluation: str | None) -> RowChange:
    """Return the change that removes a user from the sample keys of ``checks`` or from error messages of ``runs``."""
    column = "sample_keys" if table == schemas.CHECKS.name else "error"
    columns = [C.EVALUATION, "error"] if column == "error" else ["input", "check", "sample_keys"]

    def names(row: Mapping[str, Any]) -> bool:
        if column == "error":  # a check that fails gives a few keys as examples
            is_own = evaluation in (None, row[C.EVALUATION])  # other tables have files of one evaluation each
            return is_own and row["error"] is not None and names_user(row["error"]["message"], user)
        is_of_users = row["input"] not in WITHOUT_USERS and not row["check"].startswith(BANDS)
        return is_of_users and any(names_user(key, user) for key in row["sample_keys"] or ())

    def affects(batch: pa.RecordBatch) -> BoolVector:
        return np.array([names(row) for row in batch.select(columns).to_pylist()], dtype=np.bool_)

    def apply(batch: pa.RecordBatch, affected: BoolVector) -> pa.RecordBatch:
        values = batch[column].to_pylist()
        for row in np.flatnonzero(affected):
            if column == "error":
                values[row] = {**values[row], "message": REMOVED}
            else:
                values[row] = [key for key in values[row] if not names_user(key, user)]
        place = batch.schema.get_field_index(column)
        field = batch.schema.field(place)
        return batch.set_column(place, field, pa.array(values, field.type))

    return RowChange(columns, affects, apply)

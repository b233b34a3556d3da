"""Changes of published tables: deleted nights, erased users, merged files; on a disk of this machine file by file.

Everything here happens while the publish lock of the root is held.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.engine.arrays import to_arrow, to_numpy
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, local_tables, local_writes
from rankeval_spark.results.delta_log import NO_OTHER_WRITER
from rankeval_spark.results.locks import Made, Root, retried

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.measures.arrays import BoolVector
    from rankeval_spark.results.file_store import LocalStorage
    from rankeval_spark.results.local_writes import DataFile
    from rankeval_spark.results.run_record import NightKey

Part = TypeVar("Part")


class TableChanges(ABC, Generic[Part]):
    """Changes of the tables in one root. A ``Part`` is rewritten as a whole: a file, or a night."""

    def __init__(self, root: Root) -> None:
        self.root = root

    @abstractmethod
    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        """Return the nights of earlier dates that have rows, of one evaluation or all."""

    @abstractmethod
    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        """Delete the rows of some nights, in one commit."""

    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Delete the rows of a user; return how many there were."""
        return self._change(table, without_rows(user), evaluation)

    def forget_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Remove a user from the texts of ``checks`` or ``runs``; return how many rows named them."""
        return self._change(table, without_name(table, user, evaluation), evaluation)

    @abstractmethod
    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files of each night, of ``runs`` across nights; return their number before and after."""

    @abstractmethod
    def unneeded_files(self, table: str) -> int:
        """Count the files that no version within the retention needs."""

    @abstractmethod
    def delete_unneeded(self, table: str) -> None:
        """Delete these files."""

    @abstractmethod
    def properties(self, table: str) -> dict[str, str]:
        """Return the properties of a table."""

    @abstractmethod
    def _affected_rows(self, table: str, change: RowChange, evaluation: str | None, version: int) -> dict[Part, int]:
        """Return the number of affected rows of each part that has any."""

    @abstractmethod
    def _rewrite(self, table: str, parts: Collection[Part], change: RowChange, *, after: int) -> None:
        """Rewrite some parts of a table, in one commit after the version that was seen."""

    def _change(self, table: str, change: RowChange, evaluation: str | None) -> int:
        n_rows = 0

        def write(seen: int) -> None:
            nonlocal n_rows
            counts = self._affected_rows(table, change, evaluation, seen)
            n_rows = sum(counts.values())
            if counts:
                self._rewrite(table, counts, change, after=seen)

        self._commit(table, write)
        version = delta_log.latest_version(self.root.storage, table)
        self._require_none(table, sum(self._affected_rows(table, change, evaluation, version).values()))
        return n_rows

    def _commit(self, table: str, commit: Callable[[int], Made]) -> Made:
        return retried(self.root.storage, table, commit, held=[self.root.lock])

    def _require_none(self, table: str, n_rows: int) -> None:
        """Raise ResultsError if rows are still there after they were deleted or changed."""
        self.root.lock.assert_held()
        if n_rows:
            where = f"table {table}, version {delta_log.latest_version(self.root.storage, table)}"
            raise ResultsError(Fault(where, "rows that were just deleted or changed", "none of them", NO_OTHER_WRITER))


class ChangesOnDisk(TableChanges["DataFile"]):
    """Changes of tables on a disk of this machine: only files with an affected row are rewritten."""

    def __init__(self, root: Root, storage: LocalStorage) -> None:
        super().__init__(root)
        self._storage = storage

    @override
    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        nights = {file.night for file in self._files(table, evaluation) if file.night is not None}
        return [night for night in nights if night.evaluation_date < day]

    @override
    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        wanted = frozenset(nights)

        def delete(seen: int) -> None:
            files = [file for file in self._files(table, None, seen) if file.night in wanted]
            if files:
                local_writes.replace_files(self._storage, table, dict.fromkeys(files), after=seen)

        self._commit(table, delete)
        self._require_none(table, sum(file.night in wanted for file in self._files(table, None)))

    @override
    def forget_user(self, table: str, user: str, evaluation: str | None) -> int:
        if table == schemas.RUNS.name and local_tables.is_by_night(self._storage, table):
            self.merge_files(table)  # files of an earlier version have no column `evaluation`
        return super().forget_user(table, user, evaluation)

    @override
    def merge_files(self, table: str) -> tuple[int, int]:
        merge = local_writes.merge_events if table == schemas.RUNS.name else local_writes.merge_small_files
        return self._commit(table, lambda seen: merge(self._storage, table, after=seen))

    @override
    def unneeded_files(self, table: str) -> int:
        return len(local_writes.unneeded_files(self._storage, table))

    @override
    def delete_unneeded(self, table: str) -> None:
        local_writes.delete_unneeded(self._storage, table)

    @override
    def properties(self, table: str) -> dict[str, str]:
        return dict(local_tables.delta_table(self._storage, table).metadata().configuration)

    def _files(self, table: str, evaluation: str | None, version: int | None = None) -> list[DataFile]:
        found = local_writes.data_files(self._storage, table, version)
        return [file for file in found if file.night is None or evaluation in (None, file.night.evaluation)]

    @override
    def _affected_rows(
        self, table: str, change: RowChange, evaluation: str | None, version: int
    ) -> dict[DataFile, int]:
        counts = {}
        for file in self._files(table, evaluation, version):
            batches = local_writes.read_batches(self._storage, table, file, columns=change.columns)
            if n_rows := sum(int(change.affects(batch).sum()) for batch in batches):
                counts[file] = n_rows
        return counts

    @override
    def _rewrite(self, table: str, parts: Collection[DataFile], change: RowChange, *, after: int) -> None:
        local_writes.replace_files(self._storage, table, dict.fromkeys(parts, change.changed), after=after)


NAMED_IN: Final = (schemas.CHECKS.name, schemas.RUNS.name)  # tables whose texts can name a user
WITHOUT_USERS: Final = (schemas.METRICS.name, "items")  # inputs whose checks name other things than users, as BANDS
REMOVED: Final = "removed: it named a user who was erased"  # replacement of an error message
BETWEEN_KEYS: Final = r"[\s;,]+"


def with_blanks(text: str) -> str:
    """Return a text with one blank between its keys, and one at each end.

    >>> with_blanks("ann;m, bob")
    ' ann m bob '
    """
    return f" {re.sub(BETWEEN_KEYS, ' ', text, flags=re.ASCII)} "


def names_user(text: str | None, user: str) -> bool:
    """Return whether a user id is in a text between blanks, commas or semicolons, which separate keys.

    >>> names_user("m ann, m bob", "ann"), names_user("m anna", "ann")
    (True, False)
    """
    return text is not None and with_blanks(user) in with_blanks(text)


@dataclass(frozen=True)
class RowChange:
    """A change of some rows of a table."""

    columns: list[str]  # read to find the affected rows
    affects: Callable[[pa.RecordBatch], BoolVector]  # (n_rows,) affected rows of a batch with these columns
    apply: Callable[[pa.RecordBatch, BoolVector], pa.RecordBatch]  # whole batch and affected rows -> new batch

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the new rows of a batch."""
        return self.apply(batch, self.affects(batch))


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
        place = batch.schema.get_field_index(column)
        values = batch[column].to_pylist()
        for row in np.flatnonzero(affected):
            if column == "error":
                values[row] = {**values[row], "message": REMOVED}
            else:
                values[row] = [key for key in values[row] if not names_user(key, user)]
        field = batch.schema.field(place)
        return batch.set_column(place, field, pa.array(values, field.type))

    return RowChange(columns, affects, apply)

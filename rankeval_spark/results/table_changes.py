"""Changes of published tables: deleted nights, erased users, merged files; on a disk of this machine file by file.

Everything here happens while the publish lock of the root is held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from typing_extensions import override

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results import delta_log, local_tables, local_writes
from rankeval_spark.results.commits import Made, Root, retried
from rankeval_spark.results.delta_log import NO_OTHER_WRITER
from rankeval_spark.results.row_changes import RowChange, without_name, without_rows

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.results.commits import LocalRoot
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

    root: LocalRoot

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
                local_writes.replace_files(self.root.storage, table, dict.fromkeys(files), after=seen)

        self._commit(table, delete)
        self._require_none(table, sum(file.night in wanted for file in self._files(table, None)))

    @override
    def forget_user(self, table: str, user: str, evaluation: str | None) -> int:
        if table == schemas.RUNS.name and local_tables.is_by_night(self.root.storage, table):
            self.merge_files(table)  # files of an earlier version have no column `evaluation`
        return super().forget_user(table, user, evaluation)

    @override
    def merge_files(self, table: str) -> tuple[int, int]:
        merge = local_writes.merge_events if table == schemas.RUNS.name else local_writes.merge_small_files
        return self._commit(table, lambda seen: merge(self.root.storage, table, after=seen))

    @override
    def unneeded_files(self, table: str) -> int:
        return len(local_writes.unneeded_files(self.root.storage, table))

    @override
    def delete_unneeded(self, table: str) -> None:
        local_writes.delete_unneeded(self.root.storage, table)

    @override
    def properties(self, table: str) -> dict[str, str]:
        return local_writes.properties_of(self.root.storage, table)

    def _files(self, table: str, evaluation: str | None, version: int | None = None) -> list[DataFile]:
        found = local_writes.data_files(self.root.storage, table, version)
        return [file for file in found if file.night is None or evaluation in (None, file.night.evaluation)]

    @override
    def _affected_rows(
        self, table: str, change: RowChange, evaluation: str | None, version: int
    ) -> dict[DataFile, int]:
        counts = {}
        for file in self._files(table, evaluation, version):
            batches = local_writes.read_batches(self.root.storage, table, file, columns=change.columns)
            if n_rows := sum(int(change.affects(batch).sum()) for batch in batches):
                counts[file] = n_rows
        return counts

    @override
    def _rewrite(self, table: str, parts: Collection[DataFile], change: RowChange, *, after: int) -> None:
        local_writes.replace_files(self.root.storage, table, dict.fromkeys(parts, change.changed), after=after)

"""Changes of the tables of a disk of this machine, file by file: only files that hold a row to change are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.results.storage import data_files, local_tables
from rankeval_spark.results.storage.commits import Made, retried
from rankeval_spark.results.table_changes.named_users import BANDS, REMOVED, WITHOUT_USERS, names_user, require_none

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.measures.arrays import BoolVector
    from rankeval_spark.results.run_record import NightKey
    from rankeval_spark.results.storage.commits import LocalRoot
    from rankeval_spark.results.storage.data_files import DataFile


@dataclass(frozen=True)
class RowChange:
    """A change of some rows of a table.

    Attributes
    ----------
    columns : tuple of str
        Columns that say which rows are concerned.
    concerns : callable
        Marks them: bool, shape (n_rows,), of a batch with these columns.
    apply : callable
        Makes of a whole batch and that mask what takes its place.
    """

    columns: tuple[str, ...]
    concerns: Callable[[pa.RecordBatch], BoolVector]
    apply: Callable[[pa.RecordBatch, BoolVector], pa.RecordBatch]

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return what takes the place of a batch."""
        return self.apply(batch, self.concerns(batch))


@dataclass(frozen=True)
class ChangesOnDisk:
    """Changes of the tables of a root, see :class:`changes.TableChanges`."""

    root: LocalRoot

    def nights_before(self, table: str, day: date, evaluation: str | None) -> list[NightKey]:
        """Name the nights that have files."""
        nights = {file.night for file in self._files(table, evaluation) if file.night is not None}
        return [night for night in nights if night.evaluation_date < day]

    def delete_nights(self, table: str, nights: Sequence[NightKey]) -> None:
        """Remove the files of the nights from the table."""
        wanted = frozenset(nights)

        def delete(seen: int) -> None:
            concerned = [file for file in self._files(table, None, seen) if file.night in wanted]
            if concerned:
                data_files.replace_files(self.root.storage, table, dict.fromkeys(concerned), after=seen)

        self._commit(table, delete)
        rest = sum(file.night in wanted for file in self._files(table, None))
        require_none(self.root, table, n_rows=rest)

    def delete_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Write the files that have rows of the user without these."""

        def is_own(batch: pa.RecordBatch) -> BoolVector:
            return to_numpy(pc.equal(batch[C.USER_ID], user).fill_null(False))

        change = RowChange((C.USER_ID,), is_own, lambda batch, own: batch.filter(to_arrow(~own)))
        return self._change(table, change, evaluation)

    def forget_user(self, table: str, user: str, evaluation: str | None) -> int:
        """Write the files whose texts name the user without that."""
        if table == schemas.CHECKS.name:
            return self._change(table, _of_checks(user), evaluation)
        if local_tables.is_by_night(self.root.storage, table):
            self.merge_files(table)
        return self._change(table, _of_errors(user, evaluation), evaluation)

    def merge_files(self, table: str) -> tuple[int, int]:
        """Merge small files of each night, of ``runs`` across nights."""
        merge = data_files.merge_events if table == schemas.RUNS.name else data_files.merge_small_files
        return self._commit(table, lambda seen: merge(self.root.storage, table, after=seen))

    def unneeded_files(self, table: str) -> int:
        """Count the files that no version needs."""
        return len(data_files.unneeded_files(self.root.storage, table))

    def delete_unneeded(self, table: str) -> None:
        """Delete them."""
        data_files.delete_unneeded(self.root.storage, table)

    def properties(self, table: str) -> dict[str, str]:
        """Return what the log says of the table."""
        return data_files.properties_of(self.root.storage, table)

    def _commit(self, table: str, commit: Callable[[int], Made]) -> Made:
        return retried(self.root.storage, table, commit, held=[self.root.lock])

    def _files(self, table: str, evaluation: str | None, version: int | None = None) -> list[DataFile]:
        found = data_files.data_files(self.root.storage, table, version)
        return [file for file in found if file.night is None or evaluation in (None, file.night.evaluation)]

    def _change(self, table: str, change: RowChange, evaluation: str | None) -> int:
        n_rows = 0

        def write(seen: int) -> None:
            nonlocal n_rows
            counts = self._concerned(table, change, evaluation, seen)
            n_rows = sum(counts.values())
            if counts:
                data_files.replace_files(self.root.storage, table, dict.fromkeys(counts, change.changed), after=seen)

        self._commit(table, write)
        require_none(self.root, table, n_rows=sum(self._concerned(table, change, evaluation).values()))
        return n_rows

    def _concerned(
        self, table: str, change: RowChange, evaluation: str | None, version: int | None = None
    ) -> dict[DataFile, int]:
        """Count the rows that a change concerns, of the files that have any."""
        storage, counts = self.root.storage, {}
        for file in self._files(table, evaluation, version):
            batches = data_files.read_batches(storage, table, file, columns=change.columns)
            if n_rows := sum(int(change.concerns(batch).sum()) for batch in batches):
                counts[file] = n_rows
        return counts


def _of_checks(user: str) -> RowChange:
    """Take the sample keys that name a user out of rows of ``checks``."""

    def concerns(batch: pa.RecordBatch) -> BoolVector:
        return np.array(
            [
                _is_of_users(row) and any(names_user(key, user) for key in row["sample_keys"] or ())
                for row in batch.to_pylist()
            ],
            dtype=np.bool_,
        )

    def kept(keys: list[str]) -> list[str]:
        return [key for key in keys if not names_user(key, user)]

    return RowChange(
        ("input", "check", "sample_keys"), concerns, lambda batch, named: _replaced(batch, "sample_keys", named, kept)
    )


def _is_of_users(check: dict[str, Any]) -> bool:
    return check["input"] not in WITHOUT_USERS and not check["check"].startswith(BANDS)


def _of_errors(user: str, evaluation: str | None) -> RowChange:
    """Replace the error messages of ``runs`` that name a user: a check that fails gives a few keys as examples."""

    def concerns(batch: pa.RecordBatch) -> BoolVector:
        named = [error is not None and names_user(error["message"], user) for error in batch["error"].to_pylist()]
        is_own = [evaluation in (None, name) for name in batch[C.EVALUATION].to_pylist()]
        return np.array(named, dtype=np.bool_) & np.array(is_own, dtype=np.bool_)

    def removed(error: dict[str, str]) -> dict[str, str]:
        return {**error, "message": REMOVED}

    columns = (C.EVALUATION, "error")
    return RowChange(columns, concerns, lambda batch, named: _replaced(batch, "error", named, removed))


def _replaced(
    batch: pa.RecordBatch, column: str, concerned: BoolVector, change: Callable[[Any], Any]
) -> pa.RecordBatch:
    """Change the values of a column in the rows concerned."""
    pairs = zip(batch[column].to_pylist(), concerned.tolist(), strict=True)
    place = batch.schema.get_field_index(column)
    values = pa.array(
        [change(value) if is_concerned else value for value, is_concerned in pairs], batch.schema.field(place).type
    )
    return batch.set_column(place, batch.schema.field(place), values)

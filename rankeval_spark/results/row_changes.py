"""Changes of rows that delete or forget a user, for Arrow batches here or in workers of Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector

NAMED_IN: Final = (schemas.CHECKS.name, schemas.RUNS.name)  # tables whose texts can name a user

WITHOUT_USERS: Final = (schemas.METRICS.name, "items")
"""Inputs whose checks name other things than users; so do checks of :data:`BANDS`."""

BANDS: Final = "bands."
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

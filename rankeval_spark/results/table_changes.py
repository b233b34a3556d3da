"""Changes of single rows: a user is deleted from tables of users, and removed from texts that name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.config.check_thresholds import BANDS
from rankeval_spark.engine.arrays import to_arrow, to_numpy

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector

NAMED_IN: Final = (schemas.CHECKS.name, schemas.RUNS.name)  # tables whose texts can name a user
WITHOUT_USERS: Final = (schemas.METRICS.name, "items")  # inputs whose checks name other things than users, as BANDS
_BETWEEN_KEYS: Final = re.compile(r"[\s;,]+", re.ASCII)
REMOVED: Final = "removed: it named a user who was erased"  # replacement of an error message


@dataclass(frozen=True)
class RowChange:
    """A change of some rows of a table; it travels to workers of Spark."""

    columns: list[str]  # read to find the affected rows
    affects: Callable[[pa.RecordBatch], BoolVector]  # (n_rows,) affected rows of a batch with these columns
    apply: Callable[[pa.RecordBatch, BoolVector], pa.RecordBatch]  # whole batch and affected rows -> new batch

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the new rows of a batch."""
        return self.apply(batch, self.affects(batch))


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

"""What the measures of all lists together have in common: their groups of users, and how their values become rows.

A value is computed with everyone and without each of ``N_GROUPS`` groups of users in turn, from which the jackknife
takes its spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure

SLICE: Final = (C.MODEL_ID, "slice_index", C.SLICE_VALUES)
"""Key of a slice of a model."""


@dataclass(frozen=True)
class JackknifeRows:
    """Makes rows of ``metrics`` of values; ``slices`` are the names by index."""

    slices: tuple[str, ...]
    min_slice_size: int
    confidence: float

    def columns(  # noqa: PLR0913 - what a row of metrics is made of
        self,
        measure: Measure,
        rows: pa.RecordBatch,
        values: np.ndarray,
        *,
        n_users: np.ndarray,
        n_lists: np.ndarray,
        has_users: np.ndarray,
    ) -> dict[str, pa.Array]:
        """Make the columns of ``schemas.METRICS`` from the model on.

        Parameters
        ----------
        rows : RecordBatch
            Columns ``model_id``, ``slice_index`` and ``slice_values``.
        values : float64, shape (n_rows, 1 + N_GROUPS)
            With everyone, then without each group.
        n_users : int64, shape (n_rows,)
            Users with a list.
        n_lists : int64, shape (n_rows,)
            Their lists.
        has_users : bool, shape (n_rows, N_GROUPS)
            Whether the group has any of them.
        """
        spread = intervals.delete_a_group(
            values[:, 0], values[:, 1:], has_users, self.confidence, measure.entry.definition.bounds
        )
        n = rows.num_rows
        method = np.where(np.isnan(spread.low), "none", "jackknife")
        no_count = pa.nulls(n, pa.int64())
        return {
            **metric_rows.slice_columns(rows, self.slices),
            C.MEASURE: pa.array([measure.label] * n, pa.string()),
            C.K: pa.array(np.full(n, measure.k, dtype=np.int32)),
            C.VALUE: metric_rows.nullable(values[:, 0]),
            "n_users": pa.array(n_users),
            C.N_LISTS: pa.array(n_lists),
            **dict.fromkeys(("n_undefined", "n_missing", "n_zero_relevant", "n_extra_users"), no_count),
            "tie_share": pa.nulls(n, pa.float64()),
            "is_small": pa.array(n_users < self.min_slice_size),
            "std_dev": pa.nulls(n, pa.float64()),
            "std_error": metric_rows.nullable(spread.std_error),
            "ci_low": metric_rows.nullable(spread.low),
            "ci_high": metric_rows.nullable(spread.high),
            "ci_level": pa.array(np.full(n, self.confidence)),
            "ci_method": pa.array(method.tolist(), pa.string()),
        }

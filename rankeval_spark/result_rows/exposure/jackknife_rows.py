"""What the measures of all lists together have in common: their groups of users, and how their values become rows.

A value is computed with everyone and without each of ``N_GROUPS`` groups of users in turn, from which the jackknife
takes its spread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import rows_by_key
from rankeval_spark.engine.aggregation.slices import nullable
from rankeval_spark.engine.batch.arrays import to_arrow
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.statistics import intervals

if TYPE_CHECKING:
    from rankeval_spark.config.request import ReportedSlices
    from rankeval_spark.measures import Measure

SLICE: Final = (C.MODEL_ID, "slice_index", C.SLICE_VALUES)
"""Key of a slice of a model."""


LEAST_ERROR: Final = 1e-12
"""Error, relative to its value, up to which it is rounding."""


SlicesOfUsers: TypeAlias = Iterable[tuple[int, list[str | None]]]
"""Index and values of each slice."""

ALL_USERS: Final[SlicesOfUsers] = ((0, []),)


def slices_in(rows: pa.Table) -> SlicesOfUsers:
    """List the slices that occur in rows with ``slice_index`` and ``slice_values``."""
    first, _ = rows_by_key(rows, SLICE[1:])
    found = pc.take(rows.select(SLICE[1:]), to_arrow(first)).to_pydict()
    return list(zip(found["slice_index"], found[C.SLICE_VALUES], strict=True))


@dataclass(frozen=True)
class MeasuredSlices:
    """Slices of models, and who is in each.

    Attributes
    ----------
    keys : RecordBatch
        Columns ``model_id``, ``slice_index`` and ``slice_values``, a row a slice.
    n_users : int64, shape (n_rows, N_GROUPS)
        Users with a list, by group of the jackknife.
    n_lists : int64, shape (n_rows,)
        Lists of all users.
    """

    keys: pa.RecordBatch
    n_users: np.ndarray
    n_lists: np.ndarray


@dataclass(frozen=True)
class JackknifeRows:
    """Makes rows of ``metrics`` of values."""

    reported: ReportedSlices

    def columns(
        self, measure: Measure, slices: MeasuredSlices, values: np.ndarray, shrinkage: np.ndarray | float = 1.0
    ) -> dict[str, pa.Array]:
        """Make the columns of ``schemas.METRICS`` from the model on.

        Parameters
        ----------
        values : float64, shape (n_rows, 1 + N_GROUPS)
            Of each slice with everyone, then without each group.
        shrinkage : float64, shape (n_rows,)
            Factor of the variance; NaN where there is no error.
        """
        confidence = self.reported.confidence
        everyone = values[:, :1]
        without = everyone + np.sqrt(shrinkage)[..., None] * (values[:, 1:] - everyone)
        spread = intervals.delete_a_group(values[:, 0], without, slices.n_users, confidence, measure.bounds)
        # An error of 0 says that no group of users differs from another, not that the value is certain.
        is_rounding = spread.std_error <= LEAST_ERROR * np.maximum(np.abs(values[:, 0]), 1.0)
        spread = intervals.Spread(*(np.where(is_rounding, np.nan, each) for each in spread))
        n_users = slices.n_users.sum(axis=1)
        n = slices.keys.num_rows
        method = np.where(np.isnan(spread.low), "none", "jackknife")
        no_count = pa.nulls(n, pa.int64())
        return {
            **metric_rows.slice_columns(slices.keys, self.reported.names),
            C.MEASURE: pa.array([measure.label] * n, pa.string()),
            C.K: pa.array(np.full(n, measure.k, dtype=np.int32)),
            C.VALUE: nullable(values[:, 0]),
            "n_users": pa.array(n_users),
            C.N_LISTS: pa.array(slices.n_lists),
            **dict.fromkeys(("n_undefined", "n_missing", "n_zero_relevant", "n_extra_users"), no_count),
            "tie_share": pa.nulls(n, pa.float64()),
            "is_small": pa.array(n_users < self.reported.min_size),
            "std_dev": pa.nulls(n, pa.float64()),
            "std_error": nullable(spread.std_error),
            "ci_low": nullable(spread.low),
            "ci_high": nullable(spread.high),
            "ci_level": pa.array(np.full(n, confidence)),
            "ci_method": pa.array(method.tolist(), pa.string()),
            "n_nonzero": no_count,
            "is_uncertain": pa.nulls(n, pa.bool_()),
            **metric_rows.no_quantiles(n),
        }

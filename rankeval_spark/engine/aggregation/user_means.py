"""The mean over the lists of each user, where users have several lists of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.slices import doubles, nullable
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import row_codes
from rankeval_spark.engine.scoring.scorer import IS_EVALUATED

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit

FACTS: Final = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED)


def lists_column(measure: str) -> str:
    """Return the name of the column that counts the lists of a user where a measure is defined."""
    return f"{measure}__lists"


def to_user_means(scored: pa.Table, *, measures: Sequence[str], weights: Mapping[str, str], unit: Unit) -> pa.Table:
    """Average the lists of each user: one row per (model, user, k). A list where a measure is NULL does not count.

    Of a measure with ``weights``, its column of denominators, numerators and denominators are averaged; with the unit
    ``list`` they are summed. :func:`lists_column` of each measure counts the lists, NULL where none counts. On Spark
    ``spark/result_tables/mean_metrics.to_user_means`` is the same as an aggregate of rows that may be in many places.
    """
    sums = _Sums.of(scored)
    firsts = pc.take(scored.select([C.MODEL_ID, C.USER_ID, C.K, C.SEGMENTS]), to_arrow(sums.first))
    columns = {
        IS_EVALUATED: to_arrow(sums.any(scored[IS_EVALUATED])),
        **{name: to_arrow(sums.largest(scored[name])) for name in FACTS},
        C.HAS_TIES: nullable(sums.mean(doubles(scored, C.HAS_TIES))),
    }
    for name in measures:
        values = doubles(scored, name)
        weight = doubles(scored, weights[name]) if name in weights else None
        columns[name] = nullable(sums.mean(values) if weight is None else sums.ratio(values, weight))
        columns[lists_column(name)] = nullable(sums.count(values))
    put_together = sums.total if unit == "list" else sums.mean
    columns |= {weight: nullable(put_together(doubles(scored, weight))) for weight in weights.values()}
    for name, column in columns.items():
        firsts = firsts.append_column(name, column)
    return firsts


@dataclass(frozen=True)
class _Sums:
    """Rows by the user, model and cutoff that they belong to; NaN does not count."""

    group: np.ndarray  # int64 (n_rows,)
    first: np.ndarray  # int64 (n_groups,) first row of each group

    @classmethod
    def of(cls, scored: pa.Table) -> _Sums:
        code = row_codes(scored, (C.MODEL_ID, C.USER_ID, C.K))
        _, first, group = np.unique(code, return_index=True, return_inverse=True)
        return cls(group, first)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum up; NaN where there is nothing."""
        sums = np.bincount(self.group, weights=np.nan_to_num(values), minlength=len(self.first))
        return np.where(np.isnan(self.count(values)), np.nan, sums)

    def count(self, values: np.ndarray) -> np.ndarray:
        """Count the numbers; NaN where there is none."""
        n = np.bincount(self.group, weights=~np.isnan(values), minlength=len(self.first))
        return np.where(n > 0, n, np.nan)

    def mean(self, values: np.ndarray) -> np.ndarray:
        means: np.ndarray = self.total(values) / self.count(values)
        return means

    def ratio(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Divide the mean numerator by the mean denominator; the plain mean where that is not above 0."""
        below = self.mean(weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_sums: np.ndarray = self.mean(values * weights) / below
        return np.where(below > 0, of_sums, self.mean(values))

    def any(self, flags: pa.ChunkedArray) -> np.ndarray:
        n_true: np.ndarray = np.bincount(self.group, weights=to_numpy(flags), minlength=len(self.first))
        return n_true > 0

    def largest(self, numbers: pa.ChunkedArray) -> np.ndarray:
        found = np.zeros(len(self.first), dtype=np.int32)
        np.maximum.at(found, self.group, to_numpy(numbers))
        return found

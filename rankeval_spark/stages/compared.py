"""From the aggregates of differences to rows of ``comparisons``: merged, tested, adjusted and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from rankeval_spark import columns as C, schemas
from rankeval_spark.stages.finish import nullable, readable
from rankeval_spark.stages.slicing import doubles
from rankeval_spark.statistics import multiplicity, paired
from rankeval_spark.statistics.differences import Differences
from rankeval_spark.statistics.paired import LEAST_USERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rankeval_spark.statistics.multiplicity import Correction

_FIELDS: Final = tuple(field for field in schemas.COMPARISONS.fields if field.name not in C.RUN_KEY)

ROW_TYPE: Final = ", ".join(f"{field.name} {field.type}" for field in _FIELDS)
"""Columns of the rows that are made here, as Spark reads them."""

_ARROW: Final = {
    "string": pa.string(),
    "array<string>": pa.list_(pa.string()),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


T_TESTS: Final = ("t", "exact", "equal")
"""Tests of the row that every comparison has: of the mean difference, by t, or by its signs where they are few."""


def keep_t_tests(comparisons: DataFrame) -> DataFrame:
    """Keep one row a comparison, that of the mean difference, where further tests have rows of their own."""
    return comparisons.where(F.col("test").isNull() | F.col("test").isin(*T_TESTS))


@dataclass(frozen=True)
class Finisher:
    """What the workers need to finish a group.

    Attributes
    ----------
    labels : tuple of str
        Name of each measure that is compared.
    asked : tuple of frozenset of int
        Cutoffs at which each was asked for.
    direction : int, shape (n_measures,)
        1 where higher is better, -1 where lower is.
    slices : tuple of str
        Name of each slice.
    """

    labels: tuple[str, ...]
    asked: tuple[frozenset[int], ...]
    direction: np.ndarray
    slices: tuple[str, ...]
    correction: Correction
    min_slice_size: int
    confidence: float

    def finish(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the aggregates of one (baseline, model, slice, values, k) and compare its measures."""
        first, model, index, slice_values, k = (one.as_py() for one in key)
        # In an order of their own, so that equal partitions give equal bits however they arrive.
        differences = reduce(Differences.merge, map(Differences.from_bytes, sorted(group["state"].to_pylist())))
        wanted = [position for position, ks in enumerate(self.asked) if k in ks]
        n_rows = len(wanted)
        names = pa.array([slice_values] * n_rows, pa.list_(pa.string()))
        columns = {
            C.BASELINE_MODEL_ID: pa.array([first] * n_rows, pa.string()),
            C.MODEL_ID: pa.array([model] * n_rows, pa.string()),
            C.SLICE: pa.array([self.slices[index]] * n_rows, pa.string()),
            C.SLICE_VALUE: readable(names),
            C.SLICE_VALUES: names,
            C.MEASURE: pa.array([self.labels[position] for position in wanted], pa.string()),
            C.K: pa.array([k] * n_rows, pa.int32()),
            **self._compared(differences, wanted),
        }
        return _table(columns, n_rows)

    def adjust(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Adjust the p-values of all rows of the run, which are one family, and say what follows."""
        rows = pa.Table.from_batches(list(batches), _SCHEMA)
        if not rows.num_rows:
            return
        family = np.zeros(rows.num_rows, dtype=np.int64)
        alpha = 1 - self.confidence
        found = multiplicity.adjust(doubles(rows, "p_value"), family, correction=self.correction, alpha=alpha)
        direction = dict(zip(self.labels, self.direction.tolist(), strict=True))
        towards = np.array([direction[label] for label in rows[C.MEASURE].to_pylist()])
        is_shown = found.p <= alpha
        verdict = np.where(is_shown, np.where(doubles(rows, "delta") * towards > 0, "better", "worse"), "undecided")
        adjusted = {
            "p_adjusted": nullable(found.p),
            "family_size": pa.array(found.family_size),
            "verdict": pa.array(verdict.astype(object), pa.string(), mask=np.isnan(found.p)),
        }
        columns = {name: adjusted.get(name, rows[name]) for name in rows.column_names}
        yield from _table(columns, rows.num_rows).to_batches()

    def _compared(self, differences: Differences, wanted: Sequence[int]) -> dict[str, pa.Array]:
        least = max(LEAST_USERS, self.min_slice_size)
        found = paired.compare(differences, level=self.confidence, least_users=least)
        change = paired.relative_change(differences, level=self.confidence)
        baseline = differences.moments.denominator.mean
        counts = {
            "n_users": found.n,
            "n_wins": found.n_wins,
            "n_ties": found.n_ties,
            "n_losses": found.n_losses,
        }
        numbers = {
            "baseline_value": baseline,
            C.VALUE: baseline + found.delta,
            "delta": found.delta,
            "ci_low": found.low,
            "ci_high": found.high,
            "relative_delta": change.value,
            "relative_ci_low": change.low,
            "relative_ci_high": change.high,
            "p_value": found.p,
            "effect_size": found.effect_size,
        }
        reason = found.reason[0, wanted]
        return {
            **{name: pa.array(values[0, wanted]) for name, values in counts.items()},
            **{name: nullable(values[0, wanted]) for name, values in numbers.items()},
            "test": pa.array(found.test[0, wanted].tolist(), pa.string()),
            "reason": pa.array(reason.astype(object), pa.string(), mask=reason == ""),
            "is_small": pa.array(found.n[0, wanted] < self.min_slice_size),
            "ci_level": pa.array([self.confidence] * len(wanted), pa.float64()),
            "correction": pa.array([self.correction] * len(wanted), pa.string()),
            "family_size": pa.array([0] * len(wanted), pa.int64()),
        }


_SCHEMA: Final = pa.schema([(field.name, _ARROW[field.type]) for field in _FIELDS])


def _table(columns: dict[str, Any], n_rows: int) -> pa.Table:
    """Put the columns into their declared order; those that are not known yet are NULL."""
    arrays = [columns.get(field.name, pa.nulls(n_rows, field.type)) for field in _SCHEMA]
    return pa.Table.from_arrays([_one_array(array) for array in arrays], schema=_SCHEMA)


def _one_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

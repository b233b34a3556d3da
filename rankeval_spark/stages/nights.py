"""Each model on one night against itself on an earlier one: per-user values of both in, rows of changes out.

Only published tables are read. The two nights are joined by user, each partition is aggregated in numpy, slice by
slice, and only the small aggregates are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.planning import lists_column
from rankeval_spark.engine.population import IS_EVALUATED
from rankeval_spark.engine.slices import PACKED, Key, doubles, groups_of, in_chunks, unpacked
from rankeval_spark.result_rows.metric_rows import nullable, readable, slice_names
from rankeval_spark.stages import summarise
from rankeval_spark.stages.frames import with_columns
from rankeval_spark.stages.slicing import segments_of
from rankeval_spark.statistics import nights
from rankeval_spark.statistics.nights import Nights, RatioNights

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.measures import MeasureSet

_GROUP: Final = (C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K)
PARTIAL: Final = f"{C.MODEL_ID} string, slice_index int, {C.SLICE_VALUES} array<string>, {C.K} int, state binary"
_PARTIAL_TYPES: Final = (pa.string(), pa.int32(), pa.list_(pa.string()), pa.int32(), pa.binary())

COUNTS: Final = ("n_users", "n_earlier_users", "n_common_users")
NUMBERS: Final = (
    *(C.VALUE, "earlier_value", "delta", "ci_low", "ci_high"),
    *("relative_delta", "relative_ci_low", "relative_ci_high"),
    *("std_error", "freedom", "p_value", "p_less", "p_greater"),
)
_ROW: Final = {
    **{name: (pa.string(), "string") for name in (C.MODEL_ID, C.SLICE, C.SLICE_VALUE)},
    C.SLICE_VALUES: (pa.list_(pa.string()), "array<string>"),
    C.MEASURE: (pa.string(), "string"),
    C.K: (pa.int32(), "int"),
    **{name: (pa.int64(), "bigint") for name in COUNTS},
    **{name: (pa.float64(), "double") for name in NUMBERS},
    "ci_level": (pa.float64(), "double"),
    "is_small": (pa.bool_(), "boolean"),
}
ROW_TYPE: Final = ", ".join(f"{name} {spark}" for name, (_, spark) in _ROW.items())
"""Columns of the rows that are made here, as Spark reads them."""
_SCHEMA: Final = pa.schema([(name, arrow) for name, (arrow, _) in _ROW.items()])


def to_changes(  # noqa: PLR0913 - what is compared, and how
    now: DataFrame,
    before: DataFrame,
    *,
    measures: MeasureSet,
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
    unit: Unit = "user",
) -> DataFrame:
    """Make one row per (model, slice, slice values, measure, k) that has users on either night.

    ``n_users``, ``value`` are those of now, ``n_earlier_users``, ``earlier_value`` of before; ``n_common_users`` have a
    value on both nights, in the same slice. The other numbers are those of :class:`nights.Shift` and of the relative
    change; NULL where undefined, and there is no p below ``min_slice_size`` users on either night.

    Parameters
    ----------
    now, before : DataFrame
        Rows of ``schemas.USER_METRICS`` of one night each.
    measures : MeasureSet
        Measures that both nights requested and whose published value is a mean.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone. A user is in the slice of their segments of that night.
    unit : {"user", "list"}
        Whether the means of both nights are over users or over lists.
    """
    columns = measures.columns
    denominators = tuple(map(lists_column, columns)) if unit == "list" else ()
    finisher = _Finisher(
        measures.labels,
        tuple(frozenset(measures.asked[column]) for column in measures.columns),
        slice_names(slices),
        min_slice_size,
        confidence,
        _of_ratios if denominators else _of_means,
    )

    def finish(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return finisher.finish(key, group)

    segments, sliced_by = segments_of(slices)
    sides = (
        frame.transform(_to_users, columns=columns, ks=measures.ks).select(
            C.MODEL_ID, C.USER_ID, C.K, *segments, *columns, *denominators
        )
        for frame in (now, before)
    )
    own, earlier = sides
    earlier = earlier.withColumnsRenamed({name: _earlier(name) for name in (PACKED, *columns, *denominators)})
    aggregate = _aggregator(columns, denominators, tuple(sliced_by), measures.ks)
    nothing = F.array_repeat(F.lit(None).cast("string"), len({name for one in sliced_by for name in one}))
    packed = [PACKED, _earlier(PACKED)] if segments else []
    return (
        own.join(earlier, on=[C.MODEL_ID, C.USER_ID, C.K], how="full")
        .transform(with_columns, {name: F.coalesce(name, nothing) for name in packed})
        .drop(C.USER_ID)
        .mapInArrow(aggregate, PARTIAL)
        .groupBy(*_GROUP)
        .applyInArrow(finish, ROW_TYPE)
    )


def _to_users(user_metrics: DataFrame, *, columns: Sequence[str], ks: Sequence[int]) -> DataFrame:
    """Average the lists of each user as the means do; whoever is published belongs to the population."""
    evaluated = user_metrics.where(F.col(C.K).isin(*ks)).withColumn(IS_EVALUATED, F.lit(True))
    return summarise.to_users(evaluated, measures=columns)


def _earlier(name: str) -> str:
    return f"_earlier_{name}"


def _aggregator(
    columns: tuple[str, ...], denominators: tuple[str, ...], slices: tuple[tuple[str, ...], ...], ks: tuple[int, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def aggregate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in in_chunks(batches):
            table = unpacked(unpacked(chunk), packed=_earlier(PACKED), prefix=_earlier(""))
            now, before = (_matrix(table, map(side, columns)) for side in (str, _earlier))
            n_now, n_before = (_matrix(table, map(side, denominators)) for side in (str, _earlier))
            for index, names in enumerate(slices):
                keys, group_now, group_before = _groups(table, names, ks)
                if denominators:
                    sums = ((now * n_now, n_now), (before * n_before, n_before))
                    states = nights.ratios_by_group(*sums, group_now, group_before, len(keys)).to_bytes()
                else:
                    states = nights.by_group(now, before, group_now, group_before, len(keys)).to_bytes()
                rows = [
                    (model, index, list(values), k, state)
                    for (model, values, k), state in zip(keys, states, strict=True)
                ]
                arrays = map(pa.array, zip(*rows, strict=True), _PARTIAL_TYPES)
                yield pa.RecordBatch.from_arrays(list(arrays), [*_GROUP, "state"])

    return aggregate


def _matrix(table: pa.Table, names: Iterable[str]) -> np.ndarray:
    """Put columns of numbers side by side."""
    columns = [doubles(table, name) for name in names]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def _groups(table: pa.Table, names: tuple[str, ...], ks: tuple[int, ...]) -> tuple[list[Key], np.ndarray, np.ndarray]:
    """Find the groups that occur on either night: their keys, and the group of each row on each night.

    A user who was not there on a night has no segments, and no values, on it.
    """
    found = [groups_of(table, each, ks) for each in (names, tuple(map(_earlier, names)))]
    places: dict[Key, int] = {}
    now, before = (
        np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64)[group] for keys, group in found
    )
    return list(places), now, before


def _of_means(states: Iterable[bytes]) -> Nights:
    return reduce(Nights.merge, map(Nights.from_bytes, states))


def _of_ratios(states: Iterable[bytes]) -> Nights:
    return reduce(RatioNights.merge, map(RatioNights.from_bytes, states)).as_means()


@dataclass(frozen=True)
class _Finisher:
    """What the workers need: names of measures and slices, and the cutoffs at which each measure was requested."""

    labels: tuple[str, ...]
    asked: tuple[frozenset[int], ...]
    slices: tuple[str, ...]
    min_slice_size: int
    confidence: float
    merge: Callable[[Iterable[bytes]], Nights]

    def finish(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the aggregates of one (model, slice, values, k) and compare the two nights."""
        model, index, slice_values, k = (one.as_py() for one in key)
        # In an order of their own, so that equal partitions give equal bits however they arrive.
        merged = self.merge(sorted(group["state"].to_pylist()))
        has_users = merged.now.n[0] + merged.before.n[0] > 0
        wanted = [place for place, ks in enumerate(self.asked) if k in ks and has_users[place]]
        n_rows = len(wanted)
        values = pa.array([slice_values] * n_rows, pa.list_(pa.string()))
        columns = {
            C.MODEL_ID: pa.array([model] * n_rows, pa.string()),
            C.SLICE: pa.array([self.slices[index]] * n_rows, pa.string()),
            C.SLICE_VALUE: readable(values),
            C.SLICE_VALUES: values,
            C.MEASURE: pa.array([self.labels[place] for place in wanted], pa.string()),
            C.K: pa.array([k] * n_rows, pa.int32()),
            **self._compared(merged, wanted),
        }
        return pa.Table.from_arrays([columns[field.name] for field in _SCHEMA], schema=_SCHEMA)

    def _compared(self, merged: Nights, wanted: Sequence[int]) -> dict[str, pa.Array]:
        found = nights.compare(merged.now, merged.before, merged.common, level=self.confidence)
        change = nights.relative_change(merged, level=self.confidence)
        counts = (merged.now.n, merged.before.n, merged.common.numerator.n)
        fewest = np.minimum(merged.now.n, merged.before.n)
        is_enough = fewest >= self.min_slice_size
        tests = (np.where(is_enough, p, np.nan) for p in (found.p, found.p_less, found.p_greater))
        numbers = (
            *(merged.now.mean, merged.before.mean, found.delta, found.low, found.high),
            *(change.value, change.low, change.high),
            *(found.std_error, found.freedom, *tests),
        )
        return {
            **{name: pa.array(each[0, wanted]) for name, each in zip(COUNTS, counts, strict=True)},
            **{name: nullable(each[0, wanted]) for name, each in zip(NUMBERS, numbers, strict=True)},
            "ci_level": pa.array([self.confidence] * len(wanted), pa.float64()),
            "is_small": pa.array(fewest[0, wanted] < self.min_slice_size),
        }

"""Each model against a baseline on the same users: scored rows in, rows of ``comparisons`` out.

As for the means (:mod:`rankeval_spark.stages.moments`) each partition is aggregated in numpy, slice by slice, and only
the small aggregates are merged; here their merging and what is made of them are Python too, a group at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages.compared import ROW_TYPE, Finisher
from rankeval_spark.stages.finish import slice_names
from rankeval_spark.stages.population import IS_EVALUATED
from rankeval_spark.stages.slicing import doubles, groups_of, in_chunks, segments_of
from rankeval_spark.statistics.differences import Pairs, by_group

if TYPE_CHECKING:
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.statistics.multiplicity import Correction

_GROUP: Final = (C.BASELINE_MODEL_ID, C.MODEL_ID, "slice_index", C.SLICE_VALUES, C.K)
PARTIAL: Final = (
    f"{C.BASELINE_MODEL_ID} string, {C.MODEL_ID} string, slice_index int, {C.SLICE_VALUES} array<string>, {C.K} int, "
    "state binary"
)


def to_comparisons(  # noqa: PLR0913 - what is compared, and how
    users: DataFrame,
    *,
    measures: MeasureSet,
    slices: Sequence[Sequence[str]],
    baseline: str | None,
    all_pairs: bool,
    correction: Correction,
    min_slice_size: int,
    confidence: float,
) -> DataFrame:
    """Make the rows of ``schemas.COMPARISONS`` from the baseline on: one per (pair, slice, values, measure, k).

    Parameters
    ----------
    users : DataFrame
        One row per (model, user, k) as ``summarise.to_users`` makes them.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone.
    baseline : str or None
        Model that the others are compared with; it may be None where all pairs are.
    all_pairs : bool
        Whether every two models are compared, those with the baseline the way round that it asks for.
    correction : str
        What is done about the number of tests.
    min_slice_size : int
        Slices with fewer users are marked, and have no p.
    confidence : float in (0, 1)
        Nominal coverage of the intervals; a verdict is given where the adjusted p is at most one minus it.

    Notes
    -----
    Compared are means of users: measures with ``agg='micro'``, and those that are no means of what stands in
    ``user_metrics`` (GMAP), have no rows.
    """
    compared = measures.comparable
    labels = dict(zip(measures.columns, measures.labels, strict=True))
    finisher = Finisher(
        labels=tuple(labels[column] for column in compared),
        asked=tuple(frozenset(measures.asked[column]) for column in compared),
        direction=np.array([-1 if column in measures.lower_is_better else 1 for column in compared]),
        slices=slice_names(slices),
        correction=correction,
        min_slice_size=min_slice_size,
        confidence=confidence,
    )

    def finish(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:  # Spark takes no method here
        return finisher.finish(key, group)

    return (
        to_pairs(users, columns=compared, baseline=baseline, all_pairs=all_pairs)
        .transform(_to_partials, columns=compared, slices=slices, ks=measures.ks)
        .groupBy(*_GROUP)
        .applyInArrow(finish, ROW_TYPE)
        .repartition(1)  # a family is all tests of the run; a few thousand rows
        .mapInArrow(finisher.adjust, ROW_TYPE)
    )


def to_pairs(users: DataFrame, *, columns: Sequence[str], baseline: str | None, all_pairs: bool) -> DataFrame:
    """Put the values of a user under two models side by side: one row per (baseline, model, user, k).

    Only users of the population under both models; a value is NULL where it is undefined.
    """
    evaluated = users.where(F.col(IS_EVALUATED)).select(C.MODEL_ID, C.USER_ID, C.K, C.SEGMENTS, *columns)
    firsts = evaluated if all_pairs else evaluated.where(F.col(C.MODEL_ID) == F.lit(baseline))
    first = firsts.select(
        F.col(C.MODEL_ID).alias(C.BASELINE_MODEL_ID),
        *(C.USER_ID, C.K),
        *(F.col(name).alias(_of_baseline(name)) for name in columns),
    )
    is_pair = _place(C.BASELINE_MODEL_ID, baseline) < _place(C.MODEL_ID, baseline)
    return evaluated.join(first, on=[C.USER_ID, C.K], how="inner").where(is_pair)


def _place(name: str, baseline: str | None) -> Column:
    """Order models by name, the baseline before all others; of each two the earlier one is compared with."""
    return F.when(F.col(name) == F.lit(baseline), F.lit("")).otherwise(F.col(name))


def _of_baseline(column: str) -> str:
    return f"_baseline_{column}"


def _to_partials(
    pairs: DataFrame, *, columns: Sequence[str], slices: Sequence[Sequence[str]], ks: Sequence[int]
) -> DataFrame:
    segments, sliced_by = segments_of(slices)
    values = (*columns, *map(_of_baseline, columns))
    aggregate = _aggregator(tuple(columns), tuple(sliced_by), tuple(ks))
    return pairs.select(C.BASELINE_MODEL_ID, C.MODEL_ID, C.K, *segments, *values).mapInArrow(aggregate, PARTIAL)


def _aggregator(
    columns: tuple[str, ...], slices: tuple[tuple[str, ...], ...], ks: tuple[int, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def aggregate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in in_chunks(batches):
            values = np.column_stack([doubles(table, name) for name in columns])
            baselines = np.column_stack([doubles(table, _of_baseline(name)) for name in columns])
            pairs = Pairs.of(values, baselines)
            for index, names in enumerate(slices):
                keys, group = groups_of(table, (C.BASELINE_MODEL_ID, *names), ks)
                states = by_group(pairs, group, len(keys)).to_bytes()
                rows = [
                    (first, model, index, list(slice_values), k, state)
                    for (model, (first, *slice_values), k), state in zip(keys, states, strict=True)
                ]
                arrays = map(pa.array, zip(*rows, strict=True), _PARTIAL_TYPES)
                yield pa.RecordBatch.from_arrays(list(arrays), [*_GROUP, "state"])

    return aggregate


_PARTIAL_TYPES: Final = (pa.string(), pa.string(), pa.int32(), pa.list_(pa.string()), pa.int32(), pa.binary())

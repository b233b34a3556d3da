"""The second Python boundary: scored rows in, partial moments of every slice out.

Slicing a thousand ways costs no explosion and no sort in Spark: each partition is summarised in numpy, slice by slice,
and only the small partial rows are merged. (31 grouping sets over 600,000 scored rows x 16 measures took Spark 26 s,
numpy under 1.5 s.) The worker functions convert Arrow to numpy, call the statistics and convert back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.stages import resample
from rankeval_spark.stages.clean import user_hash
from rankeval_spark.stages.population import IS_EVALUATED, has_judgements, has_list
from rankeval_spark.stages.slicing import USER_HASH, Key, doubles, groups_of, in_chunks, segments_of
from rankeval_spark.statistics import ratios
from rankeval_spark.statistics.moments import Moments, by_group
from rankeval_spark.statistics.ratios import Ratios

if TYPE_CHECKING:
    from rankeval_spark.statistics.resampled import Draws

COUNTS: Final = ("n_population", "n_missing", "n_zero_relevant", "n_extra_users", "n_with_list", "n_tied")
"""Facts of a group of users that do not depend on the measure; sums of one column each."""

PARTIAL: Final = (
    "model_id string, slice_index int, slice_values array<string>, k int, measure_index int, "
    "n bigint, mean double, m2 double, " + ", ".join(f"{name} double" for name in COUNTS)
)

_SCHEMA: Final = pa.schema(
    [
        *((C.MODEL_ID, pa.string()), ("slice_index", pa.int32()), (C.SLICE_VALUES, pa.list_(pa.string()))),
        *((C.K, pa.int32()), ("measure_index", pa.int32()), ("n", pa.int64())),
        *((name, pa.float64()) for name in ("mean", "m2", *COUNTS)),
    ]
)

WEIGHTED: Final = ("weight_mean", "weight_m2", "cross")
"""More columns where some measures are ratios of sums: moments of their denominators, and with the numerators, whose
moments then are ``mean`` and ``m2``."""


def to_partials(  # noqa: PLR0913 - what is summarised, and how
    users: DataFrame,
    *,
    measures: Sequence[str],
    slices: Sequence[Sequence[str]],
    ks: Sequence[int],
    weights: Mapping[str, str] = MappingProxyType({}),
    draws: Draws | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Summarise each partition: one row per (model, slice, slice values, k, measure) found in it.

    Parameters
    ----------
    users : DataFrame
        Rows of ``population.with_population``, one per (model, user, k).
    measures : sequence of str
        The measure columns; ``measure_index`` counts them from 0.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone. ``slice_index`` counts them from 0.
    ks : sequence of int
        The cutoffs that occur.
    weights : mapping
        Column of the denominators, by the column of each measure that is a ratio of sums.
    draws : Draws, optional
        Of a bootstrap. The rows then have the columns ``resample.SPREAD``, and there is one more for each model, slice,
        slice values, k and measure, which has nothing else.
    confidence : float in (0, 1)
        Nominal coverage of the intervals of a bootstrap.
    """
    segments, sliced_by = segments_of(slices)
    summariser = _Summariser(tuple(measures), dict(weights), tuple(sliced_by), tuple(ks), draws)

    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # Spark takes no method here
        return summariser.summarise(batches)

    row = PARTIAL + "".join(f", {name} double" for name in WEIGHTED if weights)
    hashes = [] if draws is None else [user_hash().alias(USER_HASH)]
    values = users.select(C.MODEL_ID, C.K, *segments, *_count_columns(), *measures, *weights.values(), *hashes)
    if draws is None:
        return values.mapInArrow(summarise, row)
    with_states = values.mapInArrow(summarise, row + "".join(f", {name} binary" for name in resample.STATES))
    return resample.with_intervals(with_states, row, n_measures=len(measures), draws=draws, level=confidence)


def _count_columns() -> list[Column]:
    """Give each count as a column of 0 and 1 (a share where a user has several lists)."""
    flags = {
        "n_population": F.col(IS_EVALUATED),
        "n_missing": has_judgements() & ~has_list(),
        "n_zero_relevant": has_judgements() & (F.col(C.N_RELEVANT) == 0),
        "n_extra_users": ~has_judgements(),
        "n_with_list": has_judgements() & has_list(),
    }
    tied = F.when(has_judgements() & has_list(), F.col(C.HAS_TIES).cast("double")).otherwise(0.0)
    return [*(flag.cast("double").alias(name) for name, flag in flags.items()), tied.alias("n_tied")]


@dataclass(frozen=True)
class _Summariser:
    """What the workers need, and what they do with their partition."""

    measures: tuple[str, ...]
    weights: dict[str, str]
    slices: tuple[tuple[str, ...], ...]
    ks: tuple[int, ...]
    draws: Draws | None

    def summarise(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        weighted = [self.measures.index(name) for name in self.weights]
        totals = [_Totals(len(self.measures), weighted) for _ in self.slices]
        resampler = None if self.draws is None else resample.Resampler(self.draws, self.slices, self.ks)
        for table in in_chunks(batches):
            values = _matrix(table, self.measures)
            counts = _matrix(table, COUNTS)
            denominators = _matrix(table, self.weights.values())
            values[:, weighted] *= denominators
            for names, total in zip(self.slices, totals, strict=True):
                keys, group = groups_of(table, names, self.ks)
                total.add(keys, by_group(values, group, len(keys)), _sums(counts, group, len(keys)))
                if weighted:
                    total.add_ratios(keys, ratios.by_group(values[:, weighted], denominators, group, len(keys)))
            if resampler is not None:
                below = np.ones_like(values)
                below[:, weighted] = denominators
                yield from map(self._in_full, resampler.add(table, values, below))
        if resampler is not None:
            yield from map(self._in_full, resampler.rest())
        for index, total in enumerate(totals):
            if total.slots:
                batch = total.to_batch(index)
                yield batch if resampler is None else self._in_full(batch)

    def _in_full(self, columns: pa.RecordBatch | resample.States) -> pa.RecordBatch:
        """Add the columns of moments to states, or the other way round."""
        weighted = [(name, pa.float64()) for name in (WEIGHTED if self.weights else ())]
        schema = pa.schema([*_SCHEMA, *weighted, *((name, pa.binary()) for name in resample.STATES)])
        return pa.RecordBatch.from_arrays(resample.in_full(columns, schema), schema=schema)


def _matrix(table: pa.Table, names: Collection[str]) -> np.ndarray:
    """Put columns of numbers side by side: shape (n_rows, n_names)."""
    columns = [doubles(table, name) for name in names]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def _sums(counts: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    return np.column_stack([np.bincount(group, weights=column, minlength=n_groups) for column in counts.T])


@dataclass
class _Totals:
    """Moments and counts of one slice, merged chunk by chunk; those of ratios too, at the positions ``weighted``."""

    n_measures: int
    weighted: list[int] = field(default_factory=list)
    slots: dict[Key, int] = field(default_factory=dict)
    moments: Moments | None = None
    ratios: Ratios | None = None
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, len(COUNTS))))

    def add(self, keys: list[Key], moments: Moments, counts: np.ndarray) -> None:
        slots = np.array([self.slots.setdefault(key, len(self.slots)) for key in keys])
        size = len(self.slots)
        spread = _spread(moments, slots, size)
        self.moments = spread if self.moments is None else _padded(self.moments, size).merge(spread)
        self.counts = np.pad(self.counts, ((0, size - len(self.counts)), (0, 0)))
        self.counts[slots] += counts

    def add_ratios(self, keys: list[Key], added: Ratios) -> None:
        slots = np.array([self.slots[key] for key in keys])
        spread = _spread_ratios(added, slots, len(self.slots))
        before = self.ratios
        if before is not None:
            before = _spread_ratios(before, np.arange(len(before.cross)), len(self.slots))
        self.ratios = spread if before is None else before.merge(spread)

    def to_batch(self, slice_index: int) -> pa.RecordBatch:
        """Lay the groups out as rows of PARTIAL, a row a measure."""
        keys, n_measures, moments = list(self.slots), self.n_measures, self.moments
        if moments is None:
            message = "a slice without a group has no rows"
            raise ValueError(message)
        repeated = np.repeat(np.arange(len(keys)), n_measures)
        columns = {
            C.MODEL_ID: pa.array([model for model, _, _ in keys], pa.string()).take(pa.array(repeated)),
            "slice_index": pa.array(np.full(len(repeated), slice_index, dtype=np.int32)),
            C.SLICE_VALUES: pa.array([list(values) for _, values, _ in keys], pa.list_(pa.string())).take(
                pa.array(repeated)
            ),
            C.K: pa.array(np.array([k for _, _, k in keys], dtype=np.int32)[repeated]),
            "measure_index": pa.array(np.tile(np.arange(n_measures, dtype=np.int32), len(keys))),
            "n": pa.array(moments.n.ravel()),
            "mean": pa.array(moments.mean.ravel(), from_pandas=True),
            "m2": pa.array(moments.m2.ravel(), from_pandas=True),
            **{name: pa.array(self.counts[repeated, index]) for index, name in enumerate(COUNTS)},
            **self._of_weights(moments.n.shape),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _of_weights(self, shape: tuple[int, ...]) -> dict[str, pa.Array]:
        """Give the columns WEIGHTED, 0 for a measure that is no ratio of sums; none where no measure is."""
        if self.ratios is None:
            return {}
        below = self.ratios.denominator
        columns = {}
        for name, found in zip(WEIGHTED, (below.mean, below.m2, self.ratios.cross), strict=True):
            matrix = np.zeros(shape)
            matrix[:, self.weighted] = found
            columns[name] = pa.array(matrix.ravel(), from_pandas=True)
        return columns


def _spread(moments: Moments, slots: np.ndarray, size: int) -> Moments:
    """Place each group's moments in its slot; the other slots are empty."""
    shape = (size, moments.n.shape[1])
    n, mean, m2 = np.zeros(shape, dtype=moments.n.dtype), np.full(shape, np.nan), np.zeros(shape)
    n[slots], mean[slots], m2[slots] = moments.n, moments.mean, moments.m2
    return Moments(n, mean, m2)


def _spread_ratios(added: Ratios, slots: np.ndarray, size: int) -> Ratios:
    cross = np.zeros((size, added.cross.shape[1]))
    cross[slots] = added.cross
    return Ratios(_spread(added.numerator, slots, size), _spread(added.denominator, slots, size), cross)


def _padded(moments: Moments, size: int) -> Moments:
    return _spread(moments, np.arange(len(moments.n)), size)

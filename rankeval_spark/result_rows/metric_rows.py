"""Rows of ``metrics`` from merged moments: names, spread and interval of each mean; and models, best first.

A few thousand rows, and a column of literals for every name and option: planned as Spark expressions they took a second
of every run, longer than all the arithmetic on them. scipy is needed for the quantiles anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.aggregates import (
    COUNTED_VALUES,
    DRAWN,
    GROUP,
    KEY_FIELDS,
    N_NONZERO,
    QUANTILE_GRID,
    QUANTILES,
    SPREAD,
    STATE,
    STATES,
    WEIGHTED,
    AggregateLayout,
    columns_in_order,
    doubles_to_cells,
)
from rankeval_spark.engine.arrays import to_numpy
from rankeval_spark.engine.slices import Doubles, nan_to_null, read_doubles
from rankeval_spark.measures.measure_set import mean_weight
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.statistics import intervals, moments, ratios
from rankeval_spark.statistics.resampling import bootstrap_spread, ratio_sums

if TYPE_CHECKING:
    from rankeval_spark.config.slicing import ReportedSlices
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.measures.definition import Link
    from rankeval_spark.statistics.resampling import Draws, Parts


SCHEMA: Final = arrow_schema(schemas.METRICS)  # columns of the rows that are made here

WITH_SPREAD: Final = pa.schema([*KEY_FIELDS, *((name, pa.binary()) for name in (STATE, COUNTED_VALUES, SPREAD))])

N_EFFECTIVE: Final = "n_effective"
HAS_SUPPORT: Final = "has_support"

SUPPORT: Final = (C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K, HAS_SUPPORT)
"""Columns of ``metrics`` that say which values have too little support for a verdict."""

LEAN: Final = "lean"  # column on the way: the `lean` of a ratio of sums, see `ratios.skewness_terms`


def slice_columns(rows: pa.RecordBatch, slices: Sequence[str]) -> dict[str, pa.Array]:
    """Return the columns that identify the model and slice of a row, from its model, slice index and slice values."""
    return {
        C.MODEL_ID: rows[C.MODEL_ID],
        C.SLICE: pa.array(slices, pa.string()).take(rows["slice_index"]),
        C.SLICE_VALUE: join_slice_values(rows[C.SLICE_VALUES]),
        C.SLICE_VALUES: rows[C.SLICE_VALUES],
    }


def metric_batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Build a batch with the columns in their declared order."""
    return pa.RecordBatch.from_pydict({name: columns[name] for name in SCHEMA.names})


SupportKey: TypeAlias = tuple[str, str, tuple[str | None, ...], str, int]
"""Model, slice, its values, measure and cutoff of a row of ``metrics``."""


def find_unsupported(metrics: pa.Table) -> frozenset[SupportKey]:
    """Return the keys of the rows of ``metrics`` with too little support for a verdict."""
    if HAS_SUPPORT not in metrics.column_names:
        return frozenset()
    lacking = metrics.filter(pc.equal(metrics[HAS_SUPPORT], False))
    return frozenset(map(support_key, lacking.select(SUPPORT).to_pylist()))


def are_undecided(metrics: pa.Table) -> np.ndarray:
    """Return which rows of ``metrics`` are left out of comparisons: few users, or too little support."""
    is_small: np.ndarray = to_numpy(metrics["is_small"])
    if HAS_SUPPORT not in metrics.column_names:
        return is_small
    return is_small | ~to_numpy(metrics[HAS_SUPPORT], null=1).astype(np.bool_)


def find_mean_weight_rows(metrics: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of the mean weight of the impressions over all users, a row a model."""
    is_own = (pc.field(C.MEASURE) == mean_weight().label) & (pc.field(C.SLICE) == C.ALL_USERS)
    rows: list[dict[str, Any]] = metrics.filter(is_own).to_pylist()
    return rows


def support_key(row: Mapping[str, Any], model: str = C.MODEL_ID) -> SupportKey:
    """Return the key of a row in ``metrics``, or a model's key in a row of ``comparisons``."""
    return row[model], row[C.SLICE], tuple(row[C.SLICE_VALUES]), row[C.MEASURE], row[C.K]


def null_columns(n_rows: int) -> dict[str, pa.Array]:
    """Build NULLs for each column of ``metrics`` that may be NULL; a batch without one of the others is a KeyError."""
    optional = [field.name for field in schemas.METRICS.fields if field.nullable]
    return {name: pa.nulls(n_rows, SCHEMA.field(name).type) for name in optional}


def quantile_key(share: float) -> str:
    """Write a share as the key of its quantile.

    >>> quantile_key(0.5), quantile_key(0.05), quantile_key(1)
    ('0.5', '0.05', '1')
    """
    return format(Decimal(repr(share)).normalize(), "f")


@dataclass(frozen=True)
class MetricRows:
    """Computes rows of ``metrics`` on the workers, for the requested measures, cutoffs and slices."""

    measures: MeasureSet
    state: AggregateLayout
    reported: ReportedSlices

    def finish(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build rows of ``schemas.METRICS``, without the run's columns, from all partial rows of some groups."""
        held = [batch for batch in batches if batch.num_rows]  # a row for each group and part
        if not held:
            return
        rows = self.state.pool(pa.Table.from_batches(held), quantiles=self.reported.quantiles)
        rows = rows.append_column(N_EFFECTIVE, nan_to_null(self._effective(rows)))
        asked = {(k, index) for index, ks in enumerate(self.measures.requested_ks.values()) for k in ks}
        pairs = zip(rows[C.K].to_pylist(), rows["measure_index"].to_pylist(), strict=True)
        requested = rows.filter(pa.array([pair in asked for pair in pairs], pa.bool_()))
        is_ratio = np.isin(requested["measure_index"].to_numpy(), self.state.weighted)
        yield metric_batch(self._columns(linearise_ratios(requested, is_ratio), is_ratio))

    def _effective(self, rows: pa.RecordBatch) -> Doubles:
        """Return each row's effective number of users by Kish, n / (1 + squared variation of the weights); else NaN.

        Weights are those of the impressions of a user, or of the user in the means.
        """
        columns, measures = self.measures.columns, self.measures.by_column.values()
        weighs = np.isin(columns, list(self.measures.weighing))
        is_of_users = np.array([measure.is_weighted_by_user and not measure.is_micro for measure in measures])
        found = np.full((rows.num_rows // max(len(columns), 1), len(columns)), np.nan)

        def of_weights(*names: str) -> Doubles:
            """Compute it from the moments of weights in these columns."""
            n, mean, m2 = (read_doubles(rows, name).reshape(found.shape) for name in names)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                return np.where(n > 0, np.nan_to_num(n / (1 + m2 / n / mean / mean)), np.nan)  # 0 if all weights are

        if is_of_users.any():
            found = np.where(is_of_users, of_weights("n", *WEIGHTED[:2]), found)
        if weighs.any():
            place = columns.index(mean_weight().column)  # of each group there is a row for every measure
            found = np.where(weighs, of_weights("n", "mean", "m2")[:, [place]], found)
        return found.ravel()

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Least and greatest published value of each measure: shape (n_measures, 2)."""
        return np.array([measure.bounds for measure in self.measures.by_column.values()])

    @cached_property
    def _links(self) -> list[Link]:
        return [measure.link for measure in self.measures.by_column.values()]

    def _columns(self, rows: pa.RecordBatch, is_ratio: np.ndarray) -> dict[str, pa.Array]:
        """Build the columns of ``metrics`` from merged moments and counts."""
        n, measure = rows["n"].to_numpy(), rows["measure_index"].to_numpy()
        proportions, by_user = np.array(
            [(measure.is_proportion, measure.is_weighted_by_user) for measure in self.measures.by_column.values()]
        ).T
        is_proportion = proportions[measure] & ~(by_user[measure] & has_unequal_weights(rows))
        is_exempt = is_proportion & (not set(DRAWN) <= set(rows.schema.names))  # Wilson's interval needs no spread
        moment_columns = (read_doubles(rows, name) for name in ("n", "m2", "m3", N_NONZERO))
        is_uncertain = intervals.are_uncertain(*moment_columns) & ~is_exempt
        return {
            **slice_columns(rows, self.reported.names),
            C.MEASURE: pa.array(self.measures.labels, pa.string()).take(rows["measure_index"]),
            C.K: rows[C.K],
            "n_users": rows["n"],
            C.N_LISTS: rows[C.N_LISTS],
            "n_undefined": pa.array(_round_count(rows, "n_population") - n),
            **{name: pa.array(_round_count(rows, name)) for name in ("n_missing", "n_zero_relevant", "n_extra_users")},
            "tie_share": nan_to_null(_divide_or_nan(read_doubles(rows, "n_tied"), read_doubles(rows, "n_with_list"))),
            "is_small": pa.array(n < self.reported.min_size),
            **self._estimates(rows, is_ratio, is_proportion),
            N_EFFECTIVE: rows[N_EFFECTIVE],
            HAS_SUPPORT: pc.greater_equal(rows[N_EFFECTIVE], float(self.reported.min_size)),
            "ci_level": pa.array(np.full(len(n), self.reported.confidence)),
            N_NONZERO: rows[N_NONZERO],
            "is_uncertain": pa.array(is_uncertain, mask=n == 0),
            **self._quantiles(rows, measure),
        }

    def _estimates(self, rows: pa.RecordBatch, is_ratio: np.ndarray, is_proportion: np.ndarray) -> dict[str, pa.Array]:
        """Compute the published means, their spread, and the interval by bootstrap or by the moments."""
        measure, confidence = rows["measure_index"].to_numpy(), self.reported.confidence
        user_bounds = [intervals.to_linked(link, ends) for link, ends in zip(self._links, self._bounds, strict=True)]
        found = metric_spread(
            rows,
            is_proportion=is_proportion,
            is_ratio=is_ratio,
            bounds=np.array(user_bounds)[measure],
            confidence=confidence,
        )
        is_drawn = set(DRAWN) <= set(rows.schema.names)
        if is_drawn:
            found |= dict(zip(("std_error", "ci_low", "ci_high"), (rows[name] for name in DRAWN), strict=True))
        ends = (found[name].to_numpy(zero_copy_only=False) for name in ("ci_low", "ci_high"))
        value, low, high = (self._published(each, measure) for each in (read_doubles(rows, "mean"), *ends))
        bounds = self._bounds[measure].T
        if is_drawn:
            method = np.where(np.isnan(low), "none", "bootstrap")
        else:  # where all users have the same value, the interval of a mean of no shares would have no width
            n = read_doubles(rows, "n")
            is_equal = intervals.are_equal(n, read_doubles(rows, "mean"), read_doubles(rows, "m2")) & ~is_proportion
            equal_low, equal_high = intervals.equal_values_interval(n, value, (bounds[0], bounds[1]), confidence)
            low, high = np.where(is_equal, equal_low, low), np.where(is_equal, equal_high, high)
            method = np.where(np.isnan(equal_low), "none", "wilson")
            method = np.where(is_equal, method, found["ci_method"].to_numpy(zero_copy_only=False))
        # Cut off at the least and greatest value of the measure, or at the value where that is outside.
        low, high = np.maximum(low, np.minimum(bounds[0], value)), np.minimum(high, np.maximum(bounds[1], value))
        published = {C.VALUE: nan_to_null(value), "ci_low": nan_to_null(low), "ci_high": nan_to_null(high)}
        return {**found, **published, "ci_method": pa.array(method.tolist(), pa.string())}

    def _quantiles(self, rows: pa.RecordBatch, measure: np.ndarray) -> dict[str, pa.Array]:
        """Build the columns of the quantiles: as published, and by how much the exact ones may be greater at most."""
        shares = self.reported.quantiles
        if not shares:
            return {name: pa.nulls(rows.num_rows, SCHEMA.field(name).type) for name in (C.QUANTILES, C.QUANTILE_ERROR)}
        values = rows[QUANTILES].flatten().to_numpy(zero_copy_only=False).reshape(-1, len(shares))
        grid = read_doubles(rows, QUANTILE_GRID)[:, None]
        low, high = (self._published(each, measure[:, None]) for each in (values, values + grid))
        error = np.where(grid[:, 0] == 0, 0.0, (high - low).max(axis=1))
        has_none = np.isnan(low[:, 0])
        ends = pa.array(
            np.append(0, np.cumsum(~has_none) * len(shares)).astype(np.int32), mask=np.append(has_none, False)
        )
        names = pa.array([*map(quantile_key, shares)] * int((~has_none).sum()), pa.string())
        return {
            C.QUANTILES: pa.MapArray.from_arrays(ends, names, pa.array(low[~has_none].ravel())),
            C.QUANTILE_ERROR: pa.array(error, mask=has_none),
        }

    def _published(self, means: np.ndarray, measure: np.ndarray) -> np.ndarray:
        """Convert means of logarithms and squares, the ends of their intervals and quantiles, to values."""
        for index in {index for index in set(measure.ravel().tolist()) if self._links[index] != "identity"}:
            means = np.where(measure == index, intervals.to_published(self._links[index], means), means)
        return means


def linearise_ratios(rows: pa.RecordBatch, is_ratio: np.ndarray) -> pa.RecordBatch:
    """Replace the moments of numerators by those of linearised ratios, which are then treated as means.

    Adds the column LEAN, on which the skewness of a ratio depends too, see ``ratios.skewness_terms``; 0 for means.
    """
    if not is_ratio.any():
        return rows.append_column(LEAN, pa.array(np.zeros(rows.num_rows)))
    mean, m2, m3, *weighted = (read_doubles(rows, name) for name in ("mean", "m2", "m3", *WEIGHTED))
    below, below_m2, cross, *cubes = weighted
    ratio, ratio_m2 = ratios.linearise(mean, m2, below, below_m2, cross)
    ratio_m3, lean = ratios.skewness_terms(mean, below, below_m2, cross, (m3, *cubes))
    for name, found in (("mean", ratio), ("m2", ratio_m2), ("m3", ratio_m3)):
        values = np.where(is_ratio, found, read_doubles(rows, name))
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, from_pandas=True))
    return rows.append_column(LEAN, pa.array(np.where(is_ratio, lean, 0.0)))


def metric_spread(
    rows: pa.RecordBatch, *, is_proportion: np.ndarray, is_ratio: np.ndarray, bounds: np.ndarray, confidence: float
) -> dict[str, pa.Array]:
    """Compute ``std_dev``, ``std_error`` and the interval of each mean: Wilson's for proportions, else Hall's.

    Of ratios of sums, linearised, the interval is the delta method's, without bounds where denominators vary. NaN where
    squares leave the range of a double.
    """
    n, mean, m2 = read_doubles(rows, "n"), np.nan_to_num(read_doubles(rows, "mean")), read_doubles(rows, "m2")
    m2 = moments.nan_if_beyond_doubles(m2, mean)
    std_dev = np.sqrt(_divide_or_nan(m2, n - 1))
    is_open = is_ratio & has_unequal_weights(rows)  # a ratio whose users have the same denominator is a mean
    bounds = np.where(is_open[:, None], (-np.inf, np.inf), bounds)
    m3, lean = read_doubles(rows, "m3"), read_doubles(rows, LEAN)
    ends = np.array(intervals.skewed_interval(n, mean, m2, m3, (bounds[:, 0], bounds[:, 1]), confidence, lean=lean))
    is_wilson = is_proportion
    ends[:, is_wilson] = intervals.wilson_interval(n[is_wilson], mean[is_wilson], m2[is_wilson], confidence)
    ends[:, np.isnan(read_doubles(rows, "mean")) | np.isnan(m2)] = np.nan
    method = np.where(is_proportion, "wilson", np.where(is_ratio, "delta", "hall"))
    method = np.where(np.isnan(ends[0]), "none", method)
    return {
        "std_dev": nan_to_null(std_dev),
        "std_error": nan_to_null(_divide_or_nan(std_dev, np.sqrt(n))),
        "ci_low": nan_to_null(ends[0]),
        "ci_high": nan_to_null(ends[1]),
        "ci_method": pa.array(method.tolist(), pa.string()),
    }


def has_unequal_weights(rows: pa.RecordBatch) -> np.ndarray:
    """Return which rows are of users with different denominators, or weights; none where no measure has them."""
    if WEIGHTED[0] not in rows.schema.names:
        return np.zeros(rows.num_rows, dtype=np.bool_)
    is_equal: np.ndarray = intervals.are_equal(*(read_doubles(rows, name) for name in ("n", *WEIGHTED[:2])))
    return ~is_equal


def join_slice_values(slice_values: pa.ListArray) -> pa.StringArray:
    """Join the values of a slice as its name is joined, each as :func:`columns.readable_value` writes it."""
    values = slice_values.values.dictionary_encode(null_encoding="encode")
    named = pa.array(map(C.readable_value, values.dictionary.to_pylist()), pa.string()).take(values.indices)
    return pc.binary_join(pa.ListArray.from_arrays(slice_values.offsets, named), C.CROSSING)


def _round_count(rows: pa.RecordBatch, name: str) -> np.ndarray:
    """Return a count of users; it was added up in doubles."""
    return np.rint(read_doubles(rows, name)).astype(np.int64)


def _divide_or_nan(numerator: Doubles, denominator: Doubles) -> Doubles:
    """Divide; NaN where the denominator is not above 0."""
    return numerator / np.where(denominator > 0, denominator, np.nan)


@dataclass(frozen=True)
class BootstrapIntervals:
    """Replaces the replicate sums of a group by the spread of its means, on the workers."""

    n_measures: int
    draws: Draws
    level: float

    def merge(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the states of one (model, slice, values, k): its moments, and a row with the ends of intervals."""
        moments = group.filter(pc.is_valid(group[STATE])).drop_columns(list(STATES))
        if not moments.num_rows:  # no row for a cutoff that no lists have
            return pa.Table.from_arrays(columns_in_order(moments, WITH_SPREAD), schema=WITH_SPREAD)
        shape = (2, self.n_measures, self.draws.replicates)
        sums, cells = (group[name].drop_null().to_pylist() for name in STATES)
        parts = [np.frombuffer(state).reshape(shape) for state in sums]
        if cells:
            parts.extend(self._draw_users(cells))
        spread = np.hstack(bootstrap_spread(np.array(parts).reshape(-1, *shape), self.level))
        key_columns = {name: pa.array([value.as_py()], value.type) for name, value in zip(GROUP, key, strict=True)}
        tables = (moments, pa.Table.from_pydict({**key_columns, SPREAD: doubles_to_cells(spread[None])}))
        return pa.concat_tables(
            [pa.Table.from_arrays(columns_in_order(table, WITH_SPREAD), schema=WITH_SPREAD) for table in tables]
        )

    def _draw_users(self, cells: Sequence[bytes]) -> Parts:
        """Compute replicate sums of the users in cells of :meth:`Users.each`: hashes, numerators, denominators."""
        width = 2 * self.n_measures
        n_users = [len(cell) // (8 * (1 + width)) for cell in cells]
        pairs = list(zip(cells, n_users, strict=True))
        hashes = np.concatenate([np.frombuffer(cell, dtype=np.int64, count=n) for cell, n in pairs])
        columns = np.concatenate([np.frombuffer(cell, offset=8 * n).reshape(n, width) for cell, n in pairs])
        order = np.argsort(hashes)
        above, below = np.split(columns[order], 2, axis=1)
        return ratio_sums(above, below, hashes[order], self.draws)


def to_leaderboard(
    metrics: pa.Table,  # rows of `schemas.METRICS`
    wanted: Mapping[tuple[str, int], str],  # column of each label and cutoff, in order
    *,
    is_lower_better: bool = False,  # of the first measure
) -> pa.Table:
    """Build a row of the means of each model, best first by the first measure (highest if neither is better)."""
    rows = metrics.filter(pc.equal(metrics[C.SLICE], C.ALL_USERS)).to_pylist()
    by_model: dict[str, dict[str, Any]] = {}
    for row in rows:
        model_row = by_model.setdefault(row[C.MODEL_ID], {C.MODEL_ID: row[C.MODEL_ID], "n_users": 0})
        if (row[C.MEASURE], row[C.K]) in wanted:
            model_row["n_users"] = max(model_row["n_users"], row["n_users"])
            model_row[wanted[row[C.MEASURE], row[C.K]]] = row[C.VALUE]
    first, sign = next(iter(wanted.values())), 1 if is_lower_better else -1

    def place(row: dict[str, Any]) -> tuple[bool, float, str]:
        value = row.get(first)
        return value is None, 0.0 if value is None else sign * value, row[C.MODEL_ID]

    schema = pa.schema(
        {C.MODEL_ID: pa.string(), "n_users": pa.int64(), **dict.fromkeys(wanted.values(), pa.float64())}.items()
    )
    return pa.Table.from_pylist(sorted(by_model.values(), key=place), schema)


def note_partial_means(metrics: pa.Table, wanted: Mapping[tuple[str, int], str], *, at_most: int = 10) -> list[str]:
    """Describe the means of a leaderboard that are of fewer users than it says, because others have no value."""
    counts: dict[str, dict[str, int]] = {name: {} for name in wanted.values()}
    most: dict[str, int] = {}  # by model, as the leaderboard shows it
    for row in metrics.filter(pc.equal(metrics[C.SLICE], C.ALL_USERS)).to_pylist():
        if (row[C.MEASURE], row[C.K]) in wanted:
            model, n_users = row[C.MODEL_ID], row["n_users"]
            counts[wanted[row[C.MEASURE], row[C.K]]][model] = n_users
            most[model] = max(n_users, most.get(model, 0))
    partial = []
    for name, of_measure in counts.items():
        if any(n_users < most[model] for model, n_users in of_measure.items()):
            low, high = min(of_measure.values()), max(of_measure.values())
            partial.append(f"{name} ({low:,})" if low == high else f"{name} ({low:,} to {high:,})")
    if not partial:
        return []
    more = f" and {len(partial) - at_most:,} more" if len(partial) > at_most else ""
    return [f"Means of those users only who have a value: {', '.join(partial[:at_most])}{more}."]

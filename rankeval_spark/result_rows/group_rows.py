"""Rows of ``group_metrics``: the groups of a slicing compared, from ``metrics``.

Of each slicing (a segment or a crossing) and measure: how far its groups lie apart, their ratio, their mean absolute
difference and the worst of them. Of each slice and measure that covers several groups of items: the mean absolute
difference of these. The rows are few, so they cross into Python as they are; users are not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import combine_chunks, encode_rows, to_numpy
from rankeval_spark.engine.buckets import N_GROUPS
from rankeval_spark.engine.slices import nan_to_null, read_doubles
from rankeval_spark.measures import group_statistics
from rankeval_spark.measures.names import measure_of, split_group
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.metric_rows import are_undecided
from rankeval_spark.statistics import group_gaps, intervals

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures.arrays import BoolVector, IntVector

SCHEMA: Final = arrow_schema(schemas.GROUP_METRICS)  # columns of the rows that are made here

Group: TypeAlias = list[str | None]  # values of a slice, or the name of a group of items

_SEPARATOR: Final = "\x1f"
_NO_VALUE: Final = "\x00"


def has_groups(request: Request) -> bool:
    """Return True if there are groups to compare: slices, or two groups of items."""
    return bool(request.slices) or len(request.measure_set.groups) > 1


def to_group_table(metrics: pa.Table) -> pa.Table:
    """Build rows of ``schemas.GROUP_METRICS`` from ``metrics``: user segments, and two or more item groups.

    Groups that are small, undefined, or of an unknown segment are left out: their users are counted in ``n_left_out``.
    With fewer than two groups left there is no value, and the row is marked ``is_small``.
    """
    rows = metrics.select(metric_rows.SCHEMA.names).combine_chunks()
    sliced = rows.filter(pc.not_equal(rows[C.SLICE], C.ALL_USERS))
    return pa.Table.from_batches([*to_group_rows(sliced), *to_item_rows(rows)], SCHEMA)


def to_group_rows(sliced: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each model and slicing from ``metrics`` without the rows of all users."""
    for rows in _by_slicing(sliced):
        slice_values = rows[C.SLICE_VALUES].combine_chunks()
        named = pa.ListArray.from_arrays(slice_values.offsets, pc.fill_null(slice_values.values, _NO_VALUE))
        # In the order of the names, so that of two groups that are as bad it is always the same.
        names = pc.binary_join(named, _SEPARATOR).dictionary_encode()
        order = np.argsort(np.array(names.dictionary.to_pylist(), dtype=object))
        group = np.argsort(order)[names.indices.to_numpy()]
        groups = pc.take(slice_values, pa.array(np.unique(group, return_index=True)[1])).to_pylist()
        measure, first = number_keys(rows, (C.MEASURE, C.K))
        found = pc.take(rows.select([C.MEASURE, C.K]), pa.array(first)).to_pydict()
        measures = list(zip(found[C.MEASURE], found[C.K], strict=True))
        yield _SideBySide(rows, (measures, measure), (groups, group), is_compared(rows)).to_batch()


def to_item_rows(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows about groups of items of each model and slicing, everyone among the slicings."""
    groups = {label: split_group(label) for label in pc.unique(rows[C.MEASURE]).to_pylist()}
    is_of_items = [groups[label] is not None for label in rows[C.MEASURE].to_pylist()]
    for item_rows in _by_slicing(rows.filter(pa.array(is_of_items, pa.bool_()))):
        places: dict[Any, int] = {}  # of each slice and measure, in the order in which they come
        names: dict[str, int] = {}
        measure, group = np.zeros((2, item_rows.num_rows), dtype=np.int64)
        cells = zip(*(item_rows[name].to_pylist() for name in (C.SLICE_VALUES, C.MEASURE, C.K)), strict=True)
        for row, (values, label, k) in enumerate(cells):
            whole, name = groups[label] or ("", "")
            measure[row] = places.setdefault((tuple(values), whole, k), len(places))
            group[row] = names.setdefault(name, len(names))
        if len(names) > 1:
            measures = [(whole, k) for _, whole, k in places]
            compared = to_numpy(pc.is_valid(item_rows[C.VALUE])) & ~are_undecided(item_rows)
            lists = _SideBySide(item_rows, (measures, measure), ([[name] for name in names], group), compared)
            yield lists.to_item_batch([list(values) for values, _, _ in places])


def is_compared(metrics: pa.Table) -> BoolVector:
    """Return for each row of ``metrics`` whether its group is compared: large enough, known, and with a value."""
    values = combine_chunks(metrics[C.SLICE_VALUES])
    is_known = np.ones(len(values), dtype=np.bool_)
    is_null = to_numpy(pc.is_null(pc.list_flatten(values)))
    is_known[to_numpy(pc.list_parent_indices(values))[is_null]] = False
    compared: BoolVector = to_numpy(pc.is_valid(metrics[C.VALUE])) & ~are_undecided(metrics) & is_known
    return compared


def number_keys(table: pa.Table, names: Sequence[str]) -> tuple[IntVector, IntVector]:
    """Return the number of each row's values in some columns, in the order in which they come, and their first rows."""
    _, first, number = np.unique(encode_rows(table, names), return_index=True, return_inverse=True)
    by_place = np.argsort(first)  # the codes of whole numbers ascend, whatever their places
    return np.argsort(by_place)[number], first[by_place]


def _by_slicing(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each model and slicing."""
    pair = encode_rows(rows, (C.MODEL_ID, C.SLICE))
    for code in np.unique(pair).tolist():
        yield rows.filter(pa.array(pair == code))


class _SideBySide:
    """One model and slicing: a row for each measure and a column for each group; NaN where a group is left out."""

    def __init__(
        self,
        rows: pa.Table,
        measures: tuple[list[tuple[str, int]], IntVector],  # and the place of each row's among them
        groups: tuple[list[Group], IntVector],  # and the place of each row's among them
        is_compared: BoolVector,
    ) -> None:
        self.model, self.slicing = rows[C.MODEL_ID][0].as_py(), rows[C.SLICE][0].as_py()
        self.level = rows["ci_level"][0].as_py()
        self.measures, self.groups = measures[0], groups[0]
        shape, cells = (len(self.measures), len(self.groups)), (measures[1], groups[1])

        def matrix(column: np.ndarray, otherwise: float = np.nan) -> np.ndarray:
            found = np.full(shape, otherwise)
            found[cells] = column
            return found

        n = read_doubles(rows, "n_users")
        is_jackknife = pc.equal(rows["ci_method"], "jackknife").to_numpy()
        self.values = matrix(np.where(is_compared, read_doubles(rows, C.VALUE), np.nan))
        self.n_users, self.n_lists = matrix(n, 0.0), matrix(read_doubles(rows, C.N_LISTS), 0.0)
        by_label = {label: measure_of(label) for label in dict(self.measures)}
        known = [measure for label, _ in self.measures if (measure := by_label[label])]
        self.better = np.array([measure.better for measure in known])
        links = np.array([measure.link for measure in known])
        std_errors = matrix(read_doubles(rows, "std_error"))
        for row, link in enumerate(links):
            std_errors[row] = intervals.to_published_error(link, self.values[row], std_errors[row])
        reach = np.array([measure.bounds for measure in known]).T
        has_weights = np.zeros(shape, dtype=np.bool_)
        if metric_rows.N_EFFECTIVE in rows.column_names:
            has_weights[cells] = to_numpy(rows[metric_rows.N_EFFECTIVE].is_valid())
        self.means = group_gaps.GroupMeans(
            self.values,
            std_errors,
            matrix(np.where(is_jackknife, N_GROUPS - 1.0, n - 1)),
            self.level,
            # Each value is 0 or 1 for a list, and no user has a weight
            is_share=np.array([measure.is_proportion for measure in known]) & ~has_weights.any(axis=1),
            bounds=tuple(np.where([measure.entry.kind == "list" for measure in known], reach, np.nan)),
            is_linked=links == "square",
            is_log=links == "log",
            # GMAP and LogAP
            has_floor=np.array([m.entry.bounds[0] == -np.inf and m.bounds[0] > -np.inf for m in known]),
            reach=tuple(reach),
        )

    def to_batch(self) -> pa.RecordBatch:
        """Build the rows of gap, ratio, mean absolute difference and worst group."""
        gap, no_end = group_gaps.compare_groups(self.means), np.full(len(self.measures), np.nan)
        ratio_ends = group_gaps.ratio_interval(self.means)
        everyone: list[Group] = [[] for _ in self.measures]
        parts = [
            self._rows(group_statistics.GROUP_GAP, everyone, (gap.gap, gap.low, gap.high), "games-howell"),
            self._rows(group_statistics.GROUP_RATIO, everyone, (gap.ratio, *ratio_ends), "simultaneous"),
            self._rows(group_statistics.USER_MAD, everyone, (gap.mad, no_end, no_end), "none"),
        ]
        # The worst group: NULL below two groups, or where neither side is better.
        is_error = self.better == "lower"
        is_there = (np.sum(~np.isnan(self.values), axis=1) > 1) & (self.better != "neither")
        badness = np.where(is_error[:, None], 1, -1) * self.values
        worst = np.where(np.isnan(badness), -np.inf, badness).argmax(axis=1)
        value, n_users, n_lists = (
            each[np.arange(len(worst)), worst] for each in (self.values, self.n_users, self.n_lists)
        )
        ends = group_gaps.worst_interval(self.means, is_greatest=is_error)
        names = [self.groups[place] if there else [] for place, there in zip(worst, is_there, strict=True)]
        estimate = np.where(is_there, (value, *ends), np.nan)
        counts = np.where(is_there, (n_users, n_lists), 0)
        parts.append(self._rows(group_statistics.WORST_GROUP, names, estimate, "simultaneous", counts=counts))
        return pa.RecordBatch.from_pydict({name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]})

    def to_item_batch(self, names: list[Group]) -> pa.RecordBatch:
        """Build the rows of the mean absolute difference; ``names`` are the values of each measure's slice."""
        mad = group_gaps.compare_groups(self.means).mad
        no_end = np.full(len(mad), np.nan)  # there is no interval
        counts = [np.where(np.isnan(self.values), np.inf, count).min(axis=1) for count in (self.n_users, self.n_lists)]
        fewest = np.where(np.isnan(mad), 0, counts)
        rows = self._rows(group_statistics.ITEM_MAD, names, (mad, no_end, no_end), "none", counts=fewest)
        return pa.RecordBatch.from_pydict(rows)

    def _rows(
        self,
        kind: str,
        names: list[Group],
        estimate: Iterable[np.ndarray],  # value and both ends
        method: str,
        *,
        counts: np.ndarray | None = None,  # users and lists; those of all groups compared where left out
    ) -> dict[str, pa.Array]:
        """Build the rows of a kind, their columns in the declared order."""
        value, low, high = estimate
        has_value = ~np.isnan(self.values)
        compared, lists = (np.where(has_value, each, 0).sum(axis=1) for each in (self.n_users, self.n_lists))
        n_users, n_lists = (compared, lists) if counts is None else counts
        n, slice_values = len(self.measures), pa.array(names, pa.list_(pa.string()))
        columns = {
            C.MODEL_ID: pa.array([self.model] * n, pa.string()),
            C.SLICE: pa.array([self.slicing] * n, pa.string()),
            C.SLICE_VALUE: metric_rows.join_slice_values(slice_values),
            C.SLICE_VALUES: slice_values,
            C.MEASURE: pa.array([group_statistics.name_of(kind, label) for label, _ in self.measures], pa.string()),
            C.K: pa.array([k for _, k in self.measures], pa.int32()),
            C.VALUE: nan_to_null(value),
            "n_users": pa.array(n_users.astype(np.int64)),
            C.N_LISTS: pa.array(n_lists, pa.int64(), from_pandas=True),
            "n_left_out": pa.array((self.n_users.sum(axis=1) - compared).astype(np.int64)),
            "is_small": pa.array(has_value.sum(axis=1) <= 1),
            "ci_low": nan_to_null(low),
            "ci_high": nan_to_null(high),
            "ci_level": pa.array(np.full(n, self.level)),
            "ci_method": pa.array(np.where(np.isnan(low), "none", method).tolist(), pa.string()),
        }
        return {name: columns[name] for name in SCHEMA.names}

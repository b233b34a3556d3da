"""Rows of ``group_metrics``: the groups of a slicing compared, from ``metrics``.

Of each slicing (a segment or a crossing) and measure: how far its groups lie apart, their ratio, their mean absolute
difference and the worst of them. Of each slice and measure that covers several groups of items: the mean absolute
difference of these. The rows are few, so they cross into Python as they are; users are not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.buckets import N_GROUPS
from rankeval_spark.engine.codes import row_codes
from rankeval_spark.engine.slices import doubles, nullable
from rankeval_spark.measures import group_statistics
from rankeval_spark.measures.names import measure_of, split_group
from rankeval_spark.result_rows import metric_rows
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.metric_rows import are_undecided
from rankeval_spark.statistics import group_gaps, intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.config.request import Request
    from rankeval_spark.measures.definition import Better

Matrix = np.ndarray  # measures and cutoffs as rows, the groups of a slicing as columns
SCHEMA: Final = arrow_schema(schemas.GROUP_METRICS)  # columns of the rows that are made here

_SEPARATOR: Final = "\x1f"
_NO_VALUE: Final = "\x00"


def has_groups(request: Request) -> bool:
    """Return True if there are groups to compare: slices, or two groups of items."""
    return bool(request.slices) or len(request.measure_set.groups) > 1


def to_group_table(metrics: pa.Table) -> pa.Table:
    """Build rows of ``schemas.GROUP_METRICS`` from all rows of ``metrics``.

    They are rows of :data:`group_statistics.KINDS` for every model, slicing, measure and cutoff; and a row
    :data:`group_statistics.ITEM_MAD` of every model, slice (everyone too), measure and cutoff with two groups of items
    or more. Groups that are small, whose measure is undefined, or for whose users a segment is unknown are left out:
    their users are counted in ``n_left_out``, those of the others in ``n_users``. A slicing with fewer than two groups
    left has rows without a value, marked ``is_small``. ``slice_values`` is empty but for the worst group.
    """
    rows = metrics.select(metric_rows.SCHEMA.names).combine_chunks()
    sliced = rows.filter(pc.not_equal(rows[C.SLICE], C.ALL_USERS))
    return pa.Table.from_batches([*to_group_rows(sliced), *to_item_rows(rows)], SCHEMA)


def group_batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """Build a batch with the columns in their declared order."""
    return pa.RecordBatch.from_pydict({name: columns[name] for name in SCHEMA.names})


def to_group_rows(sliced: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each model and slicing from ``metrics`` without the rows of all users."""
    for rows in _by_slicing(sliced):
        yield _Slicing.of(rows).to_batch()


def to_item_rows(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows about groups of items of each model and slicing, everyone among the slicings."""
    of_items = [_item_group_of(label) is not None for label in rows[C.MEASURE].to_pylist()]
    for each in _by_slicing(rows.filter(pa.array(of_items, pa.bool_()))):
        slicing, names = _Slicing.of_items(each)
        if len(slicing.groups) > 1:
            yield slicing.to_item_batch(names)


def _by_slicing(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each model and slicing."""
    pair = row_codes(rows, (C.MODEL_ID, C.SLICE))
    for each in np.unique(pair).tolist():
        yield rows.filter(pa.array(pair == each))


@dataclass(frozen=True)
class _Slicing:
    """One model and slicing: its groups side by side; NaN where a group is left out."""

    model: str
    name: str
    measures: list[tuple[str, int]]
    groups: list[list[str | None]]
    values: Matrix
    std_errors: Matrix
    freedom: Matrix
    n_users: Matrix
    n_lists: Matrix
    level: float

    @classmethod
    def of(cls, rows: pa.Table) -> _Slicing:
        slice_values = rows[C.SLICE_VALUES].combine_chunks()
        named = pa.ListArray.from_arrays(slice_values.offsets, pc.fill_null(slice_values.values, _NO_VALUE))
        first, group = _places(pc.binary_join(named, _SEPARATOR))
        groups = pc.take(slice_values, pa.array(first)).to_pylist()
        is_known = np.array([None not in values for values in groups])
        return cls._laid_out(rows, measures=_measures(rows), groups=(groups, group), is_compared=is_known[group])

    @classmethod
    def of_items(cls, rows: pa.Table) -> tuple[_Slicing, list[list[str | None]]]:
        """Lay groups of items side by side, a row for each slice and measure; return the values of its slice too."""
        parts = [_item_group_of(label) or ("", "") for label in rows[C.MEASURE].to_pylist()]
        values, ks = map(tuple, rows[C.SLICE_VALUES].to_pylist()), rows[C.K].to_pylist()
        keys, key = _distinct((*names, whole, k) for names, (whole, _), k in zip(values, parts, ks, strict=True))
        groups, group = _distinct(name for _, name in parts)
        slicing = cls._laid_out(
            rows,
            measures=([(whole, k) for *_, whole, k in keys], key),
            groups=([[name] for name in groups], group),
            is_compared=np.ones(rows.num_rows, dtype=np.bool_),
        )
        return slicing, [list(names) for *names, _, _ in keys]

    @classmethod
    def _laid_out(
        cls,
        rows: pa.Table,
        *,
        measures: tuple[list[tuple[str, int]], np.ndarray],
        groups: tuple[list[list[str | None]], np.ndarray],
        is_compared: np.ndarray,
    ) -> _Slicing:
        """Lay rows out by the positions of their measures and groups; small groups are left out too."""
        n, value, error = (doubles(rows, name) for name in ("n_users", C.VALUE, "std_error"))
        is_jackknife = pc.equal(rows["ci_method"], "jackknife").to_numpy()
        value = np.where(is_compared & ~are_undecided(rows), value, np.nan)
        shape = len(measures[0]), len(groups[0])

        def matrix(column: np.ndarray, otherwise: float = np.nan) -> Matrix:
            cells = np.full(shape, otherwise)
            cells[measures[1], groups[1]] = column
            return cells

        values, std_errors = matrix(value), matrix(error)
        for row, (label, _) in enumerate(measures[0]):
            std_errors[row] = intervals.published_error(_facts_of(label).link, values[row], std_errors[row])
        return cls(
            rows[C.MODEL_ID][0].as_py(),
            rows[C.SLICE][0].as_py(),
            measures[0],
            groups[0],
            values,
            std_errors,
            matrix(np.where(is_jackknife, N_GROUPS - 1.0, n - 1)),
            matrix(n, 0.0),
            matrix(doubles(rows, C.N_LISTS), 0.0),
            rows["ci_level"][0].as_py(),
        )

    def to_batch(self) -> pa.RecordBatch:
        gap = group_gaps.gap_of(self._means)
        ratio_ends = group_gaps.ratio_interval(self._means)
        has_groups = np.sum(~np.isnan(self.values), axis=1) > 1
        everyone: list[list[str | None]] = [[] for _ in self.measures]
        parts = [
            self._rows(group_statistics.GROUP_GAP, everyone, (gap.gap, gap.low, gap.high), "games-howell"),
            self._rows(group_statistics.GROUP_RATIO, everyone, (gap.ratio, *ratio_ends), "simultaneous"),
            self._rows(group_statistics.USER_MAD, everyone, (gap.mad, *np.full((2, len(gap.mad)), np.nan)), "none"),
            self._worst_rows(has_groups),
        ]
        columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}
        return group_batch(columns)

    def to_item_batch(self, names: list[list[str | None]]) -> pa.RecordBatch:
        mad = group_gaps.gap_of(self._means).mad
        counts = (np.where(np.isnan(self.values), np.inf, each).min(axis=1) for each in (self.n_users, self.n_lists))
        nothing = np.full(len(mad), np.nan)
        fewest = np.where(np.isnan(mad), 0, tuple(counts))
        rows = self._rows(group_statistics.ITEM_MAD, names, (mad, nothing, nothing), "none", counts=fewest)
        return group_batch(rows)

    @property
    def _means(self) -> group_gaps.GroupMeans:
        """Each measure in each group; of shares where it is 0 or 1 for a list."""
        facts = [_facts_of(label) for label, _ in self.measures]
        least, greatest = np.array([each.bounds for each in facts]).T
        return group_gaps.GroupMeans(
            self.values,
            self.std_errors,
            self.freedom,
            self.level,
            is_share=np.array([each.is_share for each in facts]),
            bounds=(least, greatest),
            is_linked=np.array([each.link == "square" for each in facts]),
            is_log=np.array([each.link == "log" for each in facts]),
            has_floor=np.array([each.has_floor for each in facts]),
            reach=tuple(np.array([each.reach for each in facts]).T),
        )

    def _worst_rows(self, has_groups: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Build rows of the worst group; NULL below two groups, or where neither side is better."""
        better = np.array([_facts_of(label).better for label, _ in self.measures])
        is_error, has_groups = better == "lower", has_groups & (better != "neither")
        low, high = group_gaps.worst_interval(self._means, is_greatest=is_error)
        badness = np.where(is_error[:, None], 1, -1) * self.values
        worst = np.where(np.isnan(badness), -np.inf, badness).argmax(axis=1)
        value = np.where(has_groups, self.values[np.arange(len(worst)), worst], np.nan)
        names = [self.groups[each] if there else [] for each, there in zip(worst, has_groups, strict=True)]
        of_worst = [each[np.arange(len(worst)), worst] for each in (self.n_users, self.n_lists)]
        ends = (np.where(has_groups, low, np.nan), np.where(has_groups, high, np.nan))
        return self._rows(
            group_statistics.WORST_GROUP,
            names,
            (value, *ends),
            "simultaneous",
            counts=np.where(has_groups, of_worst, 0),
        )

    def _rows(
        self,
        kind: str,
        names: list[list[str | None]],
        estimate: tuple[np.ndarray, np.ndarray, np.ndarray],
        method: str,
        *,
        counts: np.ndarray | None = None,
    ) -> dict[str, pa.Array]:
        """Build the rows of a kind; ``counts`` are users and lists, those of all groups compared where left out."""
        value, low, high = estimate
        is_compared = ~np.isnan(self.values)
        compared, lists = (np.where(is_compared, each, 0).sum(axis=1) for each in (self.n_users, self.n_lists))
        n_users, n_lists = (compared, lists) if counts is None else counts
        n = len(self.measures)
        slice_values = pa.array(names, pa.list_(pa.string()))
        has_interval = ~np.isnan(low)
        return {
            C.MODEL_ID: pa.array([self.model] * n, pa.string()),
            C.SLICE: pa.array([self.name] * n, pa.string()),
            C.SLICE_VALUE: metric_rows.readable(slice_values),
            C.SLICE_VALUES: slice_values,
            C.MEASURE: pa.array([group_statistics.name_of(kind, label) for label, _ in self.measures], pa.string()),
            C.K: pa.array([k for _, k in self.measures], pa.int32()),
            C.VALUE: nullable(value),
            "n_users": pa.array(n_users.astype(np.int64)),
            C.N_LISTS: pa.array(n_lists, pa.int64(), from_pandas=True),
            "n_left_out": pa.array((self.n_users.sum(axis=1) - compared).astype(np.int64)),
            "is_small": pa.array(is_compared.sum(axis=1) <= 1),
            "ci_low": nullable(low),
            "ci_high": nullable(high),
            "ci_level": pa.array(np.full(n, self.level)),
            "ci_method": pa.array(np.where(has_interval, method, "none").tolist(), pa.string()),
        }


@dataclass(frozen=True)
class _Facts:
    link: str = "identity"
    better: Better = "higher"
    is_share: bool = False
    bounds: tuple[float, float] = (np.nan, np.nan)
    reach: tuple[float, float] = (-np.inf, np.inf)
    has_floor: bool = False


@lru_cache(maxsize=1024)
def _facts_of(label: str) -> _Facts:
    """Return what is averaged, which value is the worst, and the bounds of the values of users."""
    measure = measure_of(label)
    if measure is None:
        return _Facts()
    bounds = measure.bounds if measure.entry.kind == "list" else _Facts.bounds
    has_floor = measure.entry.bounds[0] == -np.inf and measure.bounds[0] > -np.inf  # of GMAP and LogAP
    return _Facts(measure.link, measure.better, measure.is_proportion, bounds, measure.bounds, has_floor)


_item_group_of = lru_cache(maxsize=4096)(split_group)


def _places(names: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of each distinct name, and the position of each row's among them.

    In the order of the names, so that of two groups that are as bad it is always the same.
    """
    distinct = names.dictionary_encode()
    order = np.argsort(np.array(distinct.dictionary.to_pylist(), dtype=object))
    position = np.argsort(order)[distinct.indices.to_numpy()]
    return np.unique(position, return_index=True)[1], position


def _measures(rows: pa.Table) -> tuple[list[tuple[str, int]], np.ndarray]:
    """Return each measure at a cutoff in the order in which they come, and the position of each row's among them."""
    _, first, position = np.unique(row_codes(rows, (C.MEASURE, C.K)), return_index=True, return_inverse=True)
    order = np.argsort(first)
    found = pc.take(rows.select([C.MEASURE, C.K]), pa.array(first[order])).to_pydict()
    return list(zip(found[C.MEASURE], found[C.K], strict=True)), np.argsort(order)[position]


def _distinct(pairs: Iterable[Any]) -> tuple[list[Any], np.ndarray]:
    known: dict[Any, int] = {}
    position = np.array([known.setdefault(pair, len(known)) for pair in pairs], dtype=np.int64)
    return list(known), position

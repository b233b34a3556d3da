"""Changes of each model from an earlier night: users of both in, aggregates that merge, rows out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregates import KEY_FIELDS, STATE
from rankeval_spark.engine.arrays import encode_rows
from rankeval_spark.engine.outputs import list_count_column
from rankeval_spark.engine.slices import (
    Key,
    find_groups,
    nan_to_null,
    read_doubles,
    read_matrix,
    segment_column_names,
)
from rankeval_spark.result_rows.comparison_rows import clip_differences
from rankeval_spark.result_rows.metric_rows import join_slice_values
from rankeval_spark.statistics import night_differences
from rankeval_spark.statistics.night_differences import Nights, RatioNights

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.config.slicing import ReportedSlices
    from rankeval_spark.measures import MeasureSet

PARTIAL: Final = pa.schema([*KEY_FIELDS, (STATE, pa.binary())])

COUNTS: Final = ("n_users", "n_earlier_users", "n_common_users")
NUMBERS: Final = (
    *(C.VALUE, "earlier_value", "delta", "ci_low", "ci_high"),
    *("relative_delta", "relative_ci_low", "relative_ci_high"),
    *("std_error", "freedom", "p_value", "p_less", "p_greater"),
)
BY_USERS: Final = ("delta_left", "delta_came", "delta_same")  # parts of the change of a row
BY_GROUPS: Final = ("delta_mix", "delta_within")  # parts of a slice value in the change of all users
SHARES: Final = ("share", "earlier_share")  # of a slice value in the users of its slice, or in their lists
SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys((C.MODEL_ID, C.SLICE, C.SLICE_VALUE), pa.string()),
        C.SLICE_VALUES: pa.list_(pa.string()),
        C.MEASURE: pa.string(),
        C.K: pa.int32(),
        **dict.fromkeys(COUNTS, pa.int64()),
        **dict.fromkeys((*NUMBERS, *BY_USERS, *BY_GROUPS, *SHARES, "ci_level"), pa.float64()),
        "is_small": pa.bool_(),
    }.items()
)

INPUTS: Final = {"recommendations": "log_rows", "held_out": "judgement_rows", "items": "catalogue_rows"}
"""Inputs whose rows are shown beside a change, and how their columns end, such as ``n_earlier_log_rows``."""

EARLIER: Final = "_earlier_"  # prefix of the columns of the earlier night, where both are side by side


@dataclass(frozen=True)
class NightChanges:
    """Aggregates the users of two nights and compares them; a user is in the slice of that night's segments."""

    measures: MeasureSet  # those that both nights requested and whose published value is a mean
    reported: ReportedSlices
    denominators: tuple[str, ...] = ()  # columns of the numbers of lists, where means are over lists

    @classmethod
    def from_unit(cls, measures: MeasureSet, reported: ReportedSlices, unit: Unit) -> NightChanges:
        """Compare means over users or over lists, as the nights themselves took them."""
        return cls(measures, reported, tuple(map(list_count_column, measures.columns)) if unit == "list" else ())

    def aggregate(self, users: pa.Table) -> Iterator[pa.RecordBatch]:
        """Aggregate users of both nights, a row per (model, user, k), into rows of :data:`PARTIAL`.

        Columns are segments as ``segment_column_names`` names them, the measures and the denominators; and all of these
        again with the prefix :data:`EARLIER`. NULL on a night on which the user has no values.
        """
        columns, ks = self.measures.columns, self.measures.ks
        now, before = (read_matrix(users, [*map(side, columns)]) for side in (str, earlier_name))
        n_now, n_before = (read_matrix(users, [*map(side, self.denominators)]) for side in (str, earlier_name))
        for index, names in enumerate(segment_column_names(self.reported.segments)):
            keys, group_now, group_before = _find_night_groups(users, names, ks)
            if self.denominators:
                sums = ((now * n_now, n_now), (before * n_before, n_before))
                states = night_differences.ratio_nights_by_group(*sums, group_now, group_before, len(keys)).to_bytes()
            else:
                states = night_differences.nights_by_group(now, before, group_now, group_before, len(keys)).to_bytes()
            rows = [
                (model, index, list(values), k, state) for (model, values, k), state in zip(keys, states, strict=True)
            ]
            arrays = map(pa.array, zip(*rows, strict=True), PARTIAL.types)
            yield pa.RecordBatch.from_arrays(list(arrays), PARTIAL.names)

    def finish(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Merge the aggregates of one (model, slice, values, k) and compare the two nights."""
        model, index, slice_values, k = (cell.as_py() for cell in key)
        # In an order of their own, so that equal partitions give equal bits however they arrive.
        states = sorted(group[STATE].to_pylist())
        found: Nights | RatioNights
        if self.denominators:
            found = of_lists = reduce(RatioNights.merge, map(RatioNights.from_bytes, states))
            merged = of_lists.as_means()
        else:
            found = merged = reduce(Nights.merge, map(Nights.from_bytes, states))
        has_users = merged.now.n[0] + merged.before.n[0] > 0
        requested = [self.measures.requested_ks[column] for column in self.measures.columns]
        wanted = [place for place, ks in enumerate(requested) if k in ks and has_users[place]]
        n_rows = len(wanted)
        values = pa.array([slice_values] * n_rows, pa.list_(pa.string()))
        columns = {
            C.MODEL_ID: pa.array([model] * n_rows, pa.string()),
            C.SLICE: pa.array([self.reported.names[index]] * n_rows, pa.string()),
            C.SLICE_VALUE: join_slice_values(values),
            C.SLICE_VALUES: values,
            C.MEASURE: pa.array([self.measures.labels[place] for place in wanted], pa.string()),
            C.K: pa.array([k] * n_rows, pa.int32()),
            **self._compared(merged, wanted),
            **_split(found, merged, wanted),
        }
        return pa.Table.from_arrays([columns[field.name] for field in SCHEMA], schema=SCHEMA)

    def _compared(self, merged: Nights, wanted: Sequence[int]) -> dict[str, pa.Array]:
        """Build the columns of numbers: the change of each wanted measure, its interval and tests."""
        found = night_differences.compare_nights(merged, level=self.reported.confidence)
        change = night_differences.relative_change_of_nights(merged, level=self.reported.confidence)
        counts = (merged.now.n, merged.before.n, merged.common.numerator.n)
        fewest = np.minimum(merged.now.n, merged.before.n)
        is_enough = fewest >= self.reported.min_size
        tests = (np.where(is_enough, p, np.nan) for p in (found.p, found.p_less, found.p_greater))
        numbers = (
            *(merged.now.mean, merged.before.mean, found.delta, found.low, found.high),
            *(change.value, change.low, change.high),
            *(found.std_error, found.freedom, *tests),
        )
        number_columns = {name: each[0, wanted] for name, each in zip(NUMBERS, numbers, strict=True)}
        bounds = np.array([[*self.measures.by_column.values()][place].bounds for place in wanted]).reshape(-1, 2)
        return {
            **{name: pa.array(each[0, wanted]) for name, each in zip(COUNTS, counts, strict=True)},
            **{name: nan_to_null(each) for name, each in clip_differences(number_columns, bounds).items()},
            "ci_level": pa.array([self.reported.confidence] * len(wanted), pa.float64()),
            "is_small": pa.array(fewest[0, wanted] < self.reported.min_size),
        }


def _split(found: Nights | RatioNights, means: Nights, wanted: Sequence[int]) -> dict[str, pa.Array]:
    """Build the columns of the parts of each change, and those of weights, of which :func:`add_groups` makes shares."""
    n_common = means.common.numerator.n
    counts = means.before.n - n_common, means.now.n - n_common
    causes = night_differences.split_by_users(means.now.mean, means.before.mean, found.kept_means, *counts)
    columns = dict(zip((*BY_USERS, *SHARES), (*causes, *found.weights), strict=True))
    unknown = dict.fromkeys(BY_GROUPS, pa.nulls(len(wanted), pa.float64()))
    return {**{name: nan_to_null(each[0, wanted]) for name, each in columns.items()}, **unknown}


def add_groups(rows: pa.Table) -> pa.Table:
    """Replace the weights of finished rows by shares, and add the parts of each slice value in the change of all."""
    if not rows.num_rows:
        return rows
    _, whole = np.unique(encode_rows(rows, (C.MODEL_ID, C.SLICE, C.MEASURE, C.K)), return_inverse=True)
    now, before = (read_doubles(rows, name) for name in (C.VALUE, "earlier_value"))
    weights = [read_doubles(rows, name) for name in SHARES]
    parts = night_differences.split_by_groups(now, before, weights[0], weights[1], whole)
    with np.errstate(invalid="ignore"):
        shares = [weight / np.bincount(whole, weight)[whole] for weight in weights]
    is_all = np.array(rows[C.SLICE].to_pylist()) == C.ALL_USERS
    for name, values in zip((*BY_GROUPS, *SHARES), (*parts, *shares), strict=True):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), nan_to_null(np.where(is_all, np.nan, values)))
    return rows


def count_inputs(now: Mapping[str, int | None], before: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return columns with the rows of each night's inputs, from the rows by the input's name."""
    nights = {"n_": now, "n_earlier_": before}
    return {f"{start}{end}": rows.get(name) for name, end in INPUTS.items() for start, rows in nights.items()}


def earlier_name(name: str) -> str:
    """Return the name of a column on the earlier night."""
    return f"{EARLIER}{name}"


def _find_night_groups(
    table: pa.Table, names: tuple[str, ...], ks: tuple[int, ...]
) -> tuple[list[Key], np.ndarray, np.ndarray]:
    """Find the groups that occur on either night: their keys, and the group of each row on each night."""
    found = [find_groups(table, each, ks) for each in (names, tuple(map(earlier_name, names)))]
    places: dict[Key, int] = {}
    now, before = (
        np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64)[group] for keys, group in found
    )
    return list(places), now, before

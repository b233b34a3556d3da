"""Gaps between groups, a row per slicing, measure and cutoff; on request tested: a p of equal means.

For a test, the users of each group are drawn again in every replicate, with weights from the hash of their id alone.
Which groups are compared, and their means and deviations, is read from ``metrics`` before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.slicing import slice_names
from rankeval_spark.engine.aggregates import Users
from rankeval_spark.engine.arrays import ABSENT, rank_ids, take_or_null, to_arrow, to_codes, to_numpy, to_texts
from rankeval_spark.engine.paired_differences import MAX_HELD
from rankeval_spark.engine.slices import (
    dictionary_encode,
    find_groups,
    nan_to_null,
    read_doubles,
    read_matrix,
    rechunk,
    segment_column_names,
    unpack_segments,
)
from rankeval_spark.measures import group_statistics
from rankeval_spark.result_rows.group_rows import is_compared, number_keys
from rankeval_spark.result_rows.metric_rows import HAS_SUPPORT
from rankeval_spark.statistics import multiple_testing
from rankeval_spark.statistics.group_gaps import MIN_HITS, TIE, equal_means_p
from rankeval_spark.statistics.moments import SQUARES
from rankeval_spark.statistics.paired_tests import OUT_OF_RANGE
from rankeval_spark.statistics.resampling import ReplicateSums, SliceGroups, weighted_sums

if TYPE_CHECKING:
    from rankeval_spark.config.inference import GapTests
    from rankeval_spark.config.request import Request
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.statistics.resampling import Draws


NIGHT: Final = (C.EVALUATION, C.EVALUATION_DATE)  # columns that published rows have in addition

KEY: Final = (C.MODEL_ID, C.SLICE, C.MEASURE, C.K)

READ: Final = (*KEY, C.SLICE_VALUE, C.SLICE_VALUES, C.VALUE, "is_small", "ci_low", "ci_high", "ci_level")
"""Columns that are read of both tables, those of :data:`NIGHT` where there are any."""

_STATEMENTS: Final = {
    "gap": (group_statistics.GROUP_GAP, C.VALUE),
    "ci_low": (group_statistics.GROUP_GAP, "ci_low"),
    "ci_high": (group_statistics.GROUP_GAP, "ci_high"),
    "ratio": (group_statistics.GROUP_RATIO, C.VALUE),
    "ratio_ci_low": (group_statistics.GROUP_RATIO, "ci_low"),
    "ratio_ci_high": (group_statistics.GROUP_RATIO, "ci_high"),
    "mad": (group_statistics.USER_MAD, C.VALUE),
}
"""Numbers that ``group_metrics`` has already: kind of the row and column, by the column that they get."""

_parts_of = lru_cache(maxsize=4096)(group_statistics.parts_of)

COLUMNS: Final = (
    *(*KEY, "n_groups", "n_left_out", "gap", "ci_low", "ci_high", "ci_level"),
    *("ratio", "ratio_ci_low", "ratio_ci_high", "mad"),
    *("lowest_group", "lowest_value", "highest_group", "highest_value"),
)
"""Columns of the rows that are made here, after those of :data:`NIGHT`."""


def to_gaps(metrics: pa.Table, group_metrics: pa.Table) -> pa.Table:
    """Join ``metrics`` and ``group_metrics`` into a row of :data:`COLUMNS` per (night, model, slice, measure, k).

    Groups that are small, undefined, or of an unknown segment are left out and counted in ``n_left_out``. ``gap``,
    ``ratio`` and ``mad`` are rows of ``group_metrics`` already; the groups at both ends are found here.
    """
    night = [name for name in NIGHT if name in metrics.column_names]
    groups, statements = (
        table.select([*night, *READ, *(name for name in (HAS_SUPPORT,) if name in table.column_names)]).filter(
            pc.not_equal(table[C.SLICE], C.ALL_USERS)  # of groups of users
        )
        for table in (metrics, group_metrics)
    )
    parts = [_parts_of(label) or ("", "") for label in statements[C.MEASURE].to_pylist()]
    is_stated = np.array([kind in group_statistics.KINDS for kind, _ in parts], dtype=np.bool_)
    place, measures = statements.column_names.index(C.MEASURE), to_texts(measure for _, measure in parts)
    statements = statements.set_column(place, C.MEASURE, measures).filter(to_arrow(is_stated))
    kinds = np.array([kind for kind, _ in parts], dtype=object)[is_stated]
    both = [table.select([*night, *KEY]) for table in (groups, statements)]
    keys = pa.concat_tables(both, promote_options="default")  # columns of one may be declared without NULL
    key, first = number_keys(keys, keys.column_names)
    of_group, of_statement = np.split(key, [groups.num_rows])
    found = dict(zip(keys.column_names, pc.take(keys, to_arrow(first)).columns, strict=True))
    compared = is_compared(groups)
    for name, chosen in (("n_groups", compared), ("n_left_out", ~compared)):
        found[name] = to_arrow(np.bincount(of_group[chosen], minlength=len(first)).astype(np.int32))
    for name, (kind, column) in _STATEMENTS.items():
        numbers, is_it = np.full(len(first), np.nan), kinds == kind
        numbers[of_statement[is_it]] = read_doubles(statements, column)[is_it]
        found[name] = nan_to_null(numbers)
    level = np.full(len(first), np.nan)
    np.fmax.at(level, key, np.concatenate([read_doubles(table, "ci_level") for table in (groups, statements)]))
    found["ci_level"] = nan_to_null(level)
    # Of two groups whose values are equal, the one whose name comes first.
    row, value, codes = np.flatnonzero(compared), read_doubles(groups, C.VALUE), to_codes(groups[C.SLICE_VALUE])
    place = rank_ids(codes.values)[codes.code]
    for end, sign in (("lowest", 1), ("highest", -1)):
        by_key = row[np.lexsort((place[row], sign * value[row], of_group[row]))]
        present, at = np.unique(of_group[by_key], return_index=True)
        extreme = np.full(len(first), ABSENT)
        extreme[present] = by_key[at]
        for column, of in ((C.SLICE_VALUE, "group"), (C.VALUE, "value")):
            found[f"{end}_{of}"] = take_or_null(groups[column], extreme)
    return pa.Table.from_pydict({name: found[name] for name in (*night, *COLUMNS)})


Values: TypeAlias = tuple[str, ...]  # values of a slice, which name a group
_GroupSet: TypeAlias = tuple[tuple[Values, ...], tuple[int, ...]]  # groups, and gaps between them: one draw serves all

ROW_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in (C.MODEL_ID, C.SLICE, C.MEASURE)),
        *((C.K, pa.int32()), ("n_groups", pa.int32())),
        *((name, pa.float64()) for name in ("gap", "p_value", "p_adjusted")),
        *(
            ("correction", pa.string()),
            ("family_size", pa.int64()),
            ("replicates", pa.int32()),
            ("reason", pa.string()),
        ),
    ]
)  # rows of `to_gap_test_rows`

_PARTIAL_FIELDS: Final = pa.schema([("test", pa.int32()), ("sums", pa.binary())])
P_SCHEMA: Final = pa.schema([("test", pa.int32()), ("p_value", pa.float64())])


@dataclass(frozen=True)
class ComparedGroups:
    """The groups that are compared in one measure at one cutoff, and how far they lie apart."""

    model: str
    slice: str
    measure: str
    k: int
    groups: tuple[Values, ...]  # in their order; fewer than two have no gap
    n: FloatVector  # (n_groups,), users with a value
    n_nonzero: FloatVector  # (n_groups,), those with another value than without a hit
    mean: FloatVector  # (n_groups,)
    std_dev: FloatVector  # (n_groups,)

    @property
    def gap(self) -> float:
        """The greatest mean less the least; NaN below two groups."""
        return float(np.ptp(self.mean)) if len(self.mean) > 1 else np.nan

    @property
    def can_be_tested(self) -> bool:
        """A gap, enough hits in every group, and a spread unless all groups have the same mean."""
        is_apart = self.gap > TIE * np.abs(self.mean).max(initial=0.0)
        has_enough = (self.n_nonzero >= MIN_HITS) & ((self.std_dev > 0) | (not is_apart))
        return not np.isnan(self.gap) and bool(has_enough.all())


def find_gaps(metrics: pa.Table, asked: GapTests) -> list[ComparedGroups]:
    """Return the gaps between groups that are tested, of all rows of ``metrics``."""
    of_groups = metrics.filter(pc.not_equal(metrics[C.SLICE], C.ALL_USERS))
    of_groups = of_groups.append_column("is_compared", to_arrow(is_compared(of_groups)))
    found: dict[tuple[str, str, str, int], dict[Values, tuple[float | None, ...]]] = {}
    for row in filter(asked.has, of_groups.to_pylist()):
        groups = found.setdefault((row[C.MODEL_ID], row[C.SLICE], row[C.MEASURE], row[C.K]), {})
        if row["is_compared"]:
            numbers = (row["n_users"], row["n_nonzero"], row[C.VALUE], row["std_dev"])
            groups[tuple(row[C.SLICE_VALUES])] = numbers
    return [
        ComparedGroups(
            *key,
            tuple(sorted(groups)),
            *np.array([groups[name] for name in sorted(groups)], dtype=np.float64).reshape(-1, 4).T,
        )
        for key, groups in sorted(found.items())
    ]


@dataclass(frozen=True)
class GapBootstrap:
    """Draws the users of groups on the workers, and tests the gaps between them."""

    gaps: tuple[ComparedGroups, ...]
    columns: Mapping[str, str]  # of each measure, by its label
    slices: Mapping[str, tuple[str, ...]]  # columns of each slicing, by its name
    ks: tuple[int, ...]
    draws: Draws

    @classmethod
    def from_request(cls, gaps: Sequence[ComparedGroups], request: Request, draws: Draws) -> GapBootstrap:
        """Test gaps between groups of the slices of a request."""
        measures = request.measure_set
        columns = dict(zip(measures.labels, measures.columns, strict=True))
        slices = dict(zip(slice_names(request.slices), segment_column_names(request.slices), strict=True))
        return cls(tuple(gaps), columns, slices, measures.ks, draws)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Columns that are read."""
        return tuple(dict.fromkeys(self.columns[gap.measure] for gap in self.gaps))

    @cached_property
    def _group_sets(self) -> Mapping[str, Mapping[str, Sequence[_GroupSet]]]:
        """The sets of groups that are tested, by slice and model."""
        tests: dict[tuple[str, str, tuple[Values, ...]], list[int]] = {}
        for test, gap in enumerate(self.gaps):
            if gap.can_be_tested:
                tests.setdefault((gap.slice, gap.model, gap.groups), []).append(test)
        found: dict[str, dict[str, list[_GroupSet]]] = {}
        for (slice_, model, groups), tests_of_set in tests.items():
            found.setdefault(slice_, {}).setdefault(model, []).append((groups, tuple(tests_of_set)))
        return found

    def draw(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sum up the users of a partition in each replicate: rows of a test each."""
        held: dict[tuple[int, ...], ReplicateSums] = {}
        for chunk in rechunk(batches):
            table = unpack_segments(dictionary_encode(chunk, [C.MODEL_ID]))
            values = read_matrix(table, self.measures)
            if np.isnan(values).all():
                continue
            users = Users.from_rows(table, values, np.ones_like(values), self.ks)
            for tests, found in self._yield_replicate_sums(users):
                held[tests] = held[tests].merge(found) if tests in held else found
                if sum(3 * sums.sums.nbytes for sums in held.values()) > MAX_HELD:
                    yield from _sums_to_batches(held)
                    held = {}
        yield from _sums_to_batches(held)

    def _yield_replicate_sums(self, users: Users) -> Iterator[tuple[tuple[int, ...], ReplicateSums]]:
        values = np.where(users.denominators > 0, users.numerators, np.nan)
        for slice_, by_model in self._group_sets.items():
            keys, group = find_groups(users.first_rows, self.slices[slice_], self.ks)
            for model, group_sets in by_model.items():
                for names, tests in group_sets:
                    places: dict[tuple[str | None, ...], int] = {name: place for place, name in enumerate(names)}
                    in_model = [places.get(name, -1) if owner == model else -1 for owner, name, _ in keys]
                    place = np.array(in_model, dtype=np.int64)[group]
                    rows = np.flatnonzero(place >= 0)
                    gaps = [self.gaps[test] for test in tests]
                    n, names_of = len(self.measures), self.measures.index  # columns of a measure at its cutoff
                    columns = [self.ks.index(gap.k) * n + names_of(self.columns[gap.measure]) for gap in gaps]
                    of_tests, means = values[rows][:, columns], np.column_stack([gap.mean for gap in gaps])
                    groups = SliceGroups(place[rows][None], len(means))
                    distances = of_tests - means[place[rows]]
                    yield tests, weighted_sums(distances, users.hashes[rows], self.draws, groups)

    def merge(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Compute the p of one test from the sums of all partitions, in sorted order."""
        test = key[0].as_py()
        gap = self.gaps[test]
        n, means, deviations = (numbers[:, None] for numbers in (gap.n, gap.mean, gap.std_dev))
        shape = (3, len(means), 1, self.draws.replicates)
        parts = (ReplicateSums(*np.frombuffer(part).reshape(shape)) for part in sorted(group["sums"].to_pylist()))
        p = equal_means_p(means, deviations / np.sqrt(n), reduce(ReplicateSums.merge, parts))
        return pa.Table.from_arrays([pa.array([test], pa.int32()), pa.array(p)], schema=P_SCHEMA)


def _sums_to_batches(held: Mapping[tuple[int, ...], ReplicateSums]) -> Iterator[pa.RecordBatch]:
    """Yield sums as rows: a batch for each test, which is large with many groups and replicates."""
    for tests, found in held.items():
        for place, test in enumerate(tests):
            sums = np.stack([part[:, place] for part in (found.weights, found.sums, found.squares)])
            yield pa.RecordBatch.from_pylist([{"test": test, "sums": sums.tobytes()}], schema=_PARTIAL_FIELDS)


def to_gap_test_rows(gaps: Sequence[ComparedGroups], found: pa.Table, asked: GapTests, *, alpha: float) -> pa.Table:
    """Return a row of each gap: its p of ``found``, :data:`P_SCHEMA`, adjusted for all gaps, or why there is none."""
    n_gaps, correction, replicates = len(gaps), asked.correction, asked.draws.replicates
    gap, p = np.array([compared.gap for compared in gaps], dtype=np.float64), np.full(n_gaps, np.nan)
    p[to_numpy(found["test"])] = to_numpy(found["p_value"])
    n = np.full(n_gaps, float(replicates))
    family = np.zeros(n_gaps, dtype=np.int64)
    adjusted = multiple_testing.adjust(p, family, correction=correction, alpha=alpha, replicates=n)
    least, most = np.sqrt(SQUARES)
    is_beyond = (gap != 0) & ((gap < least) | (gap > most))
    without = np.select([np.isnan(gap), is_beyond], ["few_groups", OUT_OF_RANGE], "few_values")
    reason = np.where(np.isnan(p), without, adjusted.reason)
    columns = [
        *([getattr(compared, name) for compared in gaps] for name in ("model", "slice", "measure", "k")),
        [len(compared.groups) for compared in gaps],
        *map(nan_to_null, (gap, p, adjusted.p)),
        [correction] * n_gaps,
        adjusted.family_size,
        [replicates] * n_gaps,
        reason.tolist(),
    ]
    typed = [pa.array(column, type_) for column, type_ in zip(columns, ROW_SCHEMA.types, strict=True)]
    return pa.Table.from_arrays(typed, schema=ROW_SCHEMA)

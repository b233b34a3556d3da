"""Tests of the gaps between groups: a p of equal means for each gap, on request.

The users of each group are drawn anew in every replicate, with weights from the hash of their id alone. Which groups
are compared, and their means and deviations, is read from ``metrics`` before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.config.request import slice_names
from rankeval_spark.engine.aggregation.bootstrap_sums import Users
from rankeval_spark.engine.aggregation.slices import (
    Key,
    doubles,
    encoded,
    groups_of,
    in_chunks,
    matrix,
    nullable,
    segment_columns,
    unpacked,
)
from rankeval_spark.engine.comparisons.comparison_state import MOST_HELD
from rankeval_spark.result_rows.arrow_schema import spark_columns
from rankeval_spark.statistics import multiple_testing
from rankeval_spark.statistics.comparisons.paired_tests import OUT_OF_RANGE
from rankeval_spark.statistics.groups.gap_bootstrap import MIN_HITS, TIE, gap_p
from rankeval_spark.statistics.moments import SQUARES
from rankeval_spark.statistics.resampling.bootstrap import ReplicateSums, weighted_sums
from rankeval_spark.statistics.resampling.replicate_sums import SliceGroups

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.statistics.multiple_testing import Correction
    from rankeval_spark.statistics.resampling.replicate_sums import Draws

Values: TypeAlias = tuple[str, ...]
"""Values of a slice, which name a group."""

_GAP: Final = (
    *(pa.field(name, pa.string()) for name in (C.MODEL_ID, C.SLICE, C.MEASURE)),
    *map(pa.field, (C.K, "n_groups", "gap"), (pa.int32(), pa.int32(), pa.float64())),
)

TESTED: Final = f"test int, {spark_columns(pa.schema(_GAP))}"
"""Rows of :func:`gap_test_rows`, the position of the gap first, as Spark reads them."""

TESTED_SCHEMA: Final = pa.schema([*_GAP, ("p_value", pa.float64())])
"""Gaps with their p, before it is adjusted."""

ROW_SCHEMA: Final = pa.schema(
    [
        *TESTED_SCHEMA,
        *(("p_adjusted", pa.float64()), ("correction", pa.string()), ("family_size", pa.int64())),
        *(("replicates", pa.int32()), ("reason", pa.string())),
    ]
)
"""Rows of :func:`adjusted`."""

SCHEMA: Final = spark_columns(ROW_SCHEMA)

_PARTIAL_FIELDS: Final = pa.schema([("test", pa.int32()), ("sums", pa.binary())])
PARTIAL: Final = spark_columns(_PARTIAL_FIELDS)
P_SCHEMA: Final = pa.schema([("test", pa.int32()), ("p_value", pa.float64())])


class GroupMean(NamedTuple):
    """Users of a group who have a value, how many have another one than without a hit, mean and standard deviation."""

    n: int
    n_nonzero: int
    mean: float
    std_dev: float


@dataclass(frozen=True)
class ComparedGroups:
    """The groups that are compared in one measure at one cutoff, and how far they lie apart.

    Attributes
    ----------
    model, slice, measure : str
        As in ``metrics``.
    k : int
        The cutoff.
    groups : mapping
        What is known of each group, by the values of the slice; fewer than two groups have no gap.
    gap : float
        Greatest mean less the least; NaN where there is none.
    """

    model: str
    slice: str
    measure: str
    k: int
    groups: Mapping[Values, GroupMean]
    gap: float

    @property
    def can_be_tested(self) -> bool:
        """Whether there is a gap, and every group has enough hits, and a spread unless all have the same mean."""
        groups = self.groups.values()
        is_apart = self.gap > TIE * max((abs(one.mean) for one in groups), default=0.0)
        has_enough = all(one.n_nonzero >= MIN_HITS and (one.std_dev > 0 or not is_apart) for one in groups)
        return not np.isnan(self.gap) and has_enough


def gaps_of(rows: Sequence[Mapping[str, Any]]) -> list[ComparedGroups]:
    """Put the rows of ``metrics`` that are about groups of users together; ``is_compared`` says which of them count."""
    found: dict[tuple[str, str, str, int], dict[Values, GroupMean]] = {}
    for row in rows:
        groups = found.setdefault((row[C.MODEL_ID], row[C.SLICE], row[C.MEASURE], row[C.K]), {})
        if row["is_compared"]:
            std_dev = np.nan if row["std_dev"] is None else row["std_dev"]
            groups[tuple(row[C.SLICE_VALUES])] = GroupMean(row["n_users"], row["n_nonzero"], row[C.VALUE], std_dev)
    return [
        ComparedGroups(*key, dict(sorted(groups.items())), _range([one.mean for one in groups.values()]))
        for key, groups in sorted(found.items())
    ]


def _range(means: Sequence[float]) -> float:
    return max(means) - min(means) if len(means) > 1 else np.nan


def gap_test_rows(gaps: Sequence[ComparedGroups]) -> list[tuple[int | str | float | None, ...]]:
    """Lay gaps out as rows of ``TESTED``."""
    return [
        (test, one.model, one.slice, one.measure, one.k, len(one.groups), None if np.isnan(one.gap) else one.gap)
        for test, one in enumerate(gaps)
    ]


@dataclass(frozen=True)
class _GroupSet:
    """Gaps of one model and slicing between the same groups: one draw serves them all."""

    groups: tuple[Values, ...]
    tests: tuple[int, ...]


@dataclass(frozen=True)
class GapBootstrap:
    """What the workers need, and what they do; ``slices`` gives the columns of each slicing by its name."""

    gaps: tuple[ComparedGroups, ...]
    columns: Mapping[str, str]
    slices: Mapping[str, tuple[str, ...]]
    ks: tuple[int, ...]
    draws: Draws

    @classmethod
    def of(cls, gaps: Sequence[ComparedGroups], request: Request, draws: Draws) -> GapBootstrap:
        """Test gaps between groups of the slices of a request."""
        measures = request.measures
        columns = dict(zip(measures.labels, measures.columns, strict=True))
        slices = dict(zip(slice_names(request.slices), segment_columns(request.slices), strict=True))
        return cls(tuple(gaps), columns, slices, measures.ks, draws)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Columns that are read."""
        return tuple(dict.fromkeys(self.columns[one.measure] for one in self.gaps))

    @cached_property
    def _group_sets(self) -> Mapping[str, Mapping[str, Sequence[_GroupSet]]]:
        """What is drawn, by slicing and model."""
        tests: dict[tuple[str, str, tuple[Values, ...]], list[int]] = {}
        for test, one in enumerate(self.gaps):
            if one.can_be_tested:
                tests.setdefault((one.slice, one.model, tuple(one.groups)), []).append(test)
        found: dict[str, dict[str, list[_GroupSet]]] = {}
        for (slice_, model, groups), own in tests.items():
            found.setdefault(slice_, {}).setdefault(model, []).append(_GroupSet(groups, tuple(own)))
        return found

    def draw(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sum up the users of a partition in each replicate: rows of a test each."""
        held: dict[tuple[int, ...], ReplicateSums] = {}
        for chunk in in_chunks(batches):
            table = unpacked(encoded(chunk, [C.MODEL_ID]))
            values = matrix(table, self.measures)
            if np.isnan(values).all():
                continue
            for tests, found in self._resampled(Users.of(table, values, np.ones_like(values), self.ks)):
                held[tests] = held[tests].merge(found) if tests in held else found
                if sum(3 * one.sums.nbytes for one in held.values()) > MOST_HELD:
                    yield from _to_batches(held)
                    held = {}
        yield from _to_batches(held)

    def _resampled(self, users: Users) -> Iterator[tuple[tuple[int, ...], ReplicateSums]]:
        values = np.where(users.denominators > 0, users.numerators, np.nan)
        for slice_, by_model in self._group_sets.items():
            keys, group = groups_of(users.first_rows, self.slices[slice_], self.ks)
            for model, group_sets in by_model.items():
                for drawn in group_sets:
                    place = np.array([_place(key, model, drawn.groups) for key in keys], dtype=np.int64)[group]
                    own = np.flatnonzero(place >= 0)
                    of_tests = values[own][:, [self._column(test) for test in drawn.tests]]
                    means = np.array([[one.mean for one in self.gaps[test].groups.values()] for test in drawn.tests]).T
                    groups = SliceGroups(place[own][None], len(means))
                    yield (
                        drawn.tests,
                        weighted_sums(of_tests - means[place[own]], users.hashes[own], self.draws, groups),
                    )

    def _column(self, test: int) -> int:
        """Find the place of a measure at its cutoff among a user's values."""
        one = self.gaps[test]
        return self.ks.index(one.k) * len(self.measures) + self.measures.index(self.columns[one.measure])

    def merge(self, key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        """Give the p of one test from the sums of all partitions, in an order of their own."""
        test = key[0].as_py()
        n, _, means, deviations = np.array([*self.gaps[test].groups.values()], dtype=np.float64).T[..., None]
        shape = (3, len(means), 1, self.draws.replicates)
        parts = (ReplicateSums(*np.frombuffer(part).reshape(shape)) for part in sorted(group["sums"].to_pylist()))
        p = gap_p(means, deviations / np.sqrt(n), reduce(ReplicateSums.merge, parts))
        return pa.Table.from_arrays([pa.array([test], pa.int32()), pa.array(p)], schema=P_SCHEMA)


def _place(key: Key, model: str, groups: tuple[Values, ...]) -> int:
    """Find a group among those that are drawn; -1 if it is none of them."""
    return groups.index(key[1]) if key[0] == model and key[1] in groups else -1


def _to_batches(held: Mapping[tuple[int, ...], ReplicateSums]) -> Iterator[pa.RecordBatch]:
    """Lay sums out as rows of PARTIAL: a batch for each test, for with many groups and replicates it is large."""
    for tests, found in held.items():
        for place, test in enumerate(tests):
            sums = np.stack([part[:, place] for part in (found.weights, found.sums, found.squares)])
            yield pa.RecordBatch.from_pylist([{"test": test, "sums": sums.tobytes()}], schema=_PARTIAL_FIELDS)


def adjusted(
    batches: Iterator[pa.RecordBatch], *, replicates: int, correction: Correction, alpha: float
) -> Iterator[pa.RecordBatch]:
    """Adjust the p of all gaps for their number, and say where there is none."""
    held = list(batches)
    if not held:
        return
    rows = pa.Table.from_batches(held)
    p = doubles(rows, "p_value")
    n = np.full(rows.num_rows, float(replicates))
    found = multiple_testing.adjust(
        p, np.zeros(rows.num_rows, dtype=np.int64), correction=correction, alpha=alpha, replicates=n
    )
    gap, (least, most) = doubles(rows, "gap"), np.sqrt(SQUARES)
    is_beyond = (gap != 0) & ((gap < least) | (gap > most))
    without = np.select([np.isnan(gap), is_beyond], ["few_groups", OUT_OF_RANGE], "few_values")
    reason = np.where(np.isnan(p), without, found.reason)
    columns = [
        *(rows[field.name] for field in _GAP),
        nullable(p),
        nullable(found.p),
        pa.array([correction] * rows.num_rows),
        pa.array(found.family_size),
        pa.array(n.astype(np.int32)),
        pa.array(reason.tolist(), pa.string()),
    ]
    yield from pa.Table.from_arrays(columns, ROW_SCHEMA.names).to_batches()

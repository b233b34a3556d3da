"""Sums over published rows: lists that are scored again, and users of one night or two."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregates import GROUP
from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.buckets import in_buckets
from rankeval_spark.engine.codes import ABSENT, row_codes
from rankeval_spark.engine.outputs import FACTS, ListOutputs, Part, joined, list_names, parts_of_users, to_user_means
from rankeval_spark.engine.scorer import COMPACT, IS_EVALUATED
from rankeval_spark.engine.slices import PACKED, segment_columns
from rankeval_spark.measures.required_facts import LIST_NAMES
from rankeval_spark.result_rows.night_change_rows import EARLIER, SCHEMA, NightChanges
from rankeval_spark.sums.grouping import applied
from rankeval_spark.sums.sums import Sum

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.engine.checks import PartitionTallies
    from rankeval_spark.measures import MeasureSet


NIGHT: Final = "_night"  # column of the number of the night of a row, from 0
NIGHT_CHANGES: Final = "night_changes"

_KEY: Final = (C.MODEL_ID, C.USER_ID, C.K)


@dataclass(frozen=True)
class UserTotals:
    """Sums over the users of one night or several."""

    measures: MeasureSet
    sums: Mapping[str, Sum]
    segments: tuple[str, ...] = ()  # packed as ``slices.unpacked`` takes them
    unit: Unit = "user"
    n_nights: int = 1
    known: tuple[tuple[str, pa.RecordBatch], ...] = ()  # partial rows that are not made of users

    @property
    def columns(self) -> list[str]:
        """Columns of ``schemas.USER_METRICS`` that are read."""
        stored = (*self.measures.columns, *self.measures.weights.values())
        return [*_KEY, C.LIST_ID, *FACTS, C.HAS_TIES, *stored, *([C.SEGMENTS] if self.segments else [])]

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partial rows of each sum; rows have :data:`NIGHT`, and those of a user are all there."""
        for rows in in_buckets(map(self._with_packed_segments, batches), most_rows=sys.maxsize):
            night = to_numpy(rows[NIGHT])
            evaluated = rows.append_column(IS_EVALUATED, to_arrow(np.ones(rows.num_rows, dtype=np.bool_)))
            own = [evaluated.filter(to_arrow(night == number)) for number in range(self.n_nights)]
            users = [self._users(of_night) for of_night in own]
            for name, sum_ in self.sums.items():
                yield from ((name, partial) for partial in sum_.add_users(users, own))

    def _with_packed_segments(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self.segments:
            columns[PACKED] = packed_segments(columns[C.SEGMENTS], self.segments)
        else:
            columns[C.SEGMENTS] = pa.nulls(batch.num_rows)
        return pa.RecordBatch.from_pydict(columns)  # of staged and of published rows, whose fields may be NULL or not

    def _users(self, rows: pa.Table) -> pa.Table:
        """Average the lists of each user; published users belong to the population."""
        packed = rows.drop_columns(C.SEGMENTS).rename_columns({PACKED: C.SEGMENTS}) if self.segments else rows
        columns, weights = self.measures.columns, self.measures.weights
        users = to_user_means(packed, measures=columns, weights=weights, unit=self.unit)
        return users.rename_columns({C.SEGMENTS: PACKED}) if self.segments else users.drop_columns(C.SEGMENTS)


def packed_segments(segments: pa.Array, names: Sequence[str]) -> pa.ListArray:
    """Return the values of some segments as a list a row; NULL where a row's map does not have the segment."""
    n_rows, n_names = len(segments), len(names)
    found = [in_one_piece(pc.map_lookup(segments, key, "first")) for key in to_texts(names)]
    # Value of row i under name j is at j * n_rows + i of all values; a list has those of one row.
    place = np.arange(n_rows)[:, None] + np.arange(n_names)[None, :] * n_rows
    values = pc.take(pa.concat_arrays(found), to_arrow(place.ravel()))
    return pa.ListArray.from_arrays(to_arrow(np.arange(n_rows + 1, dtype=np.int32) * n_names), values)


@dataclass(frozen=True)
class NightDifferences(Sum):
    """Each model on one night against itself on an earlier one: rows of ``night_change_rows.SCHEMA``."""

    compared: NightChanges
    schema = SCHEMA
    key = GROUP

    @property
    def segments(self) -> tuple[str, ...]:
        """Segments that the slices are by."""
        return tuple(dict.fromkeys(name for slicing in self.compared.reported.segments for name in slicing))

    def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - as the others
        """Return the aggregates of users of the later night and the earlier one."""
        names = [column for (column,) in segment_columns([[name] for name in self.segments])]
        columns = [*self.compared.measures.columns, *self.compared.denominators, *names]
        return self.compared.aggregate(_side_by_side([_with_segments(night, names) for night in nights], columns))

    def finish(self, rows: pa.Table) -> pa.Table:
        """Merge aggregates, and compare the nights."""
        return applied(rows.to_batches(), self.key, self.compared.finish, self.schema)


def _with_segments(night: pa.Table, names: Sequence[str]) -> pa.Table:
    """Add a column for each packed segment."""
    if not names:
        return night
    values, first = in_one_piece(night[PACKED]).flatten(), np.arange(night.num_rows) * len(names)
    for place, name in enumerate(names):
        night = night.append_column(name, pc.take(values, to_arrow(first + place)))
    return night


def _side_by_side(nights: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Join two nights by model, user and cutoff; what a night does not have is NULL."""
    keys = pa.concat_tables([night.select(_KEY) for night in nights])
    found, first, place = np.unique(row_codes(keys, _KEY), return_index=True, return_inverse=True)
    joined = pc.take(keys.select([C.MODEL_ID, C.K]), to_arrow(first))
    start = 0
    for night, prefix in zip(nights, ("", EARLIER), strict=True):
        own = np.full(len(found), ABSENT)
        own[place[start : start + night.num_rows]] = np.arange(night.num_rows)
        start += night.num_rows
        rows = to_arrow(own, is_null=own < 0)
        for name in columns:
            joined = joined.append_column(f"{prefix}{name}", pc.take(night[name], rows))
    return joined


@dataclass(frozen=True)
class PublishedLists:
    """Rows of ``schemas.LISTS`` of one night, which are enough for the measures; see ``sums.ListSource``."""

    outputs: ListOutputs
    segments: tuple[str, ...]  # names of all that slices are by

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        needs = self.outputs.measures.needs
        scores = [C.HIT_SCORES] if C.HIT_SCORES in needs else []
        return [*C.LIST_KEY, C.SEGMENTS, C.N_DUPLICATES, *COMPACT, C.EMPTY_RANKS, *scores]

    def parts(self, batches: Iterable[pa.RecordBatch], tallies: PartitionTallies) -> Iterator[Part]:  # noqa: ARG002 - no inputs
        """Score all lists of some users at a time."""
        for bucket in in_buckets(batches, most_rows=sys.maxsize):
            in_order = bucket.sort_by([(name, "ascending") for name in (C.USER_ID, C.MODEL_ID, C.LIST_ID)])
            user = to_numpy(in_one_piece(in_order[C.USER_ID]).dictionary_encode().indices)
            n_judged = to_numpy(pc.list_value_length(in_one_piece(in_order[C.JUDGED_GAINS])))
            for cuts in parts_of_users(n_judged, user):
                scored = []
                for cut in cuts:
                    lists = in_order.slice(*cut)
                    found = {name: in_one_piece(lists[name]) for name in lists.column_names}
                    if self.segments:
                        found[PACKED] = packed_segments(found[C.SEGMENTS], self.segments)
                    if LIST_NAMES in self.outputs.measures.needs:
                        found[LIST_NAMES] = list_names(found[C.USER_ID], found[C.MODEL_ID])
                    scored.append(self.outputs.part(found))
                yield joined(scored)

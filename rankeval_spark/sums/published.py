"""Sums over published rows: lists that are scored again, and users of one night or two."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregates import GROUP
from rankeval_spark.engine.arrays import (
    ABSENT,
    combine_chunks,
    encode_rows,
    take_or_null,
    to_arrow,
    to_numpy,
    to_texts,
)
from rankeval_spark.engine.buckets import is_drawn, split_by_user
from rankeval_spark.engine.outputs import FACTS, ListOutputs, Part, describe_lists, score_in_parts, to_user_means
from rankeval_spark.engine.scorer import COMPACT, IS_EVALUATED
from rankeval_spark.engine.slices import PACKED, pack_columns, segment_column_names
from rankeval_spark.measures.required_facts import LIST_NAMES
from rankeval_spark.result_rows.night_change_rows import EARLIER, SCHEMA, NightChanges, add_groups
from rankeval_spark.sums.grouping import apply_by_key
from rankeval_spark.sums.sums import Sum, finish_sums

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
    segments: tuple[str, ...] = ()  # packed as ``slices.unpack_segments`` takes them
    unit: Unit = "user"
    n_nights: int = 1
    known: tuple[tuple[str, pa.RecordBatch], ...] = ()  # partial rows that are not made of users

    @property
    def columns(self) -> list[str]:
        """Columns of ``schemas.USER_METRICS`` that are read."""
        stored = (*self.measures.columns, *self.measures.denominator_columns.values())
        return [*_KEY, C.LIST_ID, *FACTS, C.HAS_TIES, *stored, *([C.SEGMENTS] if self.segments else [])]

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the partial rows of each sum; rows have :data:`NIGHT`, and those of a user are all there."""
        for rows in split_by_user(map(self._with_packed_segments, batches), most_rows=sys.maxsize):
            night = to_numpy(rows[NIGHT])
            evaluated = rows.append_column(IS_EVALUATED, to_arrow(np.ones(rows.num_rows, dtype=np.bool_)))
            rows_by_night = [evaluated.filter(to_arrow(night == number)) for number in range(self.n_nights)]
            users = [self._users(of_night) for of_night in rows_by_night]
            for name, sum_ in self.sums.items():
                yield from ((name, partial) for partial in sum_.add_users(users, rows_by_night))

    def _with_packed_segments(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the segments that slices are by as one list a row."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self.segments:
            columns[PACKED] = pack_segments(columns[C.SEGMENTS], self.segments)
        else:
            columns[C.SEGMENTS] = pa.nulls(batch.num_rows)
        return pa.RecordBatch.from_pydict(columns)  # of staged and of published rows, whose fields may be NULL or not

    def _users(self, rows: pa.Table) -> pa.Table:
        """Average the lists of each user; published users belong to the population."""
        packed = rows.drop_columns(C.SEGMENTS).rename_columns({PACKED: C.SEGMENTS}) if self.segments else rows
        columns, denominators = self.measures.columns, self.measures.denominator_columns
        users = to_user_means(packed, measures=columns, denominators=denominators, unit=self.unit)
        return users.rename_columns({C.SEGMENTS: PACKED}) if self.segments else users.drop_columns(C.SEGMENTS)


def pack_segments(segments: pa.Array, names: Sequence[str]) -> pa.ListArray:
    """Return the values of some segments as a list a row; NULL where a row's map does not have the segment."""
    return pack_columns([combine_chunks(pc.map_lookup(segments, key, "first")) for key in to_texts(names)])


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
        """Join two nights by model, user and cutoff, and compare them; what a night does not have is NULL."""
        names = [column for (column,) in segment_column_names([[name] for name in self.segments])]
        keys = pa.concat_tables([night.select(_KEY) for night in nights])
        found, first, place = np.unique(encode_rows(keys, _KEY), return_index=True, return_inverse=True)
        both = pc.take(keys.select([C.MODEL_ID, C.K]), to_arrow(first))
        ends = np.cumsum([night.num_rows for night in nights])
        for night, place_of_row, prefix in zip(nights, np.split(place, ends[:-1]), ("", EARLIER), strict=True):
            row = np.full(len(found), ABSENT)
            row[place_of_row] = np.arange(night.num_rows)
            columns = {name: night[name] for name in (*self.compared.measures.columns, *self.compared.denominators)}
            if names:
                values, start = combine_chunks(night[PACKED]).flatten(), np.arange(night.num_rows) * len(names)
                columns |= {name: pc.take(values, to_arrow(start + place)) for place, name in enumerate(names)}
            for name, column in columns.items():
                both = both.append_column(f"{prefix}{name}", take_or_null(column, row))
        return self.compared.aggregate(both)

    def finish(self, rows: pa.Table) -> pa.Table:
        return apply_by_key(rows, self.key, self.compared.finish, self.schema)

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - as the others
        return add_groups(rows)


def sum_users(nights: Sequence[Any], totals: UserTotals, *, share: float = 1.0) -> dict[str, pa.Table]:
    """Add up the users of published nights, or a share of them that is the same on each night.

    Nights are rows of ``schemas.USER_METRICS`` as ``Results.scan`` returns them.
    """
    wanted = pc.field(C.K).isin(to_arrow(np.array(totals.measures.ks, dtype=np.int32)))

    def batches() -> Iterator[pa.RecordBatch]:
        for place, night in enumerate(nights):
            for batch in night.filter(wanted).to_batches(columns=totals.columns):
                drawn = batch if share >= 1 else batch.filter(to_arrow(is_drawn(batch[C.USER_ID], share)))
                yield drawn.append_column(NIGHT, to_arrow(np.full(drawn.num_rows, place, dtype=np.int32)))

    return finish_sums(totals.sums, chain(totals.known, totals.add(batches())))


def compare_users(now: Any, before: Any, changes: NightChanges, *, share: float = 1.0) -> pa.Table:  # noqa: ANN401 - as `sum_users`
    """Compare each model on one published night with itself on an earlier one: rows of ``night_change_rows.SCHEMA``."""
    differences = NightDifferences(changes)
    totals = UserTotals(changes.measures, {NIGHT_CHANGES: differences}, differences.segments, n_nights=2)
    return sum_users([now, before], totals, share=share)[NIGHT_CHANGES]


@dataclass(frozen=True)
class PublishedLists:
    """Rows of ``schemas.LISTS`` of one night, which are enough for the measures; see ``sums.ListTotals``."""

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
        for bucket in split_by_user(batches, most_rows=sys.maxsize):
            in_order = bucket.sort_by([(name, "ascending") for name in (C.USER_ID, C.MODEL_ID, C.LIST_ID)])
            user = to_numpy(combine_chunks(in_order[C.USER_ID]).dictionary_encode().indices)
            n_judged = to_numpy(pc.list_value_length(combine_chunks(in_order[C.JUDGED_GAINS])))
            yield from score_in_parts(self.outputs, n_judged, user, partial(self._columns, in_order))

    def _columns(self, lists: pa.Table, start: int, n_lists: int) -> dict[str, pa.Array]:
        """Return the columns of ``n_lists`` lists, from the one at ``start``."""
        cut = lists.slice(start, n_lists)
        found = {name: combine_chunks(cut[name]) for name in cut.column_names}
        if self.segments:
            found[PACKED] = pack_segments(found[C.SEGMENTS], self.segments)
        if LIST_NAMES in self.outputs.measures.needs:
            found[LIST_NAMES] = describe_lists(found[C.USER_ID], found[C.MODEL_ID])
        return found

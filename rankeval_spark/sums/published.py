"""Sums over published rows: lists that are scored again, and users of one night or two."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations, product
from types import MappingProxyType
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
from rankeval_spark.engine.buckets import hash_users, is_drawn, split_by_user
from rankeval_spark.engine.outputs import FACTS, ListOutputs, Part, score_in_parts, to_user_means
from rankeval_spark.engine.paired_differences import models_in_order
from rankeval_spark.engine.scorer import COMPACT, IS_EVALUATED
from rankeval_spark.engine.slices import (
    PACKED,
    USER_HASH,
    nan_to_null,
    pack_columns,
    read_doubles,
    read_matrix,
    segment_column_names,
)
from rankeval_spark.result_rows.comparison_rows import build_comparison_rows, covariate_name
from rankeval_spark.result_rows.night_change_rows import EARLIER, SCHEMA, NightChanges, add_groups
from rankeval_spark.statistics.moments import membership_matrix
from rankeval_spark.sums.grouping import apply_by_key, sort_by_key
from rankeval_spark.sums.sums import Differences, Sum, finish_sums

if TYPE_CHECKING:
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.engine.checks import PartitionTallies
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.result_rows.comparison_rows import ComparisonRows


NIGHT: Final = "_night"  # column of the number of the night of a row, from 0
NIGHT_CHANGES: Final = "night_changes"
NIGHT_PAIRS: Final = "night_pairs"

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


def sum_users(
    nights: Sequence[Any],
    totals: UserTotals,
    *,
    share: float = 1.0,
    without: Mapping[int, Collection[str]] = MappingProxyType({}),
) -> dict[str, pa.Table]:
    """Add up the users of published nights, or a share of them that is the same on each night.

    Nights are rows of ``schemas.USER_METRICS`` as ``Results.scan`` returns them. Columns that a night lacks, or that
    ``without`` names by the place of the night, are NULL.
    """
    wanted = pc.field(C.K).isin(to_arrow(np.array(totals.measures.ks, dtype=np.int32)))

    def batches() -> Iterator[pa.RecordBatch]:
        for place, night in enumerate(nights):
            names = {*night.schema.names} - {*without.get(place, ())}
            read = [name for name in totals.columns if name in names]
            for batch in night.filter(wanted).to_batches(columns=read):
                drawn = batch if share >= 1 else batch.filter(to_arrow(is_drawn(batch[C.USER_ID], share)))
                none = pa.nulls(drawn.num_rows, pa.float64())
                columns = {name: drawn[name] if name in names else none for name in totals.columns}
                columns[NIGHT] = to_arrow(np.full(drawn.num_rows, place, dtype=np.int32))
                yield pa.RecordBatch.from_pydict(columns)

    return finish_sums(totals.sums, chain(totals.known, totals.add(batches())))


def compare_users(now: Any, before: Any, changes: NightChanges, *, share: float = 1.0) -> pa.Table:  # noqa: ANN401 - as `sum_users`
    """Compare each model on one published night with itself on an earlier one: rows of ``night_change_rows.SCHEMA``."""
    differences = NightDifferences(changes)
    totals = UserTotals(changes.measures, {NIGHT_CHANGES: differences}, differences.segments, n_nights=2)
    return sum_users([now, before], totals, share=share)[NIGHT_CHANGES]


def mean_by_cell(
    values: np.ndarray,  # float64 (n_rows, n_columns), NaN where undefined
    places: tuple[np.ndarray, np.ndarray],  # rows of two models, side by side for the same user, cutoff and night
    cell: np.ndarray,  # (n_rows,) code of user and cutoff
) -> tuple[list[np.ndarray], np.ndarray]:
    """Average the values of each cell over the nights on which both models have one, NaN where none has.

    Returns the means of both models, (n_cells, n_columns) each, and a row of each cell.
    """
    _, shown, group = np.unique(cell[places[0]], return_index=True, return_inverse=True)
    sides, by_cell = [values[each] for each in places], membership_matrix(group, len(shown))
    is_known = ~np.isnan(sides[0]) & ~np.isnan(sides[1])
    n_nights = by_cell @ is_known.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return [by_cell @ np.where(is_known, side, 0.0) / n_nights for side in sides], places[0][shown]


@dataclass(frozen=True)
class PooledDifferences(Differences):
    """Models over several nights: a user's values are averaged over the nights on which both of two models have one."""

    def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:
        """Compare the means of each user; lists are counted by user and night."""
        aggregator, requested = self._rows.aggregator, self._rows.aggregator.requested
        has_items = (pc.field(C.K) == requested.ks[0]) & (pc.field(C.N_RECOMMENDED) > 0)
        for place, lists in enumerate(rows):
            of_night = pc.binary_join_element_wise(str(place), lists[C.USER_ID], " ")
            column = lists.schema.get_field_index(C.USER_ID)
            yield from aggregator.count_lists(lists.set_column(column, C.USER_ID, of_night).filter(has_items))
        users = pa.concat_tables([night.select([*_KEY, *requested.columns]) for night in nights])
        values, night = read_matrix(users, requested.columns), np.repeat(np.arange(len(nights)), [*map(len, nights)])
        cell = np.unique(encode_rows(users, (C.USER_ID, C.K)), return_inverse=True)[1]
        key = cell * len(nights) + night
        model = combine_chunks(users[C.MODEL_ID]).dictionary_encode()
        code, names = to_numpy(model.indices), model.dictionary.to_pylist()
        rows_of = {name: np.flatnonzero(code == place) for place, name in enumerate(names)}
        for pair in combinations(models_in_order(names, requested.baseline), 2):
            if not requested.all_pairs and pair[0] != requested.baseline:
                continue
            first, second = rows_of[pair[0]], rows_of[pair[1]]
            _, at_first, at_second = np.intersect1d(key[first], key[second], assume_unique=True, return_indices=True)
            means, shown = mean_by_cell(values, (first[at_first], second[at_second]), cell)
            shown_users = pc.take(users.select([C.USER_ID, C.K]), to_arrow(shown))
            hashed = shown_users.append_column(USER_HASH, to_arrow(hash_users(shown_users[C.USER_ID])))
            both = []
            for name, of_name in zip(pair, means, strict=True):
                one = hashed.append_column(C.MODEL_ID, to_texts([name] * len(shown)))
                for column, mean in zip(requested.columns, of_name.T, strict=True):
                    one = one.append_column(column, nan_to_null(mean))
                both.append(one)
            in_order = sort_by_key(pa.concat_tables(both), (USER_HASH, C.USER_ID))
            yield from aggregator.aggregate_rows(iter(in_order.to_batches()))

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:
        """Adjust the p-values, which are families of their own, and name the test."""
        found = super().adjust(rows, totals)
        test = found.schema.get_field_index("test")
        return found.set_column(test, found.schema.field(test), to_texts([C.POOLED] * found.num_rows))


@dataclass(frozen=True)
class CovariateDifferences(Differences):
    """Models of an A/B test compared with the values of the same users on an earlier night as covariates.

    Rows of ``schemas.COMPARISONS`` without adjusted p-values, of the test ``unpaired`` alone.
    """

    @cached_property
    def _rows(self) -> ComparisonRows:
        return build_comparison_rows(self.request, weights=self.outputs.denominators, has_covariates=True)

    def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - no lists are counted
        """Compare the users of the first night; their earlier values are means over the models of the second."""
        (users, earlier), aggregator = nights, self._rows.aggregator
        keys = pa.concat_tables([night.select([C.USER_ID, C.K]) for night in nights])
        found, code = np.unique(encode_rows(keys, (C.USER_ID, C.K)), return_inverse=True)
        of_users, of_earlier = code[: users.num_rows], code[users.num_rows :]
        stored = aggregator.requested.stored[: len(aggregator.requested.covariates)]
        for name, values in zip(stored, read_matrix(earlier, stored).T, strict=True):
            is_known = ~np.isnan(values)
            n = np.bincount(of_earlier[is_known], minlength=len(found)).astype(np.float64)
            total = np.bincount(of_earlier[is_known], weights=values[is_known], minlength=len(found))
            mean = np.divide(total, n, out=np.full(len(found), np.nan), where=n > 0)
            users = users.append_column(covariate_name(name), nan_to_null(mean[of_users]))
        hashed = users.append_column(USER_HASH, to_arrow(hash_users(users[C.USER_ID])))
        yield from aggregator.aggregate_rows(iter(sort_by_key(hashed, (USER_HASH, C.USER_ID)).to_batches()))

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - those of the night are adjusted
        return rows


@dataclass(frozen=True)
class NightPairs(Sum):
    """Differences of two models on two nights, summed up: how much of them users repeat."""

    measures: MeasureSet  # means over users
    pairs: tuple[tuple[str, str], ...]  # a baseline and a model
    key = (C.BASELINE_MODEL_ID, C.MODEL_ID, C.MEASURE, C.K)
    numbers = ("n", "x", "xx", "n_then", "y", "yy", "n_both", "x_both", "y_both", "xy")
    schema = pa.schema(
        [(name, pa.int32() if name == C.K else pa.string()) for name in key]
        + [(name, pa.float64()) for name in numbers]
    )

    def add_users(self, nights: Sequence[pa.Table], rows: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:  # noqa: ARG002 - as the others
        """Add up the users of both nights, and those of the two together."""
        users = pa.concat_tables([night.select([*_KEY, *self.measures.columns]) for night in nights])
        night = np.repeat(np.arange(len(nights)), [*map(len, nights)])
        found, code = np.unique(encode_rows(users, (C.USER_ID,)), return_inverse=True)
        for pair, measure in product(self.pairs, self.measures.measures):
            values, by_user = read_doubles(users, measure.column), np.full((2, 2, len(found)), np.nan)
            for side, name in enumerate(pair):
                here = to_numpy(pc.and_(pc.equal(users[C.MODEL_ID], name), pc.equal(users[C.K], measure.k)))
                by_user[side, night[here], code[here]] = values[here]
            now, then = by_user[1] - by_user[0]
            is_both = ~np.isnan(now) & ~np.isnan(then)
            x, y = now[is_both], then[is_both]
            of_each = [number for d in (now, then) for number in ((~np.isnan(d)).sum(), np.nansum(d), np.nansum(d * d))]
            cells = [*pair, measure.label, measure.k, *map(float, [*of_each, len(x), x.sum(), y.sum(), x @ y])]
            yield pa.RecordBatch.from_pylist([dict(zip(self.schema.names, cells, strict=True))], self.schema)

    def finish(self, rows: pa.Table) -> pa.Table:
        added = rows.group_by(list(self.key)).aggregate([(name, "sum") for name in self.numbers])
        return added.rename_columns({f"{name}_sum": name for name in self.numbers}).select(self.schema.names)


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
        return found

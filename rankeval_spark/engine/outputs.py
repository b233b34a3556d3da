"""Parts: scored lists, rows of users and their means, partial moments and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregates import PartialAggregator, Rows
from rankeval_spark.engine.arrays import combine_chunks, encode_rows, to_arrow, to_numpy
from rankeval_spark.engine.buckets import hash_users
from rankeval_spark.engine.scorer import COUNTED, IS_EVALUATED, Members, Scored, find_members, score_lists
from rankeval_spark.engine.slices import (
    PACKED,
    USER_HASH,
    dictionary_encode,
    nan_to_null,
    read_doubles,
    segment_column_names,
    unpack_segments,
)

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.config.policies import Unit
    from rankeval_spark.engine.paired_differences import DifferenceAggregator
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures import MeasureSet
    from rankeval_spark.measures.arrays import IntVector
    from rankeval_spark.statistics.resampling import Draws


FACTS: Final = (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED)


def list_count_column(measure: str) -> str:
    """Return the name of the column that counts the lists of a user where a measure is defined."""
    return f"{measure}__lists"


def to_user_means(
    scored: pa.Table,  # a row per (model, user, list, k)
    *,
    measures: Sequence[str],
    denominators: Mapping[str, str],  # column of the denominators of each measure that is a ratio
    unit: Unit,
) -> pa.Table:
    """Average the lists of each user: one row per (model, user, k); a list where a measure is NULL does not count.

    Ratios have their denominators as weights, which are averaged too, or summed with the unit ``list``.
    :func:`list_count_column` of each measure counts the lists, NULL where none counts.
    """
    code = encode_rows(scored, (C.MODEL_ID, C.USER_ID, C.K))
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    n_groups = len(first)

    def count(values: np.ndarray) -> np.ndarray:
        """Count the numbers; NaN for 0, so that what is divided by it is undefined."""
        n = np.bincount(group, weights=~np.isnan(values), minlength=n_groups)
        return np.where(n > 0, n, np.nan)

    def total(values: np.ndarray) -> np.ndarray:
        """Sum the numbers; NaN without any."""
        sums = np.bincount(group, weights=np.nan_to_num(values), minlength=n_groups)
        return np.where(np.isnan(count(values)), np.nan, sums)

    def mean(values: np.ndarray) -> np.ndarray:
        means: np.ndarray = total(values) / count(values)
        return means

    def ratio(values: np.ndarray, denominator: np.ndarray) -> np.ndarray:
        """Divide the mean numerator by the mean denominator; the plain mean where that is not above 0."""
        below = mean(denominator)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(below > 0, mean(values * denominator) / below, mean(values))

    def largest(name: str) -> np.ndarray:
        """Return the largest value of a column among the lists of each user."""
        found = np.zeros(n_groups, dtype=np.int32)
        np.maximum.at(found, group, to_numpy(scored[name]))
        return found

    firsts = pc.take(scored.select([C.MODEL_ID, C.USER_ID, C.K, C.SEGMENTS]), to_arrow(first))
    columns = {
        IS_EVALUATED: to_arrow(largest(IS_EVALUATED) > 0),
        **{name: to_arrow(largest(name)) for name in FACTS},
        C.HAS_TIES: nan_to_null(mean(read_doubles(scored, C.HAS_TIES))),
    }
    for name in measures:
        values = read_doubles(scored, name)
        column = denominators.get(name)
        columns[name] = nan_to_null(mean(values) if column is None else ratio(values, read_doubles(scored, column)))
        columns[list_count_column(name)] = nan_to_null(count(values))
    combine = total if unit == "list" else mean
    columns |= {name: nan_to_null(combine(read_doubles(scored, name))) for name in denominators.values()}
    for name, column in columns.items():
        firsts = firsts.append_column(name, column)
    return firsts


LISTS_AT_ONCE: Final = 16_384  # lists that are scored in one go: 36 measures at six cutoffs take some 100 MB
JUDGED_AT_ONCE: Final = 1 << 22  # judgements that they are compared with, those of a user repeated for each list


@dataclass(frozen=True, eq=False)
class Part:
    """Some lists with their values; all lists of each of their users are among them."""

    outputs: ListOutputs
    lists: Mapping[str, pa.Array]  # columns of compact lists, with their key and segments
    scored: Scored
    members: Members
    ranked: RankedLists | None = None  # their items, of the lists of a batch; published lists have none
    start: int = 0  # code of the first of these lists in the batch

    @cached_property
    def rows(self) -> pa.RecordBatch:
        """A row per list and cutoff; of lists outside of the population every value is NULL."""
        lists, scored, measures = self.lists, self.scored, self.outputs.computed
        n_lists, ks = len(self.members.is_evaluated), measures.ks
        repeated = to_arrow(np.repeat(np.arange(n_lists), len(ks)))
        columns = {name: pc.take(lists[name], repeated) for name in C.LIST_KEY}
        columns[C.K] = to_arrow(np.tile(np.array(ks, dtype=np.int32), n_lists))
        columns[C.SEGMENTS] = pc.take(lists[C.SEGMENTS], repeated)
        columns |= {name: to_arrow(scored.counts[name].ravel().astype(np.int32)) for name in COUNTED[:-1]}
        has_no_list = scored.counts[C.N_RECOMMENDED].ravel() == 0
        columns[C.HAS_TIES] = to_arrow(scored.counts[C.HAS_TIES].ravel(), is_null=has_no_list)
        is_evaluated = np.repeat(self.members.is_evaluated, len(ks))
        for name in measures.stored:
            value = scored.values[name].ravel()
            columns[name] = to_arrow(value, is_null=np.isnan(value) | ~is_evaluated)
        columns[IS_EVALUATED] = to_arrow(is_evaluated)
        return pa.RecordBatch.from_pydict(columns)

    @property
    def user_rows(self) -> pa.RecordBatch:
        """A row per list of the population and cutoff: ``schemas.USER_METRICS`` without the key of its run."""
        measures, computed = self.outputs.measures, self.outputs.computed
        unshown = {IS_EVALUATED, *computed.stored}.difference(measures.stored)
        names = [name for name in self.rows.schema.names if name not in unshown]
        return self.rows.filter(self.rows[IS_EVALUATED]).select(names)

    @cached_property
    def users(self) -> pa.Table:
        """A row per (model, user, k) with the means over the lists of the user, packed segments and a hash."""
        users, outputs = pa.Table.from_batches([self.rows]), self.outputs
        if outputs.averages_lists:
            measures, unit = outputs.computed, outputs.policies.unit
            denominators = measures.denominator_columns
            users = to_user_means(users, measures=measures.columns, denominators=denominators, unit=unit)
        if PACKED in self.lists:
            segments = combine_chunks(users[C.SEGMENTS])  # maps of the same names in the same order
            users = users.append_column(PACKED, pa.ListArray.from_arrays(segments.offsets, segments.items))
        return users.append_column(USER_HASH, to_arrow(hash_users(users[C.USER_ID])))


@dataclass(frozen=True)
class ListOutputs:
    """Settings by which lists become values and moments."""

    measures: MeasureSet
    policies: Policies  # who belongs to the population, and what users without a relevant judgement score
    slices: tuple[tuple[str, ...], ...]  # names of the segments of each slice; ``()`` is everyone
    draws: Draws | None = None  # of a bootstrap, for intervals of the means
    counts_values: bool = False  # whether the moments come with the values of the users, for quantiles
    averages_lists: bool = False  # whether users can have several lists of a model, whose values are averaged first
    has_judged_lists: bool = False  # whether judgements name the list that they belong to

    @cached_property
    def computed(self) -> MeasureSet:
        """The measures, and what their values are checked by."""
        return self.measures.with_mean_weight

    @property
    def denominators(self) -> Mapping[str, str]:
        """Column of denominators for each ratio of sums over users; a mean over several lists is one."""
        measures = self.computed
        if not self.averages_lists or self.policies.unit == "user":
            return measures.denominator_columns
        return {name: measures.denominator_columns.get(name, list_count_column(name)) for name in measures.columns}

    def score_part(self, lists: Mapping[str, pa.Array]) -> Part:
        """Score lists, and decide who belongs to the population; refused where a policy refuses a list."""
        policies = self.policies
        scored = score_lists(
            lists,
            self.computed,
            zero_relevant=policies.zero_relevant,
            ties=policies.ties,
            judged_only=policies.judged_only,
        )
        n_judged, n_relevant = (scored.counts[name][:, 0] for name in (C.N_JUDGED, C.N_RELEVANT))
        n_recommended = to_numpy(lists[C.N_RECOMMENDED])
        return Part(self, lists, scored, find_members(n_judged, n_relevant, n_recommended, policies=policies))

    def moments(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield moments by slice: rows of ``aggregates.PARTIAL``, with a bootstrap of ``WITH_STATES``."""
        columns, ks = self.computed.columns, self.computed.ks
        summariser = PartialAggregator(
            columns,
            dict(self.denominators),
            tuple(segment_column_names(self.slices)),
            ks,
            self.draws,
            tuple(map(list_count_column, columns)) if self.averages_lists else (),
            self.counts_values,
            self.computed.without_hits,
        )
        if self.averages_lists:
            yield from summariser.summarise(iter(part.users.to_batches()))
        else:
            yield from summariser.summarise_rows([self._rows_of_users(part)])

    def differences(self, part: Part, aggregator: DifferenceAggregator) -> Iterator[pa.RecordBatch]:
        """Yield differences of models by slice: rows of ``paired_differences.PARTIAL``."""
        names = [name for name in (C.MODEL_ID, C.USER_ID, C.LIST_ID, C.N_RECOMMENDED, PACKED) if name in part.lists]
        is_evaluated = to_arrow(part.members.is_evaluated)
        lists = pa.Table.from_pydict({**{name: part.lists[name] for name in names}, IS_EVALUATED: is_evaluated})
        yield from aggregator.count_lists(lists.filter(to_arrow(to_numpy(part.lists[C.N_RECOMMENDED]) > 0)))
        if self.averages_lists:  # means of users over their lists
            users = part.users.filter(part.users[IS_EVALUATED])
            users = users.sort_by([(USER_HASH, "ascending"), (C.USER_ID, "ascending")])
            yield from aggregator.aggregate_rows(iter(users.to_batches()))
        else:
            members, is_member = lists.filter(is_evaluated).drop_columns(IS_EVALUATED), part.members.is_evaluated
            values = [part.scored.values[name][is_member] for name in aggregator.requested.stored]
            members = members.append_column(USER_HASH, to_arrow(hash_users(members[C.USER_ID])))
            yield from aggregator.aggregate_lists(members, np.stack(values, axis=-1))

    def _rows_of_users(self, part: Part) -> Rows:
        """Build a row per list and cutoff; values of those outside the population are NaN."""
        lists, scored, members = part.lists, part.scored, part.members
        n_lists, ks = len(members.is_evaluated), self.measures.ks
        counts = np.column_stack([*members[:4], members.has_both]).astype(np.float64)
        n_tied = scored.counts[C.HAS_TIES] & members.has_both[:, None]

        def values_of_members(columns: Sequence[str]) -> np.ndarray:
            """Return columns of values: float64 (n_lists * n_ks, n_columns), NaN outside the population."""
            values = np.empty((len(columns), n_lists, len(ks)))
            for place, name in enumerate(columns):
                values[place] = np.where(members.is_evaluated[:, None], scored.values[name], np.nan)
            return np.ascontiguousarray(values.reshape(len(columns), n_lists * len(ks)).T)

        named = {name: lists[name] for name in (C.MODEL_ID, PACKED) if name in lists}
        if self.draws is not None:
            named[USER_HASH] = to_arrow(hash_users(lists[C.USER_ID]))
        table = unpack_segments(dictionary_encode(pa.Table.from_pydict(named), [C.MODEL_ID]))
        table = pc.take(table, to_arrow(np.repeat(np.arange(n_lists), len(ks))))
        table = table.append_column(C.K, to_arrow(np.tile(np.array(ks, dtype=np.int32), n_lists)))
        by_row = np.column_stack([np.repeat(counts, len(ks), axis=0), n_tied.ravel()])
        denominators = values_of_members(tuple(self.computed.denominator_columns.values()))
        return Rows(table, values_of_members(self.computed.columns), denominators, by_row)


def score_in_parts(
    outputs: ListOutputs,
    n_judged: IntVector,  # (n_lists,) judgements that each list is compared with
    user: IntVector,  # (n_lists,) sorted
    columns_of: Callable[[int, int], Mapping[str, pa.Array]],  # columns of some lists: of the first one, and how many
    ranked: RankedLists | None = None,  # the items of all lists
) -> Iterator[Part]:
    """Score lists in parts of whole users; a user with too many lists or judgements for one go is cut."""
    before = np.append(0, np.cumsum(n_judged))
    ends = np.append(np.flatnonzero(np.diff(user)) + 1, len(user))  # behind the lists of each user

    def end_of_cut(start: int) -> int:
        """Return where a cut has to end that begins with the list at ``start``."""
        fits = int(np.searchsorted(before, before[start] + JUDGED_AT_ONCE, side="right")) - 1
        return min(max(fits, start + 1), start + LISTS_AT_ONCE)

    start = 0
    while start < len(user):
        first, last = np.searchsorted(ends, [start + 1, end_of_cut(start) + 1])
        begin, end, cuts = start, int(ends[max(first, last - 1)]), list[Part]()
        while start < end:
            stop = min(end_of_cut(start), end)
            cuts.append(outputs.score_part(columns_of(start, stop - start)))
            start = stop
        items = None if ranked is None else ranked.keep_lists(begin, end - begin)
        yield replace(_join_cuts(cuts), ranked=items, start=begin)


def _join_cuts(cuts: Sequence[Part]) -> Part:
    """Concatenate consecutive pieces of a part, list by list; ``ranked`` and ``start`` are left to the caller."""
    if len(cuts) == 1:
        return cuts[0]
    lists = {name: pa.concat_arrays([cut.lists[name] for cut in cuts]) for name in cuts[0].lists}
    values, counts = (
        {name: np.concatenate([each[name] for each in cells]) for name in cells[0]}
        for cells in ([cut.scored.values for cut in cuts], [cut.scored.counts for cut in cuts])
    )
    members = Members(*map(np.concatenate, zip(*(cut.members for cut in cuts), strict=True)))
    return Part(cuts[0].outputs, lists, Scored(values, counts), members)

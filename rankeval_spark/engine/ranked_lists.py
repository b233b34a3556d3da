"""Ranked lists and their compact rows: which copy of an item counts, the order, and what measures are computed from.

A row is known by its position in the log throughout. Only few rows are ever moved: a list's order is one sort key of 64
bits, and rows with equal keys, or copies of an item, are looked at separately. A compact row is what the table
``lists`` holds; for co-occurrence on Spark there are ranked items with a row per list too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.policies import TieRule, tie_rule
from rankeval_spark.engine.arrays import descending_key, list_column, pack_keys, rank_ids, to_arrow, to_codes, to_numpy
from rankeval_spark.engine.failures import quote_key, refuse
from rankeval_spark.engine.matching import MatchedLog
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import expand_ranges, is_run_start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.engine.arrays import UintVector
    from rankeval_spark.engine.matching import Judgements, ListRules
    from rankeval_spark.measures.arrays import FloatVector, IntVector


NO_RANK: Final = np.iinfo(np.int64).max  # rank of a row of the log that has none: after all others
ITEMS: Final = "_items"  # items of a list in their order: structs of ``item_id`` and ``rank``


@dataclass(frozen=True)
class RankedLists(MatchedLog):
    """Ranked lists: the rows of the log in the order of (list, rank)."""

    best_first: UintVector  # (n_log_rows,) smaller the better the place in a list, and equal where two rows tie
    log_rank: IntVector | None  # (n_log_rows,) rank in the log, or :data:`NO_RANK`
    n_copies: (
        IntVector  # (n_log_rows,) rows that the item has in its list; 0 for those that are left out for the best one
    )
    row: IntVector  # (n_items,) row of the log of each ranked item
    list_code: IntVector  # (n_items,) its list, ascending
    tied: IntVector  # positions of the items that tie with the one before them in their list, ascending
    keeps_gaps: bool  # whether ranks are those of the log

    @cached_property
    def length(self) -> IntVector:
        """Number of items of each list: int64, shape (n_lists,)."""
        return self.count_items(slice(None))

    @cached_property
    def start(self) -> IntVector:
        """Position of the first item of each list: int64, shape (n_lists,)."""
        return np.cumsum(self.length) - self.length

    @cached_property
    def listed(self) -> IntVector:
        """Lists that have items: int64, ascending."""
        return np.flatnonzero(self.length)

    @property
    def depth(self) -> IntVector:
        """Rank of each list's last item, 0 without one; with the log's ranks it may be above the number of items."""
        if not self.keeps_gaps or not len(self.row):
            return self.length
        last = np.where(self.length > 0, self.start + self.length - 1, 0)
        return np.where(self.length > 0, self.rank_at(last), 0)

    def rank_at(self, places: IntVector) -> IntVector:
        """Return the rank, from 1, of the items at these positions."""
        if self.keeps_gaps and self.log_rank is not None:
            return self.log_rank[self.row[places]]
        return places - self.start[self.list_code[places]] + 1

    def places_down_to(self, depth: int) -> IntVector:
        """Return the positions of the items down to a rank; of all items for 0."""
        places = np.arange(len(self.row))
        return places[self.rank_at(places) <= depth] if depth else places

    def count_items(self, places: IntVector | slice) -> IntVector:
        """Count the items at some positions by their list: shape (n_lists,)."""
        return np.bincount(self.list_code[places], minlength=self.keys.n_lists)

    def to_list_column(self, places: IntVector, values: np.ndarray) -> pa.ListArray:
        """Build a list column of values of the items at ascending positions."""
        return list_column(self.count_items(places), to_arrow(values))

    def keep_lists(self, start: int, n_lists: int) -> RankedLists:
        """Keep the items of some lists; the others have none, and every list keeps its code."""
        first, end = np.searchsorted(self.list_code, [start, start + n_lists]).tolist()
        tied = self.tied[(self.tied >= first) & (self.tied < end)] - first
        return replace(self, row=self.row[first:end], list_code=self.list_code[first:end], tied=tied)


def rank_lists(matched: MatchedLog, *, rules: ListRules) -> RankedLists:
    """Rank every list by one key of 64 bits, once the copies of an item are gone; equal keys are settled exactly."""
    columns = matched.batch.log.columns
    log_rank = to_numpy(columns[C.RANK].cast(pa.int64()), null=NO_RANK) if C.RANK in columns else None
    if not len(matched.batch.log):
        best_first = np.zeros(0, dtype=np.uint64)
    elif rules.order == C.RANK and log_rank is not None:
        # Ranks have 32 bits: in the upper ones they stay whole
        best_first = log_rank.astype(np.uint64) << np.uint64(32)
    else:
        best_first = descending_key(columns[C.SCORE])
    n_copies = _count_copies(matched, best_first, log_rank, rules)
    key, n_bits = pack_keys(matched.log_list, best_first, n_high=matched.keys.n_lists)
    order = np.argsort(key)
    if not n_copies.all():
        order = order[n_copies[order] > 0]
    in_order = key[order]
    tied = _sort_ties_in_place(order, in_order, matched, best_first, log_rank, rules)
    list_code = (in_order >> np.uint64(64 - n_bits)).astype(np.int64)
    return RankedLists(
        **vars(matched),
        best_first=best_first,
        log_rank=log_rank,
        n_copies=n_copies,
        row=order,
        list_code=list_code,
        tied=tied,
        keeps_gaps=rules.keeps_gaps,
    )


def _count_copies(
    matched: MatchedLog, best_first: UintVector, log_rank: IntVector | None, rules: ListRules
) -> IntVector:
    """Count the rows of each item in its list, 0 for all but the best of them; only repeated ones are sorted."""
    batch = matched.batch
    n_copies: IntVector = np.ones(len(batch.log), dtype=np.int32)
    if rules.duplicates == "keep":
        return n_copies
    pair = matched.log_list * batch.n_items + batch.log.item
    in_order = np.sort(pair)
    repeated = in_order[1:][in_order[1:] == in_order[:-1]]
    if not len(repeated):
        return n_copies
    if rules.duplicates == "error":
        row = int(np.argmax(pair == repeated[0]))
        item, user = batch.items[int(batch.log.item[row])], batch.users[int(batch.log.user[row])]
        refuse("duplicates", f"item {quote_key(item.as_py())} occurs twice in a list of user {quote_key(user.as_py())}")
    rows = np.flatnonzero(to_numpy(pc.is_in(to_arrow(pair), value_set=to_arrow(repeated))))
    by_rank = () if log_rank is None else (log_rank[rows],)
    rows = rows[np.lexsort((*by_rank, best_first[rows], pair[rows]))]
    best = np.flatnonzero(is_run_start(pair[rows]))
    n_copies[rows] = 0
    n_copies[rows[best]] = np.diff(best, append=len(rows))
    return n_copies


def _tie_breakers(rows: IntVector, matched: MatchedLog, log_rank: IntVector | None, tie: TieRule) -> list[np.ndarray]:
    """Return the criteria between rows with equal keys, the first one first; smaller is better."""
    codes = to_codes(to_arrow(matched.batch.log.item[rows]))  # few items of the batch tie
    ids = pc.take(matched.batch.items, codes.values)
    breakers = list[np.ndarray]()
    for criterion in tie.by:
        match criterion:
            case "item":
                breakers.append(rank_ids(ids)[codes.code])
            case "item_desc":
                breakers.append(-rank_ids(ids)[codes.code])
            case "item_bytes_desc":
                breakers.append(-rank_ids(ids.cast(pa.string()))[codes.code])
            case "gain" | "gain_desc":
                gain = np.append(matched.judgements.gain, 0.0)[matched.judgement[rows]]
                breakers.append(gain if criterion == "gain" else -gain)
            case "rank":
                breakers += [] if log_rank is None else [log_rank[rows]]
            case _:
                assert_never(criterion)
    return breakers


def _sort_ties_in_place(
    order: IntVector,
    in_order: UintVector,
    matched: MatchedLog,
    best_first: UintVector,
    log_rank: IntVector | None,
    rules: ListRules,
) -> IntVector:
    """Sort, in place, the rows of ``order`` whose keys are equal; return the places of those that tie."""
    is_equal = in_order[1:] == in_order[:-1]
    is_in_run = np.zeros(len(order), dtype=np.bool_)
    is_in_run[1:] = is_equal
    is_in_run[:-1] |= is_equal
    places = np.flatnonzero(is_in_run)
    if not len(places):
        return places
    rows = order[places]
    key, run, tie = best_first[rows], in_order[places], tie_rule(rules.ties)
    within = np.lexsort((*reversed(_tie_breakers(rows, matched, log_rank, tie)), key, run))
    order[places] = rows[within]
    is_tied = ~is_run_start(key[within]) & ~is_run_start(run)
    if rules.keeps_gaps and is_tied.any():
        refuse("rank_gaps", "two items of one list have the same rank", setting="keep")
    if tie.value == "refused" and is_tied.any():
        refuse("ties", "two items of one list have the same score")
    tied: IntVector = places[is_tied]
    return tied


@dataclass(frozen=True)
class CompactLists:
    """The lists of a batch."""

    # columns of ``schemas.LISTS`` behind the key, and those that only measures and checks read; without those of the
    # judgements
    columns: Mapping[str, pa.Array]
    judgements: Judgements  # by owner, the largest gain first
    first: IntVector  # (n_lists,) place of the first judgement that each list is compared with
    n_judged: IntVector  # (n_lists,) number of these judgements, which follow each other

    def part(self, start: int, n_lists: int) -> dict[str, pa.Array]:
        """Return the columns of some lists; a user's judgements are repeated for each of their lists."""
        first, length = (numbers[start : start + n_lists] for numbers in (self.first, self.n_judged))
        places = expand_ranges(first, length)
        of_judged = {
            C.JUDGED_GAINS: self.judgements.gain,
            C.JUDGED_VALUES: self.judgements.value,
            C.JUDGED_WEIGHTS: self.judgements.weight,
            C.JUDGED_GROUPS: self.judgements.groups,
        }
        found = {name: column.slice(start, n_lists) for name, column in self.columns.items()}
        for name, numbers in of_judged.items():
            if numbers is not None:
                found[name] = list_column(length, to_arrow(numbers[places]))
        return found


def to_compact_lists(ranked: RankedLists, *, rules: ListRules, needs: frozenset[str]) -> CompactLists:
    """Build the compact row of each list: lengths, hits, judgements and ties; scores and predictions where needed."""

    def numbers_of(column: str) -> FloatVector:  # of each ranked item; NaN where it is NULL
        numbers = pc.take(ranked.batch.log.columns.get(column, pa.nulls(0)), to_arrow(ranked.row))
        return to_numpy(numbers.cast(pa.float64(), safe=False), null=np.nan)

    def sum_by_list(numbers: FloatVector) -> pa.Array:
        sums = np.bincount(ranked.list_code, weights=numbers, minlength=ranked.keys.n_lists)
        return to_arrow(sums.astype(np.float64))

    judgements, n_lists = ranked.judgements, ranked.keys.n_lists
    in_order = ranked.judgement[ranked.row]
    hits = np.flatnonzero(in_order >= 0)
    of_hits: dict[str, np.ndarray] = {C.HIT_RANKS: ranked.rank_at(hits).astype(np.int32)}
    if C.HIT_SCORES in needs:
        of_hits[C.HIT_SCORES] = numbers_of(C.SCORE)[hits]
    facts = {
        C.HIT_GAINS: judgements.gain,
        C.HIT_VALUES: judgements.value,
        C.HIT_PROPENSITIES: judgements.propensity,
        C.HIT_WEIGHTS: judgements.weight,
        C.HIT_GROUPS: judgements.groups,
    }
    of_hits |= {name: numbers[in_order[hits]] for name, numbers in facts.items() if numbers is not None}
    n_duplicates = np.bincount(ranked.log_list[ranked.n_copies == 0], minlength=n_lists)
    columns = {
        C.N_RECOMMENDED: to_arrow(ranked.depth.astype(np.int32)),
        C.N_DUPLICATES: to_arrow(n_duplicates.astype(np.int32)),
        C.TIED_RANKS: ranked.to_list_column(ranked.tied, ranked.rank_at(ranked.tied).astype(np.int32)),
    }
    if N.PREDICTIONS in needs:
        score, reward = numbers_of(C.SCORE), numbers_of(C.PREDICTED_REWARD)
        reward = np.where(np.isfinite(reward), reward, np.nan)  # 0 times infinity would warn
        of_hits[C.HIT_PREDICTIONS] = reward[hits]
        # an item of score 0 needs no prediction
        columns[C.PREDICTED_VALUE] = sum_by_list(np.where(score == 0, 0.0, score * reward))
    if N.PROPENSITIES in needs:
        columns[C.SCORE_SUM] = sum_by_list(np.abs(numbers_of(C.SCORE)))
    if rules.keeps_gaps:
        columns[C.EMPTY_RANKS] = _empty_ranks(ranked)
    if rules.checks_ranks:
        columns |= _rank_faults(ranked, n_duplicates, rules)
    if ranked.timing is not None:
        columns[C.TIMING] = ranked.timing
    columns |= {name: ranked.to_list_column(hits, numbers) for name, numbers in of_hits.items()}
    judgements = judgements.sort_by_gain()
    first, end = (np.searchsorted(judgements.owner, ranked.owner, side=side) for side in ("left", "right"))
    return CompactLists(columns, judgements, first, end - first)


def _empty_ranks(ranked: RankedLists) -> pa.Array:
    """List, for each list, the runs of ranks without an item above one that has an item; NULL of a list without any."""
    places = np.arange(len(ranked.row))
    rank = ranked.rank_at(places)
    is_first = places == ranked.start[ranked.list_code]
    before = np.where(is_first, 0, np.append(0, rank[:-1]))
    above = np.flatnonzero(rank > before + 1)
    runs = [to_arrow(ranks.astype(np.int32)) for ranks in (before[above] + 1, rank[above] - 1)]
    structs = pa.StructArray.from_arrays(runs, names=["first", "last"])
    return list_column(ranked.count_items(above), structs, is_null=ranked.length == 0)


def _rank_faults(ranked: RankedLists, n_duplicates: IntVector, rules: ListRules) -> dict[str, pa.Array]:
    """Return how the ranks of the log contradict those that are given; NULL of a list without items.

    Ranks of a list have gaps if they are not 1 to n in any order; an item without a rank is left out, and a gap that a
    repeated item left does not count.
    """
    n_items, is_empty = len(ranked.row), ranked.length == 0
    log_rank = np.full(n_items, NO_RANK) if ranked.log_rank is None else ranked.log_rank[ranked.row]
    given = ranked.rank_at(np.arange(n_items))
    differs = np.flatnonzero((log_rank != given) & (log_rank != NO_RANK))
    owner = ranked.list_code[differs]
    by_list = (numbers[np.lexsort((numbers, owner))] for numbers in (given[differs], log_rank[differs]))
    n_others = np.bincount(owner[np.not_equal(*by_list)], minlength=ranked.keys.n_lists)
    faults = {C.HAS_RANK_GAPS: to_arrow((n_others > 0) & (n_duplicates == 0), is_null=is_empty)}
    if rules.order == C.SCORE:  # an item of lower score than the one before it has a better rank in the log
        list_code, best_first = ranked.list_code, ranked.best_first[ranked.row]
        has_both = (log_rank[1:] != NO_RANK) & (log_rank[:-1] != NO_RANK)
        is_same = list_code[1:] == list_code[:-1]
        is_contrary = has_both & is_same & (best_first[1:] > best_first[:-1]) & (log_rank[1:] < log_rank[:-1])
        n_contrary = np.bincount(list_code[1:][is_contrary], minlength=ranked.keys.n_lists)
        faults[C.IS_OUT_OF_ORDER] = to_arrow(n_contrary > 0, is_null=is_empty)
    return faults


def to_item_lists(ranked: RankedLists, *, depth: int) -> pa.ListArray:
    """Build the column :data:`ITEMS` of the lists that have items: down to ``depth`` (0: all), and the first item."""
    places = np.arange(len(ranked.row))
    if depth:
        is_first = places == ranked.start[ranked.list_code]
        places = places[(ranked.rank_at(places) <= depth) | is_first]
    items = {
        C.ITEM_ID: pc.take(ranked.batch.items, to_arrow(ranked.batch.log.item[ranked.row[places]])),
        C.RANK: to_arrow(ranked.rank_at(places).astype(np.int32)),
    }
    structs = pa.StructArray.from_arrays(list(items.values()), names=list(items))
    return list_column(ranked.count_items(places)[ranked.listed], structs)

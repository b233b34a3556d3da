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
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.engine.arrays import list_column, to_arrow, to_numpy
from rankeval_spark.engine.codes import ascending, descending_key, packed, starts_of_runs, to_codes
from rankeval_spark.engine.failures import quoted, refuse
from rankeval_spark.measures.arrays import in_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.engine.batch import Batch
    from rankeval_spark.engine.codes import UintVector
    from rankeval_spark.engine.matching import Judgements, ListKeys, ListRules, MatchedLog
    from rankeval_spark.measures.arrays import FloatVector, IntVector


NO_RANK = np.iinfo(np.int64).max  # rank of a row of the log that has none: after all others


@dataclass(frozen=True)
class Copies:
    """Items with several rows in a list."""

    kept: IntVector  # (n_repeated,) row of the best copy of each
    n_copies: IntVector  # (n_repeated,) how many rows it has
    dropped: IntVector  # rows of the other copies


@dataclass(frozen=True)
class RankedLists:
    """Ranked lists: the rows of the log in the order of (list, rank)."""

    matched: MatchedLog  # the rows of the log with their lists and judgements
    best_first: UintVector  # (n_log_rows,) smaller the better the place in a list, and equal where two rows tie
    logged: IntVector | None  # (n_log_rows,) rank in the log; :data:`NO_RANK` where there is none
    copies: Copies  # items with several rows in a list
    row: IntVector  # (n_items,) row of the log of each ranked item
    list_code: IntVector  # (n_items,) its list, ascending
    tied: IntVector  # positions of the items that tie with the one before them in their list, ascending
    keeps_gaps: bool  # whether ranks are those of the log

    @property
    def batch(self) -> Batch:
        """The rows that enter lists, with what is known of their users."""
        return self.matched.batch

    @property
    def keys(self) -> ListKeys:
        """The lists."""
        return self.matched.keys

    @property
    def judgements(self) -> Judgements:
        """The judgements that the lists are compared with."""
        return self.matched.judgements

    @cached_property
    def length(self) -> IntVector:
        """Number of items of each list: int64, shape (n_lists,)."""
        return np.bincount(self.list_code, minlength=self.keys.n_lists)

    @cached_property
    def start(self) -> IntVector:
        """Position of the first item of each list: int64, shape (n_lists,)."""
        return np.cumsum(self.length) - self.length

    @cached_property
    def listed(self) -> IntVector:
        """Lists that have items: int64, ascending."""
        return np.flatnonzero(self.length)

    def of_lists(self, start: int, n_lists: int) -> RankedLists:
        """Keep the items of some lists; the others have none, and every list keeps its code."""
        first, end = np.searchsorted(self.list_code, [start, start + n_lists]).tolist()
        tied = self.tied[(self.tied >= first) & (self.tied < end)] - first
        return replace(self, row=self.row[first:end], list_code=self.list_code[first:end], tied=tied)

    @property
    def depth(self) -> IntVector:
        """Rank of each list's last item, 0 without one; with the log's ranks it may be above the number of items."""
        if not self.keeps_gaps or not len(self.row):
            return self.length
        last = np.where(self.length > 0, self.start + self.length - 1, 0)
        return np.where(self.length > 0, self.rank_at(last), 0)

    def rank_at(self, places: IntVector) -> IntVector:
        """Return the rank, from 1, of the items at these positions."""
        if self.keeps_gaps and self.logged is not None:
            return self.logged[self.row[places]]
        return places - self.start[self.list_code[places]] + 1


def to_ranked(matched: MatchedLog, *, rules: ListRules) -> RankedLists:
    """Rank every list: the copies of an item leave first, and ranks are given to the rest.

    Rows are sorted by one key of 64 bits; those whose keys are equal are sorted exactly, by all that decides.
    """
    columns = matched.batch.log.columns
    logged = to_numpy(columns[C.RANK].cast(pa.int64()), null=NO_RANK) if C.RANK in columns else None
    if not len(matched.batch.log):
        best_first = np.zeros(0, dtype=np.uint64)
    elif rules.order == C.RANK and logged is not None:
        best_first = logged.astype(np.uint64) << np.uint64(32)  # ranks have 32 bits: in the upper ones they stay whole
    else:
        best_first = descending_key(columns[C.SCORE])
    copies = _copies(matched, best_first, logged, rules)
    key, n_bits = packed(matched.list_code, best_first, n_high=matched.keys.n_lists)
    order = np.argsort(key)
    if len(copies.dropped):
        is_kept = np.ones(len(order), dtype=np.bool_)
        is_kept[copies.dropped] = False
        order = order[is_kept[order]]
    in_order = key[order]
    tied = _settle(order, in_order, matched, best_first, logged, rules)
    list_code = (in_order >> np.uint64(64 - n_bits)).astype(np.int64)
    return RankedLists(matched, best_first, logged, copies, order, list_code, tied, rules.keeps_gaps)


def _copies(matched: MatchedLog, best_first: UintVector, logged: IntVector | None, rules: ListRules) -> Copies:
    """Find the items with several rows in a list, and the best row of each; only these rows are sorted."""
    none, policy = np.zeros(0, dtype=np.int64), rules.duplicates
    if policy == "keep":
        return Copies(none, none, none)
    batch = matched.batch
    pair = matched.list_code * batch.n_items + batch.log.item
    ascending_pairs = np.sort(pair)
    repeated = ascending_pairs[1:][ascending_pairs[1:] == ascending_pairs[:-1]]
    if not len(repeated):
        return Copies(none, none, none)
    if policy == "error":
        row = int(np.argmax(pair == repeated[0]))
        item, user = batch.items[int(batch.log.item[row])], batch.users[int(batch.log.user[row])]
        refuse("duplicates", f"item {quoted(item.as_py())} occurs twice in a list of user {quoted(user.as_py())}")
    if policy != "best":
        assert_never(policy)
    is_repeated = to_numpy(pc.is_in(to_arrow(pair), value_set=to_arrow(repeated)))
    rows = np.flatnonzero(is_repeated)
    by_rank = () if logged is None else (logged[rows],)
    rows = rows[np.lexsort((*by_rank, best_first[rows], pair[rows]))]
    is_best = starts_of_runs(pair[rows])
    n_copies = np.diff(np.append(np.flatnonzero(is_best), len(rows)))
    return Copies(rows[is_best], n_copies, rows[~is_best])


def _settle(
    order: IntVector,
    in_order: UintVector,
    matched: MatchedLog,
    best_first: UintVector,
    logged: IntVector | None,
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
    key, run = best_first[rows], in_order[places]
    breakers = _tie_breakers(matched, logged, rows, rules)
    within = np.lexsort((*reversed(breakers), key, run))
    order[places] = rows[within]
    is_tied = ~starts_of_runs(key[within]) & ~starts_of_runs(run)
    if rules.keeps_gaps and is_tied.any():
        refuse("rank_gaps", "two items of one list have the same rank", setting="keep")
    if tie_rule(rules.ties).value == "refused" and is_tied.any():
        refuse("ties", "two items of one list have the same score")
    tied: IntVector = places[is_tied]
    return tied


def _tie_breakers(matched: MatchedLog, logged: IntVector | None, rows: IntVector, rules: ListRules) -> list[np.ndarray]:
    """Return what decides between rows of equal score, the first criterion first; smaller is better."""
    codes = to_codes(to_arrow(matched.batch.log.item[rows]))  # few items of the batch tie
    ids = pc.take(matched.batch.items, codes.values)
    breakers = list[np.ndarray]()
    for key in tie_rule(rules.ties).by:
        match key:
            case "item" | "item_desc":
                place = ascending(ids)[codes.code]
                breakers.append(place if key == "item" else -place)
            case "item_bytes_desc":
                breakers.append(-ascending(ids.cast(pa.string()))[codes.code])
            case "gain" | "gain_desc":
                gain = np.append(matched.judgements.gain, 0.0)[matched.judgement[rows]]
                breakers.append(gain if key == "gain" else -gain)
            case "rank":
                breakers += [] if logged is None else [logged[rows]]
            case _:
                assert_never(key)
    return breakers


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
        """Return the columns of some lists; a user's judgements are repeated for each of their lists.

        Those of all lists together may be far more than the rows of the batch.
        """
        first, length = (numbers[start : start + n_lists] for numbers in (self.first, self.n_judged))
        places = in_ranges(first, length)
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


def to_lists(
    ranked: RankedLists,
    *,
    rules: ListRules,
    keeps_scores: bool,
    keeps_predictions: bool = False,
    sums_scores: bool = False,
) -> CompactLists:
    """Build the compact row of each list: lengths, hits, judgements and ties; scores and predictions if requested."""
    n_duplicates = np.bincount(ranked.matched.list_code[ranked.copies.dropped], minlength=ranked.keys.n_lists)
    columns = {
        C.N_RECOMMENDED: to_arrow(ranked.depth.astype(np.int32)),
        C.N_DUPLICATES: to_arrow(n_duplicates.astype(np.int32)),
        **_hits(ranked, keeps_scores=keeps_scores),
        C.TIED_RANKS: _ragged(ranked, ranked.tied, ranked.rank_at(ranked.tied).astype(np.int32)),
    }
    if keeps_predictions:
        columns |= _predictions(ranked)
    if sums_scores:
        columns[C.SCORE_SUM] = to_arrow(_sums(ranked, np.abs(_numbers(ranked, C.SCORE))))
    if rules.keeps_gaps:
        columns[C.EMPTY_RANKS] = _empty_ranks(ranked)
    if rules.checks_ranks:
        columns |= _rank_faults(ranked, n_duplicates, rules)
    if ranked.matched.timing is not None:
        columns[C.TIMING] = ranked.matched.timing
    judgements, owner = ranked.judgements.descending(), ranked.matched.owner
    first, end = (np.searchsorted(judgements.owner, owner, side=side) for side in ("left", "right"))
    return CompactLists(columns, judgements, first, end - first)


def _hits(ranked: RankedLists, *, keeps_scores: bool) -> dict[str, pa.Array]:
    """Rank, gain and the facts that measures read of each judged item of a list, by rank."""
    judgements = ranked.judgements
    in_order = ranked.matched.judgement[ranked.row]
    hits = np.flatnonzero(in_order >= 0)
    judgement = in_order[hits]
    values: dict[str, np.ndarray] = {C.HIT_RANKS: ranked.rank_at(hits).astype(np.int32)}
    if keeps_scores:
        values[C.HIT_SCORES] = _numbers(ranked, C.SCORE)[hits]
    of_judgements = {
        C.HIT_GAINS: judgements.gain,
        C.HIT_VALUES: judgements.value,
        C.HIT_PROPENSITIES: judgements.propensity,
        C.HIT_WEIGHTS: judgements.weight,
        C.HIT_GROUPS: judgements.groups,
    }
    values |= {name: numbers[judgement] for name, numbers in of_judgements.items() if numbers is not None}
    return {name: _ragged(ranked, hits, numbers) for name, numbers in values.items()}


def _predictions(ranked: RankedLists) -> dict[str, pa.Array]:
    """Collect the predicted reward of each hit, and sum score times predicted reward over each list.

    An item of score 0 needs no prediction.
    """
    score, reward = (_numbers(ranked, name) for name in (C.SCORE, C.PREDICTED_REWARD))
    reward = np.where(np.isfinite(reward), reward, np.nan)  # 0 times infinity would warn
    expected = np.where(score == 0, 0.0, score * reward)
    hits = np.flatnonzero(ranked.matched.judgement[ranked.row] >= 0)
    total = to_arrow(_sums(ranked, expected))
    return {C.HIT_PREDICTIONS: _ragged(ranked, hits, reward[hits]), C.PREDICTED_VALUE: total}


def _sums(ranked: RankedLists, numbers: FloatVector) -> FloatVector:
    """Sum a number of each ranked item by its list."""
    return np.bincount(ranked.list_code, weights=numbers, minlength=ranked.keys.n_lists).astype(np.float64)


def _numbers(ranked: RankedLists, column: str) -> FloatVector:
    """Return a column of the log in the order of the ranked items, NaN where it is NULL."""
    numbers = pc.take(ranked.batch.log.columns.get(column, pa.nulls(0)), to_arrow(ranked.row))
    return to_numpy(numbers.cast(pa.float64(), safe=False), null=np.nan)


def _ragged(ranked: RankedLists, places: IntVector, values: np.ndarray) -> pa.ListArray:
    """Build a list column of values of the items at ascending positions."""
    lengths = np.bincount(ranked.list_code[places], minlength=ranked.keys.n_lists)
    return list_column(lengths, to_arrow(values))


def _empty_ranks(ranked: RankedLists) -> pa.Array:
    """List, for each list, the runs of ranks without an item above one that has an item; NULL of a list without any."""
    places = np.arange(len(ranked.row))
    rank = ranked.rank_at(places)
    is_first = places == ranked.start[ranked.list_code]
    before = np.where(is_first, 0, np.append(0, rank[:-1]))
    above = np.flatnonzero(rank > before + 1)
    runs = [to_arrow(ranks.astype(np.int32)) for ranks in (before[above] + 1, rank[above] - 1)]
    structs = pa.StructArray.from_arrays(runs, names=["first", "last"])
    lengths = np.bincount(ranked.list_code[above], minlength=ranked.keys.n_lists)
    return list_column(lengths, structs, is_null=ranked.length == 0)


def _rank_faults(ranked: RankedLists, n_duplicates: IntVector, rules: ListRules) -> dict[str, pa.Array]:
    """Return how the ranks of the log contradict those that are given; NULL of a list without items.

    Ranks of a list have gaps if they are not 1 to n in any order; an item without a rank is left out, and a gap that a
    repeated item left does not count.
    """
    of_rows, n_items = ranked.logged, len(ranked.row)
    logged = np.full(n_items, NO_RANK) if of_rows is None else of_rows[ranked.row]
    given = ranked.rank_at(np.arange(n_items))
    differs = np.flatnonzero((logged != given) & (logged != NO_RANK))
    owner = ranked.list_code[differs]
    by_list = (numbers[np.lexsort((numbers, owner))] for numbers in (given[differs], logged[differs]))
    n_others = np.bincount(owner[np.not_equal(*by_list)], minlength=ranked.keys.n_lists)
    is_empty = ranked.length == 0
    faults = {C.HAS_RANK_GAPS: to_arrow((n_others > 0) & (n_duplicates == 0), is_null=is_empty)}
    if rules.order == C.SCORE:  # an item of lower score than the one before it has a better rank in the log
        list_code, best_first = ranked.list_code, ranked.best_first[ranked.row]
        has_both = (logged[1:] != NO_RANK) & (logged[:-1] != NO_RANK)
        is_same = list_code[1:] == list_code[:-1]
        is_contrary = has_both & is_same & (best_first[1:] > best_first[:-1]) & (logged[1:] < logged[:-1])
        n_contrary = np.bincount(list_code[1:][is_contrary], minlength=ranked.keys.n_lists)
        faults[C.IS_OUT_OF_ORDER] = to_arrow(n_contrary > 0, is_null=is_empty)
    return faults


ITEMS: Final = "_items"  # items of a list in their order: structs of ``item_id`` and ``rank``


def to_item_lists(ranked: RankedLists, *, depth: int) -> pa.ListArray:
    """Build the column :data:`ITEMS` of the lists that have items.

    ``depth``: last rank whose items are there, in addition to the first item of each list; 0 for whole lists.
    """
    places = np.arange(len(ranked.row))
    if depth:
        is_first = places == ranked.start[ranked.list_code]
        places = places[(ranked.rank_at(places) <= depth) | is_first]
    items = {
        C.ITEM_ID: pc.take(ranked.batch.items, to_arrow(ranked.batch.log.item[ranked.row[places]])),
        C.RANK: to_arrow(ranked.rank_at(places).astype(np.int32)),
    }
    lengths = np.bincount(ranked.list_code[places], minlength=ranked.keys.n_lists)[ranked.listed]
    return list_column(lengths, pa.StructArray.from_arrays(list(items.values()), names=list(items)))

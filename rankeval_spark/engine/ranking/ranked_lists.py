"""From matched rows of the log to ranked lists: which copy of an item counts, and the order.

A row is known by its position in the log throughout. Only few rows are ever moved: a list's order is one sort key of 64
bits, and rows with equal keys, or copies of an item, are looked at separately.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import ascending, descending_key, packed, starts_of_runs, to_codes
from rankeval_spark.engine.failures import quoted, refuse

if TYPE_CHECKING:
    from rankeval_spark.engine.batch.batch import Batch
    from rankeval_spark.engine.batch.codes import UintVector
    from rankeval_spark.engine.ranking.matching import Judgements, ListKeys, ListRules, MatchedLog
    from rankeval_spark.measures.arrays import IntVector

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
        """Rank of the last item of each list, 0 of an empty one; with the log's ranks above the number of items."""
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

"""Compact lists, one row per list: what measures are computed from, and what the table ``lists`` holds.

And ranked items with a row per list, for co-occurrence on Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import list_column, to_arrow, to_numpy
from rankeval_spark.engine.ranking.ranked_lists import NO_RANK
from rankeval_spark.measures.arrays import in_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.engine.ranking.matching import Judgements, ListRules
    from rankeval_spark.engine.ranking.ranked_lists import RankedLists
    from rankeval_spark.measures.arrays import FloatVector, IntVector


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
        """Return the columns of some lists, with the judgements of a user repeated for each of their lists.

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
    """Collect the predicted reward of each hit, and the sum of score times predicted reward of each list.

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
    repeated item left is none.
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

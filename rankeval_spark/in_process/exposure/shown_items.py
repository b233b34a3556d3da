"""In how many lists each item is, by slice, group of users and cutoff: one pass over the ranked items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import in_one_piece, to_numpy
from rankeval_spark.engine.batch.codes import starts_of_runs, to_codes
from rankeval_spark.engine.batch.user_hashes import N_GROUPS
from rankeval_spark.result_rows.counting import counted, run_lengths
from rankeval_spark.result_rows.histograms import Times

if TYPE_CHECKING:
    from rankeval_spark.in_process.exposure.audience import UserSlice
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


@dataclass(frozen=True)
class ShownItems:
    """What is counted of ranked items; rows are those at a rank up to the largest cutoff.

    Attributes
    ----------
    ks : tuple of int
        Cutoffs, ascending, whole lists at the end. A *band* is the place of the first one that holds a rank.
    pair, item : int64, shape (n_rows,)
        Model and user, and item of each row.
    band : uint8 or wider, shape (n_rows,)
        Band of each row.
    lengths : mapping of int to int64, shape (n_rows,)
        By cutoff, where a measure reads it: length of the list of each row.
    list_pair : int64, shape (n_lists,)
        Pair of each list.
    list_band : uint8 or wider, shape (n_lists,)
        Band of its first item.
    n_items : int
        Distinct items.
    is_known : float64, shape (n_items,)
        1 for an item of the catalogue; NaN where there is none.
    catalogue_size : float
        Items of the catalogue; NaN likewise.
    """

    ks: tuple[int, ...]
    pair: IntVector
    item: IntVector
    band: IntVector
    lengths: Mapping[int, IntVector]
    list_pair: IntVector
    list_band: IntVector
    n_items: int
    is_known: FloatVector
    catalogue_size: float

    @property
    def n_bands(self) -> int:
        """Cutoffs."""
        return len(self.ks)

    @cached_property
    def item_band(self) -> IntVector:
        """Item and band of each row, with room for a group of users between: int64, shape (n_rows,)."""
        found = self.item * (N_GROUPS * self.n_bands)
        found += self.band
        return found


def to_shown_items(
    ranked: pa.Table, pair: IntVector, *, ks: tuple[int, ...], has_lengths: set[int], catalogue: pa.Table | None
) -> ShownItems:
    """Encode the ranked items down to the largest cutoff.

    Parameters
    ----------
    pair : int64, shape (n_rows,)
        Pair of a model and a user of each row.
    ks : tuple of int
        Cutoffs, ascending, whole lists at the end.
    has_lengths : set of int
        Cutoffs at which the lengths of lists are read.
    """
    items = to_codes(ranked[C.ITEM_ID])
    band = _bands(to_numpy(ranked[C.RANK]), ks)
    is_within = band < len(ks)
    list_code = _list_codes(ranked, pair) if has_lengths else None
    is_first = to_numpy(ranked["_is_first"]) & is_within
    lengths = {
        k: _lengths(list_code, band <= place)[is_within]
        for place, k in enumerate(ks)
        if list_code is not None and k in has_lengths
    }
    is_known, size = _catalogued(items.values, catalogue)
    rows = pair, items.code, band
    if not is_within.all():
        rows = pair[is_within], items.code[is_within], band[is_within]
    return ShownItems(ks, *rows, lengths, pair[is_first], band[is_first], items.n_values, is_known, size)


def _bands(rank: IntVector, ks: Sequence[int]) -> IntVector:
    """Count the cutoffs that a rank is below: with few of them far faster than a binary search."""
    band: IntVector = np.zeros(len(rank), dtype=np.min_scalar_type(len(ks)))
    for k in ks:
        if k != C.WHOLE_LIST:
            band += (rank > k).view(np.uint8)
    return band


def _list_codes(ranked: pa.Table, pair: IntVector) -> IntVector:
    """Give each list a code: int64, shape (n_rows,)."""
    if C.LIST_ID not in ranked.column_names:
        return pair
    ids = to_codes(ranked[C.LIST_ID])
    both = pair * max(ids.n_values, 1) + ids.code
    starts = np.flatnonzero(starts_of_runs(both))
    _, code = np.unique(both[starts], return_inverse=True)
    return np.repeat(code, run_lengths(starts, n_rows=len(both)))


def _lengths(list_code: IntVector, is_within: BoolVector) -> IntVector:
    """Count the items of the list of each row that are within the cutoff."""
    n_items = np.bincount(list_code[is_within], minlength=list_code.max(initial=-1) + 1)
    return n_items[list_code]


def _catalogued(items: pa.Array, catalogue: pa.Table | None) -> tuple[FloatVector, float]:
    """Return which items the catalogue holds, and count its distinct ids."""
    if catalogue is None:
        return np.full(len(items), np.nan), np.nan
    known = in_one_piece(catalogue[C.ITEM_ID]).unique().drop_null()
    return to_numpy(pc.is_in(items, value_set=known)).astype(np.float64), float(len(known))


class AllTimes(NamedTuple):
    """In how many lists each item is, by group of users, at all cutoffs: sorted by cell, item and group.

    Attributes
    ----------
    holder : int64, shape (n,)
        ``cell * n_items + item``.
    group : int64, shape (n,)
        Group of users.
    times : int64, shape (n, n_bands)
        Lists of the group that hold the item.
    """

    holder: IntVector
    group: IntVector
    times: IntVector

    def at(self, band: int) -> Times:
        """Keep what is shown at a cutoff."""
        times = self.times[:, band]
        kept = np.flatnonzero(times)
        return Times(self.holder[kept], self.group[kept], times[kept])


def to_list_counts(shown: ShownItems, one: UserSlice) -> AllTimes:
    """Count the lists of each group of users that hold an item, for each cell of a slice, at all cutoffs."""
    n_bands, width = shown.n_bands, N_GROUPS * shown.n_bands
    base = one.cell * (shown.n_items * width) + one.group * n_bands
    key = base[shown.pair]
    key += shown.item_band
    found, count = counted(key, n_keys=one.n_cells * shown.n_items * width)
    triple, band = np.divmod(found, n_bands)
    is_first = starts_of_runs(triple)
    times = np.zeros((np.count_nonzero(is_first), n_bands), dtype=np.int64)
    times[np.cumsum(is_first) - 1, band] = count
    holder, group = np.divmod(triple[is_first], N_GROUPS)
    return AllTimes(holder, group, np.cumsum(times, axis=1, out=times))

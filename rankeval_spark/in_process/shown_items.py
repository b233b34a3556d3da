"""In how many lists each item is, by slice, group of users and cutoff: one pass over the ranked items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.aggregation.aggregate_state import key_columns
from rankeval_spark.engine.aggregation.slices import encoded, groups_of, refuse_repeated, segment_columns
from rankeval_spark.engine.batch.arrays import in_one_piece, to_arrow, to_numpy, to_texts
from rankeval_spark.engine.batch.buckets import N_GROUPS, jackknife_groups
from rankeval_spark.engine.batch.codes import places_in, starts_of_runs, to_codes
from rankeval_spark.result_rows.exposure_rows import SLICE
from rankeval_spark.result_rows.histograms import Times, counted, run_lengths

if TYPE_CHECKING:
    from rankeval_spark.engine.aggregation.slices import Key
    from rankeval_spark.measures.arrays import BoolVector, FloatVector, IntVector


@dataclass(frozen=True)
class Audience:
    """The users of the lists under each model: pair ``model * n_users + user``, whether it has a list or not."""

    models: pa.Array  # distinct ids, models as text
    users: pa.Array
    pair: IntVector  # (n_rows,) pair of each ranked item

    @property
    def n_pairs(self) -> int:
        """Pairs of a model and a user."""
        return len(self.models) * len(self.users)

    @cached_property
    def group(self) -> IntVector:
        """Group of the jackknife of each user, by a hash of their id: int64, shape (n_users,)."""
        return jackknife_groups(self.users)


def to_audience(ranked: pa.Table) -> Audience:
    """Encode the models and the users of ranked items, which come in runs."""
    ids = [in_one_piece(ranked[name]) for name in (C.MODEL_ID, C.USER_ID)]
    starts = np.flatnonzero(_changes(ids[0]) | _changes(ids[1]))
    models, users = (to_codes(pc.take(one, to_arrow(starts))) for one in ids)
    pair = models.code * users.n_values + users.code
    rows = np.repeat(pair, run_lengths(starts, n_rows=ranked.num_rows))
    return Audience(models.values.cast(pa.string()), users.values, rows)


def _changes(ids: pa.Array) -> BoolVector:
    """Mark the rows whose id differs from that of the row before, or either is NULL: bool, shape (n_rows,).

    Ids of users and models come in runs: to compare neighbours takes a fiftieth of the time of encoding every row.
    """
    is_change = np.ones(len(ids), dtype=np.bool_)
    if len(ids):
        is_change[1:] = to_numpy(pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)), null=1)
    return is_change


@dataclass(frozen=True)
class UserSlice:
    """One way to divide the users, with a cell for each model and each combination of segment values."""

    index: int  # which of the requested slices
    cell: IntVector  # (n_pairs,) cell of each pair
    group: IntVector  # (n_pairs,) group of the jackknife of the user of each pair
    keys: list[Key]  # model and segment values of each cell

    @property
    def n_cells(self) -> int:
        """Cells, those without a user among them."""
        return len(self.keys)

    @property
    def bucket(self) -> IntVector:
        """Cell and group of each pair, ``cell * N_GROUPS + group``: int64, shape (n_pairs,)."""
        return self.cell * N_GROUPS + self.group

    def key_columns(self) -> dict[str, pa.Array]:
        """Build the columns ``model_id``, ``slice_index`` and ``slice_values`` of the cells."""
        return dict(zip(SLICE, key_columns(self.index, self.keys), strict=False))


@dataclass(frozen=True)
class UserSegments:
    """Segments of the users."""

    table: pa.Table | None  # ``user_id`` and a text column for each segment
    absent: Mapping[str, str]  # values of a user without a row, by segment, where the absence is a value


def to_slices(audience: Audience, segments: UserSegments, *, slices: Sequence[Sequence[str]]) -> list[UserSlice]:
    """Divide the users by each of the slices.

    ``slices``: names of the segments of each slice; ``()`` is everyone. Raises RefusedError if a user with a list has
    two rows of segments: either would be a guess.
    """
    by, n_users, n_models = segment_columns(slices), len(audience.users), len(audience.models)
    names = dict(zip(chain.from_iterable(by), chain.from_iterable(slices), strict=True))
    values = _values(audience.users, segments, names=tuple(names.values()))
    model, user = np.divmod(np.arange(n_models * n_users), max(n_users, 1))
    columns = {C.MODEL_ID: pc.take(audience.models, to_arrow(model))}
    columns |= {column: pc.take(values[name], to_arrow(user)) for column, name in names.items()}
    columns[C.K] = to_arrow(np.zeros(len(user), dtype=np.int32))
    table, group = encoded(pa.Table.from_pydict(columns), [C.MODEL_ID, *names]), np.tile(audience.group, n_models)
    found = (groups_of(table, one, (0,)) for one in by)
    return [UserSlice(index, cell, group, keys) for index, (keys, cell) in enumerate(found)]


def _values(users: pa.Array, segments: UserSegments, *, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return the values of the users' segments, NULL where unknown."""
    known = segments.table
    if known is None or not names:
        return {name: pa.nulls(len(users), pa.string()) for name in names}
    user = places_in(known[C.USER_ID], users)
    has_list = user >= 0
    refuse_repeated(user[has_list], users)
    row = np.full(len(users), known.num_rows)
    row[user[has_list]] = np.flatnonzero(has_list)
    return {
        name: pc.take(
            pa.concat_arrays([in_one_piece(known[name]).cast(pa.string()), to_texts([segments.absent.get(name)])]),
            to_arrow(row),
        )
        for name in names
    }


@dataclass(frozen=True)
class ShownItems:
    """Counts of ranked items; rows are those at a rank up to the largest cutoff."""

    # cutoffs, ascending, whole lists at the end. A *band* is the place of the first one that holds a rank.
    ks: tuple[int, ...]
    pair: IntVector  # (n_rows,) model and user, and item of each row
    item: IntVector
    band: IntVector  # (n_rows,) band of each row
    lengths: Mapping[int, IntVector]  # (n_rows,) by cutoff, where a measure reads it: length of the list of each row
    list_pair: IntVector  # (n_lists,) pair of each list
    list_band: IntVector  # (n_lists,) band of its first item
    n_items: int  # distinct items
    is_known: FloatVector  # (n_items,) 1 for an item of the catalogue; NaN where there is none
    catalogue_size: float  # items of the catalogue; NaN likewise

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

    ``pair`` (n_rows,): pair of a model and a user of each row. ``ks``: cutoffs, ascending, whole lists at the end.
    ``has_lengths``: cutoffs at which the lengths of lists are read.
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
    """Return the code of the list of each row: int64, shape (n_rows,)."""
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
    """In how many lists each item is, by group of users, at all cutoffs: sorted by cell, item and group."""

    holder: IntVector  # (n,) ``cell * n_items + item``
    group: IntVector  # (n,) of users
    times: IntVector  # (n, n_bands) lists of the group that hold the item

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

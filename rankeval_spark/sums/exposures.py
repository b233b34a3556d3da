"""Measures of all lists together as sums: how many lists show each item, and counts for groups of items.

Lists that show an item are counted in workers by slice, cutoff and group of users, and merged by item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import combine_chunks, encode_rows, to_arrow, to_codes, to_numpy
from rankeval_spark.engine.buckets import GROUP, N_GROUPS, jackknife_groups
from rankeval_spark.engine.planning import build_parity
from rankeval_spark.engine.slices import PACKED, find_groups, segment_column_names, unpack_segments
from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import is_run_start
from rankeval_spark.measures.measure_set import mean_weight
from rankeval_spark.result_rows.column_types import arrow_schema
from rankeval_spark.result_rows.exposure_rows import (
    ENTRIES,
    SLICE,
    SLICE_BUCKET,
    ExposureRows,
    ParityRows,
    catalogue_entries,
    entry_keys,
    to_entry_rows,
)
from rankeval_spark.result_rows.histograms import LengthCounts, ShownCounts, count_keys, list_entries, to_entries
from rankeval_spark.sums.sums import METRICS, Sum

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.engine.parity_sums import Parity
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures.arrays import IntVector


BAND: Final = "_band"  # place of the first cutoff that holds an item of a list
N_SHOWN: Final = "_n_shown"  # lists of the same kind that show the item there; 0 in a row of the catalogue

EXPOSURES: Final = "exposures"
EXPOSURES_OF_TRAIN: Final = "exposures_of_train"
PARITIES: Final = "parities"

CATALOGUE: Final = "items"  # items that a sum knows: of the input of this name or, without it, of ``train``
TRAIN: Final = "train"

_Slices = tuple[tuple[str, ...], ...]  # names of the segments of each; ``()`` is everyone


@dataclass(frozen=True)
class ShownItems(Sum):
    """Counts of lists that show each item: partial rows of :class:`Exposures`.

    A partial row has the columns of a kind of lists, an item, and how many of the lists show it in a band of ranks.
    """

    ks: tuple[int, ...]  # ascending, whole lists at the end
    lengths_at: tuple[int, ...]  # cutoffs at which the lengths of lists are read
    slices: _Slices
    catalogue: str | None  # CATALOGUE or TRAIN, whose items are known; None where no measure reads them
    into: str | None = EXPOSURES
    schema = ENTRIES
    key: ClassVar[tuple[str, ...]] = (C.ITEM_ID,)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Count the lists of a kind that show an item in a band; lists whose columns are all the same are of a kind."""
        if part.ranked is not None and not len(part.ranked.listed):
            return  # no list, so that not even the number of segments is known
        ranked, lists, band = _read_listed_items(part, self.ks)
        row = np.repeat(np.arange(lists.num_rows), ranked.length[ranked.listed])  # of the list of each item
        for k in self.lengths_at:
            length = np.bincount(row[band <= self.ks.index(k)], minlength=lists.num_rows)
            lists = lists.append_column(_length_column(k), to_arrow(length.astype(np.int32)))
        _, first, kind = np.unique(encode_rows(lists, lists.column_names), return_index=True, return_inverse=True)
        within, n_bands = np.flatnonzero(band < len(self.ks)), len(self.ks)
        items, item = ranked.batch.items, ranked.batch.log.item[ranked.row[within]]
        key = (kind[row[within]] * len(items) + item) * n_bands + band[within]
        found, n_shown = count_keys(key, n_keys=len(first) * len(items) * n_bands)
        kind_and_item, found_band = np.divmod(found, n_bands)
        found_kind, found_item = np.divmod(kind_and_item, max(len(items), 1))
        rows = pc.take(lists, to_arrow(first[found_kind]))
        rows = rows.append_column(C.ITEM_ID, pc.take(items, to_arrow(found_item)))
        yield from _append_counts(rows, found_band, n_shown).combine_chunks().to_batches()

    def catalogue_partials(self, items: pa.Array) -> pa.RecordBatch:
        """Build the partial rows of the items of a catalogue."""
        none, zeros = pa.nulls(len(items), pa.string()).dictionary_encode(), np.zeros(len(items), dtype=np.int32)
        segments = dict.fromkeys(name for slicing in segment_column_names(self.slices) for name in slicing)
        texts = dict.fromkeys([C.MODEL_ID, *segments], none)
        numbers = dict.fromkeys([GROUP, *map(_length_column, self.lengths_at)], to_arrow(zeros))
        rows = _append_counts(pa.Table.from_pydict({**texts, **numbers, C.ITEM_ID: items}), zeros, zeros)
        return rows.combine_chunks().to_batches()[0]

    def finish(self, rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(self._yield_entries(rows), self.schema)

    def _yield_entries(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the entries of histograms: the catalogue's, then those by slice and cutoff."""
        items, n_shown = to_codes(rows[C.ITEM_ID]), to_numpy(rows[N_SHOWN]).astype(np.int64)
        is_known = np.full(items.n_values, np.nan if self.catalogue is None else 0.0)
        is_known[items.code[n_shown == 0]] = 1.0
        if self.catalogue is not None:
            yield catalogue_entries(int(np.count_nonzero(is_known)))
        is_shown = n_shown > 0
        rows, item, n_shown = rows.filter(to_arrow(is_shown)), items.code[is_shown], n_shown[is_shown]
        band, group = (to_numpy(rows[name]).astype(np.int64) for name in (BAND, GROUP))
        lengths = {k: to_numpy(rows[_length_column(k)]).astype(np.int64) for k in self.lengths_at}
        n_bands = len(self.ks)
        for index, names in enumerate(segment_column_names(self.slices)):
            cells, cell = find_groups(rows, names)
            columns, holder = entry_keys(index, cells), cell * items.n_values + item  # a holder is an item in a cell
            key = (holder * N_GROUPS + group) * n_bands + band
            n_keys = (int(holder.max(initial=-1)) + 1) * N_GROUPS * n_bands
            found, count = count_keys(key, n_keys=n_keys, times=n_shown)
            holder_and_group, found_band = np.divmod(found, n_bands)
            is_first = is_run_start(holder_and_group)
            # (n_holders_and_groups, n_bands): lists of the users of a group that hold the item down to each band
            times = np.zeros((np.count_nonzero(is_first), n_bands), dtype=np.int64)
            times[np.cumsum(is_first) - 1, found_band] = count
            np.cumsum(times, axis=1, out=times)
            found_holder, found_group = np.divmod(holder_and_group[is_first], N_GROUPS)
            for place, k in enumerate(self.ks):
                kept = np.flatnonzero(times[:, place])
                holders_at_k = found_holder[kept]
                held_cell, held_item = np.divmod(holders_at_k[is_run_start(holders_at_k)], items.n_values or 1)
                by_length, known = None, is_known[held_item]
                if k in lengths:
                    row = np.flatnonzero(band <= place)
                    by_length = LengthCounts.from_lists(holder[row], lengths[k][row], group[row], n_shown[row])
                at_k = ShownCounts(holders_at_k, found_group[kept], times[kept, place])
                entries = to_entries(at_k, cell=held_cell, is_known=known, n_cells=len(cells), by_length=by_length)
                yield to_entry_rows(entries, columns, k=k)


def _read_listed_items(part: Part, ks: Sequence[int]) -> tuple[RankedLists, pa.Table, IntVector]:
    """Return ranked items; model, segments and GROUP of lists with items; and how many cutoffs each rank is beyond."""
    ranked = part.ranked
    if ranked is None:
        message = "published lists do not tell which items were recommended"
        raise ValueError(message)
    rank, band = ranked.rank_at(np.arange(len(ranked.row))), np.zeros(len(ranked.row), dtype=np.uint8)
    for k in ks:  # with few cutoffs far faster than a binary search
        if k != C.WHOLE_LIST:
            band += (rank > k).view(np.uint8)
    list_places = to_arrow(ranked.listed - part.start)
    names = [name for name in (C.MODEL_ID, PACKED) if name in part.lists]
    lists = unpack_segments(pa.Table.from_pydict({name: pc.take(part.lists[name], list_places) for name in names}))
    for place, name in enumerate(lists.column_names):  # NULL is no value: dictionaries with one cannot be united
        column = combine_chunks(lists[name])
        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        lists = lists.set_column(place, name, column.dictionary_encode())
    group = jackknife_groups(pc.take(part.lists[C.USER_ID], list_places)).astype(np.int32)
    return ranked, lists.append_column(GROUP, to_arrow(group)), band


def _length_column(k: int) -> str:
    """Column of the lengths of lists at a cutoff."""
    return f"_length_{k}"


def _append_counts(rows: pa.Table, band: IntVector, n_shown: IntVector) -> pa.Table:
    """Append the columns BAND and N_SHOWN."""
    rows = rows.append_column(BAND, to_arrow(band.astype(np.int32)))
    return rows.append_column(N_SHOWN, to_arrow(n_shown.astype(np.int32)))


class _WholeSliceSum(Sum):
    """Rows of ``metrics``: ``schemas.METRICS`` without the key of their run."""

    rows: ExposureRows | ParityRows
    schema = arrow_schema(schemas.METRICS)

    def finish(self, rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(self.rows.finish(rows.to_batches()), self.schema)

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - as the others
        """Add the rows of slice ``all``, which are missing where no model has a list."""
        has_all = pc.any(pc.equal(rows[C.SLICE], C.ALL_USERS)).as_py()
        return rows if has_all else pa.concat_tables([rows, self.finish(self.rows.rows_without_lists())])


@dataclass(frozen=True)
class Exposures(_WholeSliceSum):
    """Measures that read how often items are shown, from histograms and numbers of lists."""

    rows: ExposureRows
    ks: tuple[int, ...]  # as of :class:`ShownItems`, which has the items
    slices: _Slices
    key: ClassVar[tuple[str, ...]] = (SLICE_BUCKET,)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        if part.ranked is not None and not len(part.ranked.listed):
            return
        (ranked, lists, bands), n_bands = _read_listed_items(part, self.ks), len(self.ks)
        keys, listed, group = ranked.keys, ranked.listed, to_numpy(lists[GROUP])
        band = bands[ranked.start[listed]].astype(np.int64)
        opens_user = np.flatnonzero(is_run_start(keys.user[listed]) | is_run_start(keys.model[listed]))
        places = ((np.arange(len(listed)), band), (opens_user, np.minimum.reduceat(band, opens_user)))
        for index, names in enumerate(segment_column_names(self.slices)):
            cells, cell = find_groups(lists, names)
            shape = (len(cells), N_GROUPS, n_bands + 1)
            bucket = (cell * N_GROUPS + group) * (n_bands + 1)
            buckets = (bucket[row] + row_band for row, row_band in places)
            counts = (np.bincount(each, minlength=np.prod(shape)).reshape(shape) for each in buckets)
            n_lists, n_users = (np.cumsum(each, axis=2) for each in counts)
            columns = entry_keys(index, cells)
            for place, k in enumerate(self.ks):
                yield to_entry_rows(list_entries(n_lists[..., place], n_users[..., place]), columns, k=k)


@dataclass(frozen=True)
class Parities(_WholeSliceSum):
    """Measures of parity, from counts for groups of popularity or categories."""

    rows: ParityRows
    parity: Parity
    key: ClassVar[tuple[str, ...]] = SLICE[1:]  # all models of a slice meet

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        return self.parity.add_up(part)


@dataclass(frozen=True)
class CatalogueItems:
    """Partial rows of the items of a catalogue; see ``sums.Addition``."""

    sums: Mapping[str, ShownItems]  # those that read it

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        parts = [batch[C.ITEM_ID].unique() for batch in batches if batch.num_rows]
        if parts:
            items = pa.chunked_array(parts).unique().drop_null()
            yield from ((name, sum_.catalogue_partials(items)) for name, sum_ in self.sums.items())


def exposure_sums(request: Request, models: Sequence[str]) -> dict[str, Sum]:
    """Return the sums of the measures of all lists together; ``models`` are all that are expected."""
    names, slices, parity = tuple(models), tuple(map(tuple, request.every_slice)), build_parity(request)
    shown = [measure for measure in request.measure_set.exposures if measure not in parity.measures]
    # A histogram knows the items of the catalogue or those of the training data.
    of_train = tuple(measure for measure in shown if required_facts.TRAINED_ITEMS in measure.needs)
    others = tuple(measure for measure in shown if measure not in of_train)
    catalogue = CATALOGUE if any(measure.needs_catalogue for measure in others) else None
    found: dict[str, Sum] = {}
    for name, measures, known in ((EXPOSURES, others, catalogue), (EXPOSURES_OF_TRAIN, of_train, TRAIN)):
        if measures:
            ks = tuple(sorted({measure.k for measure in measures}, key=lambda k: k or np.inf))
            has_lengths = {measure.k for measure in measures if required_facts.LIST_LENGTHS in measure.needs}
            lengths_at = tuple(k for k in ks if k in has_lengths)
            found[f"items_of_{name}"] = ShownItems(ks, lengths_at, slices, known, name)
            found[name] = Exposures(ExposureRows(measures, request.reported, names), ks, slices)
    if parity.measures:
        found[PARITIES] = Parities(ParityRows(parity.measures, request.reported, names), parity)
    return found


def group_by_catalogue(sums: Mapping[str, Sum]) -> dict[str, dict[str, ShownItems]]:
    """Group the sums that read which items there are by their catalogue, CATALOGUE or TRAIN."""
    found: dict[str, dict[str, ShownItems]] = {}
    for name, sum_ in sums.items():
        if isinstance(sum_, ShownItems) and sum_.catalogue is not None:
            found.setdefault(sum_.catalogue, {})[name] = sum_
    return found


def to_metrics(totals: Mapping[str, pa.Table], request: Request) -> pa.Table:
    """Return the rows of ``metrics`` from all sums, without those that only checks read."""
    names = (METRICS, EXPOSURES, EXPOSURES_OF_TRAIN, PARITIES)
    found = pa.concat_tables([totals[name] for name in names if name in totals])
    if request.measure_set.with_mean_weight == request.measure_set:
        return found
    return found.filter(pc.not_equal(found[C.MEASURE], mean_weight().label))

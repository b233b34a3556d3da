"""Measures of all lists together as sums: how many lists show each item, and counts for groups of items.

Lists that show an item are counted in workers by slice, cutoff and group of users, and merged by item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, schemas
from rankeval_spark.engine.arrays import in_one_piece, to_arrow, to_numpy
from rankeval_spark.engine.buckets import GROUP, N_GROUPS, jackknife_groups
from rankeval_spark.engine.codes import starts_of_runs, to_codes
from rankeval_spark.engine.planning import parity_of
from rankeval_spark.engine.slices import PACKED, groups_of, segment_columns, unpacked
from rankeval_spark.measures import required_facts
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
from rankeval_spark.result_rows.histograms import ByLength, Times, counted, list_entries, to_entries
from rankeval_spark.sums.sums import METRICS, Sum

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.engine.parity_sums import Parity
    from rankeval_spark.engine.ranked_lists import RankedLists
    from rankeval_spark.measures import Measure
    from rankeval_spark.measures.arrays import IntVector


BAND: Final = "_band"  # place of the first cutoff that holds an item of a list
N_SHOWN: Final = "_n_shown"  # lists of the same kind that show the item there; 0 in a row of the catalogue

_MOST_CODES: Final = 1 << 40  # codes of several columns together, before they are numbered anew


@dataclass(frozen=True)
class ItemCounter:
    """The cutoffs and slices by which items are counted.

    Partial rows have the model, segments and group of users of some lists, the lengths of these that are read, an item,
    and how many of the lists show it in a band of ranks. They are never more than the rows of the lists.
    """

    ks: tuple[int, ...]  # ascending, whole lists at the end
    lengths_at: tuple[int, ...]  # cutoffs at which the lengths of lists are read
    slices: tuple[tuple[str, ...], ...]  # names of the segments of each; ``()`` is everyone

    @classmethod
    def of(cls, measures: Sequence[Measure], slices: Sequence[Sequence[str]]) -> ItemCounter:
        """Return the counter for some measures of kind ``exposure``."""
        ks = tuple(sorted({measure.k for measure in measures}, key=lambda k: k or np.inf))
        has_lengths = {measure.k for measure in measures if required_facts.LIST_LENGTHS in measure.needs}
        return cls(ks, tuple(k for k in ks if k in has_lengths), tuple(map(tuple, slices)))

    @cached_property
    def _slice_columns(self) -> list[tuple[str, ...]]:
        return segment_columns(self.slices)

    def count_items(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Count the items that some lists show."""
        if part.ranked is not None and not len(part.ranked.listed):
            return  # no list, so that not even the number of segments is known
        shown = _ListedItems.of(part, self.ks)
        lists = shown.lists
        for k in self.lengths_at:
            length = np.bincount(shown.row[shown.band <= self.ks.index(k)], minlength=lists.num_rows)
            lists = lists.append_column(_length(k), to_arrow(length.astype(np.int32)))
        first, kind = _kinds(lists)
        within = np.flatnonzero(shown.band < len(self.ks))
        batch, n_bands = shown.ranked.batch, len(self.ks)
        item = shown.ranked.batch.log.item[shown.ranked.row[within]]
        key = (kind[shown.row[within]] * batch.n_items + item) * n_bands + shown.band[within]
        found, n_shown = counted(key, n_keys=len(first) * batch.n_items * n_bands)
        pair, band = np.divmod(found, n_bands)
        kind, item = np.divmod(pair, max(batch.n_items, 1))
        rows = pc.take(lists, to_arrow(first[kind]))
        rows = rows.append_column(C.ITEM_ID, pc.take(batch.items, to_arrow(item)))
        yield from _with_counts(rows, band, n_shown).combine_chunks().to_batches()

    def known(self, items: pa.Array) -> pa.RecordBatch:
        """Build the partial rows of the items of a catalogue."""
        none, zeros = pa.nulls(len(items), pa.string()).dictionary_encode(), np.zeros(len(items), dtype=np.int32)
        texts = dict.fromkeys(
            [C.MODEL_ID, *dict.fromkeys(name for slicing in self._slice_columns for name in slicing)], none
        )
        numbers = dict.fromkeys([GROUP, *map(_length, self.lengths_at)], to_arrow(zeros))
        rows = _with_counts(pa.Table.from_pydict({**texts, **numbers, C.ITEM_ID: items}), zeros, zeros)
        return rows.combine_chunks().to_batches()[0]

    def count_lists(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Count lists, and users with one, by slice, group of users and cutoff: rows of ``exposure_rows.ENTRIES``."""
        if part.ranked is not None and not len(part.ranked.listed):
            return
        shown, n_bands = _ListedItems.of(part, self.ks), len(self.ks)
        keys, listed, group = shown.ranked.keys, shown.ranked.listed, to_numpy(shown.lists[GROUP])
        band = shown.band[shown.ranked.start[listed]].astype(np.int64)
        opens_user = np.flatnonzero(starts_of_runs(keys.user[listed]) | starts_of_runs(keys.model[listed]))
        bands = ((np.arange(len(listed)), band), (opens_user, np.minimum.reduceat(band, opens_user)))
        for index, names in enumerate(self._slice_columns):
            cells, cell = groups_of(shown.lists, names)
            shape = (len(cells), N_GROUPS, n_bands + 1)
            bucket = (cell * N_GROUPS + group) * (n_bands + 1)
            counts = (np.bincount(bucket[row] + own, minlength=np.prod(shape)).reshape(shape) for row, own in bands)
            n_lists, n_users = (np.cumsum(each, axis=2) for each in counts)
            columns = entry_keys(index, cells)
            for place, k in enumerate(self.ks):
                yield to_entry_rows(list_entries(n_lists[..., place], n_users[..., place]), columns, k=k)

    def to_entries(self, rows: pa.Table, *, has_catalogue: bool) -> Iterator[pa.RecordBatch]:
        """Build rows of ``exposure_rows.ENTRIES``, entries of histograms, from all partial rows about some items."""
        items, n_shown = to_codes(rows[C.ITEM_ID]), to_numpy(rows[N_SHOWN]).astype(np.int64)
        is_known = np.full(items.n_values, 0.0 if has_catalogue else np.nan)
        is_known[items.code[n_shown == 0]] = 1.0
        if has_catalogue:
            yield catalogue_entries(int(np.count_nonzero(is_known)))
        is_shown = n_shown > 0
        rows, item, n_shown = rows.filter(to_arrow(is_shown)), items.code[is_shown], n_shown[is_shown]
        band, group = (to_numpy(rows[name]).astype(np.int64) for name in (BAND, GROUP))
        lengths = {k: to_numpy(rows[_length(k)]).astype(np.int64) for k in self.lengths_at}
        for index, names in enumerate(self._slice_columns):
            cells, cell = groups_of(rows, names)
            columns = entry_keys(index, cells)
            holder = cell * items.n_values + item
            times = _AllTimes.of(holder, group, band, n_shown, n_bands=len(self.ks))
            for place, k in enumerate(self.ks):
                of_group = times.at(place)
                held_cell, held_item = np.divmod(of_group.holder[starts_of_runs(of_group.holder)], items.n_values or 1)
                by_length, known = None, is_known[held_item]
                if k in lengths:
                    own = np.flatnonzero(band <= place)
                    by_length = ByLength.of(holder[own], lengths[k][own], group[own], n_shown[own])
                found = to_entries(of_group, cell=held_cell, is_known=known, n_cells=len(cells), by_length=by_length)
                yield to_entry_rows(found, columns, k=k)


class _ListedItems(NamedTuple):
    """The lists with items of a part, and their items."""

    ranked: RankedLists
    lists: pa.Table  # model and segments, encoded, and GROUP; a row a list
    row: IntVector  # (n_items,) row of the list of each item
    band: IntVector  # (n_items,) number of the cutoffs that its rank is beyond

    @classmethod
    def of(cls, part: Part, ks: Sequence[int]) -> _ListedItems:
        """Read the lists of a part."""
        ranked = part.ranked
        if ranked is None:
            message = "published lists do not tell which items were recommended"
            raise ValueError(message)
        rank, band = ranked.rank_at(np.arange(len(ranked.row))), np.zeros(len(ranked.row), dtype=np.uint8)
        for k in ks:  # with few cutoffs far faster than a binary search
            if k != C.WHOLE_LIST:
                band += (rank > k).view(np.uint8)
        own = to_arrow(ranked.listed - part.start)
        names = [name for name in (C.MODEL_ID, PACKED) if name in part.lists]
        lists = unpacked(pa.Table.from_pydict({name: pc.take(part.lists[name], own) for name in names}))
        for place, name in enumerate(lists.column_names):  # NULL is no value: dictionaries with one cannot be united
            column = in_one_piece(lists[name])
            column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            lists = lists.set_column(place, name, column.dictionary_encode())
        group = jackknife_groups(pc.take(part.lists[C.USER_ID], own)).astype(np.int32)
        row = np.repeat(np.arange(len(own)), ranked.length[ranked.listed])
        return cls(ranked, lists.append_column(GROUP, to_arrow(group)), row, band)


def _length(k: int) -> str:
    """Column of the lengths of lists at a cutoff."""
    return f"_length_{k}"


def _with_counts(rows: pa.Table, band: IntVector, n_shown: IntVector) -> pa.Table:
    rows = rows.append_column(BAND, to_arrow(band.astype(np.int32)))
    return rows.append_column(N_SHOWN, to_arrow(n_shown.astype(np.int32)))


def _kinds(lists: pa.Table) -> tuple[IntVector, IntVector]:
    """Return the first list of each kind, lists whose columns are all the same, and the kind of each list."""
    code, n_codes = np.zeros(lists.num_rows, dtype=np.int64), 1
    for column in map(in_one_piece, lists.columns):
        if pa.types.is_dictionary(column.type):
            n_own = len(column.dictionary) + 1
            own = to_numpy(column.indices, null=n_own - 1).astype(np.int64)
        else:
            own = to_numpy(column).astype(np.int64)
            n_own = int(own.max(initial=0)) + 1
        if n_codes * n_own > _MOST_CODES:
            _, code = np.unique(code, return_inverse=True)
            n_codes = int(code.max(initial=0)) + 1
        code, n_codes = code * n_own + own, n_codes * n_own
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return first, kind


class _AllTimes(NamedTuple):
    """Numbers of lists that hold each item, by group of users, at all cutoffs: sorted by holder and group."""

    holder: IntVector  # (n,) cell and item
    group: IntVector  # (n,) of users
    times: IntVector  # (n, n_bands) lists of the group that hold the item

    @classmethod
    def of(cls, holder: IntVector, group: IntVector, band: IntVector, n_shown: IntVector, *, n_bands: int) -> _AllTimes:
        """Add up how many lists hold an item in a band."""
        key = (holder * N_GROUPS + group) * n_bands + band
        found, count = counted(key, n_keys=(int(holder.max(initial=-1)) + 1) * N_GROUPS * n_bands, times=n_shown)
        triple, band = np.divmod(found, n_bands)
        is_first = starts_of_runs(triple)
        times = np.zeros((np.count_nonzero(is_first), n_bands), dtype=np.int64)
        times[np.cumsum(is_first) - 1, band] = count
        holder, group = np.divmod(triple[is_first], N_GROUPS)
        return cls(holder, group, np.cumsum(times, axis=1, out=times))

    def at(self, band: int) -> Times:
        """Keep what is shown at a cutoff."""
        times = self.times[:, band]
        kept = np.flatnonzero(times)
        return Times(self.holder[kept], self.group[kept], times[kept])


EXPOSURES: Final = "exposures"
EXPOSURES_OF_TRAIN: Final = "exposures_of_train"
PARITIES: Final = "parities"

CATALOGUE: Final = "items"  # items that a sum knows: of the input of this name or, without it, of ``train``
TRAIN: Final = "train"


class _OfAllLists(Sum):
    """Rows of ``metrics``: ``schemas.METRICS`` without the key of their run."""

    rows: ExposureRows | ParityRows
    schema = arrow_schema(schemas.METRICS)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Merge the partial rows of some slices, and make a row of each measure."""
        return pa.Table.from_batches(self.rows.finish(rows.to_batches()), self.schema)

    def adjust(self, rows: pa.Table, totals: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - as the others
        """Add the rows of all users where no model has a list."""
        has_all = pc.any(pc.equal(rows[C.SLICE], C.ALL_USERS)).as_py()
        return rows if has_all else pa.concat_tables([rows, self.finish(self.rows.no_lists())])


@dataclass(frozen=True)
class Exposures(_OfAllLists):
    """Measures that read how often items are shown, from histograms and numbers of lists."""

    rows: ExposureRows
    counter: ItemCounter
    key: ClassVar[tuple[str, ...]] = (SLICE_BUCKET,)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return numbers of lists and users by slice; :class:`ShownItems` has the items."""
        return self.counter.count_lists(part)


@dataclass(frozen=True)
class ShownItems(Sum):
    """Items by how many lists show them: made of all lists that show an item, partial rows of :class:`Exposures`."""

    counter: ItemCounter
    catalogue: str | None  # CATALOGUE or TRAIN, whose items are known; None where no measure reads them
    into: str | None = EXPOSURES
    schema = ENTRIES
    key: ClassVar[tuple[str, ...]] = (C.ITEM_ID,)

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return how many lists of some users show each item."""
        return self.counter.count_items(part)

    def finish(self, rows: pa.Table) -> pa.Table:
        """Build histograms of some items."""
        found = self.counter.to_entries(rows, has_catalogue=self.catalogue is not None)
        return pa.Table.from_batches(found, self.schema)


@dataclass(frozen=True)
class Parities(_OfAllLists):
    """Measures of parity, from counts for groups of popularity or categories."""

    rows: ParityRows
    parity: Parity
    key: ClassVar[tuple[str, ...]] = SLICE[1:]  # all models of a slice meet

    def add(self, part: Part) -> Iterable[pa.RecordBatch]:
        """Return the counts of the users with a list."""
        return self.parity.add_up(part)


@dataclass(frozen=True)
class CatalogueItems:
    """Partial rows of the items of a catalogue; see ``sums.Addition``."""

    sums: Mapping[str, ShownItems]  # those that read it

    def add(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the items of a partition."""
        parts = [batch[C.ITEM_ID].unique() for batch in batches if batch.num_rows]
        if parts:
            items = pa.chunked_array(parts).unique().drop_null()
            yield from ((name, sum_.counter.known(items)) for name, sum_ in self.sums.items())


def exposure_sums(request: Request, models: Sequence[str]) -> dict[str, Sum]:
    """Return the sums of the measures of all lists together; ``models`` are all that are expected."""
    names = tuple(models)
    parity = parity_of(request)
    shown = [measure for measure in request.measure_set.exposures if measure not in parity.measures]
    # A histogram knows the items of the catalogue or those of the training data.
    of_train = tuple(measure for measure in shown if required_facts.TRAINED_ITEMS in measure.needs)
    others = tuple(measure for measure in shown if measure not in of_train)
    catalogue = CATALOGUE if any(measure.needs_catalogue for measure in others) else None
    found: dict[str, Sum] = {}
    catalogues = ((EXPOSURES, others, catalogue), (EXPOSURES_OF_TRAIN, of_train, TRAIN))
    for name, measures, catalogue in catalogues:
        if measures:
            counter = ItemCounter.of(measures, request.every_slice)
            found[f"items_of_{name}"] = ShownItems(counter, catalogue, name)
            found[name] = Exposures(ExposureRows(measures, request.reported, names), counter)
    if parity.measures:
        found[PARITIES] = Parities(ParityRows(parity.measures, request.reported, names), parity)
    return found


def readers_of_catalogues(sums: Mapping[str, Sum]) -> dict[str, dict[str, ShownItems]]:
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

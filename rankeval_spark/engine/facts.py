"""Facts of items and totals that are the same for all users: the constants of the engine's rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import (
    ABSENT,
    combine_chunks,
    full_join,
    index_in,
    lengths_of,
    list_column,
    parent_indices,
    rank_ids,
    renumber_by_id,
    take_or_null,
    to_arrow,
    to_codes,
    to_numpy,
)
from rankeval_spark.engine.batch import pack_constants, struct_fields
from rankeval_spark.engine.failures import quote_key, refuse_input
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.required_facts import BY_POPULARITY, TAIL

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector


N_INTERACTIONS: Final = "_n_interactions"  # interactions of an item, a bigint
N_USERS: Final = "_n_users"  # users who have an item, a bigint

TOTAL: Final = 0  # the one row with what is counted already: N_USERS of all items, totals, :data:`row_kinds.COUNTS`
COUNTED: Final = 1  # a row per item of the training data: a distinct ``item_id``, N_INTERACTIONS and N_USERS
CATALOGUE: Final = 2  # a row per item of the catalogue

ONCE_EXPECTED: Final = "each item once"
ONCE_FIX: Final = "keep one row an item in the catalogue"
ONE_LENGTH_EXPECTED: Final = "one length"
ONE_LENGTH_FIX: Final = "give each item a vector of one length"

_TOP_FIFTH, _TOP_FOUR_FIFTHS = 1, 4  # fifths of the interactions that the fewest, most popular items of a head hold
_BY_LEVEL = (N.ITEM_TAIL, N.ITEM_POPULARITY_GROUP, N.ITEM_LEVEL, N.ITEM_PLACE)
_EPOCH: Final = date(1970, 1, 1).toordinal()

_Input = TypeVar("_Input")


class ItemCounts(Protocol):
    """The items of the training data and their counts; each array has shape (n_items,)."""

    @property
    def items(self) -> pa.Array:
        """Distinct ids, in their order: integers by value, texts by their UTF-8 bytes."""

    @property
    def interactions(self) -> IntVector:
        """Interactions of each item: int64."""

    @property
    def item_users(self) -> IntVector:
        """Users who have each item: int64."""

    @property
    def n_users(self) -> int:
        """Distinct users of all items together."""


@dataclass(frozen=True)
class _Counted:
    """Counts of items that were made elsewhere; see :class:`ItemCounts`."""

    items: pa.Array
    interactions: IntVector
    item_users: IntVector
    n_users: int


def to_item_popularity(counts: ItemCounts, *, needs: frozenset[str]) -> pa.Table:
    """Build one row per item of the training data: ``item_id`` and the facts that follow from counts, all double."""
    interactions, facts = counts.interactions, dict[str, np.ndarray]()
    if N.ITEM_INTERACTIONS in needs:
        facts[N.ITEM_INTERACTIONS] = interactions
    if N.ITEM_USERS in needs:
        facts[N.ITEM_USERS] = counts.item_users
    if not needs.isdisjoint(_BY_LEVEL):  # the most popular items first, ties by id
        _, level = np.unique(-interactions, return_inverse=True)
        order = np.argsort(level, kind="stable")
        place, before = np.empty_like(level), np.empty_like(interactions)
        place[order] = np.arange(len(level))
        ordered, n_all = interactions[order], int(interactions.sum())
        before[order] = np.cumsum(ordered) - ordered
        # Others do not yet hold so many fifths of all interactions, in whole numbers.
        is_top, is_head = (before * 5 < n_all * fifths for fifths in (_TOP_FIFTH, _TOP_FOUR_FIFTHS))
        groups = np.where(is_top, 0, np.where(is_head, 1, 2))
        by_level = dict(zip(_BY_LEVEL, (~is_head, groups, level + 1, place + 1), strict=True))
        facts |= {name: values for name, values in by_level.items() if name in needs}
    if N.ITEM_QUANTILE in needs:  # rank by users, ascending; equal items share the mean of their ranks
        _, level, size = np.unique(counts.item_users, return_inverse=True, return_counts=True)
        mean_rank = np.cumsum(size) - size + (size + 1) / 2
        facts[N.ITEM_QUANTILE] = (mean_rank / max(len(counts.items), 1))[level]
    columns = {name: to_arrow(values.astype(np.float64)) for name, values in facts.items()}
    return pa.Table.from_pydict({C.ITEM_ID: counts.items, **columns})


def to_catalogue(items: pa.Table, *, needs: Iterable[str], evaluation_date: date | None = None) -> pa.Table:
    """Build one row per item of the catalogue: ``item_id`` and the facts needed, by name; NULL where unknown.

    ``needs``: of ``item_age`` (double; unknown without ``evaluation_date``), ``item_categories`` (list of string, each
    once, in order) and ``item_vectors`` (list of double, NULL where a number is not finite). Refused: an item with two
    rows, or vectors of different lengths, between which there is no angle.
    """
    ids = combine_chunks(items[C.ITEM_ID])
    codes, found = to_codes(ids), {C.ITEM_ID: ids}
    if codes.n_values < len(ids):
        repeated = codes.values.filter(to_arrow(np.bincount(codes.code) > 1))
        found_twice = f"item {quote_key(_nth_id(repeated, 0))} twice in the catalogue"
        refuse_input("items", found_twice, expected=ONCE_EXPECTED, fix=ONCE_FIX)
    columns = {N.ITEM_AGE: C.PUBLISHED_AT, N.ITEM_CATEGORIES: C.CATEGORIES, N.ITEM_VECTORS: C.VECTOR}
    for name in sorted(needs):
        cells = combine_chunks(items[columns[name]])
        if name == N.ITEM_CATEGORIES:
            found[name] = _distinct_categories(cells)
        elif name == N.ITEM_VECTORS:
            found[name] = _usable_vectors(ids, cells)
        elif evaluation_date is None:
            found[name] = pa.nulls(len(ids), pa.float64())
        else:
            days = to_numpy(cells.cast(pa.int32()), null=0).astype(np.int64)
            age = (evaluation_date.toordinal() - _EPOCH - days).astype(np.float64)
            found[name] = to_arrow(age, is_null=_is_null(cells))
    return pa.Table.from_pydict(found)


def _distinct_categories(lists: pa.Array) -> pa.Array:
    """Keep each category of an item once, in the order of their names, without NULL."""
    values = lists.flatten()
    is_known = ~_is_null(values)
    names = renumber_by_id(to_codes(values.filter(to_arrow(is_known))))
    n_names = max(names.n_values, 1)
    owner, name = np.divmod(np.unique(parent_indices(lists)[is_known] * n_names + names.code), n_names)
    lengths = np.bincount(owner, minlength=len(lists))
    return list_column(lengths, pc.take(names.values, to_arrow(name)), is_null=_is_null(lists))


def _usable_vectors(ids: pa.Array, lists: pa.Array) -> pa.Array:
    """Return vectors, NULL where a number is not finite; two lengths are refused."""
    is_finite = np.isfinite(to_numpy(lists.flatten()))
    n_others = np.bincount(parent_indices(lists)[~is_finite], minlength=len(lists))
    if n_others.any():
        lists = take_or_null(lists, np.where(n_others > 0, ABSENT, np.arange(len(lists))))
    known = np.flatnonzero(~_is_null(lists))
    lengths = lengths_of(lists)[known]
    if len(known) and lengths.min() < lengths.max():
        ids = pc.take(ids, to_arrow(known))
        shortest = quote_key(_nth_id(ids.filter(to_arrow(lengths == lengths.min())), 0))
        longest = quote_key(_nth_id(ids.filter(to_arrow(lengths == lengths.max())), -1))
        shown = f"{lengths.min()} numbers for {shortest} and {lengths.max()} numbers for {longest}"
        refuse_input("items", f"vectors of two lengths, {shown}", expected=ONE_LENGTH_EXPECTED, fix=ONE_LENGTH_FIX)
    return lists


def _nth_id(ids: pa.Array, place: int) -> object:
    """Return the id at a place in the order of the ids."""
    return ids[int(np.argsort(rank_ids(ids))[place])].as_py()


def _is_null(values: pa.Array) -> BoolVector:
    """Return which cells are NULL."""
    return to_numpy(pc.is_null(values))


@dataclass(frozen=True)
class FactSources:
    """Inputs of the facts of items."""

    counts: ItemCounts | None = None  # the items of the training data; present where a need requires them
    items: pa.Table | None = None  # rows of ``schemas.ITEMS``; without them the catalogue has the items of `counts`
    evaluation_date: date | None = None  # day at which the age of items is taken

    @property
    def catalogue(self) -> pa.Array:
        """Ids of the items of the catalogue, each once."""
        if self.items is None:
            return require_input(self.counts).items
        return pc.unique(self.items[C.ITEM_ID].drop_null())


def to_constants(sources: FactSources, *, needs: frozenset[str]) -> dict[str, pa.Array]:
    """Build a cell with facts of items, :data:`row_kinds.ITEMS`, and one with totals, where they are needed."""
    found: dict[str, pa.Array] = {}
    of_items = to_item_table(sources, needs=needs)
    if of_items is not None:
        structs = of_items.to_struct_array().combine_chunks()
        found[row_kinds.ITEMS] = pa.ListArray.from_arrays(to_arrow(np.array([0, len(structs)], np.int32)), structs)
    totals = to_totals(sources, needs=needs)
    if totals is not None:
        found[C.TOTALS] = totals
    return found


def to_item_table(sources: FactSources, *, needs: frozenset[str]) -> pa.Table | None:
    """Build one row per item with the facts that are the same for all users; None where none is needed."""
    tables = []
    if needs & COUNTED_FACTS:
        tables.append(to_item_popularity(require_input(sources.counts), needs=needs))
    if needs & CATALOGUE_FACTS:
        items, day = require_input(sources.items), sources.evaluation_date
        tables.append(to_catalogue(items, needs=needs & CATALOGUE_FACTS, evaluation_date=day))
    if N.ITEM_KNOWN in needs:
        ids = sources.catalogue
        tables.append(pa.Table.from_pydict({C.ITEM_ID: ids, N.ITEM_KNOWN: to_arrow(np.ones(len(ids)))}))
    return full_join(tables, on=C.ITEM_ID) if tables else None


def to_totals(sources: FactSources, *, needs: frozenset[str]) -> pa.StructArray | None:
    """Build one struct of the totals that are needed, all double; None where none is."""
    totals: dict[str, float] = {}
    for name in (name for name in N.TOTALS if name in needs):
        if name == N.CATALOGUE_ITEMS:
            totals[name] = len(sources.catalogue)
        elif name == N.TOTAL_CATEGORIES:
            catalogue = to_catalogue(require_input(sources.items), needs=[N.ITEM_CATEGORIES])
            totals[name] = to_codes(catalogue[N.ITEM_CATEGORIES].combine_chunks().flatten()).n_values
        elif name == N.TOTAL_USERS:
            totals[name] = require_input(sources.counts).n_users
        else:
            interactions = require_input(sources.counts).interactions.tolist()
            of_all = {N.TOTAL_INTERACTIONS: sum(interactions), N.MOST_INTERACTIONS: max(interactions, default=0)}
            totals[name] = of_all.get(name, min(interactions, default=0))
    if not needs.isdisjoint(N.GROUP_SIZES):  # what is not in the training data is in the tail
        counts = require_input(sources.counts)
        of_train = to_item_popularity(counts, needs=frozenset({N.ITEM_POPULARITY_GROUP}))
        groups = np.append(to_numpy(of_train[N.ITEM_POPULARITY_GROUP]), BY_POPULARITY.index(TAIL)).astype(np.int64)
        sizes = np.bincount(groups[index_in(sources.catalogue, counts.items)], minlength=len(BY_POPULARITY))
        totals |= dict(zip(N.GROUP_SIZES, sizes.tolist(), strict=True))
    values = [to_arrow(np.array([total], dtype=np.float64)) for total in totals.values()]
    return pa.StructArray.from_arrays(values, names=list(totals)) if totals else None


def require_input(found: _Input | None) -> _Input:
    """Return an input that is needed; a ValueError where it is not there."""
    if found is None:
        message = "an input is needed that is not there; requests are checked for that before they are computed"
        raise ValueError(message)
    return found


@dataclass(frozen=True)
class GatheredRows:
    """Facts to make of gathered rows of items; plain data that travels to the worker."""

    needs: frozenset[str]  # facts and totals that follow from the rows, names of :mod:`measures.required_facts`
    has_items: bool  # whether the rows have the catalogue; where they do not, it has the items of the training data
    evaluation_date: date | None  # day at which the age of items is taken

    def to_cell(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compute all facts as a row of :func:`batch.pack_constants`; refused as by :func:`to_catalogue`."""
        rows = pa.Table.from_batches(list(batches))
        kind = to_numpy(rows[row_kinds.KIND])
        total, counted, items = (rows.filter(to_arrow(kind == number)) for number in (TOTAL, COUNTED, CATALOGUE))
        counts = None
        if N_USERS in rows.column_names:
            codes = renumber_by_id(to_codes(counted[C.ITEM_ID]))
            order, names = np.argsort(codes.code), (N_INTERACTIONS, N_USERS)
            interactions, users = (to_numpy(counted[name])[order].astype(np.int64) for name in names)
            counts = _Counted(codes.values, interactions, users, int(to_numpy(total[N_USERS], null=0)[0]))
        sources = FactSources(counts, items if self.has_items else None, self.evaluation_date)
        constants = to_constants(sources, needs=self.needs)
        if C.TOTALS in rows.column_names:
            totals = struct_fields(combine_chunks(total[C.TOTALS]))
            totals |= struct_fields(constants[C.TOTALS]) if C.TOTALS in constants else {}
            constants[C.TOTALS] = pa.StructArray.from_arrays(list(totals.values()), names=list(totals))
        if row_kinds.COUNTS in rows.column_names:
            constants[row_kinds.COUNTS] = combine_chunks(total[row_kinds.COUNTS])
        return pack_constants(constants)

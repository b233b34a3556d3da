"""Facts of items and totals that are the same for all users: the constants of the engine's rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final, Protocol, SupportsInt, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import in_one_piece, lengths_of, list_column, owners_of, to_arrow, to_numpy
from rankeval_spark.engine.batch import fields, pack_constants
from rankeval_spark.engine.codes import ABSENT, ascending, full_join, in_id_order, places_in, taken_or_null, to_codes
from rankeval_spark.engine.failures import quoted, refuse_input
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.required_facts import BY_POPULARITY, TAIL

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, IntVector


N_INTERACTIONS: Final = "_n_interactions"  # interactions of an item, a bigint
N_USERS: Final = "_n_users"  # users who have an item, a bigint
_TOP_FIFTH, _TOP_FOUR_FIFTHS = 1, 4  # fifths of the interactions that the fewest, most popular items of a head hold
_BY_LEVEL = (N.ITEM_TAIL, N.ITEM_POPULARITY_GROUP, N.ITEM_LEVEL, N.ITEM_PLACE)


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
class Counted:
    """Counts of items that were made elsewhere."""

    items: pa.Array
    interactions: IntVector
    item_users: IntVector
    n_users: int

    @classmethod
    def of(cls, counts: pa.Table, *, n_users: int) -> Counted:
        """Read rows with a distinct ``item_id``, :data:`N_INTERACTIONS` and :data:`N_USERS`."""
        codes = in_id_order(to_codes(counts[C.ITEM_ID]))
        order = np.argsort(codes.code)
        interactions, users = (to_numpy(counts[name])[order].astype(np.int64) for name in (N_INTERACTIONS, N_USERS))
        return cls(codes.values, interactions, users, n_users)


def to_item_popularity(counts: ItemCounts, *, needs: frozenset[str]) -> pa.Table:
    """Build one row per item of the training data: ``item_id`` and the facts that follow from counts, all double."""
    facts: dict[str, pa.Array] = {}
    if N.ITEM_INTERACTIONS in needs:
        facts[N.ITEM_INTERACTIONS] = _doubles(counts.interactions)
    if N.ITEM_USERS in needs:
        facts[N.ITEM_USERS] = _doubles(counts.item_users)
    if not needs.isdisjoint(_BY_LEVEL):
        by_level = _by_level(counts.interactions)
        facts |= {name: by_level[name] for name in _BY_LEVEL if name in needs}
    if N.ITEM_QUANTILE in needs:  # rank by users, ascending; equal items share the mean of their ranks
        _, level, size = np.unique(counts.item_users, return_inverse=True, return_counts=True)
        mean_rank = np.cumsum(size) - size + (size + 1) / 2
        facts[N.ITEM_QUANTILE] = to_arrow((mean_rank / max(len(counts.items), 1))[level])
    return pa.Table.from_pydict({C.ITEM_ID: counts.items, **facts})


def _by_level(interactions: IntVector) -> dict[str, pa.Array]:
    """Order items by interactions, the most popular first and ties by id."""
    _, level = np.unique(-interactions, return_inverse=True)
    order = np.argsort(level, kind="stable")
    place, before = np.empty_like(level), np.empty_like(interactions)
    place[order] = np.arange(len(level))
    ordered = interactions[order]
    before[order] = np.cumsum(ordered) - ordered
    n_all = int(interactions.sum())
    # Others do not yet hold so many fifths of all interactions, in whole numbers.
    is_top, is_head = (before * 5 < n_all * fifths for fifths in (_TOP_FIFTH, _TOP_FOUR_FIFTHS))
    return {
        N.ITEM_TAIL: _doubles(~is_head),
        N.ITEM_POPULARITY_GROUP: _doubles(np.where(is_top, 0, np.where(is_head, 1, 2))),
        N.ITEM_LEVEL: _doubles(level + 1),
        N.ITEM_PLACE: _doubles(place + 1),
    }


def _doubles(values: np.ndarray) -> pa.Array:
    return to_arrow(values.astype(np.float64))


ONCE_EXPECTED: Final = "each item once"
ONCE_FIX: Final = "keep one row an item in the catalogue"
ONE_LENGTH_EXPECTED: Final = "one length"
ONE_LENGTH_FIX: Final = "give each item a vector of one length"

_EPOCH: Final = date(1970, 1, 1).toordinal()


def to_catalogue(items: pa.Table, *, needs: Iterable[str], evaluation_date: date | None = None) -> pa.Table:
    """Build one row per item of the catalogue: ``item_id`` and the facts needed, by name; NULL where unknown.

    ``needs``: of ``item_age`` (double; unknown without ``evaluation_date``), ``item_categories`` (list of string, each
    once, in order) and ``item_vectors`` (list of double, NULL where a number is not finite). Refused: an item with two
    rows, or vectors of different lengths, between which there is no angle.
    """
    ids = in_one_piece(items[C.ITEM_ID])
    codes = to_codes(ids)
    if codes.n_values < len(ids):
        repeated = codes.values.filter(to_arrow(np.bincount(codes.code) > 1))
        found_twice = f"item {quoted(_in_order(repeated, 0))} twice in the catalogue"
        refuse_input("items", found_twice, expected=ONCE_EXPECTED, fix=ONCE_FIX)
    facts = {
        N.ITEM_AGE: lambda: _ages(in_one_piece(items[C.PUBLISHED_AT]), evaluation_date),
        N.ITEM_CATEGORIES: lambda: _categories(in_one_piece(items[C.CATEGORIES])),
        N.ITEM_VECTORS: lambda: _vectors(in_one_piece(items[C.VECTOR])),
    }
    found = {name: facts[name]() for name in sorted(needs)}
    if N.ITEM_VECTORS in found:
        _refuse_two_lengths(ids, found[N.ITEM_VECTORS])
    return pa.Table.from_pydict({C.ITEM_ID: ids, **found})


def _ages(published_at: pa.Array, evaluation_date: date | None) -> pa.Array:
    if evaluation_date is None:
        return pa.nulls(len(published_at), pa.float64())
    days = to_numpy(published_at.cast(pa.int32()), null=0)
    age = (evaluation_date.toordinal() - _EPOCH - days.astype(np.int64)).astype(np.float64)
    return to_arrow(age, is_null=_is_null(published_at))


def _categories(lists: pa.Array) -> pa.Array:
    """Keep each category of an item once, in the order of their names; NULL ones are none."""
    values = lists.flatten()
    is_known = ~_is_null(values)
    owner = owners_of(lists)[is_known]
    names = in_id_order(to_codes(values.filter(to_arrow(is_known))))
    n_names = max(names.n_values, 1)
    owner, name = np.divmod(np.unique(owner * n_names + names.code), n_names)
    lengths = np.bincount(owner, minlength=len(lists))
    return list_column(lengths, pc.take(names.values, to_arrow(name)), is_null=_is_null(lists))


def _vectors(lists: pa.Array) -> pa.Array:
    owner = owners_of(lists)
    is_finite = np.isfinite(to_numpy(lists.flatten()))
    n_others = np.bincount(owner[~is_finite], minlength=len(lists))
    return taken_or_null(lists, np.where(n_others > 0, ABSENT, np.arange(len(lists)))) if n_others.any() else lists


def _refuse_two_lengths(ids: pa.Array, vectors: pa.Array) -> None:
    known = np.flatnonzero(~_is_null(vectors))
    lengths = lengths_of(vectors)[known]
    if not len(known) or lengths.min() == lengths.max():
        return
    ids = pc.take(ids, to_arrow(known))
    shortest = _in_order(ids.filter(to_arrow(lengths == lengths.min())), 0)
    longest = _in_order(ids.filter(to_arrow(lengths == lengths.max())), -1)
    shown = f"{lengths.min()} numbers for {quoted(shortest)} and {lengths.max()} numbers for {quoted(longest)}"
    refuse_input("items", f"vectors of two lengths, {shown}", expected=ONE_LENGTH_EXPECTED, fix=ONE_LENGTH_FIX)


def _in_order(ids: pa.Array, place: int) -> object:
    """Return the id at a place in the order of the ids."""
    return ids[int(np.argsort(ascending(ids))[place])].as_py()


def _is_null(values: pa.Array) -> BoolVector:
    return to_numpy(pc.is_null(values))


_Input = TypeVar("_Input")


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
    """Build one row per item with the facts that are the same for all users; None where none is needed.

    ``item_id`` and a column per fact, see :func:`to_item_popularity` and :func:`to_catalogue`; NULL where the training
    data or the catalogue do not have the item.
    """
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
    totals: dict[str, SupportsInt] = {name: _total(name, sources) for name in N.TOTALS if name in needs}
    if not needs.isdisjoint(N.GROUP_SIZES):
        totals |= dict(zip(N.GROUP_SIZES, _group_sizes(require_input(sources.counts), sources.catalogue), strict=True))
    values = [to_arrow(np.array([int(total)], dtype=np.float64)) for total in totals.values()]
    return pa.StructArray.from_arrays(values, names=list(totals)) if totals else None


def _group_sizes(counts: ItemCounts, catalogue: pa.Array) -> IntVector:
    """Count the items of the catalogue in each group of popularity; what is not in the training data is in the tail."""
    of_train = to_item_popularity(counts, needs=frozenset({N.ITEM_POPULARITY_GROUP}))
    groups = to_numpy(of_train[N.ITEM_POPULARITY_GROUP]).astype(np.int64)
    place = places_in(catalogue, counts.items)
    return np.bincount(np.append(groups, BY_POPULARITY.index(TAIL))[place], minlength=len(BY_POPULARITY))


def _total(name: str, sources: FactSources) -> int:
    if name == N.CATALOGUE_ITEMS:
        return len(sources.catalogue)
    if name == N.TOTAL_CATEGORIES:
        catalogue = to_catalogue(require_input(sources.items), needs=[N.ITEM_CATEGORIES])
        return to_codes(catalogue[N.ITEM_CATEGORIES].combine_chunks().flatten()).n_values
    counts = require_input(sources.counts)
    if name == N.TOTAL_USERS:
        return counts.n_users
    interactions = counts.interactions
    if name == N.TOTAL_INTERACTIONS:
        return int(interactions.sum())
    if not len(interactions):
        return 0
    return int(interactions.max() if name == N.MOST_INTERACTIONS else interactions.min())


def require_input(found: _Input | None) -> _Input:
    """Return an input that is needed; a ValueError where it is not there."""
    if found is None:
        message = "an input is needed that is not there; requests are checked for that before they are computed"
        raise ValueError(message)
    return found


TOTAL: Final = 0  # the one row with what is counted already: N_USERS of all items, totals, :data:`row_kinds.COUNTS`
COUNTED: Final = 1  # a row per item of the training data, in the columns of :meth:`Counted.of`
CATALOGUE: Final = 2  # a row per item of the catalogue


@dataclass(frozen=True)
class GatheredRows:
    """Facts to make of gathered rows of items; plain data that travels to the worker."""

    needs: frozenset[str]  # facts and totals that follow from the rows, names of :mod:`measures.required_facts`
    has_items: bool  # whether the rows have the catalogue; where they do not, it has the items of the training data
    evaluation_date: date | None  # day at which the age of items is taken

    def to_cell(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Build the row of :func:`batch.pack_constants`; refused as by :func:`to_catalogue`."""
        rows = pa.Table.from_batches(list(batches))
        kind = to_numpy(rows[row_kinds.KIND])
        total, counted, items = (rows.filter(to_arrow(kind == number)) for number in (TOTAL, COUNTED, CATALOGUE))
        counts = None
        if N_USERS in rows.column_names:
            counts = Counted.of(counted, n_users=int(to_numpy(total[N_USERS], null=0)[0]))
        sources = FactSources(counts, items if self.has_items else None, self.evaluation_date)
        constants = to_constants(sources, needs=self.needs)
        if C.TOTALS in rows.column_names:
            known = fields(in_one_piece(total[C.TOTALS]))
            totals = {**known, **fields(constants[C.TOTALS])} if C.TOTALS in constants else known
            constants[C.TOTALS] = pa.StructArray.from_arrays(list(totals.values()), names=list(totals))
        if row_kinds.COUNTS in rows.column_names:
            constants[row_kinds.COUNTS] = in_one_piece(total[row_kinds.COUNTS])
        return pack_constants(constants)

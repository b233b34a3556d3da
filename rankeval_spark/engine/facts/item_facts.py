"""Facts of items and totals that are the same for all users: the constants of the engine's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsInt, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.batch.joins import full_join, places_in
from rankeval_spark.engine.facts.catalogue import to_catalogue
from rankeval_spark.engine.facts.popularity import ItemCounts, to_item_popularity
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.required_facts import BY_POPULARITY, TAIL

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.measures.arrays import IntVector

_Input = TypeVar("_Input")


@dataclass(frozen=True)
class FactSources:
    """What the facts are taken from.

    Attributes
    ----------
    counts : ItemCounts or None
        The items of the training data; present where a need requires them.
    items : pa.Table or None
        Rows of ``schemas.ITEMS`` with an ``item_id``; present where a need requires them. Without them the catalogue
        has the items of the training data.
    evaluation_date : date or None
        Day at which the age of items is taken.
    """

    counts: ItemCounts | None = None
    items: pa.Table | None = None
    evaluation_date: date | None = None

    @property
    def catalogue(self) -> pa.Array:
        """Ids of the items of the catalogue, each once."""
        if self.items is None:
            return _required(self.counts).items
        return pc.unique(self.items[C.ITEM_ID].drop_null())


def to_constants(sources: FactSources, *, needs: frozenset[str]) -> dict[str, pa.Array]:
    """Put the facts of items, :data:`row_kinds.ITEMS`, and the totals into a cell each, where they are needed."""
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
    """Make one row per item with the facts that are the same for all users; None where none is needed.

    Parameters
    ----------
    needs : frozenset of str
        Names of :mod:`measures.required_facts`.

    Returns
    -------
    pa.Table or None
        ``item_id`` and a column per fact: numbers are double, categories a list of string, vectors a list of double.
        NULL where the training data or the catalogue do not have the item.

    Raises
    ------
    RefusedError
        The catalogue has an item twice, or vectors of two lengths.
    """
    tables = []
    if needs & COUNTED_FACTS:
        tables.append(to_item_popularity(_required(sources.counts), needs=needs))
    if needs & CATALOGUE_FACTS:
        items, day = _required(sources.items), sources.evaluation_date
        tables.append(to_catalogue(items, needs=needs & CATALOGUE_FACTS, evaluation_date=day))
    if N.ITEM_KNOWN in needs:
        ids = sources.catalogue
        tables.append(pa.Table.from_pydict({C.ITEM_ID: ids, N.ITEM_KNOWN: to_arrow(np.ones(len(ids)))}))
    return full_join(tables, on=C.ITEM_ID) if tables else None


def to_totals(sources: FactSources, *, needs: frozenset[str]) -> pa.StructArray | None:
    """Make one struct of the totals that are needed, all double; None where none is."""
    totals: dict[str, SupportsInt] = {name: _total(name, sources) for name in N.TOTALS if name in needs}
    if not needs.isdisjoint(N.GROUP_SIZES):
        totals |= dict(zip(N.GROUP_SIZES, _group_sizes(_required(sources.counts), sources.catalogue), strict=True))
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
        catalogue = to_catalogue(_required(sources.items), needs=[N.ITEM_CATEGORIES])
        return to_codes(catalogue[N.ITEM_CATEGORIES].combine_chunks().flatten()).n_values
    counts = _required(sources.counts)
    if name == N.TOTAL_USERS:
        return counts.n_users
    interactions = counts.interactions
    if name == N.TOTAL_INTERACTIONS:
        return int(interactions.sum())
    if not len(interactions):
        return 0
    return int(interactions.max() if name == N.MOST_INTERACTIONS else interactions.min())


def _required(found: _Input | None) -> _Input:
    """Return an input that is needed; a ValueError where it is not there."""
    if found is None:
        message = "an input is needed that is not there; requests are checked for that before they are computed"
        raise ValueError(message)
    return found

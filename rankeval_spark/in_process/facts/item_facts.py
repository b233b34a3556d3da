"""Facts of items and totals that are the same for all users: the constants of the engine's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsInt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.in_process.facts.catalogue import to_catalogue
from rankeval_spark.in_process.facts.interactions import Interactions, Train, interactions_of, require_input
from rankeval_spark.in_process.facts.joins import full_join, places_in
from rankeval_spark.in_process.facts.popularity import to_item_popularity
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.item_groups import BY_POPULARITY, TAIL

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.measures.arrays import IntVector


def to_item_table(
    train: Train | None,
    items: pa.Table | None,
    *,
    needs: frozenset[str],
    n_places: int,
    evaluation_date: date | None,
) -> pa.Table | None:
    """Make one row per item with the facts that are the same for all users; None where none is needed.

    Parameters
    ----------
    train, items : pa.Table or None
        Usable rows of ``schemas.TRAIN`` and ``schemas.ITEMS``; present where a need requires them.
    needs : frozenset of str
        Names of :mod:`measures.required_facts`.
    n_places : int
        How many of the most popular items must know their place.
    evaluation_date : date or None
        Day at which the age of items is taken.

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
        tables.append(to_item_popularity(interactions_of(train), needs=needs, n_places=n_places))
    if needs & CATALOGUE_FACTS:
        of_items = needs & CATALOGUE_FACTS
        tables.append(to_catalogue(require_input(items), needs=of_items, evaluation_date=evaluation_date))
    if N.ITEM_KNOWN in needs:
        ids = pc.unique(_catalogue_of(train, items).drop_null())
        tables.append(pa.Table.from_pydict({C.ITEM_ID: ids, N.ITEM_KNOWN: to_arrow(np.ones(len(ids)))}))
    return full_join(tables, on=C.ITEM_ID) if tables else None


def to_totals(train: Train | None, items: pa.Table | None, *, needs: frozenset[str]) -> pa.StructArray | None:
    """Make one struct of the totals that are needed, all double; None where none is.

    Parameters
    ----------
    train, items : pa.Table or None
        As for :func:`to_item_table`; items of the catalogue are those of ``train`` where there is no ``items``.
    """
    totals: dict[str, SupportsInt] = {name: _total(name, train, items) for name in N.TOTALS if name in needs}
    if not needs.isdisjoint(N.GROUP_SIZES):
        totals |= dict(
            zip(N.GROUP_SIZES, _group_sizes(interactions_of(train), _catalogue_of(train, items)), strict=True)
        )
    values = [to_arrow(np.array([int(total)], dtype=np.float64)) for total in totals.values()]
    return pa.StructArray.from_arrays(values, names=list(totals)) if totals else None


def _catalogue_of(train: Train | None, items: pa.Table | None) -> pa.Array | pa.ChunkedArray:
    """Take the ids of the catalogue: those of the training data where there is no other."""
    return interactions_of(train).items if items is None else items[C.ITEM_ID]


def _group_sizes(trained: Interactions, catalogue: pa.Array | pa.ChunkedArray) -> IntVector:
    """Count the items of the catalogue in each group of popularity."""
    of_train = to_item_popularity(trained, needs=frozenset({N.ITEM_POPULARITY_GROUP}), n_places=0)
    groups = to_numpy(of_train[N.ITEM_POPULARITY_GROUP]).astype(np.int64)
    place = places_in(pc.unique(catalogue.drop_null()), trained.items)
    return np.bincount(np.append(groups, BY_POPULARITY.index(TAIL))[place], minlength=len(BY_POPULARITY))


def _total(name: str, train: Train | None, items: pa.Table | None) -> int:
    if name == N.CATALOGUE_ITEMS:
        return to_codes(_catalogue_of(train, items)).n_values
    if name == N.TOTAL_CATEGORIES:
        catalogue = to_catalogue(require_input(items), needs=[N.ITEM_CATEGORIES])
        return to_codes(catalogue[N.ITEM_CATEGORIES].combine_chunks().flatten()).n_values
    trained = interactions_of(train)
    if name == N.TOTAL_USERS:
        return len(trained.users)
    if name == N.TOTAL_INTERACTIONS:
        return len(trained.item)
    counts = trained.interactions
    if not len(counts):
        return 0
    return int(counts.max() if name == N.MOST_INTERACTIONS else counts.min())

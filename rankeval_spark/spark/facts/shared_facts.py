"""One row with what is the same for all users: facts of items, totals, counts of unusable rows."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.facts import CATALOGUE, COUNTED, TOTAL, GatheredRows
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.facts.item_facts import FactFrames, require_input, to_catalogue_size, to_counts, to_user_count
from rankeval_spark.spark.rows.moved_rows import in_one_frame

_SHARED: Final = COUNTED_FACTS | CATALOGUE_FACTS | {N.ITEM_KNOWN, *N.TOTALS, *N.GROUP_SIZES}
_OF_ITEMS: Final = frozenset({N.ITEM_KNOWN, N.CATALOGUE_ITEMS, *N.GROUP_SIZES})
_SIZES: Final = (N.CATALOGUE_ITEMS, N.TOTAL_CATEGORIES)
_OF_TRAIN: Final = COUNTED_FACTS | {*N.TOTALS, *N.GROUP_SIZES}.difference(_SIZES)
_COLUMNS: Final = {
    N.ITEM_AGE: C.PUBLISHED_AT,
    N.ITEM_CATEGORIES: C.CATEGORIES,
    N.TOTAL_CATEGORIES: C.CATEGORIES,
    N.ITEM_VECTORS: C.VECTOR,
}
"""Column of the catalogue that a fact is made of."""


def to_constants(sources: FactFrames, *, needs: frozenset[str], row_counts: DataFrame | None) -> DataFrame | None:
    """Plan one row, :data:`row_kinds.SHARED`; None where nothing is shared.

    Training data are counted by item, and the counts and a small catalogue meet in one worker, who makes the facts.
    A large catalogue stays where it is: the facts of its items are joined with rows, see
    :func:`facts.to_catalogue_facts`, and only its totals, or its ids for the sizes of groups, are gathered.

    Parameters
    ----------
    needs : frozenset of str
        Facts that are read, those that others are made of among them.
    row_counts : DataFrame or None
        One row of :data:`row_kinds.COUNTS`.
    """
    shared = needs & _SHARED
    is_large = sources.items is not None and not sources.has_small_catalogue
    sizes = [name for name in _SIZES if name in shared] if is_large else []
    if is_large:
        shared -= {*CATALOGUE_FACTS, N.ITEM_KNOWN, *sizes}
    if not shared and not sizes and row_counts is None:
        return None
    rows = _rows_of_items(sources, shared, is_large=is_large)
    totals = [] if row_counts is None else [row_counts]
    totals += [to_user_count(require_input(sources.train))] if N.TOTAL_USERS in shared else []
    totals += [to_catalogue_size(sources, sizes)] if sizes else []
    if not totals:  # a row without columns
        totals = [next(iter(rows.values())).sparkSession.range(1).drop("id")]
    rows[TOTAL] = reduce(DataFrame.crossJoin, totals)
    columns = {field.name: field.dataType for frame in rows.values() for field in frame.schema}
    gathered = GatheredRows(shared, CATALOGUE in rows, sources.evaluation_date)
    in_one_place = in_one_frame(rows, columns=columns).repartition(1)
    return in_one_place.mapInArrow(gathered.to_cell, f"{row_kinds.SHARED} binary")


def _rows_of_items(sources: FactFrames, shared: frozenset[str], *, is_large: bool) -> dict[int, DataFrame]:
    found: dict[int, DataFrame] = {}
    items, is_catalogue_read = sources.items, shared & (CATALOGUE_FACTS | _OF_ITEMS | {N.TOTAL_CATEGORIES})
    if shared & _OF_TRAIN or (items is None and is_catalogue_read):
        found[COUNTED] = to_counts(require_input(sources.train))
    if items is not None and is_catalogue_read:
        read = {C.ITEM_ID: None, **{_COLUMNS[name]: None for name in sorted(shared) if name in _COLUMNS}}
        known = items.select(*read).where(F.col(C.ITEM_ID).isNotNull())
        found[CATALOGUE] = known.distinct() if is_large else known
    return found

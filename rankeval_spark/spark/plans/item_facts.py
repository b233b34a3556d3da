"""Facts of the training data and the catalogue: counts, totals, and the facts of a catalogue that is large.

Only what a measure needs is computed. Every worker is handed one row with what is the same for all users: facts that
follow from counts, and a catalogue that is known to be small. The facts of a larger one are joined onto rows, and Spark
decides how.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.facts import (
    CATALOGUE,
    COUNTED,
    N_INTERACTIONS,
    N_USERS,
    ONCE_EXPECTED,
    ONCE_FIX,
    ONE_LENGTH_EXPECTED,
    ONE_LENGTH_FIX,
    TOTAL,
    GatheredRows,
    require_input,
)
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.engine.ranked_lists import ITEMS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.spark.plans.moved_rows import append_with_kinds
from rankeval_spark.spark.plans.usable_rows import has_keys, is_finite_vector, quote_key, raise_input_error

if TYPE_CHECKING:
    from datetime import date

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


@dataclass(frozen=True)
class FactFrames:
    """Inputs that facts are taken from; present where a need requires them."""

    train: DataFrame | None = None  # rows of ``schemas.TRAIN``
    items: DataFrame | None = None  # rows of ``schemas.ITEMS``
    evaluation_date: date | None = None  # day at which the age of items is taken
    has_small_catalogue: bool = False  # whether ``items`` fit into the memory of every task

    @property
    def catalogue(self) -> DataFrame:
        """A frame whose ``item_id`` are all items: ``items`` or, where there is no such input, ``train``."""
        return require_input(self.train if self.items is None else self.items)


def to_catalogue_facts(sources: FactFrames, *, needs: frozenset[str]) -> DataFrame | None:
    """Return one row per item of a large catalogue, for a join with the log; None where that is not needed."""
    if sources.has_small_catalogue or sources.items is None:
        return None
    frames = [_to_catalogue(sources, needs=needs & CATALOGUE_FACTS)] if needs & CATALOGUE_FACTS else []
    frames += [_to_known(sources)] if N.ITEM_KNOWN in needs else []
    return reduce(lambda left, right: left.join(right, on=[C.ITEM_ID], how="full"), frames) if frames else None


def _to_known(sources: FactFrames) -> DataFrame:
    """Return one row per item of the catalogue, however often it occurs there."""
    known = sources.catalogue.select(C.ITEM_ID).where(F.col(C.ITEM_ID).isNotNull()).distinct()
    return known.withColumn(N.ITEM_KNOWN, F.lit(1.0))


def to_catalogue_size(sources: FactFrames, names: Iterable[str]) -> DataFrame:
    """Count the items and the categories of the catalogue: one row with the struct ``_totals``."""
    frames, names = [], list(names)
    if N.CATALOGUE_ITEMS in names:
        frames.append(_to_known(sources).agg(F.count("*").alias(N.CATALOGUE_ITEMS)))
    if N.TOTAL_CATEGORIES in names:
        catalogue = _to_catalogue(sources, needs=frozenset({N.ITEM_CATEGORIES}))
        categories = catalogue.select(F.explode(N.ITEM_CATEGORIES).alias("_category")).distinct()
        frames.append(categories.agg(F.count("*").alias(N.TOTAL_CATEGORIES)))
    totals = reduce(lambda left, right: left.crossJoin(F.broadcast(right)), frames)
    return totals.select(F.struct(*(F.col(name).cast("double").alias(name) for name in names)).alias(C.TOTALS))


def to_user_items(train: DataFrame) -> DataFrame:
    """Return one row per (user, item) with the number of interactions, partitioned by user."""
    return (
        train.select(C.USER_ID, C.ITEM_ID)
        .where(has_keys((C.USER_ID, C.ITEM_ID)))
        .repartition(C.USER_ID)
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg(F.count("*").alias(N_INTERACTIONS))
    )


def to_counts(train: DataFrame) -> DataFrame:
    """Return one row per item of the training data: its interactions and its users."""
    return (
        to_user_items(train)
        .groupBy(C.ITEM_ID)
        .agg(F.sum(N_INTERACTIONS).alias(N_INTERACTIONS), F.count("*").alias(N_USERS))
    )


def _to_catalogue(sources: FactFrames, *, needs: Iterable[str]) -> DataFrame:
    """Return one row per item of the catalogue; an item that occurs twice fails the job, as either row is a guess."""
    items = require_input(sources.items).where(F.col(C.ITEM_ID).isNotNull())
    facts = {
        N.ITEM_AGE: lambda: F.datediff(F.lit(sources.evaluation_date), F.col(C.PUBLISHED_AT)).cast("double"),
        N.ITEM_CATEGORIES: lambda: F.array_sort(F.array_distinct(F.array_compact(F.col(C.CATEGORIES)))),
        N.ITEM_VECTORS: lambda: F.when(is_finite_vector(F.col(C.VECTOR)), F.col(C.VECTOR)),
    }
    row = F.struct(*(facts[name]().alias(name) for name in sorted(needs)))
    once = items.groupBy(C.ITEM_ID).agg(F.first(row).alias("_row"), F.count("*").alias("_n_rows"))
    what = F.concat(F.lit("item "), quote_key(F.col(C.ITEM_ID)), F.lit(" twice in the catalogue"))
    failure = raise_input_error("items", what, expected=ONCE_EXPECTED, fix=ONCE_FIX)
    is_unique = F.when(F.col("_n_rows") > 1, failure.cast("boolean")).otherwise(F.lit(True))
    unique = once.where(is_unique).select(C.ITEM_ID, "_row.*")
    return _require_equal_lengths(unique) if N.ITEM_VECTORS in unique.columns else unique


def _require_equal_lengths(catalogue: DataFrame) -> DataFrame:
    """Fail the job where two items have vectors of different lengths: there is no angle between them."""
    length = F.struct(F.size(N.ITEM_VECTORS).alias("n"), C.ITEM_ID)
    of_item = F.when(F.col(N.ITEM_VECTORS).isNotNull(), length)
    lengths = catalogue.agg(F.min(of_item).alias("_shortest"), F.max(of_item).alias("_longest"))
    shown = [
        F.concat(F.col(f"{end}.n").cast("string"), F.lit(" numbers for "), quote_key(F.col(f"{end}.{C.ITEM_ID}")))
        for end in ("_shortest", "_longest")
    ]
    what = F.concat(F.lit("vectors of two lengths, "), shown[0], F.lit(" and "), shown[1])
    failure = raise_input_error("items", what, expected=ONE_LENGTH_EXPECTED, fix=ONE_LENGTH_FIX)
    is_equal = F.when(F.col("_shortest.n") < F.col("_longest.n"), failure.cast("boolean")).otherwise(F.lit(True))
    return catalogue.crossJoin(F.broadcast(lengths)).where(is_equal).drop("_shortest", "_longest")


def to_constants(
    sources: FactFrames,
    *,
    needs: frozenset[str],  # facts that are read, those that others are made of among them
    row_counts: DataFrame | None,  # one row of :data:`row_kinds.COUNTS`
) -> DataFrame | None:
    """Plan one row, :data:`row_kinds.SHARED`; None where nothing is shared.

    Training data are counted by item, and the counts and a small catalogue meet in one worker, who makes the facts.
    A large catalogue stays where it is: the facts of its items are joined with rows, see
    :func:`to_catalogue_facts`, and only its totals, or its ids for the sizes of groups, are gathered.
    """
    shared, items = needs & _SHARED, sources.items
    is_large = items is not None and not sources.has_small_catalogue
    sizes = [name for name in _SIZES if name in shared] if is_large else []
    if is_large:
        shared -= {*CATALOGUE_FACTS, N.ITEM_KNOWN, *sizes}
    if not shared and not sizes and row_counts is None:
        return None
    rows: dict[int, DataFrame] = {}
    is_catalogue_read = shared & (CATALOGUE_FACTS | _OF_ITEMS | {N.TOTAL_CATEGORIES})
    if shared & _OF_TRAIN or (items is None and is_catalogue_read):
        rows[COUNTED] = to_counts(require_input(sources.train))
    if items is not None and is_catalogue_read:
        read = dict.fromkeys((C.ITEM_ID, *(_COLUMNS[name] for name in sorted(shared) if name in _COLUMNS)))
        known = items.select(*read).where(F.col(C.ITEM_ID).isNotNull())
        rows[CATALOGUE] = known.distinct() if is_large else known
    totals = [] if row_counts is None else [row_counts]
    if N.TOTAL_USERS in shared:
        usable = require_input(sources.train).where(has_keys((C.USER_ID, C.ITEM_ID)))
        totals.append(usable.select(C.USER_ID).distinct().agg(F.count("*").alias(N_USERS)))
    totals += [to_catalogue_size(sources, sizes)] if sizes else []
    if not totals:  # a row without columns
        totals = [next(iter(rows.values())).sparkSession.range(1).drop("id")]
    rows[TOTAL] = reduce(DataFrame.crossJoin, totals)
    columns = {field.name: field.dataType for frame in rows.values() for field in frame.schema}
    gathered = GatheredRows(shared, CATALOGUE in rows, sources.evaluation_date)
    in_one_place = append_with_kinds(rows, columns=columns).repartition(1)
    return in_one_place.mapInArrow(gathered.to_cell, f"{row_kinds.SHARED} binary")


def to_pairs(lists: DataFrame, *, sources: FactFrames, depth: int) -> DataFrame:
    """Return one row per list with the pairs of its items that have users in common.

    The struct array ``_pairs`` holds ranks and the cosine of the co-occurrence in the training data. Co-occurrences are
    counted separately and meet the pairs of the lists in a join, so that nothing is collected or broadcast on purpose.
    """
    key: list[str] = [name for name in C.LIST_KEY if name in lists.columns]
    first_item, other = F.col("_one"), F.col("_other")
    later = F.filter(_items_to_rank(depth), lambda item: item[C.RANK] > first_item[C.RANK])
    pairs = lists.select(*key, ITEMS, F.explode(_items_to_rank(depth)).alias("_one")).select(
        *key, "_one", F.explode(later).alias("_other")
    )
    in_lists = pairs.select(
        *key,
        first_item[C.RANK].alias("earlier"),
        other[C.RANK].alias("later"),
        # In the order of the ids, as co-occurrences are counted: whichever of the two is ahead.
        F.least(first_item[C.ITEM_ID], other[C.ITEM_ID]).alias("_low"),
        F.greatest(first_item[C.ITEM_ID], other[C.ITEM_ID]).alias("_high"),
    )
    similar = in_lists.join(_to_similarities(require_input(sources.train)), on=["_low", "_high"], how="inner")
    pair = F.struct("later", "earlier", "similarity")
    return similar.groupBy(*key).agg(F.array_sort(F.collect_list(pair)).alias(C.PAIRS))


def _items_to_rank(depth: int) -> Column:
    """Return the items of a list down to a rank; all of them where it is 0."""
    return F.filter(ITEMS, lambda item: item[C.RANK] <= depth) if depth else F.col(ITEMS)


def to_familiarity(lists: DataFrame, *, sources: FactFrames, depth: int) -> DataFrame:
    """Return one row per (user, recommended item) with its mean similarity to the items that the user has in `train`.

    Only users of the training data have rows; an item that has no user in common with any of theirs has 0.
    """
    train = require_input(sources.train)
    wanted = lists.select(C.USER_ID, F.explode(_items_to_rank(depth)).alias("_item"))
    train_items = to_user_items(train).select(C.USER_ID, F.col(C.ITEM_ID).alias("_own"))
    with_train_items = (
        wanted.select(C.USER_ID, f"_item.{C.ITEM_ID}").distinct().join(train_items, on=[C.USER_ID], how="inner")
    )
    pairs = with_train_items.select(
        *(C.USER_ID, C.ITEM_ID),
        F.least(C.ITEM_ID, "_own").alias("_low"),
        F.greatest(C.ITEM_ID, "_own").alias("_high"),
    )
    # Fractions are added up in ascending order: as they come, the last bit would depend on the order of the rows.
    ordered = F.array_sort(F.collect_list("similarity"))
    total = F.aggregate(ordered, F.lit(0.0), lambda total, value: total + value)
    return (
        pairs.join(_to_similarities(train), on=["_low", "_high"], how="left")
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg((total / F.count("*")).alias(N.ITEM_FAMILIARITY))
    )


def _to_similarities(train: DataFrame) -> DataFrame:
    """Return one row per pair of items with a user in common: (users of both) / sqrt(U(low) U(high))."""
    pairs, counts = to_user_items(train), to_counts(train)
    low = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_low"))
    high = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_high"))
    together = (
        low.join(high, on=[C.USER_ID], how="inner")
        .where(F.col("_low") <= F.col("_high"))
        .groupBy("_low", "_high")
        .agg(F.count("*").alias("_n_together"))
    )
    of_low = counts.select(F.col(C.ITEM_ID).alias("_low"), F.col(N_USERS).alias("_of_low"))
    of_high = counts.select(F.col(C.ITEM_ID).alias("_high"), F.col(N_USERS).alias("_of_high"))
    cosine = F.col("_n_together") / F.sqrt(F.col("_of_low") * F.col("_of_high"))
    return (
        together.join(of_low, on=["_low"], how="inner")
        .join(of_high, on=["_high"], how="inner")
        .select("_low", "_high", cosine.alias("similarity"))
    )

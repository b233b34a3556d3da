"""Describe the recommended items and their users by what the training data and the catalogue know of them.

Only what a measure needs is computed. The facts of an item are joined onto ranked rows. A catalogue that is known to be
small is sent to every task, so that no ranked row is moved; how others are joined is left to Spark, because catalogues
grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window, functions as F

from rankeval_spark import columns as C
from rankeval_spark.engine.planning import CATALOGUE_FACTS, COUNTED_FACTS
from rankeval_spark.engine.ranking.item_lists import ITEMS
from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.item_groups import BY_POPULARITY, TAIL
from rankeval_spark.spark.facts import train_facts
from rankeval_spark.spark.rows.usable_rows import has_keys, input_failure, is_finite_vector, quoted

if TYPE_CHECKING:
    from datetime import date

_COUNTED_TOTALS: Final = (N.TOTAL_INTERACTIONS, N.MOST_INTERACTIONS, N.LEAST_INTERACTIONS)
_N, _USERS, _LEVEL = "_n_interactions", "_n_users", "_level"

_IS_TOP_FIFTH: Final = "_is_short_head"
"""Whether an item is among the fewest, most popular ones that hold at least 20 % of the interactions."""
_IS_TOP_FOUR_FIFTHS: Final = "_is_head"
"""Whether it is among the fewest that hold at least 80 %: not in the long tail."""
_HEAD_FLAGS: Final = {_IS_TOP_FIFTH: 1, _IS_TOP_FOUR_FIFTHS: 4}
"""Fifths of the interactions that the fewest items with the flag hold."""


@dataclass(frozen=True)
class FactSources:
    """What the facts are taken from.

    Attributes
    ----------
    train, items : DataFrame, optional
        Rows of ``schemas.TRAIN`` and ``schemas.ITEMS``; present where a need requires them.
    evaluation_date : date, optional
        Day at which the age of items is taken.
    has_small_catalogue : bool
        Whether ``items`` fit into the memory of every task.
    """

    train: DataFrame | None = None
    items: DataFrame | None = None
    evaluation_date: date | None = None
    has_small_catalogue: bool = False

    @property
    def catalogue(self) -> DataFrame:
        """A frame whose ``item_id`` are all items: ``items`` or, where there is no such input, ``train``."""
        return require_input(self.train if self.items is None else self.items)


def to_item_table(knowledge: FactSources, *, needs: frozenset[str], n_places: int) -> DataFrame | None:
    """Make one row per item with the facts that are the same for all users; None where none is needed.

    Facts of a catalogue that is not known to be small are left out, see :func:`to_catalogue_facts`.

    Parameters
    ----------
    n_places : int
        How many of the most popular items must know their place.
    """
    frames = []
    if needs & COUNTED_FACTS:
        frames.append(_to_counted(require_input(knowledge.train), needs=needs, n_places=n_places))
    if knowledge.has_small_catalogue or knowledge.items is None:
        frames += _of_catalogue(knowledge, needs)
    return _joined(frames) if frames else None


def to_catalogue_facts(knowledge: FactSources, *, needs: frozenset[str]) -> DataFrame | None:
    """Make one row per item of a large catalogue, for a join with the log; None where that is not needed."""
    frames = [] if knowledge.has_small_catalogue or knowledge.items is None else _of_catalogue(knowledge, needs)
    return _joined(frames) if frames else None


def _of_catalogue(knowledge: FactSources, needs: frozenset[str]) -> list[DataFrame]:
    """Make frames of what the catalogue knows."""
    frames = [_to_catalogue(knowledge, needs=needs & CATALOGUE_FACTS)] if needs & CATALOGUE_FACTS else []
    return [*frames, _to_known(knowledge)] if N.ITEM_KNOWN in needs else frames


def _to_known(knowledge: FactSources) -> DataFrame:
    """Make one row per item of the catalogue, however often it occurs there."""
    known = knowledge.catalogue.select(C.ITEM_ID).where(F.col(C.ITEM_ID).isNotNull()).distinct()
    return known.withColumn(N.ITEM_KNOWN, F.lit(1.0))


def _joined(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.join(right, on=[C.ITEM_ID], how="full"), frames)


def to_pairs(lists: DataFrame, *, knowledge: FactSources, depth: int) -> DataFrame:
    """Make one row per list with the pairs of its items that have users in common.

    The struct array ``_pairs`` holds ranks and the cosine of the co-occurrence in the training data. Co-occurrences are
    counted separately and meet the pairs of the lists in a join, so that nothing is collected or broadcast on purpose.

    Parameters
    ----------
    lists : DataFrame
        Rows of ``UserRows.to_item_lists``.
    depth : int
        Last rank that is read; 0 for all of them.
    """
    key: list[str] = [name for name in C.LIST_KEY if name in lists.columns]
    one, other = F.col("_one"), F.col("_other")
    later = F.filter(_down_to(depth), lambda item: item[C.RANK] > one[C.RANK])
    pairs = lists.select(*key, ITEMS, F.explode(_down_to(depth)).alias("_one")).select(
        *key, "_one", F.explode(later).alias("_other")
    )
    in_lists = pairs.select(
        *key,
        one[C.RANK].alias("earlier"),
        other[C.RANK].alias("later"),
        # In the order of the ids, as co-occurrences are counted: whichever of the two is ahead.
        F.least(one[C.ITEM_ID], other[C.ITEM_ID]).alias("_low"),
        F.greatest(one[C.ITEM_ID], other[C.ITEM_ID]).alias("_high"),
    )
    similar = in_lists.join(_to_similarities(require_input(knowledge.train)), on=["_low", "_high"], how="inner")
    pair = F.struct("later", "earlier", "similarity")
    return similar.groupBy(*key).agg(F.array_sort(F.collect_list(pair)).alias(C.PAIRS))


def _down_to(depth: int) -> Column:
    """Return the items of a list down to a rank; all of them where it is 0."""
    return F.filter(ITEMS, lambda item: item[C.RANK] <= depth) if depth else F.col(ITEMS)


def to_familiarity(lists: DataFrame, *, knowledge: FactSources, depth: int) -> DataFrame:
    """Make one row per (user, recommended item) with its mean similarity to the items that the user has in `train`.

    Parameters
    ----------
    lists, depth
        As for :func:`to_pairs`.
    """
    train = require_input(knowledge.train)
    wanted = lists.select(C.USER_ID, F.explode(_down_to(depth)).alias("_item"))
    return train_facts.familiarity_of_pairs(
        wanted.select(C.USER_ID, f"_item.{C.ITEM_ID}").distinct(),
        pairs=_to_pairs(train),
        similarities=_to_similarities(train),
    )


def _to_similarities(train: DataFrame) -> DataFrame:
    """Make one row per pair of items with a user in common: (users of both) / sqrt(U(low) U(high))."""
    pairs, counts = _to_pairs(train), _to_counts(train)
    low = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_low"))
    high = pairs.select(C.USER_ID, F.col(C.ITEM_ID).alias("_high"))
    together = (
        low.join(high, on=[C.USER_ID], how="inner")
        .where(F.col("_low") <= F.col("_high"))
        .groupBy("_low", "_high")
        .agg(F.count("*").alias("_n_together"))
    )
    of_low = counts.select(F.col(C.ITEM_ID).alias("_low"), F.col(_USERS).alias("_of_low"))
    of_high = counts.select(F.col(C.ITEM_ID).alias("_high"), F.col(_USERS).alias("_of_high"))
    cosine = F.col("_n_together") / F.sqrt(F.col("_of_low") * F.col("_of_high"))
    return (
        together.join(of_low, on=["_low"], how="inner")
        .join(of_high, on=["_high"], how="inner")
        .select("_low", "_high", cosine.alias("similarity"))
    )


def to_totals(knowledge: FactSources, *, needs: frozenset[str]) -> DataFrame | None:
    """Make one row with the struct ``_totals``; None where none is needed."""
    names = [name for name in (*N.TOTALS, *N.GROUP_SIZES) if name in needs]
    if not names:
        return None
    frames = []
    if not needs.isdisjoint(_COUNTED_TOTALS):
        counts = _to_counts(require_input(knowledge.train))
        frames.append(
            counts.agg(
                F.sum(_N).alias(N.TOTAL_INTERACTIONS),
                F.max(_N).alias(N.MOST_INTERACTIONS),
                F.min(_N).alias(N.LEAST_INTERACTIONS),
            )
        )
    if N.TOTAL_USERS in needs:
        users = _to_pairs(require_input(knowledge.train)).select(C.USER_ID).distinct()
        frames.append(users.agg(F.count("*").alias(N.TOTAL_USERS)))
    if N.CATALOGUE_ITEMS in needs:
        frames.append(_to_known(knowledge).agg(F.count("*").alias(N.CATALOGUE_ITEMS)))
    if not needs.isdisjoint(N.GROUP_SIZES):
        frames.append(_to_group_sizes(knowledge))
    if N.TOTAL_CATEGORIES in needs:
        catalogue = _to_catalogue(knowledge, needs=frozenset({N.ITEM_CATEGORIES}))
        categories = catalogue.select(F.explode(N.ITEM_CATEGORIES).alias("_category")).distinct()
        frames.append(categories.agg(F.count("*").alias(N.TOTAL_CATEGORIES)))
    totals = reduce(lambda left, right: left.crossJoin(F.broadcast(right)), frames)
    struct = F.struct(*(F.coalesce(F.col(name).cast("double"), F.lit(0.0)).alias(name) for name in names))
    return totals.select(struct.alias(C.TOTALS))


def to_owned(train: DataFrame) -> DataFrame:
    """Make one row per (user, item) of the training data."""
    return _to_pairs(train).select(C.USER_ID, C.ITEM_ID)


def _to_group_sizes(knowledge: FactSources) -> DataFrame:
    """Count the items of the catalogue in each group of popularity: one row; what is not in `train` is in the tail."""
    needs = frozenset({N.ITEM_POPULARITY_GROUP})
    of_train = _to_counted(require_input(knowledge.train), needs=needs, n_places=0)
    group = F.coalesce(N.ITEM_POPULARITY_GROUP, F.lit(float(BY_POPULARITY.index(TAIL))))
    sizes = (F.count_if(group == place).alias(name) for place, name in enumerate(N.GROUP_SIZES))
    return _to_known(knowledge).join(of_train, on=[C.ITEM_ID], how="left").agg(*sizes)


def _to_pairs(train: DataFrame) -> DataFrame:
    """Make one row per (user, item) with the number of interactions, partitioned by user."""
    return (
        train.select(C.USER_ID, C.ITEM_ID)
        .where(has_keys((C.USER_ID, C.ITEM_ID)))
        .repartition(C.USER_ID)
        .groupBy(C.USER_ID, C.ITEM_ID)
        .agg(F.count("*").alias(_N))
    )


def _to_counts(train: DataFrame) -> DataFrame:
    """Make one row per item of the training data: its interactions and its users."""
    return _to_pairs(train).groupBy(C.ITEM_ID).agg(F.sum(_N).alias(_N), F.count("*").alias(_USERS))


def _to_counted(train: DataFrame, *, needs: frozenset[str], n_places: int) -> DataFrame:
    """Make one row per item of the training data with the facts that follow from counts."""
    counts = _to_counts(train)
    if not needs.isdisjoint((N.ITEM_TAIL, N.ITEM_POPULARITY_GROUP, N.ITEM_LEVEL, N.ITEM_PLACE)):
        counts = _with_places(counts, n_places=n_places if N.ITEM_PLACE in needs else 0)
    if N.ITEM_QUANTILE in needs:
        counts = train_facts.with_quantiles(counts, users=_USERS)
    facts = {
        N.ITEM_INTERACTIONS: F.col(_N),
        N.ITEM_USERS: F.col(_USERS),
        N.ITEM_TAIL: F.when(F.col(_IS_TOP_FOUR_FIFTHS), 0).otherwise(1),
        N.ITEM_POPULARITY_GROUP: F.when(F.col(_IS_TOP_FIFTH), 0).when(F.col(_IS_TOP_FOUR_FIFTHS), 1).otherwise(2),
        N.ITEM_LEVEL: F.col(_LEVEL),
        N.ITEM_PLACE: F.col("_place"),
        N.ITEM_QUANTILE: F.col(N.ITEM_QUANTILE),
    }
    return counts.select(C.ITEM_ID, *(fact.cast("double").alias(name) for name, fact in facts.items() if name in needs))


def _with_places(counts: DataFrame, *, n_places: int) -> DataFrame:
    """Add ``_level``, ``_place`` (NULL where nothing depends on it) and the flags of :data:`_HEAD_FLAGS`.

    Items are not sorted in one place: their levels of popularity are, and there are few different counts. Only items of
    the levels in which a flag ends, and those that may be among the first ``n_places``, are ordered by their ids.
    """
    all_levels = Window.orderBy(F.desc(_N))
    above = all_levels.rowsBetween(Window.unboundedPreceding, -1)
    everything = all_levels.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    size = F.col("_n_at_level")
    levels = (
        counts.groupBy(_N)
        .agg(F.count("*").alias("_n_at_level"))
        .select(
            _N,
            size,
            F.row_number().over(all_levels).alias(_LEVEL),
            F.coalesce(F.sum(size).over(above), F.lit(0)).alias("_items_above"),
            F.coalesce(F.sum(size * F.col(_N)).over(above), F.lit(0)).alias("_interactions_above"),
            F.sum(size * F.col(_N)).over(everything).alias("_n_all"),
        )
    )
    items = counts.join(levels, on=[_N], how="inner")
    before_last = F.col("_interactions_above") + (size - 1) * F.col(_N)
    is_split = reduce(
        or_, (_is_within(F.col("_interactions_above"), n) & ~_is_within(before_last, n) for n in _HEAD_FLAGS.values())
    )
    needs_order = is_split | (F.col("_items_above") < n_places)
    place_at_level = F.row_number().over(Window.partitionBy(_N).orderBy(C.ITEM_ID))
    ordered = items.where(needs_order).withColumn("_at_level", place_at_level)
    others = items.where(~needs_order).withColumn("_at_level", F.lit(None).cast("int"))
    # Where a head does not end within the level, its first item decides for all of them.
    before = F.col("_interactions_above") + (F.coalesce("_at_level", F.lit(1)) - 1) * F.col(_N)
    return ordered.unionByName(others).select(
        *(C.ITEM_ID, _N, _USERS, _LEVEL),
        *(_is_within(before, n).alias(name) for name, n in _HEAD_FLAGS.items()),
        (F.col("_items_above") + F.col("_at_level")).alias("_place"),
    )


def _is_within(interactions_before: Column, fifths: int) -> Column:
    """Return True if the items before one do not yet hold so many fifths of all interactions; in whole numbers."""
    return interactions_before * 5 < F.col("_n_all") * fifths


def _to_catalogue(knowledge: FactSources, *, needs: Iterable[str]) -> DataFrame:
    """Make one row per item of the catalogue; an item that occurs twice fails the job: either row would be a guess."""
    items = require_input(knowledge.items).where(F.col(C.ITEM_ID).isNotNull())
    facts = {
        N.ITEM_AGE: lambda: F.datediff(F.lit(knowledge.evaluation_date), F.col(C.PUBLISHED_AT)).cast("double"),
        N.ITEM_CATEGORIES: lambda: F.array_sort(F.array_distinct(F.array_compact(F.col(C.CATEGORIES)))),
        N.ITEM_VECTORS: lambda: F.when(is_finite_vector(F.col(C.VECTOR)), F.col(C.VECTOR)),
    }
    row = F.struct(*(facts[name]().alias(name) for name in sorted(needs)))
    once = items.groupBy(C.ITEM_ID).agg(F.first(row).alias("_row"), F.count("*").alias("_n_rows"))
    what = F.concat(F.lit("item "), quoted(F.col(C.ITEM_ID)), F.lit(" twice in the catalogue"))
    failure = input_failure("items", what, expected="each item once", fix="keep one row an item in the catalogue")
    is_unique = F.when(F.col("_n_rows") > 1, failure.cast("boolean")).otherwise(F.lit(True))
    unique = once.where(is_unique).select(C.ITEM_ID, "_row.*")
    return _with_equal_lengths(unique) if N.ITEM_VECTORS in unique.columns else unique


def _with_equal_lengths(catalogue: DataFrame) -> DataFrame:
    """Fail the job where two items have vectors of different lengths: there is no angle between them."""
    length = F.struct(F.size(N.ITEM_VECTORS).alias("n"), C.ITEM_ID)
    of_item = F.when(F.col(N.ITEM_VECTORS).isNotNull(), length)
    lengths = catalogue.agg(F.min(of_item).alias("_shortest"), F.max(of_item).alias("_longest"))
    shown = [
        F.concat(F.col(f"{one}.n").cast("string"), F.lit(" numbers for "), quoted(F.col(f"{one}.{C.ITEM_ID}")))
        for one in ("_shortest", "_longest")
    ]
    what = F.concat(F.lit("vectors of two lengths, "), shown[0], F.lit(" and "), shown[1])
    failure = input_failure("items", what, expected="one length", fix="give each item a vector of one length")
    is_equal = F.when(F.col("_shortest.n") < F.col("_longest.n"), failure.cast("boolean")).otherwise(F.lit(True))
    return catalogue.crossJoin(F.broadcast(lengths)).where(is_equal).drop("_shortest", "_longest")


def require_input(frame: DataFrame | None) -> DataFrame:
    """Return an input that is needed; a ValueError where it is not there."""
    if frame is None:
        message = "an input is needed that is not there; requests are checked for that before they are planned"
        raise ValueError(message)
    return frame

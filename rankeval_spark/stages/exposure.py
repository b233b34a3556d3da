"""From ranked items to the rows of ``metrics`` of the measures that are functions of all lists together.

They have no value per user. What they are made of is small: for each group of lists (model, slice, cutoff) how many
items are in how many lists. These counts exist once with everyone and once without each of ``N_GROUPS`` groups of
users, from which the jackknife takes the spread. One pass counts (item, group of users); leaving a group out is then a
subtraction, and only for the items that the group was shown. Nothing that grows with users or items is collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import needs
from rankeval_spark.result_rows.exposure_rows import ExposureRows
from rankeval_spark.result_rows.histograms import COUNTS, EVERYONE, PAIR_SUMS
from rankeval_spark.result_rows.jackknife_rows import SLICE, JackknifeRows
from rankeval_spark.result_rows.metric_rows import ROW_TYPE, slice_names
from rankeval_spark.stages import jackknifed, segment
from rankeval_spark.stages.frames import with_columns
from rankeval_spark.stages.user_rows import IS_FIRST

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure

_PAIR_SUMS: Final = f"struct<{', '.join(f'{name}: double' for name in PAIR_SUMS)}>"
"""Type of the sums over pairs of lists."""


def to_rows(  # noqa: PLR0913 - what a row of metrics is made of
    ranked: DataFrame,
    *,
    measures: Sequence[Measure],
    segments: DataFrame | None,
    catalogue: DataFrame | None,
    absent: Mapping[str, str] = segment.ALL_UNKNOWN,
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
) -> DataFrame:
    """Make one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure, k).

    Over all users with a list, judged or not. A slice in which no user has a list has no row. A list that keeps the
    ranks of the log counts at a cutoff where it has an item at a rank up to it.

    Parameters
    ----------
    ranked : DataFrame
        Rows of ``UserRows.to_ranked_items``.
    measures : sequence of Measure
        Of kind ``exposure``.
    segments, absent
        Segment values of the users, as ``segment.with_segments`` takes them.
    catalogue : DataFrame or None
        ``item_id`` of all items, each as often as it comes; None where no measure needs it.
    slices : sequence of sequences of str
        Names of the segments of each slice; ``()`` is everyone.
    """
    ks = sorted({measure.k for measure in measures})
    lengths_at = sorted({measure.k for measure in measures if needs.LIST_LENGTHS in measure.needs})
    finisher = ExposureRows(tuple(measures), JackknifeRows(slice_names(slices), min_slice_size, confidence))
    return (
        ranked.transform(_to_places, ks=ks, lengths_at=lengths_at, segments=segments, absent=absent, slices=slices)
        .transform(_to_items, ks=ks, lengths_at=lengths_at)
        .transform(_with_catalogue, catalogue=catalogue)
        .transform(_to_histograms, ks=ks, lengths_at=lengths_at)
        .transform(_with_catalogue_size, catalogue=catalogue)
        .withColumn(C.MODEL_ID, F.col(C.MODEL_ID).cast("string"))
        .mapInArrow(finisher.finish, ROW_TYPE)
    )


def _to_places(  # noqa: PLR0913 - what a row of metrics is made of
    ranked: DataFrame,
    *,
    ks: Sequence[int],
    lengths_at: Sequence[int],
    segments: DataFrame | None,
    absent: Mapping[str, str],
    slices: Sequence[Sequence[str]],
) -> DataFrame:
    """Make a row per (recommended item, slice): its rank, the group of its user, and whether it opens a list.

    With the length of its list at the cutoffs ``lengths_at``.
    """
    names = tuple(dict.fromkeys(name for one in slices for name in one))
    cut = ranked if C.WHOLE_LIST in ks else ranked.where(F.col(C.RANK) <= max(ks))
    is_first = F.col(IS_FIRST)
    if C.LIST_ID in ranked.columns:
        of_user = Window.partitionBy(C.USER_ID, C.MODEL_ID).orderBy(C.RANK, C.LIST_ID)
        is_first = F.row_number().over(of_user) == 1
    key = [name for name in C.LIST_KEY if name in ranked.columns]
    whole = Window.partitionBy(*key).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    lengths = {_length(k): F.count_if(_is_within(k)).over(whole) for k in lengths_at}
    opens = {"_opens_list": F.col(IS_FIRST), "_opens_user": is_first}
    return (
        with_columns(cut, opens | lengths)
        .transform(segment.with_segments, segments=segments, names=names, absent=absent)
        .select(
            *(C.MODEL_ID, C.ITEM_ID, C.RANK, *opens, *lengths),
            jackknifed.user_group(),
            jackknifed.slices_of(slices).alias("_slice"),
        )
        .select("*", "_slice.*")
    )


def _to_items(places: DataFrame, *, ks: Sequence[int], lengths_at: Sequence[int]) -> DataFrame:
    """Count the lists that hold an item: one row per (model, slice, item), with the counts of each group of users.

    A group has an array ``_lengths`` of its lists by their lengths, where these are requested.
    """
    counts = [F.count_if(_is_within(k)).alias(_times(k)) for k in ks]
    opened = [
        F.count_if(F.col(flag) & _is_within(k)).alias(name(k))
        for k in ks
        for flag, name in (("_opens_list", _n_lists), ("_opens_user", _n_users))
    ]
    names = [name(k) for k in ks for name in (_times, _n_lists, _n_users)]
    key, lengths = (*SLICE, C.ITEM_ID), [*map(_length, lengths_at)]
    groups = places.groupBy(*key, "_group", *lengths).agg(*counts, *opened)
    if lengths:
        by_length = F.collect_list(F.struct(*lengths, *map(_times, lengths_at))).alias("_lengths")
        groups = groups.groupBy(*key, "_group").agg(by_length, *(F.sum(name).alias(name) for name in names))
    group = F.struct("_group", *names, *(["_lengths"] if lengths else []))
    items = groups.groupBy(*key).agg(F.collect_list(group).alias("_groups"), *(F.sum(n).alias(n) for n in names))
    if not lengths_at:  # no column at all is an error under Spark Connect
        return items
    by_k = with_columns(items, {_lists(k): _by_length(k) for k in lengths_at})
    return with_columns(by_k, {_pairs_at(k): _pair_sums(F.col(_lists(k))) for k in lengths_at})


def _by_length(k: int) -> Column:
    """Put the numbers of lists that hold an item of all groups together, those of the shortest lists first."""

    def of_group(group: Column) -> Column:
        def entry(lists: Column) -> Column:
            return F.struct(
                lists[_length(k)].cast("double").alias("length"),
                lists[_times(k)].cast("double").alias("times"),
                group["_group"].alias("group"),
            )

        return F.transform(F.filter(group["_lengths"], lambda lists: lists[_times(k)] > 0), entry)

    return F.array_sort(F.flatten(F.transform("_groups", of_group)))


def _pair_sums(lists: Column) -> Column:
    """Sum over the ordered pairs of lists, which come sorted by their lengths: a struct of the sums of PAIR_SUMS.

    A list has the shorter length of every pair with a later one, and the root of a product is that of each factor, so
    that one pass does. Nothing is subtracted: an item in one list adds exactly 0.
    """
    n_lists = F.aggregate(lists, F.lit(0.0), lambda total, one: total + one["times"])
    nothing = F.lit(0.0)
    start = F.struct(n_lists.alias("later"), nothing.alias("roots"), *(nothing.alias(name) for name in PAIR_SUMS))

    def add(sums: Column, one: Column) -> Column:
        later = sums["later"] - one["times"]
        of_one_length = one["times"] * (one["times"] - 1) / one["length"]
        root = one["times"] / F.sqrt(one["length"])
        return F.struct(
            later.alias("later"),
            (sums["roots"] + root).alias("roots"),
            (sums["shared"] + of_one_length + 2 * later * one["times"] / one["length"]).alias("shared"),
            (sums["cosine"] + of_one_length + 2 * root * sums["roots"]).alias("cosine"),
        )

    return F.aggregate(lists, start, add, lambda sums: F.struct(*(sums[name].alias(name) for name in PAIR_SUMS)))


def _is_within(k: int) -> Column:
    return F.lit(k == C.WHOLE_LIST) | (F.col(C.RANK) <= k)


def _times(k: int) -> str:
    return f"_times_{k}"


def _n_lists(k: int) -> str:
    return f"_n_lists_{k}"


def _n_users(k: int) -> str:
    return f"_n_users_{k}"


def _length(k: int) -> str:
    return f"_length_{k}"


def _lists(k: int) -> str:
    return f"_lists_{k}"


def _pairs_at(k: int) -> str:
    return f"_pairs_{k}"


def _with_catalogue(items: DataFrame, *, catalogue: DataFrame | None) -> DataFrame:
    """Add whether the catalogue holds each item; n:1 on the item."""
    if catalogue is None:
        return items.withColumn("_is_known", F.lit(None).cast("int"))
    known = catalogue.select(C.ITEM_ID).distinct().withColumn("_is_known", F.lit(1))
    return items.join(known, on=[C.ITEM_ID], how="left").withColumn("_is_known", F.coalesce("_is_known", F.lit(0)))


def _with_catalogue_size(histograms: DataFrame, *, catalogue: DataFrame | None) -> DataFrame:
    if catalogue is None:
        return histograms.withColumn("catalogue_size", F.lit(None).cast("double"))
    size = catalogue.agg(F.count_distinct(C.ITEM_ID).cast("double").alias("catalogue_size"))
    return histograms.crossJoin(F.broadcast(size))


def _to_histograms(items: DataFrame, *, ks: Sequence[int], lengths_at: Sequence[int]) -> DataFrame:
    """Count the items that are in so many lists: one row per (model, slice, k) with an array of entries.

    An entry (without, times, ...) says by how much the histogram without a group of users differs from everyone's.
    """
    entries = F.flatten(F.array(*(_entries(k, has_lengths=k in lengths_at) for k in ks)))
    pair_sums = {name: F.col("n_items") * F.col("_pairs")[name] for name in PAIR_SUMS}  # taken away with the item
    key = (*SLICE, C.K)
    per_times = (
        items.select(*SLICE, F.explode(entries).alias("_entry"))
        .select(*SLICE, "_entry.*")
        .where(F.col("times") > 0)
        .transform(with_columns, pair_sums)
        .groupBy(*key, "without", "times")
        .agg(*(F.sum(name).cast("double").alias(name) for name in COUNTS))
    )
    collected = F.collect_list(F.struct("without", "times", *COUNTS)).alias("_entries")
    return per_times.groupBy(*key).agg(collected)


def _entries(k: int, *, has_lengths: bool) -> Column:
    """Entries of one item at one cutoff: with everyone, and for each group that was shown it, without that group."""
    times, unknown = F.col(_times(k)), F.lit(None).cast(_PAIR_SUMS)
    pairs = F.col(_pairs_at(k)) if has_lengths else unknown

    def entry(without: Column, times: Column, n: int, **sums: Column) -> Column:
        return F.struct(
            F.lit(k).alias(C.K),
            without.alias("without"),
            times.alias("times"),
            F.lit(n).alias("n_items"),
            (F.col("_is_known") * n).alias("n_catalogued"),
            *(column.alias(name) for name, column in sums.items()),
        )

    def left_out(group: Column) -> Column:
        nothing = F.lit(0).cast("bigint")
        rest = _pair_sums(F.filter(_lists(k), lambda one: one["group"] != group["_group"])) if has_lengths else unknown
        return F.array(
            entry(
                group["_group"],
                times,
                -1,
                n_lists=-group[_n_lists(k)],
                n_users=-group[_n_users(k)],
                _pairs=pairs,
            ),
            entry(group["_group"], times - group[_times(k)], 1, n_lists=nothing, n_users=nothing, _pairs=rest),
        )

    of_all = entry(F.lit(EVERYONE), times, 1, n_lists=F.col(_n_lists(k)), n_users=F.col(_n_users(k)), _pairs=pairs)
    shown = F.filter(F.col("_groups"), lambda group: group[_times(k)] > 0)
    return F.concat(F.array(of_all), F.flatten(F.transform(shown, left_out)))

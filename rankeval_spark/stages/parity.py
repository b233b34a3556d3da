"""From ranked items to the rows of ``metrics`` of the measures that compare popular and rare items, or a category.

They need little of a list: how many items of each group of popularity it holds that count, and how many there could be;
or how many items of a category. Those are added up per (slice, group of users); everyone's sums less those of a group
are the sums without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures import needs as N
from rankeval_spark.measures.item_groups import BY_POPULARITY
from rankeval_spark.result_rows.jackknife_rows import GROUP, SLICE, JackknifeRows
from rankeval_spark.result_rows.metric_rows import ROW_TYPE, slice_names
from rankeval_spark.result_rows.parity_rows import ParityRows, is_disparity, n_sums
from rankeval_spark.stages import describe, disparity, jackknifed, segment
from rankeval_spark.stages.describe import Knowledge
from rankeval_spark.stages.user_rows import IS_LAST

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure

_GROUPS: Final = range(len(BY_POPULARITY))
_IS_OWN, _IS_KNOWN = "_is_own", "_is_known"


@dataclass(frozen=True)
class Offer:
    """What could be recommended.

    Attributes
    ----------
    judgements : DataFrame
        As of ``judgements.to_judgements``.
    train : DataFrame
        Rows of ``schemas.TRAIN``, of which popularity is taken, and what users have already.
    catalogue : DataFrame or None
        ``item_id`` of all items, each as often as it comes; None where no measure needs it.
    items : DataFrame, optional
        Rows of ``schemas.ITEMS``; there where a measure is about a category.
    """

    judgements: DataFrame
    train: DataFrame
    catalogue: DataFrame | None
    items: DataFrame | None = None


def to_rows(  # noqa: PLR0913 - what a row of metrics is made of
    ranked: DataFrame,
    *,
    measures: Sequence[Measure],
    offer: Offer,
    segments: DataFrame | None,
    absent: Mapping[str, str] = segment.ALL_UNKNOWN,
    slices: Sequence[Sequence[str]],
    min_slice_size: int,
    confidence: float,
) -> DataFrame:
    """Make one row of ``schemas.METRICS``, from the model on, per (model, slice, slice values, measure).

    Over all users with a list. A slice in which no user has a list has no row.

    Parameters
    ----------
    ranked : DataFrame
        Rows of ``UserRows.to_ranked_items``.
    measures : sequence of Measure
        Of kind ``parity``.
    segments, absent, slices
        As ``exposure.to_rows`` takes them.
    """
    names = tuple(dict.fromkeys(name for one in slices for name in one))
    finisher = ParityRows(tuple(measures), JackknifeRows(slice_names(slices), min_slice_size, confidence))
    return (
        ranked.transform(_to_users, measures=measures, offer=offer)
        .transform(_with_relevant, measures=measures, offer=offer)
        .transform(_with_available, offer=offer)
        .transform(disparity.with_profiles, measures=measures, knowledge=describe.Knowledge(offer.train, offer.items))
        .transform(segment.with_segments, segments=segments, names=names, absent=absent)
        .select(
            C.MODEL_ID,
            jackknifed.user_group(),
            "_n_lists",
            _sums(measures).alias("_sums"),
            jackknifed.slices_of(slices).alias("_slice"),
        )
        .transform(_to_slices, width=sum(map(n_sums, measures)))
        .withColumn(C.MODEL_ID, F.col(C.MODEL_ID).cast("string"))
        .mapInArrow(finisher.finish, ROW_TYPE)
    )


def _to_users(ranked: DataFrame, *, measures: Sequence[Measure], offer: Offer) -> DataFrame:
    """Count what the lists of a user hold: a row per (model, user) with ``_n_lists`` and the counts of each measure."""
    ks = [measure.k for measure in measures]
    is_read = F.lit(C.WHOLE_LIST in ks) | (F.col(C.RANK) <= max(ks)) | F.col(IS_LAST)
    by_group = [(index, measure) for index, measure in enumerate(measures) if not is_disparity(measure)]
    items = ranked.transform(_with_groups, offer=offer) if by_group else ranked
    taken = [
        F.count_if(_is_within(measure.k) & _counts(measure) & (F.col(N.ITEM_POPULARITY_GROUP) == group)).alias(name)
        for index, measure in by_group
        for group, name in zip(_GROUPS, _names("taken", index), strict=True)
    ]
    knowledge = describe.Knowledge(items=offer.items)
    return (
        items.where(is_read)
        .transform(disparity.with_categories, measures=measures, knowledge=knowledge)
        .groupBy(C.USER_ID, C.MODEL_ID)
        .agg(F.count_if(IS_LAST).alias("_n_lists"), *taken, *disparity.slot_counts(measures))
    )


def _with_groups(ranked: DataFrame, *, offer: Offer) -> DataFrame:
    """Add to ranked items what :func:`_counts` reads, and the group of popularity; n:1 on user and item."""
    items = ranked.transform(_with_group, offer=offer).transform(_with_own, train=offer.train)
    return items if offer.catalogue is None else items.join(_to_known(offer.catalogue), on=[C.ITEM_ID], how="left")


def _with_relevant(users: DataFrame, *, measures: Sequence[Measure], offer: Offer) -> DataFrame:
    """Count the relevant judgements of each user, except items that the user has already; n:1 on the user."""
    asked = [index for index, measure in enumerate(measures) if N.GROUP_RELEVANT in measure.needs]
    if not asked:
        return users
    judged = offer.judgements.transform(_with_group, offer=offer).transform(_with_own, train=offer.train)
    counts = [
        F.count_if(_counts(measures[index]) & (F.col(N.ITEM_POPULARITY_GROUP) == group)).alias(name)
        for index in asked
        for group, name in zip(_GROUPS, _names("relevant", index), strict=True)
    ]
    return users.join(judged.groupBy(C.USER_ID).agg(*counts), on=[C.USER_ID], how="left")


def _with_available(users: DataFrame, *, offer: Offer) -> DataFrame:
    """Add the sizes of the groups, and how many of their items each user has already; n:1 on the user."""
    if offer.catalogue is None:
        return users
    known = _to_known(offer.catalogue).transform(_with_group, offer=offer)
    own = describe.to_owned(offer.train).join(known, on=[C.ITEM_ID], how="inner")
    sizes, owned = (
        [F.count_if(F.col(N.ITEM_POPULARITY_GROUP) == group).alias(name) for group, name in enumerate(names)]
        for names in (_names("size"), _names("own"))
    )
    n_owned = own.groupBy(C.USER_ID).agg(*owned)
    return users.join(n_owned, on=[C.USER_ID], how="left").crossJoin(F.broadcast(known.agg(*sizes)))


def _sums(measures: Sequence[Measure]) -> Column:
    """Put the counts of a user into one array: of each measure what is taken, then what that is taken of."""

    def possible(index: int, measure: Measure) -> list[Column]:
        if N.GROUP_RELEVANT in measure.needs:
            return [F.coalesce(name, F.lit(0)) for name in _names("relevant", index)]
        pairs = zip(_names("size"), _names("own"), strict=True)
        return [F.col(size) - F.coalesce(own, F.lit(0)) for size, own in pairs]

    def sums(index: int, measure: Measure) -> list[Column]:
        if is_disparity(measure):
            return disparity.sums(index)
        in_lists = [count * F.col("_n_lists") for count in possible(index, measure)]
        return [*map(F.col, _names("taken", index)), *in_lists]

    return F.array(*(column for index, measure in enumerate(measures) for column in sums(index, measure)))


def _to_slices(users: DataFrame, *, width: int) -> DataFrame:
    """Add up: one row per (model, slice) with an array of its groups of users: how many, their lists and sums."""
    sums = F.array(*(F.sum(F.col("_sums")[place]) for place in range(width)))
    groups = users.select(C.MODEL_ID, GROUP, "_n_lists", "_sums", "_slice.*").groupBy(*SLICE, GROUP)
    entry = F.struct(GROUP, "n_users", C.N_LISTS, "_sums")
    return (
        groups.agg(F.count("*").alias("n_users"), F.sum("_n_lists").alias(C.N_LISTS), sums.alias("_sums"))
        .groupBy(*SLICE)
        .agg(F.collect_list(entry).alias("_entries"))
    )


def _with_group(items: DataFrame, *, offer: Offer) -> DataFrame:
    """Add the group of popularity of each item, that of the tail where it is not in the training data; n:1."""
    groups = describe.to_popularity_groups(Knowledge(offer.train))
    tail = F.lit(_GROUPS[-1]).cast("double")
    return items.join(groups, on=[C.ITEM_ID], how="left").withColumn(
        N.ITEM_POPULARITY_GROUP, F.coalesce(N.ITEM_POPULARITY_GROUP, tail)
    )


def _with_own(items: DataFrame, *, train: DataFrame) -> DataFrame:
    """Add whether the user has the item in the training data; n:1 on (user, item)."""
    own = describe.to_owned(train).withColumn(_IS_OWN, F.lit(True))
    return items.join(own, on=[C.USER_ID, C.ITEM_ID], how="left").withColumn(_IS_OWN, F.coalesce(_IS_OWN, F.lit(False)))


def _to_known(catalogue: DataFrame) -> DataFrame:
    return catalogue.select(C.ITEM_ID).where(F.col(C.ITEM_ID).isNotNull()).distinct().withColumn(_IS_KNOWN, F.lit(True))


def _counts(measure: Measure) -> Column:
    """Return True if an item counts: relevant, or of the catalogue, and not one that the user has already."""
    is_possible = (
        F.col(C.GAIN) >= F.lit(measure.options["rel"]) if N.GROUP_RELEVANT in measure.needs else F.col(_IS_KNOWN)
    )
    return F.coalesce(is_possible, F.lit(False)) & ~F.col(_IS_OWN)


def _is_within(k: int) -> Column:
    return F.lit(k == C.WHOLE_LIST) | (F.col(C.RANK) <= k)


def _names(kind: str, index: int = 0) -> list[str]:
    """Name the columns of a count, one for each group of popularity."""
    return [f"_{kind}_{index}_{group}" for group in BY_POPULARITY]

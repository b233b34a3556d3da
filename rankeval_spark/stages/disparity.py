"""Count, per user, the items of a category: among those recommended to the user, and in the training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.result_rows.parity_rows import is_disparity
from rankeval_spark.stages import describe

if TYPE_CHECKING:
    from rankeval_spark.measures import Measure
    from rankeval_spark.stages.describe import Knowledge

_N_OWN: Final = "_n_own"


def with_categories(items: DataFrame, *, measures: Sequence[Measure], knowledge: Knowledge) -> DataFrame:
    """Add the ``categories`` of items that have a requested one; n:1, and unchanged where none is requested."""
    asked = sorted({str(measure.options["category"]) for measure in measures if is_disparity(measure)})
    if not asked:
        return items
    is_asked = F.arrays_overlap(C.CATEGORIES, F.array(*map(F.lit, asked)))
    return items.join(describe.to_categories(knowledge).where(is_asked), on=[C.ITEM_ID], how="left")


def slot_counts(measures: Sequence[Measure]) -> list[Column]:
    """Count recommended items of a group of rows, of the category and all."""
    return [
        count.alias(name)
        for index, measure in _disparities(measures)
        for count, name in (
            (F.count_if(_is_within(measure.k) & _has_category(measure)), _name("slots_of", index)),
            (F.count_if(_is_within(measure.k)), _name("slots", index)),
        )
    ]


def with_profiles(users: DataFrame, *, measures: Sequence[Measure], knowledge: Knowledge) -> DataFrame:
    """Count the distinct items of each user in the training data, of each category and all; n:1 on the user."""
    counts = [F.count_if(_has_category(one)).alias(_name("own_of", index)) for index, one in _disparities(measures)]
    if not counts or knowledge.train is None:
        return users
    own = describe.to_owned(knowledge.train).transform(with_categories, measures=measures, knowledge=knowledge)
    profiles = own.groupBy(C.USER_ID).agg(F.count("*").alias(_N_OWN), *counts)
    return users.join(profiles, on=[C.USER_ID], how="left")


def sums(index: int) -> list[Column]:
    """List the counts of a user for the measure at a place, ``N_DISPARITY_SUMS`` of them."""
    names = (_name("slots_of", index), _name("own_of", index), _name("slots", index), _N_OWN)
    return [F.coalesce(name, F.lit(0)) for name in names]


def _disparities(measures: Sequence[Measure]) -> list[tuple[int, Measure]]:
    return [(index, measure) for index, measure in enumerate(measures) if is_disparity(measure)]


def _has_category(measure: Measure) -> Column:
    return F.coalesce(F.array_contains(C.CATEGORIES, measure.options["category"]), F.lit(False))


def _is_within(k: int) -> Column:
    return F.lit(k == C.WHOLE_LIST) | (F.col(C.RANK) <= k)


def _name(kind: str, index: int) -> str:
    return f"_{kind}_{index}"

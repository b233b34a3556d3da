"""Add the item groups of each judgement, for measures that are restricted to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, functions as F

from rankeval_spark import columns as C
from rankeval_spark.measures.item_groups import BY_POPULARITY, TAIL
from rankeval_spark.measures.needs import ITEM_POPULARITY_GROUP
from rankeval_spark.stages import describe

if TYPE_CHECKING:
    from rankeval_spark.stages.describe import Knowledge


def with_groups(held_out: DataFrame, *, knowledge: Knowledge, groups: Sequence[str]) -> DataFrame:
    """Add the column ``_groups``: bit i is set where the item belongs to the i-th group; no column without any group.

    Rows are neither added nor lost: items join n:1 to the judgements, the smaller side, before these are partitioned
    by user. An item that the training data do not have is of the tail; one that the catalogue does not have is of no
    category.
    """
    if not groups:
        return held_out
    bits = {name: 1 << place for place, name in enumerate(groups)}
    by_popularity = {name: bit for name, bit in bits.items() if name in BY_POPULARITY}
    by_category = {name: bit for name, bit in bits.items() if name not in BY_POPULARITY}
    grouped, parts = held_out, []
    if by_popularity:
        grouped = grouped.join(_to_popularity_bits(knowledge, by_popularity), on=[C.ITEM_ID], how="left")
        parts.append(F.coalesce("_by_popularity", _bit(bits.get(TAIL, 0))))
    if by_category:
        grouped = grouped.join(_to_category_bits(knowledge, by_category), on=[C.ITEM_ID], how="left")
        parts.append(F.coalesce("_by_category", _bit(0)))
    return grouped.select(*held_out.columns, _together(parts).alias(C.GROUPS))


def _to_popularity_bits(knowledge: Knowledge, bits: Mapping[str, int]) -> DataFrame:
    """Make one row per item of the training data."""
    own = {name: F.col(ITEM_POPULARITY_GROUP) == BY_POPULARITY.index(name) for name in bits}
    chosen = _together([F.when(own[name], _bit(bit)).otherwise(_bit(0)) for name, bit in bits.items()])
    return describe.to_popularity_groups(knowledge).select(C.ITEM_ID, chosen.alias("_by_popularity"))


def _to_category_bits(knowledge: Knowledge, bits: Mapping[str, int]) -> DataFrame:
    """Make one row per item of the catalogue."""
    has = {name: F.coalesce(F.array_contains(C.CATEGORIES, name), F.lit(False)) for name in bits}
    chosen = _together([F.when(has[name], _bit(bit)).otherwise(_bit(0)) for name, bit in bits.items()])
    return describe.to_categories(knowledge).select(C.ITEM_ID, chosen.alias("_by_category"))


def _bit(number: int) -> Column:
    return F.lit(number).cast("bigint")


def _together(parts: Sequence[Column]) -> Column:
    return reduce(lambda left, right: left.bitwiseOR(right), parts)

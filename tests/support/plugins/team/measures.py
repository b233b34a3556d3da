"""Measures that a night finds by ``plugins: [team.measures]``."""

from __future__ import annotations

import math

from rankeval_spark import measure
from rankeval_spark.measures import CutLists, Definition, FloatMatrix

BASE = 0.5


@measure(undefined="no hit", better="lower", bounds=(1, math.inf), without_relevant=100, version="1")
def first_rank(ranks: list[int]) -> float | None:
    """Rank of the first relevant item."""
    return ranks[0] if ranks else None


@measure(bounds=(0, 1))
def halved(ranks: list[int], *, base: float = BASE) -> float:
    """Sum of 2 to the power of minus the rank, over the relevant items."""
    return sum(base**rank for rank in ranks)


@Definition(name="HalvedOfAll", formula="sum of 2 ** -rank over the hits", source="a test")
def halved_of_all(cut: CutLists) -> FloatMatrix:
    """Sum of 2 to the power of minus the rank, of all lists at once."""
    return cut.sum_hits(cut.lists.relevance(1).is_relevant * BASE**cut.lists.hit_rank)

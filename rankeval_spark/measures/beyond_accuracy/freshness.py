"""How old the recommended items are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import required_facts
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.definition import NEVER_FILLED, Definition, only_with
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Above, Meaning
from rankeval_spark.measures.shared_options import Unknown

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import BoolVector, FloatVector

_MONTH: Final = 30


@Definition(
    name="Freshness",
    formula="(1 / m) sum_{i<=m} age(i), in days at the evaluation date",
    bounds=(-math.inf, math.inf),
    undefined="the user has no list, or the day of an item is unknown (with unknown='drop': of every item)",
    source="measure sheet of this project, after Vargas & Castells (2011) and Chou et al. (2015)",
    rules=(only_with("days", _MONTH, "stat", "share"),),
    needs=(required_facts.ITEM_AGE,),
    better=lambda stat, **_: "higher" if stat == "share" else "lower",
    aggregation=NEVER_FILLED,
)
def freshness(
    cut: CutLists,
    *,
    days: Annotated[float, Above(0), Meaning("For stat='share': items younger than this count.")] = _MONTH,
    stat: Annotated[
        Literal["mean", "median", "share"],
        Meaning("Mean age; median age; share of items that are younger than `days`, of which high is fresh."),
    ] = "mean",
    unknown: Unknown = "null",
) -> FloatMatrix:
    """Age of the recommended items on the evaluation date, in days since they were published; low is fresh.

    ``(1 / m) sum_{i<=m} (evaluation date - day of publication of i)``: days, below 0 for what is published after the
    evaluation date; or a share in [0, 1]. NaN without a list.

    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> freshness(Lists.of([Ranking([None, None], items=[Item(age=1), Item(age=4)])]).cut([1, 2]))
    array([[1. , 2.5]])
    """
    ages = cut.lists.known_items.values[required_facts.ITEM_AGE]
    is_known = ~np.isnan(ages)
    n_known = cut.sum_items(is_known.astype(np.float64))
    if stat == "median":
        values = _medians(cut, ages, is_known)
    else:
        known = np.where(is_known, ages, 0.0) if stat == "mean" else (ages < days).astype(np.float64)
        values = quotient(cut.sum_items(known), n_known)
    return values if unknown == "drop" else np.where(n_known == cut.n_items, values, np.nan)


def _medians(cut: CutLists, ages: FloatVector, is_known: BoolVector) -> FloatMatrix:
    """Sort the ages of each list once a cutoff and take the middle one, or the mean of the two in the middle."""
    facts, n_lists = cut.lists.known_items, cut.lists.n_lists
    medians = np.full((n_lists, cut.k.size), np.nan)
    for column, k in enumerate(cut.k[0]):
        kept = np.flatnonzero(is_known & (facts.item_rank <= k))
        owner = facts.item_list[kept]
        ordered = ages[kept][np.lexsort((ages[kept], owner))]
        counts = np.bincount(owner, minlength=n_lists)
        has_any = counts > 0
        first, n_items = (np.cumsum(counts) - counts)[has_any], counts[has_any]
        medians[has_any, column] = (ordered[first + (n_items - 1) // 2] + ordered[first + n_items // 2]) / 2
    return medians

"""How old the recommended items are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np

from rankeval_spark.measures import needs
from rankeval_spark.measures.arrays import FloatMatrix, quotient
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.items import Item
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above
from rankeval_spark.measures.registry import Definition, Rule

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

_MONTH: Final = 30
_THREE = Ranking([None, 1, None], items=(Item(age=10), Item(age=2), Item(age=60)))
_UNDATED = Ranking([None, None], items=(Item(age=4), Item()))


@Definition(
    name="Freshness",
    takes_group=False,
    formula="(1 / m) sum_{i<=m} age(i), in days at the evaluation date",
    bounds=(-math.inf, math.inf),
    undefined="the user has no list, or the day of an item is unknown (with unknown='drop': of every item)",
    source="measure sheet of this project, after Vargas & Castells (2011) and Chou et al. (2015)",
    goldens=(
        Golden("Freshness@2", (_THREE,), ("(10 + 2) / 2",)),
        Golden("Freshness(stat='median')", (_THREE,), ("10",)),
        Golden("Freshness(stat='median')@2", (_THREE,), ("(10 + 2) / 2",)),
        Golden("Freshness(stat='share')", (_THREE,), ("2/3",), note="published less than 30 days ago"),
        Golden("Freshness(days=10,stat='share')", (_THREE,), ("1/3",), note="an age of 10 days is not below 10"),
        Golden("Freshness", (_UNDATED, Ranking([], missed=[1])), (UNDEFINED, UNDEFINED)),
        Golden("Freshness(unknown='drop')", (_UNDATED,), ("4",)),
    ),
    rules=(
        Rule("days only with stat='share'", lambda options: options["days"] != _MONTH and options["stat"] != "share"),
    ),
    needs=(needs.ITEM_AGE,),
    without_relevant=lambda **_: math.nan,
)
def freshness(
    cut: CutLists,
    *,
    days: Annotated[float, Above(0)] = _MONTH,
    stat: Literal["mean", "median", "share"] = "mean",
    unknown: Literal["null", "drop"] = "null",
) -> FloatMatrix:
    """Age of the recommended items on the evaluation date, in days since they were published; low is fresh.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    days : float
        For ``stat='share'``: items younger than this count.
    stat : {"mean", "median", "share"}
        Mean age; median age; share of items that are younger than ``days``, of which high is fresh.
    unknown : {"null", "drop"}
        What an item without a day of publication does: the list has no value; it counts as if it were not in the list.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        Days, below 0 for what is published after the evaluation date; or a share in [0, 1]. NaN without a list.

    Notes
    -----
    ``(1 / m) sum_{i<=m} (evaluation date - day of publication of i)``.

    Examples
    --------
    >>> from rankeval_spark.measures import Item, Lists, Ranking
    >>> freshness(Lists.of([Ranking([None, None], items=[Item(age=1), Item(age=4)])]).cut([1, 2]))
    array([[1. , 2.5]])
    """
    ages = cut.lists.known_items.values[needs.ITEM_AGE]
    is_known = ~np.isnan(ages)
    n_known = cut.sum_items(is_known.astype(np.float64))
    if stat == "median":
        values = _medians(cut, ages, is_known)
    else:
        known = np.where(is_known, ages, 0.0) if stat == "mean" else (ages < days).astype(np.float64)
        values = quotient(cut.sum_items(known), n_known)
    return values if unknown == "drop" else np.where(n_known == cut.sum_items(np.ones(len(ages))), values, np.nan)


def _medians(cut: CutLists, ages: FloatVector, is_known: np.ndarray) -> FloatMatrix:
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

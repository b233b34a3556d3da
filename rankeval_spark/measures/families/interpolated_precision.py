"""The curve of precision against recall: interpolated precision, its mean and area, and how far a list can reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, max_by_list, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Between, Level
from rankeval_spark.measures.registry import Cutoff, Definition, Rule

if TYPE_CHECKING:
    from rankeval_spark.measures.lists import Lists

Need: TypeAlias = Literal["ceil", "v9", "v10"]
"""How many relevant items a level of recall needs, where recall times R is not a whole number."""

LEVELS: Final = tuple(tenths / 10 for tenths in range(11))
"""The levels of recall of the 11-point curve."""

Levels: TypeAlias = Annotated[float, Between(2, 1001)]
"""Number of levels of recall, evenly spaced from 0 to 1."""

_WHOLE_LEVELS: Final = Rule(
    "levels a whole number", lambda options: isinstance(options["levels"], float) and options["levels"] % 1 != 0
)
_NO_RELEVANT = "no relevant judgement (R = 0)"
_LIST_A = Ranking([None, 1, 1])
_TWO_OF_THREE = Ranking([1, None, 1], missed=[1])
_TWO_OF_FOUR = Ranking([None, 1, 1, None], missed=[1, 1])
_NOTHING_RELEVANT = Ranking([0, None], missed=[0])


def recall_ceiling_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Relevant items that the list has places for, and all of them."""
    n_relevant = cut.n_relevant(rel)
    return np.minimum(n_relevant, cut.n_items), n_relevant


@Definition(
    name="IPrec",
    formula="max {h_i / i : h_i >= need} with need = ceil(recall R); 0 where the list never reaches it",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8; need='v9' and 'v10' "
    "as iprec_at_recall of trec_eval 9 and 10",
    aliases={"iprec_at_recall": {}, "InterpolatedPrecision": {}},
    cutoff=Cutoff("forbidden"),
    always_printed=("recall",),
    after_at="recall",
    goldens=(
        *(Golden(f"IPrec(recall={level:g})", (_LIST_A,), ("2/3",)) for level in LEVELS),
        Golden("IPrec(recall=0.7)", (_TWO_OF_THREE,), ("0",), note="2.1 of 3 items: 3 are needed, 2 are there"),
        Golden("IPrec(need='v9',recall=0.7)", (_TWO_OF_THREE,), ("2/3",), note="in doubles int(2.1 + 0.9) is 2"),
        Golden("IPrec(recall=0.6)", (_TWO_OF_FOUR,), ("0",), note="2.4 of 4 items: 3 are needed"),
        Golden("IPrec(need='v10',recall=0.6)", (_TWO_OF_FOUR,), ("2/3",), note="rounded to 2"),
        Golden("IPrec(recall=0.1)", (_NOTHING_RELEVANT,), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def interpolated_precision(
    cut: CutLists, *, need: Need = "ceil", recall: Annotated[float, Between(0, 1)] = 0.1, rel: Level = 1
) -> FloatMatrix:
    """Highest precision at any rank where recall has reached a level.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    need : {"ceil", "v9", "v10"}
        How many relevant items the level needs: the smallest whole number that is at least recall times R;
        ``int(recall R + 0.9)`` in doubles, as trec_eval 9; recall times R rounded to the nearest, halves up, as
        trec_eval 10.
    recall : float
        The level, from 0 to 1, taken as the decimal that is written; always printed. ``IPrec@0.1`` and trec_eval's
        ``iprec_at_recall_0.10`` are read as recall = 0.1.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; 0 where the list does not reach the level; NaN where the user has no relevant judgement.

    Notes
    -----
    ``max {h_i / i : h_i >= need}``; at recall 0 nothing is needed, so the value is the highest precision of all.
    Precision falls from one hit to the next, so only ranks of hits are looked at. ``ceil`` is computed in whole
    numbers: in doubles 0.1 * 3 * 10 is above 3. ``v9`` needs 2 of R = 3 items at 0.7 where ``ceil`` needs 3; ``v10``
    lets 2 of R = 4 meet a recall of 0.6.

    Examples
    --------
    Hits at ranks 2 and 3 and one relevant item that is missing: recall 2/3 is reached with precision 2/3.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> cut = Lists.of([Ranking([None, 1, 1], missed=[1])]).cut([0])
    >>> interpolated_precision(cut, recall=0.6), interpolated_precision(cut, recall=0.7)
    (array([[0.66666667]]), array([[0.]]))
    """
    level = Fraction(str(recall))  # the decimal that is written
    return where_defined(_precision_from(cut.lists, level, need, rel), cut.n_relevant(rel) > 0)


@Definition(
    name="IPrecAvg",
    formula="(1 / 11) sum of IPrec at recall 0, 0.1, ..., 1; with levels=n at 0, 1/(n-1), ..., 1",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval 11pt_avg",
    aliases={"11pt_avg": {}, "11PtAvg": {}},
    cutoff=Cutoff("forbidden"),
    rules=(_WHOLE_LEVELS,),
    goldens=(
        Golden("IPrecAvg", (_LIST_A,), ("2/3",), note="2/3 at every level"),
        Golden("IPrecAvg", (_TWO_OF_THREE,), ("(4 * 1 + 3 * 2/3 + 4 * 0) / 11",), note="1 item to 0.3, 2 to 0.6"),
        Golden("IPrecAvg(levels=4)", (_TWO_OF_THREE,), ("(1 + 1 + 2/3 + 0) / 4",), note="at 0, 1/3, 2/3 and 1"),
        Golden("IPrecAvg(need='v9')", (_TWO_OF_THREE,), ("(4 * 1 + 4 * 2/3 + 3 * 0) / 11",), note="2 items to 0.7"),
        Golden(
            "IPrecAvg(need='v10')", (_TWO_OF_THREE,), ("(5 * 1 + 4 * 2/3 + 2 * 0) / 11",), note="1 to 0.4, 2 to 0.8"
        ),
    ),
)
def mean_interpolated_precision(
    cut: CutLists, *, levels: Levels = 11, need: Need = "ceil", rel: Level = 1
) -> FloatMatrix:
    """Mean of the 11-point curve: interpolated precision at recall 0, 0.1, ..., 1.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    levels : float
        Number of levels, a whole one: 0, 1 / (levels - 1), ..., 1.
    need : {"ceil", "v9", "v10"}
        How many relevant items a level needs; as for IPrec.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``(1 / 11) sum_{j=0..10} IPrec(recall=j/10)``. The curve of several users is the mean of their curves at each
    level, IPrec@0 to IPrec@1, not the curve of their pooled hits. A list of n items reaches no recall above
    RecallCeiling, and all levels beyond it are 0.

    Examples
    --------
    Hits at ranks 1 and 3; R = 3: precision 1 up to recall 0.3, 2/3 up to 0.6, then 0.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> mean_interpolated_precision(Lists.of([Ranking([1, None, 1], missed=[1])]).cut([0]))
    array([[0.54545455]])
    """
    mean = _curve(cut.lists, int(levels), need, rel).mean(axis=1, keepdims=True)
    return where_defined(mean, cut.n_relevant(rel) > 0)


@Definition(
    name="IPrecArea",
    formula="sum_{j=1..10} (IPrec(recall=(j-1)/10) + IPrec(recall=j/10)) / 20; with levels=n in n - 1 strips",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trapezoid rule on the levels of trec_eval's 11-point curve",
    cutoff=Cutoff("forbidden"),
    rules=(_WHOLE_LEVELS,),
    goldens=(
        Golden("IPrecArea", (_LIST_A,), ("2/3",), note="2/3 at every level"),
        Golden("IPrecArea", (_TWO_OF_THREE,), ("(1/2 + 3 * 1 + 3 * 2/3 + 3 * 0 + 0/2) / 10",), note="ends count half"),
        Golden("IPrecArea(levels=4)", (_TWO_OF_THREE,), ("(1/2 + 1 + 2/3 + 0/2) / 3",), note="three strips"),
        Golden("IPrecArea(need='v9')", (_TWO_OF_THREE,), ("(1/2 + 3 * 1 + 4 * 2/3) / 10",)),
        Golden("IPrecArea(need='v10')", (_TWO_OF_THREE,), ("(1/2 + 4 * 1 + 4 * 2/3) / 10",)),
    ),
)
def interpolated_precision_area(
    cut: CutLists, *, levels: Levels = 11, need: Need = "ceil", rel: Level = 1
) -> FloatMatrix:
    """Area under the 11-point curve of interpolated precision, by the trapezoid rule.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    levels : float
        Number of levels, a whole one: 0, 1 / (levels - 1), ..., 1.
    need : {"ceil", "v9", "v10"}
        How many relevant items a level needs; as for IPrec.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    The levels 0, 0.1, ..., 1 cut the curve into ten strips; each has the width 1/10 and the mean height of its two
    ends. So the first and the last level count half of the others.

    Examples
    --------
    Precision 1 up to recall 0.3, 2/3 up to 0.6, then 0: (1/2 + 3 + 3 * 2/3) / 10.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> interpolated_precision_area(Lists.of([Ranking([1, None, 1], missed=[1])]).cut([0]))
    array([[0.55]])
    """
    curve = _curve(cut.lists, int(levels), need, rel)
    strips = (curve[:, :-1] + curve[:, 1:]) / 2
    return where_defined(strips.mean(axis=1, keepdims=True), cut.n_relevant(rel) > 0)


@Definition(
    name="RecallCeiling",
    formula="min(R, k, n) / R",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="R@k of the best list of the same length",
    parts=recall_ceiling_parts,
    cutoff=Cutoff("optional"),
    bounded_by_gains=True,
    goldens=(
        Golden("RecallCeiling@2", (_TWO_OF_THREE,), ("2/3",), note="two places for three items"),
        Golden("RecallCeiling", (_TWO_OF_THREE, _TWO_OF_FOUR), ("3/3", "4/4"), note="whatever stands in the list"),
        Golden("RecallCeiling(agg='micro')@1", (_TWO_OF_THREE, Ranking([1])), ("1/3", "1"), mean="(1 + 1) / (3 + 1)"),
        Golden("RecallCeiling(judged_only=True)", (_TWO_OF_THREE,), ("2/3",), note="two judged items for three"),
        Golden("RecallCeiling@10", (Ranking([None], missed=[1] * 4),), ("1/4",), note="the list ends at rank 1"),
    ),
)
def recall_ceiling(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Highest recall that a list of this length could have reached.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a list; NaN where the user has no relevant judgement.

    Notes
    -----
    ``min(R, m) / R`` with m items at ranks 1..k. Publish it with a curve: where the mean is low, high levels of recall
    are out of reach for short lists, and precision there says nothing about the model's order.

    Examples
    --------
    A list of 2 and R = 4:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> recall_ceiling(Lists.of([Ranking([None, 1], missed=[1, 1, 1])]).cut([1, 5, 0]))
    array([[0.25, 0.5 , 0.5 ]])
    """
    within_reach, n_relevant = recall_ceiling_parts(cut, rel=rel)
    return where_defined(ratio(within_reach, n_relevant), n_relevant > 0)


def _curve(lists: Lists, n_levels: int, need: Need, rel: float) -> FloatMatrix:
    """Interpolated precision at levels evenly spaced from 0 to 1: shape (n_lists, n_levels)."""
    levels = [Fraction(step, n_levels - 1) for step in range(n_levels)]
    return lists.once(
        ("curve", n_levels, need, rel),
        lambda: np.hstack([_precision_from(lists, level, need, rel) for level in levels]),
    )


def _precision_from(lists: Lists, level: Fraction, need: Need, rel: float) -> FloatMatrix:
    """Highest precision from the rank on where recall reaches a level; 0 where it never does: shape (n_lists, 1)."""
    relevance = lists.relevance(rel)
    needed = _needed(level, relevance.n_relevant, need)
    has_reached = relevance.n_above >= needed[lists.hit_list, 0]
    precision = relevance.n_above / lists.hit_rank
    return max_by_list(lists.hit_list[has_reached], precision[has_reached], n_lists=lists.n_lists)[:, None]


def _needed(level: Fraction, n_relevant: FloatMatrix, need: Need) -> FloatMatrix:
    """Relevant items that a level needs; computed once for each number there is, because exact numbers are slow."""
    distinct, place = np.unique(n_relevant[:, 0], return_inverse=True)
    needs = np.array([_NEEDS[need](level, int(number)) for number in distinct], dtype=np.float64)
    return needs[place][:, None]


def _rounded_half_up(number: float) -> int:
    """Round to the nearest; adding a half first would lift the number just below one half."""
    return math.floor(number) + (number - math.floor(number) >= 1 / 2)


_NEEDS: Final[Mapping[Need, Callable[[Fraction, int], int]]] = {
    "ceil": lambda level, n_relevant: math.ceil(level * n_relevant),
    "v9": lambda level, n_relevant: int(float(level) * n_relevant + 0.9),
    "v10": lambda level, n_relevant: _rounded_half_up(float(level) * n_relevant),
}

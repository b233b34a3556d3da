"""The curve of precision against recall, and the part of the ROC curve that a list can show."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures import required_facts as N
from rankeval_spark.measures.arrays import (
    FloatMatrix,
    FloatVector,
    Ratio,
    divide_or_zero,
    find_in_lists,
    max_by_list,
    nan_unless,
    running_count_by_list,
)
from rankeval_spark.measures.definition import NO_RELEVANT, Cutoff, Definition, OptionRule
from rankeval_spark.measures.lists import CutLists, Lists, memoised
from rankeval_spark.measures.options import Between, Level

LEVELS: Final = tuple(tenths / 10 for tenths in range(11))  # the levels of recall of the 11-point curve

NeededItems: TypeAlias = Annotated[
    Literal["ceil", "v9", "v10"],
    "Relevant items that a level of recall needs: the smallest whole number that is at least recall times R; "
    "int(recall R + 0.9) in doubles, as trec_eval 9; recall times R rounded to the nearest, halves up, as "
    "trec_eval 10.",
]

RecallLevels: TypeAlias = Annotated[
    float, Between(2, 1001), "Number of levels of recall, a whole one: 0, 1 / (levels - 1), ..., 1."
]

_WHOLE_LEVELS: Final = OptionRule(
    "levels a whole number", lambda options: isinstance(options["levels"], float) and options["levels"] % 1 != 0
)


@Definition(
    name="IPrec",
    words="interpolated precision, precision at a recall level, precision-recall curve, IPrecCurve",
    aliases={"iprec_at_recall": {}, "InterpolatedPrecision": {}},
    formula="max {h_i / i : h_i >= need} with need = ceil(recall R); 0 where the list never reaches it",
    source="Manning, Raghavan & Schütze (2008), Introduction to Information Retrieval, chapter 8; need='v9' and 'v10' "
    "as iprec_at_recall of trec_eval 9 and 10",
    cutoff=Cutoff("forbidden"),
    always_printed=("recall",),
    after_at="recall",
)
def interpolated_precision(
    cut: CutLists,
    *,
    need: NeededItems = "ceil",
    recall: Annotated[
        float,
        Between(0, 1),
        "The level, from 0 to 1, taken as the decimal that is written; always printed. `IPrec@0.1` and trec_eval's "
        "`iprec_at_recall_0.10` are read as recall = 0.1.",
    ] = 0.1,
    rel: Level = 1,
) -> FloatMatrix:
    """Highest precision at any rank where recall has reached a level.

    Hits at ranks 2 and 3 of R = 3 reach recall 2/3 with precision 2/3.

    >>> cut = Lists.of([Ranking([None, 1, 1], missed=[1])]).cut([0])
    >>> interpolated_precision(cut, recall=0.6), interpolated_precision(cut, recall=0.7)
    (array([[0.66666667]]), array([[0.]]))
    """
    level = Fraction(str(recall))  # the decimal that is written
    return nan_unless(_max_precision_from(cut.lists, level, need, rel), cut.n_relevant(rel) > 0)


@Definition(
    name="IPrecAvg",
    words="11-point interpolated average precision, eleven-point average precision",
    aliases={"11pt_avg": {}, "11PtAvg": {}},
    formula="(1 / 11) sum of IPrec at recall 0, 0.1, ..., 1; with levels=n at 0, 1/(n-1), ..., 1",
    source="trec_eval 11pt_avg",
    cutoff=Cutoff("forbidden"),
    rules=(_WHOLE_LEVELS,),
)
def mean_interpolated_precision(
    cut: CutLists, *, levels: RecallLevels = 11, need: NeededItems = "ceil", rel: Level = 1
) -> FloatMatrix:
    """Mean of the 11-point curve: interpolated precision at recall 0, 0.1, ..., 1.

    With hits at ranks 1 and 3 of R = 3 precision is 1 up to recall 0.3, 2/3 up to 0.6, then 0.

    >>> mean_interpolated_precision(Lists.of([Ranking([1, None, 1], missed=[1])]).cut([0]))
    array([[0.54545455]])
    """
    mean = _precision_curve(cut.lists, int(levels), need, rel).mean(axis=1, keepdims=True)
    return nan_unless(mean, cut.n_relevant(rel) > 0)


@Definition(
    name="IPrecArea",
    words="area under the interpolated precision-recall curve",
    formula="sum_{j=1..10} (IPrec(recall=(j-1)/10) + IPrec(recall=j/10)) / 20; with levels=n in n - 1 strips",
    source="trapezoid rule on the levels of trec_eval's 11-point curve",
    cutoff=Cutoff("forbidden"),
    rules=(_WHOLE_LEVELS,),
)
def interpolated_precision_area(
    cut: CutLists, *, levels: RecallLevels = 11, need: NeededItems = "ceil", rel: Level = 1
) -> FloatMatrix:
    """Area under the 11-point curve of interpolated precision, by the trapezoid rule.

    Precision 1 up to 0.3, 2/3 up to 0.6, then 0 is (1/2 + 3 + 3 * 2/3) / 10.

    >>> interpolated_precision_area(Lists.of([Ranking([1, None, 1], missed=[1])]).cut([0]))
    array([[0.55]])
    """
    curve = _precision_curve(cut.lists, int(levels), need, rel)
    strips = (curve[:, :-1] + curve[:, 1:]) / 2
    return nan_unless(strips.mean(axis=1, keepdims=True), cut.n_relevant(rel) > 0)


@Definition(
    name="RecallCeiling",
    words="best possible recall, upper bound of recall, maximum recall",
    formula="min(R, k, n) / R",
    source="R@k of the best list of the same length",
    is_bounded_by_gains=True,
    better="neither",
    without_relevant=0.0,
)
def recall_ceiling(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Highest recall that a list of this length could have reached.

    The list has min(k, n) items at ranks 1..k unless some are empty; 0 without a list.

    >>> recall_ceiling(Lists.of([Ranking([None, 1], missed=[1, 1, 1])]).cut([1, 5, 0])).values
    array([[0.25, 0.5 , 0.5 ]])
    """
    n_relevant = cut.n_relevant(rel)
    return Ratio(np.minimum(n_relevant, cut.n_items), n_relevant)


@memoised
def _precision_curve(lists: Lists, n_levels: int, need: str, rel: float) -> FloatMatrix:
    """Interpolated precision at levels evenly spaced from 0 to 1: shape (n_lists, n_levels)."""
    levels = [Fraction(step, n_levels - 1) for step in range(n_levels)]
    return np.hstack([_max_precision_from(lists, level, need, rel) for level in levels])


def _max_precision_from(lists: Lists, level: Fraction, need: str, rel: float) -> FloatMatrix:
    """Highest precision at the ranks where recall has reached a level; 0 without such a rank: shape (n_lists, 1)."""
    relevance = lists.relevance(rel)
    distinct, place = np.unique(relevance.n_relevant[:, 0], return_inverse=True)  # exact numbers are slow: once each
    needed = np.array([_n_needed(need, level, int(number)) for number in distinct], dtype=np.float64)[place]
    has_reached = relevance.n_above >= needed[lists.hit_list]
    precision = relevance.n_above / lists.hit_rank
    return max_by_list(lists.hit_list[has_reached], precision[has_reached], n_lists=lists.n_lists)[:, None]


def _n_needed(need: str, level: Fraction, n_relevant: int) -> int:
    """Relevant items that a level of recall needs, see :data:`NeededItems`."""
    if need == "ceil":
        return math.ceil(level * n_relevant)  # in whole numbers: in doubles 0.1 * 3 * 10 is above 3
    number = float(level) * n_relevant
    if need == "v9":
        return int(number + 0.9)
    # To the nearest, halves up; adding a half first would lift the number just below one half
    return math.floor(number) + (number - math.floor(number) >= 1 / 2)


@Definition(
    name="PAUC",
    words="partial AUC, partial area under the ROC curve",
    aliases={"PartialAUC": {}},
    formula="(1 / (R k)) sum over hits of max(k - f, 0), f the items above the hit that are not relevant",
    source="Dodd & Pepe (2003), Partial AUC estimation and regression; RecTools PAUC",
    cutoff=Cutoff("required"),
)
def partial_auc(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Share of pairs in the right order: a relevant item, and one among the first k others.

    k is a number of items that are not relevant, not a rank. Here 0, 1 and 1 other items are above three hits.

    >>> partial_auc(Lists.of([Ranking([1, None, 1, 1])]).cut([1, 2])).values
    array([[0.33333333, 0.66666667]])
    """
    first_k = cut.lists.hit_rank - cut.lists.relevance(rel).n_above + 1
    return Ratio(_sum_auc_terms(cut, first_k, rel), cut.n_relevant(rel))


@Definition(
    name="PAP",
    words="pAp@k, precision and partial AUC, partial AUC plus precision",
    formula="(1 / (min(R, k) k)) sum over the first k hits of max(k - f, 0), f as for PAUC",
    source="Hiranandani et al. (2020), Optimization and analysis of the pAp@k metric for recommender systems; "
    "RecTools PAP",
    cutoff=Cutoff("required"),
)
def partial_auc_at_positives(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Share of pairs in the right order: one among the first k hits, and one among the first k other items.

    It equals PAUC where R <= k.

    >>> partial_auc_at_positives(Lists.of([Ranking([1, None, 1, 1])]).cut([1, 2])).values
    array([[1. , 0.75]])
    """
    n_above = cut.lists.relevance(rel).n_above
    first_k = np.maximum(cut.lists.hit_rank - n_above + 1, n_above)
    return Ratio(_sum_auc_terms(cut, first_k, rel), np.minimum(cut.n_relevant(rel), cut.k))


def _sum_auc_terms(cut: CutLists, first_k: FloatVector, rel: float) -> FloatMatrix:
    """Sum 1 - f / k over the hits that count at cutoffs of at least ``first_k``, f being the others above each."""
    relevance = cut.lists.relevance(rel)
    n_others = cut.sum_hits(relevance.is_relevant * (cut.lists.hit_rank - relevance.n_above), at=first_k)
    return cut.sum_hits(relevance.is_relevant, at=first_k) - n_others / cut.k


Negatives: TypeAlias = Annotated[
    Literal["catalogue", "unseen"],
    "Items that a relevant one is compared with: all others of the catalogue; of these, not those that the user has in "
    "`train` and no judgement names, which leave the list too.",
]
UnlistedTies: TypeAlias = Annotated[
    Literal["half", "zero"], "What a pair counts of which items 1..m hold neither: a half; nothing."
]
_SEEN: Final = (N.ITEM_SEEN, N.PROFILE_UNJUDGED)


@Definition(
    name="CatalogAUC",
    words="AUC over the catalogue, full AUC, ROC AUC with unjudged items as negatives, area under the ROC curve of a "
    "ranking of all items",
    formula="(c + t / 2) / (R N), N = |T| - R; c and t the pairs of a relevant and another item of the catalogue in "
    "order, and those of which items 1..m hold neither",
    undefined=f"{NO_RELEVANT}; a catalogue without another item, or with fewer than those recommended",
    source="implicit ranking_metrics_at_k; negatives='unseen' as auc_score of LightFM and AUC of Cornac, which rank "
    "all items",
    needs=lambda negatives, **_: (N.CATALOGUE_ITEMS, *(_SEEN if negatives == "unseen" else ())),
    needs_catalogue=True,
    is_bounded_by_gains=lambda negatives, **_: negatives == "catalogue",
)
def catalogue_auc(
    cut: CutLists, *, negatives: Negatives = "catalogue", rel: Level = 1, ties: UnlistedTies = "half"
) -> FloatMatrix:
    """Share of the pairs, of a relevant item and any other of the catalogue, which the list puts in the right order.

    A pair of which the list holds one item is in the order that puts this item first. 1/2 without a list. Here 3 of
    2 x 4 pairs are in the wrong order; the first rank alone leaves 2 x 3 pairs open.

    >>> batch = Lists.of([Ranking([None, 1, None, 1], background=Background(catalogue=6))])
    >>> catalogue_auc(batch.cut([1, 0]))
    array([[0.375, 0.625]])
    """
    lists, relevance, n_relevant = cut.lists, cut.lists.relevance(rel), cut.n_relevant(rel)
    n_others, n_listed = lists.known_items.totals[N.CATALOGUE_ITEMS][:, None] - n_relevant, cut.depth - cut.hits(rel)
    others_above = lists.hit_rank - relevance.n_above
    if negatives == "unseen":
        of_hits, of_lists = _count_seen(cut)
        others_above, n_listed = others_above - of_hits, n_listed - of_lists
        n_others = n_others - lists.known_items.known_profile_unjudged[:, None]
    in_order = cut.hits(rel) * n_others - cut.sum_hits(relevance.is_relevant * others_above)
    if ties == "half":
        in_order = in_order + (n_relevant - cut.hits(rel)) * (n_others - n_listed) / 2
    is_defined = (n_relevant > 0) & (n_others > 0) & (n_others >= n_listed)
    return nan_unless(divide_or_zero(in_order, n_relevant * n_others), is_defined)


def _count_seen(cut: CutLists) -> tuple[FloatVector, FloatMatrix]:
    """Count the items without a judgement that the user has in `train`: above each hit, and at ranks 1..k."""
    lists, facts = cut.lists, cut.lists.known_items
    hit = find_in_lists(lists.hit_list, lists.hit_rank, among=(facts.item_list, facts.item_rank))
    is_seen = facts.values[N.ITEM_SEEN].copy()
    is_seen[hit[(hit >= 0) & (lists.hit_gain >= 0)]] = 0
    n_above = running_count_by_list(is_seen, facts.item_list, n_lists=lists.n_lists)
    return np.append(n_above, 0)[hit], cut.sum_items(is_seen)  # a hit below the last cutoff has no place

"""Area under the ROC curve of one user, where items that are not relevant were scored too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures.arrays import Ratio, sum_by_list
from rankeval_spark.measures.definition import ANY_ORDER_OF_TIES, Aggregation, Cutoff, Definition
from rankeval_spark.measures.kernel_inputs.lists import CutLists, Lists
from rankeval_spark.measures.options import Meaning
from rankeval_spark.measures.prediction.concordant_pairs import EqualHits
from rankeval_spark.measures.shared_options import Level

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

AucTies: TypeAlias = Annotated[Literal["half", "zero"], Meaning("What a pair of one score counts: a half; nothing.")]

NEGATIVE_CLASS: Final = "an item with a negative gain is not relevant, as -1 is in scikit-learn"
"""Where most measures take it for one that was not judged."""

_ONE_CLASS: Final = "the list holds no relevant held-out item, or none with a gain below rel"


@Definition(
    name="AUC",
    formula="(c + t / 2) / (n_1 n_0), c and t the pairs of a relevant and another held-out item in order and tied",
    undefined=_ONE_CLASS,
    source="Hanley & McNeil (1982), The meaning and use of the area under a ROC curve; ties='zero' as Cornac; "
    f"{NEGATIVE_CLASS}",
    cutoff=Cutoff("forbidden"),
    needs=(HIT_SCORES,),
    ties=ANY_ORDER_OF_TIES,
)
def area_under_curve(cut: CutLists, *, rel: Level = 1, ties: AucTies = "half") -> Ratio:
    """Share of the pairs, of a relevant item and another that was held out, which the scores put in the right order.

    ``(c + t / 2) / (n_1 n_0)`` over the held-out items that the list holds: in [0, 1]; NaN without a pair.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> area_under_curve(Lists.of([Ranking([1, 0, None, 1, 0])]).cut([0])).values
    array([[0.75]])
    """
    lists = cut.lists
    is_relevant = lists.relevance(rel).is_relevant
    n_relevant, n_others, in_order = (
        lists.sum_hits(each)
        for each in (is_relevant, 1 - is_relevant, is_relevant * _others_below(lists, 1 - is_relevant, ties))
    )
    n_pairs = n_relevant * n_others
    return Ratio(in_order, n_pairs, where=n_pairs > 0)


@Definition(
    name="GAUC",
    formula="sum over users of n_u AUC_u / sum over users of n_u, n_u the user's held-out items that were scored",
    undefined=_ONE_CLASS,
    source=f"Zhu et al. (2017), Optimized cost per click in Taobao display advertising; {NEGATIVE_CLASS}",
    cutoff=Cutoff("forbidden"),
    needs=(HIT_SCORES,),
    aggregation=Aggregation(default="micro"),
    ties=ANY_ORDER_OF_TIES,
)
def grouped_area_under_curve(cut: CutLists, *, rel: Level = 1, ties: AucTies = "half") -> Ratio:
    """AUC of the user, weighted in the mean by their number of impressions.

    ``sum n_u AUC_u / sum n_u``: in [0, 1]; NaN without a pair.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> grouped_area_under_curve(Lists.of([Ranking([1, 0, None, 1, 0])]).cut([0])).values
    array([[0.75]])
    """
    area, n = area_under_curve(cut, rel=rel, ties=ties), cut.lists.n_hits
    return Ratio(np.nan_to_num(area.values) * n, n, where=area.where, value=area.values)


def _others_below(lists: Lists, is_other: FloatVector, ties: str) -> FloatVector:
    """Count the items that are not relevant with a lower score than each hit, and half of those with the same one."""
    blocks = EqualHits.of(lists.hit_list, lists.scores)
    in_block = np.bincount(blocks.of_hit, weights=is_other, minlength=len(blocks.owner))
    of_list = sum_by_list(lists.hit_list, is_other, n_lists=lists.n_lists)
    below = np.cumsum(in_block) - in_block - (np.cumsum(of_list) - of_list)[blocks.owner]
    return (below + (in_block / 2 if ties == "half" else 0))[blocks.of_hit]

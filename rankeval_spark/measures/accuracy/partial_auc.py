"""Part of the area under the ROC curve: the part that a list of recommendations can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.measures.accuracy.precision_recall import NO_RELEVANT
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.shared_options import Level

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector


@Definition(
    name="PAUC",
    formula="(1 / (R k)) sum over hits of max(k - f, 0), f the items above the hit that are not relevant",
    undefined=NO_RELEVANT,
    source="Dodd & Pepe (2003), Partial AUC estimation and regression; RecTools PAUC",
    aliases={"PartialAUC": {}},
    cutoff=Cutoff("required"),
)
def partial_auc(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Share of pairs, of a relevant item and one of the first k others, that are in the right order.

    ``sum over hits of max(k - f, 0) / (R k)``, k being a number of items that are not relevant, not a rank: in [0, 1];
    0 without a hit; NaN where the user has no relevant judgement. Here 0, 1 and 1 other items are above three hits.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> partial_auc(Lists.of([Ranking([1, None, 1, 1])]).cut([1, 2])).values
    array([[0.33333333, 0.66666667]])
    """
    n_relevant = cut.n_relevant(rel)
    return Ratio(_area(cut, _others_above(cut, rel) + 1, rel), n_relevant, where=n_relevant > 0)


@Definition(
    name="PAP",
    formula="(1 / (min(R, k) k)) sum over the first k hits of max(k - f, 0), f as for PAUC",
    undefined=NO_RELEVANT,
    source="Hiranandani et al. (2020), Optimization and analysis of the pAp@k metric for recommender systems; "
    "RecTools PAP",
    cutoff=Cutoff("required"),
)
def partial_auc_at_positives(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Share of pairs, of one of the first k hits and one of the first k other items, that are in the right order.

    ``sum over the first k hits of max(k - f, 0) / (min(R, k) k)``, f as for PAUC, which it equals where R <= k: in
    [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> partial_auc_at_positives(Lists.of([Ranking([1, None, 1, 1])]).cut([1, 2])).values
    array([[1. , 0.75]])
    """
    n_relevant = cut.n_relevant(rel)
    first_k = np.maximum(_others_above(cut, rel) + 1, cut.lists.relevance(rel).n_above)
    return Ratio(_area(cut, first_k, rel), np.minimum(n_relevant, cut.k), where=n_relevant > 0)


def _others_above(cut: CutLists, rel: float) -> FloatVector:
    """Items above each relevant hit that are not relevant: f."""
    return cut.lists.hit_rank - cut.lists.relevance(rel).n_above


def _area(cut: CutLists, first_k: FloatVector, rel: float) -> FloatMatrix:
    """Sum 1 - f / k over the hits that count from the cutoff ``first_k`` on: shape (n_lists, n_cutoffs)."""
    is_relevant = cut.lists.relevance(rel).is_relevant
    n_above = cut.sum_hits(is_relevant * _others_above(cut, rel), at=first_k)
    return cut.sum_hits(is_relevant, at=first_k) - n_above / cut.k

"""Part of the area under the ROC curve: the part that a list of recommendations can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

_NO_RELEVANT = "no relevant judgement (R = 0)"
_HITS_AT_1_3_4_6 = Ranking([1, None, 1, 1, None, 1])
_ONE_MISSED = Ranking([None, 1, None, 1], missed=[1])
_NOTHING_RELEVANT = Ranking([0, None], missed=[0])


def partial_auc_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Share of the first k others that are below, summed over the hits, and the relevant items there are."""
    return _area(cut, _others_above(cut, rel) + 1, rel), cut.n_relevant(rel)


def partial_auc_at_positives_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Sum that share over the first k hits; and count the relevant items, up to k."""
    first = np.maximum(_others_above(cut, rel) + 1, cut.lists.relevance(rel).n_above)
    return _area(cut, first, rel), np.minimum(cut.n_relevant(rel), cut.k)


@Definition(
    name="PAUC",
    formula="(1 / (R k)) sum over hits of max(k - f, 0), f the items above the hit that are not relevant",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="Dodd & Pepe (2003), Partial AUC estimation and regression; RecTools PAUC",
    aliases={"PartialAUC": {}},
    cutoff=Cutoff("required"),
    parts=partial_auc_parts,
    goldens=(
        Golden(
            "PAUC@2", (_HITS_AT_1_3_4_6,), ("(2 + 1 + 1) / (4 * 2)",), note="the hit at rank 6 has 2 misses above it"
        ),
        Golden("PAUC@3", (_HITS_AT_1_3_4_6,), ("(3 + 2 + 2 + 1) / (4 * 3)",), note="hits below rank k count too"),
        Golden("PAUC@2", (_ONE_MISSED,), ("(1 + 0 + 0) / (3 * 2)",), note="a hit that the list lacks adds nothing"),
        Golden("PAUC(agg='micro')@2", (_ONE_MISSED, Ranking([1])), ("1/6", "1"), mean="(1/2 + 1) / (3 + 1)"),
        Golden("PAUC(judged_only=True)@2", (Ranking([None, None, 1, 0, 1]),), ("(2 + 1) / (2 * 2)",), note="1 0 1"),
        Golden("PAUC@2", (_NOTHING_RELEVANT,), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def partial_auc(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Share of pairs, of a relevant item and one of the first k others, that are in the right order.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs; here k is a number of items that are not relevant, not a rank.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    Notes
    -----
    ``sum over hits of max(k - f, 0) / (R k)``, f being the recommended items above the hit that are not relevant: the
    area under the ROC curve up to k of them. Hits at any rank count, so lists should hold R + k items; a relevant item
    that the list lacks adds 0.

    Examples
    --------
    Hits at ranks 1, 3 and 4 of 4, with 0, 1 and 1 other items above them:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> partial_auc(Lists.of([Ranking([1, None, 1, 1])]).cut([1, 2]))
    array([[0.33333333, 0.66666667]])
    """
    return where_defined(ratio(*partial_auc_parts(cut, rel=rel)), cut.n_relevant(rel) > 0)


@Definition(
    name="PAP",
    formula="(1 / (min(R, k) k)) sum over the first k hits of max(k - f, 0), f as for PAUC",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="Hiranandani et al. (2020), Optimization and analysis of the pAp@k metric for recommender systems; "
    "RecTools PAP",
    cutoff=Cutoff("required"),
    parts=partial_auc_at_positives_parts,
    goldens=(
        Golden("PAP@2", (_HITS_AT_1_3_4_6,), ("(2 + 1) / (2 * 2)",), note="the first 2 hits"),
        Golden("PAP@3", (_HITS_AT_1_3_4_6,), ("(3 + 2 + 2) / (3 * 3)",)),
        Golden("PAP@2", (_ONE_MISSED,), ("(1 + 0) / (2 * 2)",), note="R = 3, of which 2 can count"),
        Golden("PAP(agg='micro')@2", (_ONE_MISSED, Ranking([1])), ("1/4", "1"), mean="(1/2 + 1) / (2 + 1)"),
        Golden("PAP@2", (_NOTHING_RELEVANT,), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def partial_auc_at_positives(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Share of pairs, of one of the first k hits and one of the first k other items, that are in the right order.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs; here k is a number of hits and of items that are not relevant, not a rank.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    Notes
    -----
    ``sum over the first k hits of max(k - f, 0) / (min(R, k) k)``, f as for PAUC, which it equals where R <= k. Lists
    need no more than 2 k items.

    Examples
    --------
    Hits at ranks 1, 3 and 4 of 4, with 0, 1 and 1 other items above them:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> partial_auc_at_positives(Lists.of([Ranking([1, None, 1, 1])]).cut([1, 2]))
    array([[1. , 0.75]])
    """
    return where_defined(ratio(*partial_auc_at_positives_parts(cut, rel=rel)), cut.n_relevant(rel) > 0)


def _others_above(cut: CutLists, rel: float) -> FloatVector:
    """Items above each relevant hit that are not relevant: f."""
    return cut.lists.hit_rank - cut.lists.relevance(rel).n_above


def _area(cut: CutLists, first_k: FloatVector, rel: float) -> FloatMatrix:
    """Sum 1 - f / k over the hits that count from the cutoff ``first_k`` on: shape (n_lists, n_cutoffs)."""
    is_relevant = cut.lists.relevance(rel).is_relevant
    n_above = cut.sum_hits(is_relevant * _others_above(cut, rel), at=first_k)
    return cut.sum_hits(is_relevant, at=first_k) - n_above / cut.k

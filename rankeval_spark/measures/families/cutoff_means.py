"""Precision and recall averaged over cutoffs, or over the hits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

_NO_RELEVANT = "no relevant judgement (R = 0)"
_TWO_OF_TWO = Ranking([1, None, 1, None])
_TWO_OF_EIGHT = Ranking([1, None, 1, None], missed=[1] * 6)
_BOTH = (_TWO_OF_TWO, _TWO_OF_EIGHT)

Kind: TypeAlias = Literal["hits_R", "hits_min", "cutoffs"]
"""What recall is averaged over."""


def mean_recall_parts(cut: CutLists, *, kind: Kind = "hits_R", rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Recall at the ranks of the hits, summed, and the items it is averaged over; or mean hits up to k, and R."""
    relevance = cut.lists.relevance(rel)
    n_relevant = relevance.n_relevant
    if kind == "cutoffs":
        n_missed_cutoffs = cut.sum_hits(relevance.is_relevant * (cut.lists.hit_rank - 1))
        return cut.hits(rel) - n_missed_cutoffs / cut.k, n_relevant
    hits_at_hits = cut.sum_hits(relevance.is_relevant * relevance.n_above)
    return ratio(hits_at_hits, n_relevant), n_relevant if kind == "hits_R" else np.minimum(n_relevant, cut.k)


@Definition(
    name="MAR",
    formula="sum_{i<=k} r_i R@i / R; kind='hits_min': sum_{i<=k} r_i R@i / min(R, k); "
    "kind='cutoffs': (1 / k) sum_{j=1..k} R@j",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="kind='hits_R' as Evidently, 'hits_min' as WarpRec, 'cutoffs' as Elliot",
    aliases={"MeanAverageRecall": {}},
    takes_expected_ties=True,
    cutoff=Cutoff("optional").but("required", kind="cutoffs"),
    always_printed=("kind",),
    parts=mean_recall_parts,
    goldens=(
        Golden("MAR(kind='hits_R')@5", _BOTH, ("(1/2 + 2/2) / 2", "(1/8 + 2/8) / 8"), note="divided by R = 2 and 8"),
        Golden("MAR(kind='hits_min')@5", _BOTH, ("(1/2 + 2/2) / 2", "(1/8 + 2/8) / 5"), note="by min(R, k)"),
        Golden(
            "MAR(kind='cutoffs')@5",
            _BOTH,
            ("(1/2 + 1/2 + 2/2 + 2/2 + 2/2) / 5", "(1/8 + 1/8 + 2/8 + 2/8 + 2/8) / 5"),
            note="the mean of R@1 to R@5; beyond the end of the list recall stays what it is",
        ),
        Golden(
            "MAR(kind='hits_R')", (Ranking([1, 1, 1]),), ("(3 + 1) / (2 * 3)",), note="a perfect list scores below 1"
        ),
        Golden(
            "MAR(agg='micro',kind='hits_R')@5",
            _BOTH,
            ("(1/2 + 2/2) / 2", "(1/8 + 2/8) / 8"),
            mean="(1/2 + 2/2 + 1/8 + 2/8) / (2 + 8)",
            note="over all relevant items: recall at the rank of each, 0 for those that were missed",
        ),
        Golden(
            "MAR(agg='micro',kind='cutoffs')@2",
            _BOTH,
            ("1/2", "1/8"),
            mean="(1 + 1) / (2 + 8)",
            note="the mean of R(agg='micro') at 1 and 2",
        ),
        Golden("MAR(kind='hits_R')@5", (Ranking([None, 0], missed=[0]),), (UNDEFINED,), note="no relevant item"),
    ),
)
def mean_average_recall(cut: CutLists, *, kind: Kind = "hits_R", rel: Level = 1) -> FloatMatrix:
    """Recall averaged over the ranks of the hits, or over the cutoffs up to k.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    kind : {"hits_R", "hits_min", "cutoffs"}
        What is averaged: recall at the rank of each hit, divided by the relevant items R or by min(R, k); recall at
        each of the cutoffs 1..k. Three unrelated numbers carry the name, so the kind is always printed.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    Notes
    -----
    ``hits_R``: ``sum_{i<=k} r_i R@i / R``; a perfect list scores (R + 1) / (2 R), which is below 1 from R = 2 on.
    ``hits_min``: the same sum divided by min(R, k). ``cutoffs``: ``(1 / k) sum_{j=1..k} R@j``, where recall beyond
    the end of the list is that of the whole list. A hit at rank i counts for the cutoffs i..k, so the sum needs no
    loop over cutoffs. With ``agg='micro'`` the hits kinds sum ``r_i R@i`` over all users and divide by their R, or
    min(R, k), together; ``cutoffs`` is then the mean of R(agg='micro') over the cutoffs.

    Examples
    --------
    Hits at ranks 1 and 3 are all there is: recall is 1/2, 1/2 and 1.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> batch = Lists.of([Ranking([1, None, 1, None])])
    >>> mean_average_recall(batch.cut([1, 2, 3])), mean_average_recall(batch.cut([1, 2, 3]), kind="cutoffs")
    (array([[0.25, 0.25, 0.75]]), array([[0.5 , 0.5 , 0.66666667]]))
    """
    found, possible = mean_recall_parts(cut, kind=kind, rel=rel)
    return where_defined(ratio(found, possible), cut.n_relevant(rel) > 0)


@Definition(
    name="MeanP",
    formula="(1 / k) sum_{j=1..k} h_j / j",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="what Elliot calls MAP",
    aliases={"MeanPrecision": {}},
    takes_expected_ties=True,
    cutoff=Cutoff("required"),
    goldens=(
        Golden("MeanP@5", _BOTH, ("(1 + 1/2 + 2/3 + 2/4 + 2/5) / 5",) * 2, note="blind to R; rank 5 is padded"),
        Golden("MeanP@2", (Ranking([None, 1]),), ("(0 + 1/2) / 2",)),
    ),
)
def mean_precision(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Precision averaged over the cutoffs 1..k.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``(1 / k) sum_{j=1..k} P@j``; ranks that the list does not reach are not relevant. Not AP: ranks without a hit
    count too, and R does not. A hit at rank i adds ``1/i + ... + 1/k``, a difference of two harmonic numbers.

    Examples
    --------
    Hits at ranks 1 and 3: precision is 1, 1/2 and 2/3.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> mean_precision(Lists.of([Ranking([1, None, 1, None])]).cut([1, 2, 3]))
    array([[1. , 0.75 , 0.72222222]])
    """
    relevance = cut.lists.relevance(rel)
    k_max = int(cut.k[np.isfinite(cut.k)].max(initial=0))
    harmonic = _harmonic_numbers(k_max)
    at_cutoff = harmonic[np.minimum(cut.k, k_max).astype(np.int64)]
    above_hit = harmonic[np.minimum(cut.lists.hit_rank - 1, k_max)]
    total = cut.hits(rel) * at_cutoff - cut.sum_hits(relevance.is_relevant * above_hit)
    return where_defined(total / cut.k, relevance.n_relevant > 0)


def _harmonic_numbers(n: int) -> FloatVector:
    """Return the sums 1 + 1/2 + ... + 1/i for i = 0..n."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])

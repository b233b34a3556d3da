"""Precision and recall averaged over the hits, or over the cutoffs up to k."""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, Ratio, ratio, where_defined
from rankeval_spark.measures.definition import MEAN_OVER_TIES, Aggregation, Cutoff, Definition, TieHandling, only_with
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import Above, Level, Meaning

Floor: TypeAlias = Annotated[
    float,
    Above(0, below=1),
    Meaning("Least average precision that is distinguished, because the logarithm of 0 is infinite."),
]


def _log_of_floor(*, floor: float, **_: object) -> float:
    return math.log(floor)


@Definition(
    name="AP",
    formula="(1 / R) sum_{i<=k} r_i h_i / i",
    source="trec_eval map and map_cut; the five denominators after Tamm et al. (2021), Quality metrics in "
    "recommender systems: do we calculate metrics consistently?",
    aliases={"MAP": {}, "map_cut": {}, "AveragePrecision": {}},
    cutoff=Cutoff("optional").but("required", denom="k"),
    ties=TieHandling(
        has_mean=lambda denom, **_: denom != "hits",
        bounded_by_gains=lambda denom, group, **_: denom != "hits" and group is None,
    ),
)
def average_precision(
    cut: CutLists,
    *,
    denom: Annotated[
        Literal["R", "min", "k", "len", "hits"],
        Meaning("What the sum is divided by: the relevant items R; min(R, k); k; min(R, k, n); the hits h_k."),
    ] = "R",
    rel: Level = 1,
) -> Ratio:
    """Precision at the rank of each hit, summed and divided by the hits that could have been; its mean is MAP.

    ``(1 / D) sum_{i<=k} r_i h_i / i``, h_i the relevant items at ranks 1..i: in [0, 1]; 0 without a hit; NaN where the
    user has no relevant judgement. Hits at ranks 2 and 3 with R = 2 are (1/2 + 2/3) / 2.

    >>> average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).values
    array([[0.25      , 0.58333333]])
    """
    n_relevant = cut.n_relevant(rel)
    possible = {
        "R": n_relevant,
        "min": np.minimum(n_relevant, cut.k),
        "k": cut.k,
        "len": np.minimum(n_relevant, cut.n_items),
        "hits": cut.hits(rel),
    }[denom]
    relevance, rank = cut.lists.relevance(rel), cut.lists.hit_rank
    total = cut.once(("precisions", rel), lambda: cut.sum_hits(relevance.is_relevant * relevance.n_above / rank))
    return Ratio(total, possible, where=n_relevant > 0)


@Definition(
    name="LogAP",
    formula="ln max(AP@k, floor)",
    bounds=(-math.inf, 0),
    source="trec_eval gm_map before its mean is raised; Robertson (2006), On GMAP and other transformations",
    aggregation=Aggregation(without_relevant=_log_of_floor),
)
def log_average_precision(cut: CutLists, *, floor: Floor = 1e-5, rel: Level = 1) -> FloatMatrix:
    """Logarithm of average precision; the exponential of its mean is GMAP, the geometric mean.

    ``ln max(AP@k, floor)``: from ln(floor), also without a list, to 0; NaN where the user has no relevant judgement.
    AP is 1/4 and 7/12 here:

    >>> log_average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).round(4)
    array([[-1.3863, -0.539 ]])
    """
    precision = average_precision(cut, rel=rel)
    return where_defined(np.log(np.maximum(precision.values, floor)), precision.where)


@Definition(
    name="GMAP",
    formula="exp(mean over users of ln max(AP@k, floor))",
    bounds=(-math.inf, 0),
    source="trec_eval gm_map; Robertson (2006), On GMAP and other transformations",
    aliases={"gm_map": {}, "GeometricMAP": {}},
    aggregation=Aggregation(link="log", without_relevant=_log_of_floor),
)
def geometric_average_precision(cut: CutLists, *, floor: Floor = 1e-5, rel: Level = 1) -> FloatMatrix:
    """Geometric mean of the users' average precision; the value of a user is its logarithm.

    ``exp(mean ln max(AP@k, floor))``: logarithms from ln(floor) to 0; NaN where the user has no relevant judgement.

    >>> geometric_average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0])).round(4)
    array([[-1.3863, -0.539 ]])
    """
    return log_average_precision(cut, floor=floor, rel=rel)


@Definition(
    name="MAR",
    formula="sum_{i<=k} r_i R@i / R; kind='hits_min': sum_{i<=k} r_i R@i / min(R, k); "
    "kind='cutoffs': (1 / k) sum_{j=1..k} R@j",
    source="kind='hits_R' as Evidently, 'hits_min' as WarpRec, 'cutoffs' as Elliot",
    aliases={"MeanAverageRecall": {}},
    cutoff=Cutoff("optional").but("required", kind="cutoffs"),
    rules=(only_with("weighted", None, "kind", "cutoffs"),),
    always_printed=("kind",),
    ties=MEAN_OVER_TIES,
    weighted=True,
)
def mean_average_recall(
    cut: CutLists,
    *,
    kind: Annotated[
        Literal["hits_R", "hits_min", "cutoffs"],
        Meaning(
            "What is averaged: recall at the rank of each hit, divided by the relevant items R or by min(R, k); recall "
            "at each of the cutoffs 1..k. Three unrelated numbers carry the name, so the kind is always printed."
        ),
    ] = "hits_R",
    rel: Level = 1,
) -> Ratio:
    """Recall averaged over the ranks of the hits, or over the cutoffs up to k.

    ``sum_{i<=k} r_i R@i / R``, or ``(1 / k) sum_{j=1..k} R@j``, where a hit at rank i counts for the cutoffs i..k: in
    [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    >>> cut = Lists.of([Ranking([1, None, 1, None])]).cut([1, 2, 3])
    >>> mean_average_recall(cut).values, mean_average_recall(cut, kind="cutoffs").values
    (array([[0.25, 0.25, 0.75]]), array([[0.5 , 0.5 , 0.66666667]]))
    """
    relevance, n_relevant = cut.lists.relevance(rel), cut.n_relevant(rel)
    if kind == "cutoffs":
        n_missed_cutoffs = cut.sum_hits(relevance.is_relevant * (cut.lists.hit_rank - 1))
        return Ratio(cut.hits(rel) - n_missed_cutoffs / cut.k, n_relevant, where=n_relevant > 0)
    hits_at_hits = cut.sum_hits(relevance.is_relevant * relevance.n_above)
    divisor = n_relevant if kind == "hits_R" else np.minimum(n_relevant, cut.k)
    return Ratio(ratio(hits_at_hits, n_relevant), divisor, where=n_relevant > 0)


@Definition(
    name="MeanP",
    formula="(1 / k) sum_{j=1..k} h_j / j",
    source="what Elliot calls MAP",
    aliases={"MeanPrecision": {}},
    cutoff=Cutoff("required"),
    ties=MEAN_OVER_TIES,
)
def mean_precision(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Precision averaged over the cutoffs 1..k.

    ``(1 / k) sum_{j=1..k} P@j``, in which a hit at rank i adds ``1/i + ... + 1/k``, a difference of two harmonic
    numbers: in [0, 1]; NaN where the user has no relevant judgement.

    >>> mean_precision(Lists.of([Ranking([1, None, 1, None])]).cut([1, 2, 3]))
    array([[1. , 0.75 , 0.72222222]])
    """
    relevance = cut.lists.relevance(rel)
    k_max = int(cut.k[np.isfinite(cut.k)].max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, k_max + 1))])  # 1 + 1/2 + ... + 1/i for i = 0..k
    at_cutoff = harmonic[np.minimum(cut.k, k_max).astype(np.int64)]
    above_hit = harmonic[np.minimum(cut.lists.hit_rank - 1, k_max)]
    total = cut.hits(rel) * at_cutoff - cut.sum_hits(relevance.is_relevant * above_hit)
    return where_defined(total / cut.k, relevance.n_relevant > 0)

"""Hit or not, and the ranks of the first hit or of all hits."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures.accuracy.cumulated_gain import Weighting, relevance_levels
from rankeval_spark.measures.accuracy.precision_recall import NO_MICRO_SUM, Levels, divisor_of_hits, sum_of_levels
from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, Ratio, divide_or_zero, nan_unless, sum_by_list
from rankeval_spark.measures.definition import NO_RELEVANT, Cutoff, Definition, OptionRule, only_with
from rankeval_spark.measures.lists import CutLists, Lists, Relevance
from rankeval_spark.measures.options import Level


@Definition(
    name="Success",
    words="hit rate, hit ratio, success rate, success at k, top-k accuracy, at least one hit",
    aliases={"HR": {}, "Hit": {}, "HitRate": {}, "HitRatio": {}},
    formula="1 where h_k > 0, else 0",
    source="trec_eval success; hit rate in recommendation",
    interval="wilson",
    has_mean_over_ties=True,
)
def success(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """1 if a relevant item is among the first k recommendations, else 0; its mean is the hit rate.

    >>> success(Lists.of([Ranking([None, 1, 1])]).cut([1, 2, 3]))
    array([[0., 1., 1.]])
    """
    # At most 1 with ties over all orders, where it is a sum of probabilities.
    relevance = cut.lists.relevance(rel)
    return nan_unless(np.minimum(cut.sum_hits(relevance.is_first), 1.0), relevance.n_relevant > 0)


@Definition(
    name="RR",
    words="mean reciprocal rank, reciprocal rank, inverse rank of the first hit, graded reciprocal rank",
    aliases={"MRR": {}, "recip_rank": {}, "ReciprocalRank": {}, "MeanReciprocalRank": {}},
    formula="1 / (rank of the first relevant item at ranks 1..k); 0 without one",
    source="Voorhees (1999), The TREC-8 question answering track report; trec_eval recip_rank; weighted=True as "
    "TensorFlow Ranking; a map of gains: after that of AP",
    rules=(
        only_with("weighted", None, "gains", "binary"),
        only_with("rel", 1, "gains", "binary"),
        OptionRule(
            "weighted=True only with agg='micro': a list counts by the mean weight of its relevant items",
            lambda options: options["weighted"] is True and options["agg"] != "micro",
        ),
    ),
    has_mean_over_ties=True,
    weighted=True,
)
def reciprocal_rank(cut: CutLists, *, gains: Levels = "binary", rel: Level = 1) -> Ratio:
    """Inverse of the rank of the first relevant item; its mean is MRR.

    >>> reciprocal_rank(Lists.of([Ranking([None, 1, 1])]).cut([1, 2, 0])).values
    array([[0. , 0.5, 0.5]])
    """
    levels = relevance_levels(gains, rel, cut.lists)
    total, of_list = (sum_of_levels(levels, partial(value, cut)) for value in (_sum_first, _mean_weight))
    return Ratio(total, of_list)


def _sum_first(cut: CutLists, rel: float) -> FloatMatrix:
    """Return 1 / rank of the first relevant item up to every cutoff, times the mean weight of the relevant items."""
    lists = cut.lists
    terms = lists.relevance(rel).is_first / lists.hit_rank
    if lists.is_weighted:
        terms = terms * _mean_weight(cut, rel)[lists.hit_list, 0] / lists.weights[0]  # which the sum multiplies with
    return cut.sum_hits(terms)


def _mean_weight(cut: CutLists, rel: float) -> FloatMatrix:
    """Return the mean weight of the relevant items of each list, shape (n_lists, 1): 1 without weights, 0 of none."""
    lists = cut.lists
    n_items = sum_by_list(lists.judged_list, (lists.judged_gain >= rel).astype(np.float64), n_lists=lists.n_lists)
    return divide_or_zero(lists.relevance(rel).n_relevant, n_items[:, None])


@Definition(
    name="FirstHit",
    words="rank of the first hit, position of the first relevant item, histogram of first hits",
    formula="1 where r_k = 1 and h_k = 1, else 0",
    source="histogram of the ranks of the first hit: its means at ranks 1 to k add up to Success@k",
    cutoff=Cutoff("required"),
    interval="wilson",
    is_bounded_by_gains=False,
)
def first_hit(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """1 if the first relevant item is at rank k exactly, else 0; its mean is the share of such users.

    k is a rank here, not a depth.

    >>> first_hit(Lists.of([Ranking([None, 1, 1])]).cut([1, 2, 3]))
    array([[0., 1., 0.]])
    """
    lists, relevance = cut.lists, cut.lists.relevance(rel)
    first_rank = lists.sum_hits(relevance.is_first * lists.hit_rank)
    return nan_unless((first_rank == cut.k).astype(np.float64), relevance.n_relevant > 0)


MissedItems: TypeAlias = Annotated[
    Literal["drop", "next"],
    "Relevant items that are not at ranks 1..k: left out, so that a list without a hit has no value; counted at rank k "
    "+ 1.",
]

WhichRank: TypeAlias = Annotated[
    Literal["mean", "first", "last"],
    "Rank of a list: the mean of its relevant items; that of the first; that of the last. Always printed.",
]


@Definition(
    name="HitRank",
    words="mean rank of the first hit, mean rank of relevant items, rank of the last relevant item, rank of the first "
    "relevant item, position of the first hit, mean rank, average rank, coverage error, search depth",
    aliases={
        **{name: {"stat": "mean"} for name in ("MeanRank", "MeanHitRank")},
        **{name: {"stat": "first"} for name in ("FirstHitRank", "FirstRelevantRank")},
        **{name: {"stat": "last"} for name in ("LastHitRank", "LastRelevantRank")},
    },
    formula="mean of the ranks i <= k with r_i = 1; stat='first', 'last': the least, the greatest of them; "
    "missed='next': a relevant item that is not at ranks 1..k counts at k + 1",
    bounds=(1, math.inf),
    undefined=f"{NO_RELEVANT}; with missed='drop': no hit at ranks 1..k",
    source="Bordes et al. (2013), Translating embeddings for multi-relational data; scikit-learn coverage_error",
    cutoff=Cutoff("optional").but("required", missed="next"),
    rules=(only_with("agg", "macro", "stat", "mean"),),
    always_printed=("stat",),
    has_mean_over_ties=lambda missed, stat, **_: missed == "next" and stat != "last",
    is_bounded_by_gains=lambda missed, group, **_: missed == "next" and group is None,
    better="lower",
    without_relevant=math.nan,
)
def hit_rank(cut: CutLists, *, missed: MissedItems = "drop", rel: Level = 1, stat: WhichRank = "mean") -> Ratio:
    """Mean rank of the relevant items, or the rank of the first or the last of them.

    From 1, the best. Hits are at ranks 2 and 5, and one relevant item is missed.

    >>> batch = Lists.of([Ranking([None, 1, None, None, 1], missed=[1])])
    >>> [float(hit_rank(batch.cut([5]), stat=stat).values[0, 0]) for stat in ("mean", "first", "last")]
    [3.5, 2.0, 5.0]
    >>> hit_rank(batch.cut([1, 5]), missed="next").values.round(4)
    array([[2.    , 4.3333]])
    """
    relevance, n_found = cut.lists.relevance(rel), cut.hits(rel)
    ranks, n_missed = relevance.is_relevant * cut.lists.hit_rank, relevance.n_relevant - n_found
    if stat == "first":
        ranks, n_found = relevance.is_first * ranks, cut.sum_hits(relevance.is_first)
    elif stat == "last":
        ranks, n_found = _steps_to_hits(cut.lists, relevance), np.minimum(n_found, 1.0)
    total = cut.sum_hits(ranks)
    if missed == "drop":
        return Ratio(total, n_found)
    if stat == "first":
        n_missed = 1 - n_found
    elif stat == "last":
        n_missed = np.minimum(n_missed, 1.0)
        total, n_found = total * (1 - n_missed), 1 - n_missed
    next_rank = np.where(np.isfinite(cut.k), cut.k, 0.0) + 1  # the whole list, which has no k, is never requested
    return Ratio(total + n_missed * next_rank, n_found + n_missed, where=relevance.n_relevant > 0)


def _steps_to_hits(lists: Lists, relevance: Relevance) -> FloatVector:
    """Count the ranks from one relevant hit to the next, shape (n_hits,): they add up to the rank of the last one."""
    place = np.flatnonzero(relevance.is_relevant)
    owner, rank = lists.hit_list[place], lists.hit_rank[place]
    steps = np.zeros(len(lists.hit_rank))
    steps[place] = rank
    steps[place[1:]] -= np.where(owner[1:] == owner[:-1], rank[:-1], 0)
    return steps


RankSumDivisor: TypeAlias = Annotated[
    Literal["none", "R", "min", "k", "len", "hits", "ideal"],
    "Divisor of the sum: none; the relevant items R; min(R, k); k; min(R, k, n); the hits h_k; the same sum in "
    "the ideal order.",
]

_ARHR_RULES: Final = (
    OptionRule(
        "rel not with gains='grade' and denom='none' or 'ideal': no item needs to be relevant",
        lambda options: options["rel"] != 1 and options["gains"] == "grade" and options["denom"] in {"none", "ideal"},
    ),
    OptionRule(
        "gains='grade' not with denom='hits': an item below rel adds its gain and is no hit",
        lambda options: (options["gains"], options["denom"]) == ("grade", "hits"),
    ),
    NO_MICRO_SUM,
    only_with("weighted", None, "denom", "none", "R", "hits", "ideal"),
)


@Definition(
    name="ARHR",
    words="average reciprocal hit rank, average reciprocal hit rate",
    aliases={"AverageReciprocalHitRank": {}, "AverageReciprocalHitRate": {}, "NCRR": {"denom": "ideal"}},
    formula="sum_{i<=k} r_i / i; gains='grade': sum_{i<=k} g_i / i",
    bounds=(0, math.inf),
    at_most=lambda denom, gains, **_: 1.0 if denom == "ideal" or (denom != "none" and gains == "binary") else math.inf,
    undefined=f"{NO_RELEVANT}; with gains='grade' and denom='none' or 'ideal': no positive gain",
    cutoff=Cutoff("optional").but("required", denom="k"),
    source="Deshpande & Karypis (2004), Item-based top-N recommendation algorithms; denom='ideal' as cornac NCRR",
    rules=_ARHR_RULES,
    has_mean_over_ties=lambda denom, **_: denom != "hits",
    is_bounded_by_gains=lambda denom, group, **_: denom != "hits" and group is None,
    weighted=True,
)
def average_reciprocal_hit_rank(
    cut: CutLists,
    *,
    denom: RankSumDivisor = "none",
    gains: Annotated[
        Literal["binary", "grade"], "Worth of a hit at rank i: 1 / i where it is relevant; its gain over i."
    ] = "binary",
    rel: Level = 1,
) -> Ratio:
    """Sum over all hits of the inverse of their rank.

    At most 1 with ``denom='ideal'``.

    >>> average_reciprocal_hit_rank(Lists.of([Ranking([None, 1, None, None, 1])]).cut([2, 0])).values
    array([[0.5, 0.7]])
    """
    weighting = Weighting("inverse", gains, rel)
    if denom == "ideal":
        return weighting.share_of_ideal(cut)
    is_defined = weighting.has_gain(cut) if denom == "none" else cut.n_relevant(rel) > 0
    return Ratio(weighting.total(cut), divisor_of_hits(cut, denom, rel), where=is_defined)

"""Whether there is a hit at all, and how far down the first one, or each one, is."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, sum_by_list, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition, Rule
from rankeval_spark.measures.weighting import Weighting

_NO_RELEVANT = "no relevant judgement (R = 0)"
_HIT = Ranking([None, 1, None])
_NO_HIT = Ranking([None, None, None], missed=[1])


def hit_rank_parts(
    cut: CutLists,
    *,
    denom: Literal["none", "R", "ideal"] = "none",
    gains: Literal["binary", "grade"] = "binary",
    rel: Level = 1,
) -> tuple[FloatMatrix, FloatMatrix]:
    """Inverse ranks of all hits, summed, and what the sum is divided by."""
    weighting = Weighting("inverse", gains, rel)
    match denom:
        case "R":
            divisor = cut.n_relevant(rel)
        case "ideal":
            divisor = weighting.ideal_total(cut)
        case "none":
            divisor = np.ones((1, 1))
    return weighting.total(cut), divisor


@Definition(
    name="Success",
    formula="1 where h_k > 0, else 0",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval success; hit rate in recommendation",
    aliases={"HR": {}, "Hit": {}, "HitRate": {}, "HitRatio": {}},
    takes_expected_ties=True,
    interval="wilson",
    goldens=(
        Golden(
            "Success@3",
            (*[_HIT] * 7, *[_NO_HIT] * 3),
            (*["1"] * 7, *["0"] * 3),
            mean="7/10",
            note="10 users, 7 of them with a hit in the top k: the hit rate",
        ),
        Golden("Success@1", (_HIT,), ("0",), note="the hit stands at rank 2"),
    ),
)
def success(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Whether a relevant item is among the first k recommendations; its mean is the hit rate.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        0 or 1; NaN where the user has no relevant judgement.

    Notes
    -----
    ``1[h_k > 0]``. Not the number of hits (see ``NumHits``), which some libraries call hits, nor recall.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> success(Lists.of([Ranking([None, 1, 1])]).cut([1, 2, 3]))
    array([[0., 1., 1.]])
    """
    # At most 1 with ties over all orders, where it is a sum of probabilities.
    relevance = cut.lists.relevance(rel)
    return where_defined(np.minimum(cut.sum_hits(relevance.is_first), 1.0), relevance.n_relevant > 0)


@Definition(
    name="RR",
    formula="1 / (rank of the first relevant item at ranks 1..k); 0 where there is none",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="Voorhees (1999), The TREC-8 question answering track report; trec_eval recip_rank",
    aliases={"MRR": {}, "recip_rank": {}, "ReciprocalRank": {}},
    takes_expected_ties=True,
    goldens=(
        Golden("RR", (Ranking([None, 1, 1]), Ranking([1, 1])), ("1/2", "1"), mean="3/4"),
        Golden(
            "RR",
            (Ranking([None, None, 1]), Ranking([1]), Ranking([None, None, 1]), _NO_HIT),
            ("1/3", "1", "1/3", "0"),
            mean="(1/3 + 1 + 1/3 + 0) / 4",
            note="first hits at ranks 3, 1, 3 and none",
        ),
        Golden("RR@2", (Ranking([None, None, 1]),), ("0",), note="the first hit is beyond the cutoff"),
        Golden(
            "RR(judged_only=True)@2", (Ranking([None, 0, None, 1]),), ("1/2",), note="the second of the judged items"
        ),
    ),
)
def reciprocal_rank(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Inverse of the rank of the first relevant item; its mean is MRR.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a hit at ranks 1..k; NaN where the user has no relevant judgement.

    Notes
    -----
    ``1 / min{i <= k : r_i = 1}``.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> reciprocal_rank(Lists.of([Ranking([None, 1, 1])]).cut([1, 2, 0]))
    array([[0. , 0.5, 0.5]])
    """
    relevance = cut.lists.relevance(rel)
    return where_defined(cut.sum_hits(relevance.is_first / cut.lists.hit_rank), relevance.n_relevant > 0)


@Definition(
    name="FirstHit",
    formula="1 where r_k = 1 and h_k = 1, else 0",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="histogram of the ranks of the first hit: its means at ranks 1 to k add up to Success@k",
    cutoff=Cutoff("required"),
    interval="wilson",
    bounded_by_gains=False,
    goldens=(
        Golden("FirstHit@1", (_HIT, Ranking([1, 1])), ("0", "1"), mean="1/2"),
        Golden("FirstHit@2", (_HIT, Ranking([1, 1])), ("1", "0"), note="the second hit of a list is not its first"),
        Golden("FirstHit@3", (_HIT, _NO_HIT), ("0", "0"), note="above rank 3, and nowhere"),
        Golden("FirstHit(rel=2)@3", (Ranking([1, None, 2]),), ("1",), note="relevant from gain 2 on"),
    ),
)
def first_hit(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Whether the first relevant item is at rank k exactly; its mean is the share of such users.

    Parameters
    ----------
    cut : CutLists
        The lists and the ranks.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        0 or 1; NaN where the user has no relevant judgement.

    Notes
    -----
    ``1[min{i : r_i = 1} = k]``. Here k is a rank, not a depth: requested at 1, 2, ..., k it is a histogram with a row
    per rank, whose rows add up to Success@k.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> first_hit(Lists.of([Ranking([None, 1, 1])]).cut([1, 2, 3]))
    array([[0., 1., 0.]])
    """
    lists, relevance = cut.lists, cut.lists.relevance(rel)
    first_rank = sum_by_list(lists.hit_list, relevance.is_first * lists.hit_rank, n_lists=lists.n_lists)[:, None]
    return where_defined((first_rank == cut.k).astype(np.float64), relevance.n_relevant > 0)


@Definition(
    name="ARHR",
    formula="sum_{i<=k} r_i / i; gains='grade': sum_{i<=k} g_i / i",
    bounds=(0, math.inf),
    undefined=f"{_NO_RELEVANT}; with gains='grade' and denom='none' or 'ideal': no positive gain",
    source="Deshpande & Karypis (2004), Item-based top-N recommendation algorithms; denom='ideal' as cornac NCRR",
    takes_expected_ties=True,
    rules=(
        Rule(
            "rel only with gains='binary' or denom='R'",
            lambda options: options["rel"] != 1 and options["gains"] == "grade" and options["denom"] != "R",
        ),
        Rule(
            "agg='micro' only with denom='R' or 'ideal': without a denominator the micro average is the mean",
            lambda options: options["agg"] == "micro" and options["denom"] == "none",
        ),
    ),
    parts=hit_rank_parts,
    goldens=(
        Golden("ARHR", (Ranking([None, 1, None, None, 1]),), ("1/2 + 1/5",), note="hits at ranks 2 and 5"),
        Golden("ARHR(gains='grade')", (Ranking([2, None, None, 3]),), ("2 + 3/4",), note="gains 2 and 3"),
        Golden("ARHR(denom='R')", (Ranking([None, 1, None, None, 1], missed=[1]),), ("(1/2 + 1/5) / 3",)),
        Golden(
            "ARHR(denom='ideal')@5",
            (Ranking([None, 1, None, None, 1], missed=[1]),),
            ("(1/2 + 1/5) / (1 + 1/2 + 1/3)",),
            note="the best order has its three hits at ranks 1 to 3",
        ),
        Golden("ARHR(denom='ideal',gains='grade')", (Ranking([2, None, None, 3]),), ("(2 + 3/4) / (3 + 2/2)",)),
        Golden(
            "ARHR(agg='micro',denom='R')",
            (Ranking([None, 1], missed=[1, 1]), Ranking([1])),
            ("1/2 / 3", "1"),
            mean="(1/2 + 1) / (3 + 1)",
        ),
        Golden("ARHR(judged_only=True)", (Ranking([None, 1, None, 0, 1]),), ("1 + 1/3",), note="1 0 1"),
        Golden("ARHR(gains='grade')", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no gain to be had"),
    ),
)
def average_reciprocal_hit_rank(
    cut: CutLists,
    *,
    denom: Literal["none", "R", "ideal"] = "none",
    gains: Literal["binary", "grade"] = "binary",
    rel: Level = 1,
) -> FloatMatrix:
    """Sum over all hits of the inverse of their rank.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    denom : {"none", "R", "ideal"}
        What the sum is divided by: nothing; the relevant items R; the same sum in the ideal order.
    gains : {"binary", "grade"}
        What a hit at rank i adds: 1 / i where it is relevant; its gain over i.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        At least 0; at most 1 with ``denom='ideal'``. NaN where the user has no relevant judgement; with
        ``gains='grade'``, unless ``denom='R'``, where none of their gains is positive.

    Notes
    -----
    ``sum_{i<=k} r_i / i`` or ``sum_{i<=k} g_i / i``, a negative gain counting as 0. With one relevant item the
    binary sum equals RR.

    Examples
    --------
    Hits at ranks 2 and 5: 1/2 + 1/5.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> average_reciprocal_hit_rank(Lists.of([Ranking([None, 1, None, None, 1])]).cut([2, 0]))
    array([[0.5, 0.7]])
    """
    total, divisor = hit_rank_parts(cut, denom=denom, gains=gains, rel=rel)
    is_defined = cut.n_relevant(rel) > 0 if denom == "R" else Weighting("inverse", gains, rel).has_gain(cut)
    return where_defined(ratio(total, divisor), is_defined)

"""Whether the scores of held-out items are in the order of their gains, pair by pair or as a correlation."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures.arrays import FloatMatrix, ratio, sum_by_list, where_defined
from rankeval_spark.measures.concordance import Blocks, pairs_of
from rankeval_spark.measures.families.rating import n_hits
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import NotOffered
from rankeval_spark.measures.registry import Cutoff, Definition

FcpTies = Literal["half", "discordant", "ignore"]

_NO_SPREAD = "all held-out items in the list have one gain, or one score"
_SURPRISE = (
    "Surprise divides means over different users, and leaves users without a wrong pair out of one: take agg='micro' "
    "with ties='discordant', or see 'Surprise' in docs/presets.md for its own number"
)
_ONE_TIE = Ranking([3, 1, None, 2], scores=[0.9, 0.5, 0.5, 0.5])
_ONE_WRONG = Ranking([2, 3, 1])
_ALL_EQUAL = Ranking([2, None, 2])


def concordance_parts(cut: CutLists, *, ties: FcpTies = "half") -> tuple[FloatMatrix, FloatMatrix]:
    """Concordant pairs, and all that count."""
    pairs = pairs_of(cut.lists)
    untied = pairs.concordant + pairs.discordant
    return {
        "half": (pairs.concordant + pairs.tied_score / 2, untied + pairs.tied_score),
        "discordant": (pairs.concordant, untied + pairs.tied_score),
        "ignore": (pairs.concordant, untied),
    }[ties]


@Definition(
    name="FCP",
    formula="c / (c + d), c and d the pairs of held-out items in the right and in the wrong order",
    bounds=(0, 1),
    undefined="no two held-out items in the list have different gains; with ties='ignore': and different scores",
    source="Koren & Sill (2011), OrdRec; ties='discordant' as Surprise",
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    parts=concordance_parts,
    agg_not_offered=(NotOffered("surprise", _SURPRISE),),
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("FCP", (_ONE_WRONG, Ranking([2, 1])), ("2/3", "1"), mean="5/6", note="3 pairs, and 1"),
        Golden("FCP", (_ONE_TIE,), ("(2 + 1/2) / 3",), note="gains 1 and 2 have the same score"),
        Golden(
            "FCP(agg='micro')",
            (_ONE_WRONG, Ranking([2, 1])),
            ("2/3", "1"),
            mean="(2 + 1) / (3 + 1)",
            note="Koren & Sill",
        ),
        Golden("FCP(ties='discordant')", (_ONE_TIE,), ("2/3",)),
        Golden("FCP(ties='ignore')", (_ONE_TIE,), ("2/2",)),
        Golden("FCP", (_ALL_EQUAL,), (UNDEFINED,), note="one gain"),
    ),
)
def fraction_of_concordant_pairs(cut: CutLists, *, ties: FcpTies = "half") -> FloatMatrix:
    """Share of the pairs of held-out items, of different gains, that the scores put in the right order.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.
    ties : {"half", "discordant", "ignore"}
        What a pair of one score counts: half as concordant, as discordant, or not at all.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; NaN where no pair can be compared.

    Notes
    -----
    ``c / (c + d)`` over pairs of items that were held out and scored; pairs of one gain do not count. Koren & Sill sum
    the pairs over users before they divide: ``agg='micro'``.

    Surprise divides means over different users, ``m_c / (m_c + m_d)``, ties being discordant. Here m_c is the mean of c
    over users with c > 0, m_d that of d over users with d > 0. It is no ratio of sums over users, and not offered: a
    user with all pairs in the right order is left out of m_d. Of ann with one pair, right, and bob with two, one of
    them right, it makes 1 / (1 + 1) = 1/2; the mean of users is 3/4, that of pairs 2/3. With nine more users like ann
    these are 21/22 and 11/12, and Surprise's is 1/2. docs/presets.md says how to compute it.

    Examples
    --------
    Gains 2, 3 and 1 in the order of the scores: of three pairs, the first two items are wrong.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> fraction_of_concordant_pairs(Lists.of([Ranking([2, 3, None, 1])]).cut([0])).round(4)
    array([[0.6667]])
    """
    right, counted = concordance_parts(cut, ties=ties)
    return where_defined(ratio(right, counted), counted > 0)


@Definition(
    name="KendallTau",
    formula="(c - d) / sqrt((N - t_g) (N - t_s)), N all pairs, t_g and t_s those of one gain and of one score (tau-b)",
    bounds=(-1, 1),
    undefined=_NO_SPREAD,
    source="Kendall (1945), The treatment of ties in ranking problems; scipy.stats.kendalltau",
    aliases={"Tau": {}},
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("KendallTau", (_ONE_WRONG, Ranking([1, 2])), ("1/3", "-1"), mean="-1/3"),
        Golden("KendallTau", (_ONE_TIE,), ("2 / sqrt(3 * 2)",), note="one of three pairs has one score"),
        Golden("KendallTau", (_ALL_EQUAL,), (UNDEFINED,), note="one gain"),
    ),
)
def kendall_tau(cut: CutLists) -> FloatMatrix:
    """Rank correlation of scores and gains by pairs, Kendall's tau-b.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [-1, 1]; NaN where gains or scores do not differ.

    Notes
    -----
    ``(c - d) / sqrt((N - t_g) (N - t_s))`` over the items of the list that were held out.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> kendall_tau(Lists.of([Ranking([2, 3, None, 1])]).cut([0])).round(4)
    array([[0.3333]])
    """
    pairs = pairs_of(cut.lists)
    untied = np.sqrt(pairs.all - pairs.tied_gain) * np.sqrt(pairs.all - pairs.all_tied_score)
    return where_defined(np.clip(ratio(pairs.concordant - pairs.discordant, untied), -1, 1), untied > 0)


@Definition(
    name="Spearman",
    formula="correlation of the ranks of scores and gains, ties with the mean of their ranks",
    bounds=(-1, 1),
    undefined=_NO_SPREAD,
    source="Spearman (1904), The proof and measurement of association between two things; scipy.stats.spearmanr",
    aliases={"SpearmanRho": {}},
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("Spearman", (_ONE_WRONG, Ranking([1, 2])), ("1/2", "-1"), mean="-1/4", note="1 - 6 * 2 / (3 * 8)"),
        Golden("Spearman", (_ONE_TIE,), ("(3/2) / sqrt(2 * (3/2))",), note="two share the ranks 1 and 2"),
        Golden("Spearman", (_ALL_EQUAL,), (UNDEFINED,), note="one gain"),
    ),
)
def spearman(cut: CutLists) -> FloatMatrix:
    """Rank correlation of scores and gains, Spearman's rho.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [-1, 1]; NaN where gains or scores do not differ.

    Notes
    -----
    Pearson's correlation of the ranks, over the items of the list that were held out; equal values share the mean of
    their ranks. Ranks less their mean are whole or half numbers, so that the sums are exact.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> spearman(Lists.of([Ranking([2, 3, None, 1])]).cut([0]))
    array([[0.5]])
    """
    lists = cut.lists
    middle = ((n_hits(lists)[:, 0] + 1) / 2)[lists.hit_list]
    scores, gains = (Blocks.of(lists.hit_list, values).mid_rank - middle for values in (lists.scores, lists.hit_gain))
    together, of_scores, of_gains = (
        sum_by_list(lists.hit_list, product, n_lists=lists.n_lists)[:, None]
        for product in (scores * gains, scores**2, gains**2)
    )
    spread = np.sqrt(of_scores) * np.sqrt(of_gains)
    return where_defined(np.clip(ratio(together, spread), -1, 1), spread > 0)

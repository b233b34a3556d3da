"""Whether the scores of held-out items are in the order of their gains, pair by pair or as a correlation."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures.arrays import FloatMatrix, Ratio, ratio, where_defined
from rankeval_spark.measures.definition import ANY_ORDER_OF_TIES, Aggregation, Cutoff, Definition
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Meaning, NotOffered
from rankeval_spark.measures.prediction.concordant_pairs import EqualHits, pairs_of
from rankeval_spark.measures.prediction.rating_error import NEGATIVE_RATING

_NO_SPREAD: Final = "all held-out items in the list have one gain, or one score"
_SURPRISE: Final = (
    "Surprise divides means over different users, and leaves users without a wrong pair out of one: take agg='micro' "
    "with ties='discordant', or see 'Surprise' in docs/presets.md for its own number"
)


@Definition(
    name="FCP",
    formula="c / (c + d), c and d the pairs of held-out items in the right and in the wrong order",
    undefined="no two held-out items in the list have different gains; with ties='ignore': and different scores",
    source=f"Koren & Sill (2011), OrdRec; ties='discordant' as Surprise; {NEGATIVE_RATING}",
    cutoff=Cutoff("forbidden"),
    needs=(HIT_SCORES,),
    aggregation=Aggregation(not_offered=(NotOffered("surprise", _SURPRISE),)),
    ties=ANY_ORDER_OF_TIES,
)
def fraction_of_concordant_pairs(
    cut: CutLists,
    *,
    ties: Annotated[
        Literal["half", "discordant", "ignore"],
        Meaning("What a pair of one score counts: half as concordant; as discordant; not at all."),
    ] = "half",
) -> Ratio:
    """Share of the pairs of held-out items, of different gains, that the scores put in the right order.

    ``c / (c + d)`` over pairs of items that were held out and scored: in [0, 1]; NaN where no pair can be compared.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> fraction_of_concordant_pairs(Lists.of([Ranking([2, 3, None, 1])]).cut([0])).values.round(4)
    array([[0.6667]])
    """
    pairs = pairs_of(cut.lists)
    untied = pairs.concordant + pairs.discordant
    right, n_pairs = {
        "half": (pairs.concordant + pairs.tied_score / 2, untied + pairs.tied_score),
        "discordant": (pairs.concordant, untied + pairs.tied_score),
        "ignore": (pairs.concordant, untied),
    }[ties]
    return Ratio(right, n_pairs, where=n_pairs > 0)


@Definition(
    name="KendallTau",
    formula="(c - d) / sqrt((N - t_g) (N - t_s)), N all pairs, t_g and t_s those of one gain and of one score (tau-b)",
    bounds=(-1, 1),
    undefined=_NO_SPREAD,
    source=f"Kendall (1945), The treatment of ties in ranking problems; scipy.stats.kendalltau; {NEGATIVE_RATING}",
    aliases={"Tau": {}},
    cutoff=Cutoff("forbidden"),
    needs=(HIT_SCORES,),
    ties=ANY_ORDER_OF_TIES,
)
def kendall_tau(cut: CutLists) -> FloatMatrix:
    """Rank correlation of scores and gains by pairs, Kendall's tau-b.

    ``(c - d) / sqrt((N - t_g) (N - t_s))`` over the items of the list that were held out: in [-1, 1]; NaN where gains
    or scores do not differ.

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
    source="Spearman (1904), The proof and measurement of association between two things; scipy.stats.spearmanr; "
    f"{NEGATIVE_RATING}",
    aliases={"SpearmanRho": {}},
    cutoff=Cutoff("forbidden"),
    needs=(HIT_SCORES,),
    ties=ANY_ORDER_OF_TIES,
)
def spearman(cut: CutLists) -> FloatMatrix:
    """Rank correlation of scores and gains, Spearman's rho.

    Pearson's correlation of the ranks, over the items of the list that were held out: in [-1, 1]; NaN where gains or
    scores do not differ.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> spearman(Lists.of([Ranking([2, 3, None, 1])]).cut([0]))
    array([[0.5]])
    """
    lists = cut.lists
    middle = ((lists.n_hits[:, 0] + 1) / 2)[lists.hit_list]
    scores, gains = (
        EqualHits.of(lists.hit_list, values).mid_rank - middle for values in (lists.scores, lists.hit_gain)
    )
    covariance, of_scores, of_gains = (lists.sum_hits(product) for product in (scores * gains, scores**2, gains**2))
    spread = np.sqrt(of_scores) * np.sqrt(of_gains)
    return where_defined(np.clip(ratio(covariance, spread), -1, 1), spread > 0)

"""Gain of a user who looks at one item after another: with a fixed probability, or until one is good enough."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

import numpy as np

from rankeval_spark.measures.accuracy.cumulated_gain import (
    MOFFAT,
    OF_UNJUDGED,
    Gains,
    Unjudged,
    Weighting,
    require_no_gain_above,
)
from rankeval_spark.measures.arrays import (
    FloatMatrix,
    FloatVector,
    IntVector,
    Ratio,
    expand_ranges,
    find_in_lists,
    nan_unless,
    positions_in_list,
    product_before,
)
from rankeval_spark.measures.definition import Definition, OptionRule
from rankeval_spark.measures.lists import CutLists, Lists, memoised
from rankeval_spark.measures.options import GreatestGain, Level, Persistence

_NO_GAIN = "no judgement with a positive gain; with rel: no relevant one (R = 0)"

_UNJUDGED_ON_SCALE: Final = OptionRule(
    "unjudged at most max_rel",
    lambda options: isinstance(options["unjudged"], float) and options["unjudged"] > float(str(options["max_rel"])),
)

OptionalLevel: TypeAlias = Annotated[
    Level | None,
    "Lowest gain of a relevant item, which is worth 1; left out, an item is worth its gain over max_rel.",
]


@Definition(
    name="RBP",
    words="rank-biased precision",
    aliases={"RankBiasedPrecision": {}},
    formula="(1 - p) sum_{i<=k} (g_i / max_rel) p^(i-1); with rel: r_i instead of g_i / max_rel",
    bounds=(0, math.inf),
    at_most=lambda weighted, **_: math.inf if weighted else 1.0,
    undefined=_NO_GAIN,
    source=MOFFAT,
    rules=(
        OptionRule("max_rel only without rel", lambda options: options["rel"] is not None and options["max_rel"] != 1),
        _UNJUDGED_ON_SCALE,
        *OF_UNJUDGED,
    ),
    always_printed=("p",),
    has_mean_over_ties=True,
    is_bounded_by_gains=lambda unjudged, group, **_: unjudged == "zero" and group is None,
    weighted=True,
)
def rank_biased_precision(
    cut: CutLists,
    *,
    max_rel: GreatestGain = 1,
    p: Persistence = 0.8,
    rel: OptionalLevel = None,
    unjudged: Unjudged = "zero",
) -> FloatMatrix:
    """Mean gain per item looked at, of a user who goes on to the next item with probability p.

    At most 1 - p**k. Hits at ranks 1 and 3 are 0.2 and 0.2 (1 + 0.8**2).

    >>> rank_biased_precision(Lists.of([Ranking([1, None, 1])]).cut([1, 3]))
    array([[0.2  , 0.328]])
    """
    weighting = _geometric(p, rel, unjudged)
    if rel is None:
        require_no_gain_above(max_rel, cut.lists, measure="RBP")
    greatest = max_rel if rel is None else 1.0
    return nan_unless((1 - p) / greatest * weighting.total(cut), weighting.has_gain(cut))


@Definition(
    name="RBPResidual",
    words="residual of rank-biased precision",
    formula="p^m + (1 - p) sum of p^(i-1) over the ranks i <= m without a judgement",
    undefined=_NO_GAIN,
    source=MOFFAT,
    always_printed=("p",),
    without_relevant=1.0,
    is_bounded_by_gains=False,
    judged_only=False,
    better="neither",
)
def rank_biased_precision_residual(
    cut: CutLists,
    *,
    p: Persistence = 0.8,
    rel: Annotated[
        Level | None, "That of the RBP that it accompanies: it only decides for which users both are defined."
    ] = None,
) -> FloatMatrix:
    """Largest growth of RBP: its gain if all items without a judgement were relevant.

    m is min(k, n), and a negative gain no judgement: at least p**m, 1 without a list. Rank 2 of 3 has no judgement: 0.8
    + 0; 0.8**2 + 0.2 * 0.8; 0.8**3 + 0.2 * 0.8.

    >>> rank_biased_precision_residual(Lists.of([Ranking([1, None, 0])]).cut([1, 2, 3]))
    array([[0.8  , 0.8  , 0.672]])
    """
    weighting = _geometric(p, rel)
    known = (1 - p) * cut.sum_hits(weighting.discount(cut.lists.hit_rank) * cut.lists.is_judged_hit)
    # All weights together are 1, so what is not known is the rest; rounding must not take it below the tail.
    residual = np.maximum(1 - known, p**cut.depth)
    return nan_unless(residual, weighting.has_gain(cut))


def _geometric(p: float, rel: float | None, unjudged: Unjudged = "zero") -> Weighting:
    """Return gains as they are, or 0 and 1 where ``rel`` is given, of a user who comes to rank i with p^(i-1)."""
    gains: Gains = "grade" if rel is None else "binary"
    return Weighting("geometric", gains, 1 if rel is None else rel, unjudged, p=p)


_NO_POSITIVE_GAIN = "no judgement with a positive gain"
_CHAPELLE = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance"
_GAIN = Weighting("none", "grade", 1)


@Definition(
    name="ERR",
    words="expected reciprocal rank, cascade model",
    aliases={"ExpectedReciprocalRank": {}},
    formula="sum_{i<=k} (1/i) p_i prod_{j<i} (1 - p_j), p_i = (2^g_i - 1) / 2^max_rel",
    undefined=_NO_POSITIVE_GAIN,
    source=f"{_CHAPELLE}; gdeval; a number for unjudged as the unknown_doc_rating of Elasticsearch",
    rules=(_UNJUDGED_ON_SCALE, OF_UNJUDGED[0]),
    is_bounded_by_gains=lambda unjudged, group, **_: unjudged == "zero" and group is None,
)
def expected_reciprocal_rank(cut: CutLists, *, max_rel: GreatestGain = 4, unjudged: Unjudged = "zero") -> FloatMatrix:
    """Mean inverse of the rank at which a user stops, satisfied.

    Below 1 even for a perfect list. Gains 4 and 4 are 15/16, and 1/2 of 15/16 for the 1 in 16 who goes on.

    >>> expected_reciprocal_rank(Lists.of([Ranking([4, 4])]).cut([1, 2]))
    array([[0.9375    , 0.96679688]])
    """
    require_no_gain_above(max_rel, cut.lists, measure="ERR")
    seen = cut if unjudged == "zero" else cut.once(("judged", unjudged), lambda: _judge_all(cut, unjudged))
    return nan_unless(_sum_over_ranks(seen, max_rel), _GAIN.has_gain(cut))


@Definition(
    name="nERR",
    words="normalized expected reciprocal rank",
    aliases={"NormalizedExpectedReciprocalRank": {}},
    formula="ERR@k / (ERR@k of the ideal order)",
    undefined=_NO_POSITIVE_GAIN,
    source=f"{_CHAPELLE}; normalised as nDCG, by all judgements, best first",
)
def normalised_expected_reciprocal_rank(cut: CutLists, *, max_rel: GreatestGain = 4) -> Ratio:
    """Share that a list reaches of the expected reciprocal rank of the best order there could be.

    The ideal order is that of all judgements of the user, cut at k.

    >>> normalised_expected_reciprocal_rank(Lists.of([Ranking([1, 4])]).cut([1, 2])).values.round(4)
    array([[0.0667, 0.5343]])
    """
    lists = cut.lists
    require_no_gain_above(max_rel, lists, measure="nERR")
    ideal = cut.sum_ideal(_chance_of_stop(lists.judged_gain, lists.judged_list, max_rel) / lists.ideal_rank)
    return Ratio(_sum_over_ranks(cut, max_rel), ideal, where=_GAIN.has_gain(cut))


def _judge_all(cut: CutLists, unjudged: Unjudged) -> CutLists:
    """View the lists with a judgement of every item: those without one have the gain that ``unjudged`` says."""
    lists = cut.lists
    owner = np.repeat(np.arange(lists.n_lists), lists.n_recommended)  # (n_ranks of all lists,)
    rank = positions_in_list(owner, n_lists=lists.n_lists)
    if lists.empty is not None:
        of, first, last = lists.empty
        length = last - first + 1
        empty = np.repeat(of, length), expand_ranges(first, length)
        is_item = find_in_lists(owner, rank, among=empty) < 0
        owner, rank = owner[is_item], rank[is_item]
    place = find_in_lists(owner, rank, among=(lists.hit_list, lists.hit_rank))
    gain = np.append(lists.hit_gain, -1.0)[place]  # -1 without a judgement too
    usual = replace(_GAIN, unjudged=unjudged).of_unjudged(lists)[owner, 0]
    judgements = lists.judged_list, lists.judged_gain
    full = Lists(lists.n_recommended, owner, rank, np.where(gain < 0, usual, gain), *judgements, names=lists.names)
    return CutLists(full, cut.k)


@memoised
def _sum_over_ranks(cut: CutLists, max_rel: float) -> FloatMatrix:
    """Sum the chance to stop at each hit, divided by its rank."""
    lists = cut.lists
    return cut.sum_hits(_chance_of_stop(lists.hit_gain, lists.hit_list, max_rel) / lists.hit_rank)


def _chance_of_stop(gains: FloatVector, list_index: IntVector, max_rel: float) -> FloatVector:
    """p_i prod_{j<i} (1 - p_j): the user stops at item i of their list, having gone past the earlier ones."""
    # (2**g - 1) / 2**max_rel term by term, because 2**max_rel alone overflows from 1024 on.
    satisfied: FloatVector = np.exp2(np.maximum(gains, 0) - max_rel) - np.exp2(-max_rel)
    return satisfied * product_before(1 - satisfied, list_index)

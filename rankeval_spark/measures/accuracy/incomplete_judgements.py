"""Judgements that are incomplete: how many items have one, and measures that look only at those that do."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import (
    BoolVector,
    FloatMatrix,
    FloatVector,
    Ratio,
    divide_or_zero,
    positions_in_list,
    running_count_by_list,
)
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.lists import CutLists, Lists, memoised
from rankeval_spark.measures.options import Level

_SMOOTHING: Final = 1e-5  # keeps infAP's share of relevant items away from 0 / 0; the value is trec_eval's

JudgedLevel: TypeAlias = Annotated[
    Level,
    "Lowest gain of a relevant item; from 0 to below it, the item is judged as not relevant. A negative "
    "gain marks an item of the pool that was not judged.",
]


@Definition(
    name="Judged",
    words="share of judged items, judgement coverage, judgment rate",
    formula="(items with a judgement at ranks 1..k) / m",
    undefined="never",
    source="ir_measures Judged; a negative gain as of trec_eval 10 unj",
    cutoff=Cutoff("optional").but("required", denom="k"),
    is_bounded_by_gains=False,
    judged_only=False,
    better="neither",
    without_relevant=0.0,
)
def judged_share(
    cut: CutLists,
    *,
    denom: Annotated[Literal["len", "k"], "Divisor of the judged items: the items at ranks 1..k; k."] = "len",
) -> Ratio:
    """Share of the first k recommendations that have a judgement, relevant or not.

    A negative gain is no judgement. A user whose judgements are all irrelevant has a value too; 0 without a list.

    >>> judged_share(Lists.of([Ranking([None, 1, 0, None])]).cut([1, 2, 10])).values
    array([[0. , 0.5, 0.5]])
    """
    n_judged = cut.sum_hits(cut.lists.is_judged_hit)
    return Ratio(n_judged, cut.n_items if denom == "len" else cut.k, where=np.ones((1, 1), dtype=np.bool_))


@Definition(
    name="unj",
    words="share of unjudged items, unjudged rate",
    aliases={"Unjudged": {}},
    formula="(items without a judgement at ranks 1..k) / k",
    undefined="never",
    source="trec_eval 10 unj",
    cutoff=Cutoff("required"),
    is_bounded_by_gains=False,
    judged_only=False,
    better="neither",
    without_relevant=0.0,
)
def unjudged_share(cut: CutLists) -> FloatMatrix:
    """Unjudged items among the first k recommendations, per place.

    A negative gain is no judgement; 0 without a list.

    >>> unjudged_share(Lists.of([Ranking([None, 1, 0, None])]).cut([1, 2, 10]))
    array([[1. , 0.5, 0.2]])
    """
    return (cut.n_items - cut.sum_hits(cut.lists.is_judged_hit)) / cut.k


@Definition(
    name="Bpref",
    words="binary preference",
    aliases={"BinaryPreference": {}},
    formula="(1 / R) sum over relevant recommended items of 1 - min(b, R) / min(N, R); b judged non-relevant items "
    "above it, N of them in all",
    source="Buckley & Voorhees (2004), Retrieval evaluation with incomplete information; trec_eval bpref",
    cutoff=Cutoff("forbidden"),
    judged_only=False,
)
def binary_preference(cut: CutLists, *, rel: JudgedLevel = 1) -> Ratio:
    """Mean share of the items judged as not relevant that are below a relevant item.

    A hit with b = 0 counts 1. The second hit is below one of the two items that are not relevant:

    >>> binary_preference(Lists.of([Ranking([None, 1, 0, 1], missed=[1, 0])]).cut([0])).values
    array([[0.5]])
    """
    lists, relevance = cut.lists, cut.lists.relevance(rel)
    n_relevant, n_nonrelevant = relevance.n_relevant, lists.sum_judged(_is_nonrelevant(lists.judged_gain, rel))
    at_most = n_relevant[lists.hit_list, 0]
    n_counted = np.minimum(n_nonrelevant[lists.hit_list, 0], at_most)
    preference = 1 - divide_or_zero(np.minimum(_nonrelevant_above(lists, rel), at_most), n_counted)
    return Ratio(cut.sum_hits(relevance.is_relevant * preference), n_relevant)


@Definition(
    name="infAP",
    words="inferred average precision",
    aliases={"InferredAP": {}, "InferredAveragePrecision": {}},
    formula="(1 / R) sum over relevant recommended items, at rank i, of 1/i + (j/i) (a + e) / (a + b + 2 e); "
    "j items of the pool above it, a relevant, b not relevant; e = 0.00001",
    source="Yilmaz & Aslam (2006), Estimating average precision with incomplete and imperfect judgments; trec_eval "
    "infAP; a negative gain is in the pool, as in trec_eval",
    cutoff=Cutoff("forbidden"),
    is_bounded_by_gains=False,
    judged_only=False,
)
def inferred_average_precision(cut: CutLists, *, rel: JudgedLevel = 1) -> Ratio:
    """Average precision as estimated from a sample of the judgements.

    An item that was pooled and not judged, then a relevant one: 1/2 + 1/2 * 1/2.

    >>> inferred_average_precision(Lists.of([Ranking([-1, 1])]).cut([0])).values
    array([[0.75]])
    """
    lists, relevance = cut.lists, cut.lists.relevance(rel)
    n_relevant_above = relevance.n_above - relevance.is_relevant
    n_judged_above = n_relevant_above + _nonrelevant_above(lists, rel)
    n_pooled_above = positions_in_list(lists.hit_list, n_lists=lists.n_lists) - 1
    relevant_share = (n_relevant_above + _SMOOTHING) / (n_judged_above + 2 * _SMOOTHING)
    precision = (1 + n_pooled_above * relevant_share) / lists.hit_rank
    return Ratio(cut.sum_hits(relevance.is_relevant * precision), relevance.n_relevant)


def _is_nonrelevant(gains: FloatVector, rel: float) -> BoolVector:
    """Return True if a judgement says that the item is not relevant; a negative one says nothing."""
    return (gains >= 0) & (gains < rel)


@memoised
def _nonrelevant_above(lists: Lists, rel: float) -> FloatVector:
    """Items judged as not relevant at the rank of each hit or above it: shape (n_hits,)."""
    flags = _is_nonrelevant(lists.hit_gain, rel).astype(np.float64)
    return running_count_by_list(flags, lists.hit_list, n_lists=lists.n_lists)

"""How soon a user is satisfied who looks at items in order and stops at one that is good enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.measures.accuracy.gains_and_discounts import Weighting, require_no_gain_above
from rankeval_spark.measures.arrays import FloatMatrix, Ratio, product_of_earlier, where_defined
from rankeval_spark.measures.definition import Definition
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.shared_options import GreatestGain

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector, IntVector

_NO_GAIN = "no judgement with a positive gain"
_CHAPELLE = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance"
_GAIN = Weighting("none", "grade", 1)


@Definition(
    name="ERR",
    formula="sum_{i<=k} (1/i) p_i prod_{j<i} (1 - p_j), p_i = (2^g_i - 1) / 2^max_rel",
    undefined=_NO_GAIN,
    source=f"{_CHAPELLE}; gdeval",
    aliases={"ExpectedReciprocalRank": {}},
)
def expected_reciprocal_rank(cut: CutLists, *, max_rel: GreatestGain = 4) -> FloatMatrix:
    """Mean inverse of the rank at which a user stops, satisfied.

    ``sum_{i<=k} (1/i) p_i prod_{j<i} (1 - p_j)``: in [0, 1], and below 1 even for a perfect list; NaN where the user
    has no judgement with a positive gain. Gains 4 and 4 are 15/16, and 1/2 of 15/16 for the 1 in 16 who goes on.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> expected_reciprocal_rank(Lists.of([Ranking([4, 4])]).cut([1, 2]))
    array([[0.9375    , 0.96679688]])
    """
    require_no_gain_above(max_rel, cut.lists, measure="ERR")
    return where_defined(_of_list(cut, max_rel), _GAIN.has_gain(cut))


@Definition(
    name="nERR",
    formula="ERR@k / (ERR@k of the ideal order)",
    undefined=_NO_GAIN,
    source=f"{_CHAPELLE}; normalised as nDCG, by all judgements, best first",
)
def normalised_expected_reciprocal_rank(cut: CutLists, *, max_rel: GreatestGain = 4) -> Ratio:
    """Share that a list reaches of the expected reciprocal rank of the best order there could be.

    ``ERR@k / IERR@k``, IERR from all judgements of the user, best first, cut at k: in [0, 1]; NaN where the user has no
    judgement with a positive gain.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> normalised_expected_reciprocal_rank(Lists.of([Ranking([1, 4])]).cut([1, 2])).values.round(4)
    array([[0.0667, 0.5343]])
    """
    lists = cut.lists
    require_no_gain_above(max_rel, lists, measure="nERR")
    ideal = cut.sum_ideal(_chance_of_stop(lists.judged_gain, lists.judged_list, max_rel) / lists.ideal_rank)
    return Ratio(_of_list(cut, max_rel), ideal, where=_GAIN.has_gain(cut))


def _of_list(cut: CutLists, max_rel: float) -> FloatMatrix:
    lists = cut.lists
    return cut.once(
        ("expected reciprocal rank", max_rel),
        lambda: cut.sum_hits(_chance_of_stop(lists.hit_gain, lists.hit_list, max_rel) / lists.hit_rank),
    )


def _chance_of_stop(gains: FloatVector, list_index: IntVector, max_rel: float) -> FloatVector:
    """p_i prod_{j<i} (1 - p_j): the user stops at item i of their list, having gone past the earlier ones."""
    # (2**g - 1) / 2**max_rel term by term, because 2**max_rel alone overflows from 1024 on.
    satisfied: FloatVector = np.exp2(np.maximum(gains, 0) - max_rel) - np.exp2(-max_rel)
    return satisfied * product_of_earlier(1 - satisfied, list_index)

"""How soon a user is satisfied who looks at items in order and stops at one that is good enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, product_of_earlier, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.grades import require_no_gain_above
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Definition
from rankeval_spark.measures.weighting import Weighting

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector, IntVector

_NO_GAIN = "no judgement with a positive gain"
_CHAPELLE = "Chapelle, Metzler, Zhang & Grinspan (2009), Expected reciprocal rank for graded relevance"
_GAIN = Weighting("none", "grade", 1)

_RISING = Ranking([1, None, 4, 2])
_AT_RANK_1, _AT_RANK_3, _AT_RANK_4 = "1/16", "1/3 * 15/16 * 15/16", "1/4 * 15/16 * 1/16 * 3/16"
_BEST_OF_RISING = "(15/16 + 1/2 * 1/16 * 3/16 + 1/3 * 1/16 * 13/16 * 1/16)"


def normalised_parts(cut: CutLists, *, max_rel: Level = 4) -> tuple[FloatMatrix, FloatMatrix]:
    """Compute the expected reciprocal rank of the list, and of the best order there could be."""
    require_no_gain_above(max_rel, cut.lists, measure="nERR")
    ideal = cut.sum_ideal(_stops(cut.lists.judged_gain, cut.lists.judged_list, max_rel) / cut.lists.ideal_rank)
    return _of_list(cut, max_rel), ideal


@Definition(
    name="ERR",
    formula="sum_{i<=k} (1/i) p_i prod_{j<i} (1 - p_j), p_i = (2^g_i - 1) / 2^max_rel",
    bounds=(0, 1),
    undefined=_NO_GAIN,
    source=f"{_CHAPELLE}; gdeval",
    aliases={"ExpectedReciprocalRank": {}},
    goldens=(
        Golden("ERR@1", (_RISING,), (_AT_RANK_1,), note="gain 1 of 4: satisfied with probability 1/16"),
        Golden("ERR@3", (_RISING,), (f"{_AT_RANK_1} + {_AT_RANK_3}",), note="rank 2 satisfies nobody"),
        Golden("ERR", (_RISING,), (f"{_AT_RANK_1} + {_AT_RANK_3} + {_AT_RANK_4}",)),
        Golden("ERR", (Ranking([4, 4]),), ("15/16 + 1/2 * 1/16 * 15/16",), note="few look at the second item"),
        Golden("ERR(max_rel=1)", (Ranking([None, 1, 1]),), ("1/2 * 1/2 + 1/3 * 1/2 * 1/2",), note="a coin an item"),
        Golden("ERR(max_rel=2)", (Ranking([-1, 2]),), ("1/2 * 3/4",), note="a negative gain counts as 0"),
        Golden("ERR", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no gain to be had"),
    ),
)
def expected_reciprocal_rank(cut: CutLists, *, max_rel: Level = 4) -> FloatMatrix:
    """Mean inverse of the rank at which a user stops, satisfied.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    max_rel : float
        Greatest gain there can be; a judgement above it is an error.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; even a perfect list stays below 1, because no item satisfies for certain. NaN where the user has no
        judgement with a positive gain.

    Raises
    ------
    JudgementError
        A judgement with a gain above ``max_rel``.

    Notes
    -----
    ``sum_{i<=k} (1/i) p_i prod_{j<i} (1 - p_j)``: an item of gain g satisfies with probability
    ``p = (2**g - 1) / 2**max_rel``, a negative gain counting as 0. ``max_rel`` never comes from the data, because all
    values would change with one new grade.

    Examples
    --------
    Gains 4 and 4: 15/16, and 1/2 of 15/16 for the 1 in 16 who goes on.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> expected_reciprocal_rank(Lists.of([Ranking([4, 4])]).cut([1, 2]))
    array([[0.9375    , 0.96679688]])
    """
    require_no_gain_above(max_rel, cut.lists, measure="ERR")
    return where_defined(_of_list(cut, max_rel), _GAIN.has_gain(cut))


@Definition(
    name="nERR",
    formula="ERR@k / (ERR@k of the ideal order)",
    bounds=(0, 1),
    undefined=_NO_GAIN,
    source=f"{_CHAPELLE}; normalised as nDCG, by all judgements, best first",
    parts=normalised_parts,
    goldens=(
        Golden("nERR", (_RISING,), (f"({_AT_RANK_1} + {_AT_RANK_3} + {_AT_RANK_4}) / {_BEST_OF_RISING}",)),
        Golden("nERR@1", (_RISING,), ("1/15",), note="gain 1 where 4 was to be had"),
        Golden("nERR(agg='micro')@1", (_RISING, Ranking([1])), ("1/15", "1"), mean="(1/16 + 1/16) / (15/16 + 1/16)"),
        Golden("nERR(max_rel=2)", (Ranking([2, 1], missed=[0]),), ("1",), note="the best order"),
        Golden("nERR(max_rel=2)@2", (Ranking([None, 1], missed=[2]),), ("1/2 * 1/4 / (3/4 + 1/2 * 1/4 * 1/4)",)),
    ),
)
def normalised_expected_reciprocal_rank(cut: CutLists, *, max_rel: Level = 4) -> FloatMatrix:
    """Share that a list reaches of the expected reciprocal rank of the best order there could be.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    max_rel : float
        Greatest gain there can be; a judgement above it is an error.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no judgement with a positive gain.

    Raises
    ------
    JudgementError
        A judgement with a gain above ``max_rel``.

    Notes
    -----
    ``ERR@k / IERR@k``, IERR from all judgements of the user, best first, cut at k.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> normalised_expected_reciprocal_rank(Lists.of([Ranking([1, 4])]).cut([1, 2])).round(4)
    array([[0.0667, 0.5343]])
    """
    return where_defined(ratio(*normalised_parts(cut, max_rel=max_rel)), _GAIN.has_gain(cut))


def _of_list(cut: CutLists, max_rel: float) -> FloatMatrix:
    lists = cut.lists
    return cut.once(
        ("expected reciprocal rank", max_rel),
        lambda: cut.sum_hits(_stops(lists.hit_gain, lists.hit_list, max_rel) / lists.hit_rank),
    )


def _stops(gains: FloatVector, list_index: IntVector, max_rel: float) -> FloatVector:
    """Probability that the user stops at each item of their list, having gone past the earlier ones."""
    # (2**g - 1) / 2**max_rel term by term, because 2**max_rel alone overflows from 1024 on.
    satisfied: FloatVector = np.exp2(np.maximum(gains, 0) - max_rel) - np.exp2(-max_rel)
    return satisfied * product_of_earlier(1 - satisfied, list_index)

"""Area under the ROC curve of one user, where items that are not relevant were scored too."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rankeval_spark.columns import HIT_SCORES
from rankeval_spark.measures.arrays import FloatMatrix, ratio, sum_by_list, where_defined
from rankeval_spark.measures.concordance import Blocks
from rankeval_spark.measures.families.rating import n_hits
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Lists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition

AucTies = Literal["half", "zero"]

_ONE_CLASS = "the list holds no relevant held-out item, or none with a gain below rel"
_THREE_OF_FOUR = Ranking([1, 0, None, 1, 0])
_TIED = Ranking([1, 0, 1, 0], scores=[0.9, 0.5, 0.5, 0.1])


def area_parts(cut: CutLists, *, rel: Level = 1, ties: AucTies = "half") -> tuple[FloatMatrix, FloatMatrix]:
    """Pairs in the right order, and all pairs."""
    return _ordered_pairs(cut.lists, rel, ties)


@Definition(
    name="AUC",
    formula="(c + t / 2) / (n_1 n_0), c and t the pairs of a relevant and another held-out item in order and tied",
    bounds=(0, 1),
    undefined=_ONE_CLASS,
    source="Hanley & McNeil (1982), The meaning and use of the area under a ROC curve; ties='zero' as Cornac",
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    parts=area_parts,
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("AUC", (_THREE_OF_FOUR, Ranking([0, 1])), ("3/4", "0"), mean="3/8", note="4 pairs, and 1"),
        Golden(
            "AUC(agg='micro')",
            (_THREE_OF_FOUR, Ranking([0, 1])),
            ("3/4", "0"),
            mean="3 / (4 + 1)",
            note="of the pairs of all users; GAUC weighs by items",
        ),
        Golden("AUC", (_TIED,), ("(3 + 1/2) / 4",), note="one relevant item ties with another"),
        Golden("AUC(ties='zero')", (_TIED,), ("3/4",)),
        Golden("AUC(rel=2)", (Ranking([1, 2]),), ("0",), note="relevant from gain 2 on"),
        Golden("AUC", (Ranking([1, None], missed=[0]),), (UNDEFINED,), note="the irrelevant item was not scored"),
    ),
)
def area_under_curve(cut: CutLists, *, rel: Level = 1, ties: AucTies = "half") -> FloatMatrix:
    """Share of the pairs, of a relevant item and another that was held out, which the scores put in the right order.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant.
    ties : {"half", "zero"}
        What a pair of one score counts.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; NaN without a pair.

    Notes
    -----
    ``(c + t / 2) / (n_1 n_0)`` over the held-out items that the list holds, n_1 of them relevant and n_0 with a gain
    below rel. Items without a judgement do not count: a list of the best k of a catalogue has no area under its curve,
    only the part that PAUC gives. With ``agg='micro'`` the pairs of all users are pooled; GAUC weighs users by
    their items instead.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> area_under_curve(Lists.of([Ranking([1, 0, None, 1, 0])]).cut([0]))
    array([[0.75]])
    """
    right, n_pairs = area_parts(cut, rel=rel, ties=ties)
    return where_defined(ratio(right, n_pairs), n_pairs > 0)


def weighted_area_parts(cut: CutLists, *, rel: Level = 1, ties: AucTies = "half") -> tuple[FloatMatrix, FloatMatrix]:
    """AUC times the impressions of the list, and these: its judged items."""
    n = n_hits(cut.lists)
    return np.nan_to_num(area_under_curve(cut, rel=rel, ties=ties)) * n, n


@Definition(
    name="GAUC",
    formula="sum over users of n_u AUC_u / sum over users of n_u, n_u the user's held-out items that were scored",
    bounds=(0, 1),
    undefined=_ONE_CLASS,
    source="Zhu et al. (2017), Optimized cost per click in Taobao display advertising",
    cutoff=Cutoff("forbidden"),
    without_relevant=lambda **_: math.nan,
    needs=(HIT_SCORES,),
    parts=weighted_area_parts,
    agg="micro",
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("GAUC", (_THREE_OF_FOUR, Ranking([0, 1])), ("3/4", "0"), mean="(4 * 3/4 + 2 * 0) / (4 + 2)"),
        Golden("GAUC(ties='zero')", (_TIED,), ("3/4",)),
        Golden(
            "GAUC(agg='macro')", (_THREE_OF_FOUR, Ranking([0, 1])), ("3/4", "0"), mean="3/8", note="the mean of AUC"
        ),
        Golden("GAUC", (Ranking([1, None], missed=[0]),), (UNDEFINED,), note="such a user has no weight either"),
    ),
)
def grouped_area_under_curve(cut: CutLists, *, rel: Level = 1, ties: AucTies = "half") -> FloatMatrix:
    """AUC of the user, weighted in the mean by their number of impressions.

    Parameters
    ----------
    cut : CutLists
        The lists, with scores, and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant.
    ties : {"half", "zero"}
        What a pair of one score counts.

    Returns
    -------
    float64, shape (n_lists, 1)
        In [0, 1]; NaN without a pair.

    Notes
    -----
    ``sum n_u AUC_u / sum n_u``: impressions are the held-out items that the list holds, relevant or not. Users without
    an area, all of whose impressions are of one kind, are left out of both sums.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> grouped_area_under_curve(Lists.of([Ranking([1, 0, None, 1, 0])]).cut([0]))
    array([[0.75]])
    """
    return area_under_curve(cut, rel=rel, ties=ties)


def _ordered_pairs(lists: Lists, rel: float, ties: AucTies) -> tuple[FloatMatrix, FloatMatrix]:
    """Count the pairs in the right order and all pairs of a relevant and another hit: shape (n_lists, 1) each."""
    owner, n_lists = lists.hit_list, lists.n_lists
    is_relevant = lists.relevance(rel).is_relevant
    blocks = Blocks.of(owner, lists.scores)
    others = np.bincount(blocks.of_hit, weights=1 - is_relevant, minlength=len(blocks.owner))
    of_list = sum_by_list(owner, 1 - is_relevant, n_lists=n_lists)
    others_below = np.cumsum(others) - others - (np.cumsum(of_list) - of_list)[blocks.owner]
    below = others_below + (others / 2 if ties == "half" else 0)
    right = sum_by_list(owner, is_relevant * below[blocks.of_hit], n_lists=n_lists)
    return right[:, None], (sum_by_list(owner, is_relevant, n_lists=n_lists) * of_list)[:, None]

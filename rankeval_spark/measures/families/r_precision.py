"""Precision at a rank that depends on the number of relevant items."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above, Level
from rankeval_spark.measures.registry import Cutoff, Definition

_NO_RELEVANT = "no relevant judgement (R = 0)"
_HITS_AT_1_4_5 = Ranking([1, None, None, 1, 1, None])


def r_precision_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits at ranks 1..R, or 1..k where that is less, and the number of these ranks."""
    return _parts_at(cut, cut.n_relevant(rel), rel)


def r_precision_at_multiple_parts(
    cut: CutLists, *, rel: Level = 1, x: Annotated[float, Above(0)] = 1
) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits at ranks 1..c, and c."""
    return _parts_at(cut, np.floor(x * cut.n_relevant(rel) + 0.9), rel)


@Definition(
    name="Rprec",
    formula="h_R / R; with a cutoff h_min(R, k) / min(R, k)",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval Rprec",
    aliases={"RPrecision": {}, "R-Precision": {}},
    takes_expected_ties=True,
    parts=r_precision_parts,
    goldens=(
        Golden("Rprec", (_HITS_AT_1_4_5,), ("1/3",), note="R = 3: ranks 1 to 3 count"),
        Golden("Rprec@2", (_HITS_AT_1_4_5,), ("1/2",), note="R = 3 > k: ranks 1 and 2 count"),
        Golden("Rprec(agg='micro')", (_HITS_AT_1_4_5, Ranking([1])), ("1/3", "1"), mean="(1 + 1) / (3 + 1)"),
        Golden("Rprec(judged_only=True)", (Ranking([None, 0, 1], missed=[1]),), ("1/2",), note="0 1, of which 2 count"),
        Golden("Rprec@5", (_HITS_AT_1_4_5,), ("1/3",), note="equals Rprec where R <= k"),
    ),
)
def r_precision(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Precision at rank R, the number of relevant items.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_R / R``: the list is cut at R, and ranks it does not reach are not relevant. With a cutoff,
    ``h_min(R, k) / min(R, k)``, for stored lists of length k; it equals Rprec where R <= k.

    Examples
    --------
    Hits at ranks 1, 4 and 5; R = 3:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> r_precision(Lists.of([Ranking([1, None, None, 1, 1, None])]).cut([2, 0]))
    array([[0.5       , 0.33333333]])
    """
    return where_defined(ratio(*r_precision_parts(cut, rel=rel)), cut.n_relevant(rel) > 0)


@Definition(
    name="Rprec_mult",
    formula="h_c / c with c = int(x R + 0.9)",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval Rprec_mult",
    aliases={"RPrecisionMultiple": {}},
    takes_expected_ties=True,
    cutoff=Cutoff("forbidden"),
    always_printed=("x",),
    after_at="x",
    parts=r_precision_at_multiple_parts,
    goldens=(
        Golden("Rprec_mult(x=1)", (_HITS_AT_1_4_5,), ("1/3",), note="Rprec"),
        Golden("Rprec_mult(x=2)", (_HITS_AT_1_4_5,), ("3/6",), note="int(6.9) = 6 ranks"),
        Golden("Rprec_mult(x=0.5)", (_HITS_AT_1_4_5,), ("1/2",), note="int(2.4) = 2 ranks"),
        Golden("Rprec_mult(agg='micro',x=2)", (_HITS_AT_1_4_5, Ranking([1])), ("3/6", "1/2"), mean="(3 + 1) / (6 + 2)"),
        Golden("Rprec_mult(x=0.05)", (Ranking([1]),), ("0",), note="int(0.95) = 0 ranks"),
        Golden("Rprec_mult(x=1)", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def r_precision_at_multiple(cut: CutLists, *, rel: Level = 1, x: Annotated[float, Above(0)] = 1) -> FloatMatrix:
    """Precision at a multiple of R, the number of relevant items.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant.
    x : float
        The multiple; always printed. ``Rprec_mult@0.2`` and trec_eval's ``Rprec_mult_0.20`` are read as x = 0.2.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 where c = 0; NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_c / c`` with ``c = int(x R + 0.9)``, computed in doubles as trec_eval does; ranks that the list does not reach
    are not relevant. ``x = 1`` is Rprec.

    Examples
    --------
    Hits at ranks 1, 4 and 5; R = 3, so the list is cut at 6:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> r_precision_at_multiple(Lists.of([Ranking([1, None, None, 1, 1, None])]).cut([0]), x=2)
    array([[0.5]])
    """
    return where_defined(ratio(*r_precision_at_multiple_parts(cut, rel=rel, x=x)), cut.n_relevant(rel) > 0)


def _parts_at(cut: CutLists, depth: FloatMatrix, rel: float) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits up to a rank of each list's own, ``depth`` of shape (n_lists, 1), or up to k where that is less; and it."""
    lists = cut.lists
    is_within = lists.hit_rank <= depth[lists.hit_list, 0]
    hits = cut.sum_hits(lists.relevance(rel).is_relevant * is_within)
    return hits, np.minimum(depth, cut.k)

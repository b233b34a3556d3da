"""Precision, recall and F of the whole list as a set, whatever its order."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.families.precision_recall import precision_parts, recall, recall_parts
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above, Level
from rankeval_spark.measures.registry import Cutoff, Definition

_NO_RELEVANT = "no relevant judgement (R = 0)"
_TWO_OF_FIVE = Ranking([None, 1, None, 1, None], missed=[1, 1])
_NO_LIST = Ranking([], missed=[1])


def set_precision_parts(cut: CutLists, *, rel: Level = 1, relative: bool = False) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits of the whole list, and its items; or the hits there can be."""
    hits, n_items = precision_parts(cut, denom="len", rel=rel)
    return hits, np.minimum(n_items, cut.n_relevant(rel)) if relative else n_items


def set_recall_parts(cut: CutLists, *, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits of the whole list, and the relevant items there are."""
    return recall_parts(cut, denom="R", rel=rel)


def set_f_parts(
    cut: CutLists, *, beta: Annotated[float, Above(0)] = 1, rel: Level = 1
) -> tuple[FloatMatrix, FloatMatrix]:
    """(1 + b^2) times the hits of the whole list, and b^2 R + n."""
    weight = beta**2
    return (1 + weight) * cut.hits(rel), weight * cut.n_relevant(rel) + cut.n_items


@Definition(
    name="SetP",
    formula="h_n / n",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval set_P and set_relative_P; ir_measures SetP",
    aliases={"set_P": {}, "SetPrecision": {}, "set_relative_P": {"relative": True}},
    cutoff=Cutoff("forbidden"),
    parts=set_precision_parts,
    bounded_by_gains=True,
    goldens=(
        Golden("SetP", (_TWO_OF_FIVE, _NO_LIST), ("2/5", "0"), mean="1/5", note="0 where the model gave no list"),
        Golden(
            "SetP(relative=True)", (_TWO_OF_FIVE, Ranking([1, None])), ("2/4", "1"), note="of the hits there can be"
        ),
        Golden("SetP(agg='micro')", (_TWO_OF_FIVE, Ranking([1])), ("2/5", "1"), mean="(2 + 1) / (5 + 1)"),
        Golden("SetP(judged_only=True)", (Ranking([None, 1, 0, -1, 1]),), ("2/3",), note="two of three judged items"),
        Golden("SetP", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def set_precision(cut: CutLists, *, rel: Level = 1, relative: bool = False) -> FloatMatrix:
    """Share of all recommended items that are relevant.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant.
    relative : bool
        Whether hits are divided by how many there can be, min(n, R), instead of by n.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a list; NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_n / n``, n being the number of items of the list; P(denom='len') without a cutoff is the same number.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> set_precision(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0]))
    array([[0.4]])
    """
    return where_defined(ratio(*set_precision_parts(cut, rel=rel, relative=relative)), cut.n_relevant(rel) > 0)


@Definition(
    name="SetR",
    formula="h_n / R",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval set_recall",
    aliases={"set_recall": {}, "set_R": {}, "SetRecall": {}},
    cutoff=Cutoff("forbidden"),
    parts=set_recall_parts,
    takes_judged_only=False,
    bounded_by_gains=True,
    goldens=(
        Golden("SetR", (_TWO_OF_FIVE, _NO_LIST), ("2/4", "0"), mean="1/4"),
        Golden("SetR(agg='micro')", (_TWO_OF_FIVE, _NO_LIST), ("2/4", "0"), mean="2 / (4 + 1)"),
    ),
)
def set_recall(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Share of the relevant items that are recommended at all.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_n / R``, n being the length of the list; R without a cutoff is the same number.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> set_recall(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0]))
    array([[0.5]])
    """
    return recall(cut, denom="R", rel=rel)


@Definition(
    name="SetF",
    formula="(1 + b^2) P R / (b^2 P + R) with P = SetP, R = SetR, b = beta; 0 where P = R = 0",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval set_F, whose parameter is beta squared",
    aliases={"set_F": {}},
    cutoff=Cutoff("forbidden"),
    parts=set_f_parts,
    bounded_by_gains=True,
    goldens=(
        Golden("SetF", (_TWO_OF_FIVE, _NO_LIST), ("4/9", "0"), mean="2/9", note="SetP = 2/5 and SetR = 1/2"),
        Golden(
            "SetF(agg='micro')",
            (_TWO_OF_FIVE, Ranking([1])),
            ("4/9", "1"),
            mean="2 * (2 + 1) / ((4 + 5) + (1 + 1))",
            note="F of the precision and the recall of all users together",
        ),
        Golden("SetF(beta=2)", (_TWO_OF_FIVE,), ("5 * 2/5 * 1/2 / (4 * 2/5 + 1/2)",), note="recall counts more"),
    ),
)
def set_f_measure(cut: CutLists, *, beta: Annotated[float, Above(0)] = 1, rel: Level = 1) -> FloatMatrix:
    """Weighted harmonic mean of precision and recall of the whole list.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs, of which only the whole list has a meaning.
    beta : float
        How many times more recall counts than precision.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    Notes
    -----
    ``(1 + b^2) P R / (b^2 P + R)`` with P = h_n / n and R = h_n / R comes to ``(1 + b^2) h_n / (b^2 R + n)``.
    Unlike F@k, ranks beyond the end of the list do not count against it.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> set_f_measure(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0]))
    array([[0.44444444]])
    """
    return where_defined(ratio(*set_f_parts(cut, beta=beta, rel=rel)), cut.n_relevant(rel) > 0)

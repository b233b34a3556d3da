"""Precision, recall and F of the whole list as a set, whatever its order."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankeval_spark.measures.accuracy.precision_recall import NO_RELEVANT, f_ratio, precision, recall
from rankeval_spark.measures.arrays import Ratio
from rankeval_spark.measures.definition import ANY_ORDER_OF_TIES, Cutoff, Definition, Restrictions
from rankeval_spark.measures.kernel_inputs.lists import CutLists
from rankeval_spark.measures.options import Meaning
from rankeval_spark.measures.shared_options import Level, RecallWeight


@Definition(
    name="SetP",
    formula="h_n / n",
    undefined=NO_RELEVANT,
    source="trec_eval set_P and set_relative_P; ir_measures SetP",
    aliases={"set_P": {}, "SetPrecision": {}, "set_relative_P": {"relative": True}},
    cutoff=Cutoff("forbidden"),
    ties=ANY_ORDER_OF_TIES,
)
def set_precision(
    cut: CutLists,
    *,
    rel: Level = 1,
    relative: Annotated[
        bool, Meaning("Whether hits are divided by how many there can be, min(n, R), instead of by n.")
    ] = False,
) -> Ratio:
    """Share of all recommended items that are relevant.

    ``h_n / n``, n being the number of items of the list: in [0, 1]; 0 without a list; NaN where the user has no
    relevant judgement.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> set_precision(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0])).values
    array([[0.4]])
    """
    whole = precision(cut, denom="len", rel=rel)
    if not relative:
        return whole
    return Ratio(whole.numerator, np.minimum(whole.denominator, cut.n_relevant(rel)), where=whole.where)


@Definition(
    name="SetR",
    formula="h_n / R",
    undefined=NO_RELEVANT,
    source="trec_eval set_recall",
    aliases={"set_recall": {}, "set_R": {}, "SetRecall": {}},
    cutoff=Cutoff("forbidden"),
    ties=ANY_ORDER_OF_TIES,
    restrictions=Restrictions(judged_only=False, weighted=True),
)
def set_recall(cut: CutLists, *, rel: Level = 1) -> Ratio:
    """Share of the relevant items that are recommended at all.

    ``h_n / R``, n being the length of the list: in [0, 1]; NaN where the user has no relevant judgement.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> set_recall(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0])).values
    array([[0.5]])
    """
    return recall(cut, rel=rel)


@Definition(
    name="SetF",
    formula="(1 + b^2) P R / (b^2 P + R) with P = SetP, R = SetR, b = beta; 0 where P = R = 0",
    undefined=NO_RELEVANT,
    source="trec_eval set_F, whose parameter is beta squared",
    aliases={"set_F": {}},
    cutoff=Cutoff("forbidden"),
    ties=ANY_ORDER_OF_TIES,
)
def set_f_measure(cut: CutLists, *, beta: RecallWeight = 1, rel: Level = 1) -> Ratio:
    """Weighted harmonic mean of precision and recall of the whole list.

    ``(1 + b^2) h_n / (b^2 R + n)``: in [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> set_f_measure(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([0])).values
    array([[0.44444444]])
    """
    return f_ratio(cut, cut.n_items, beta=beta, rel=rel)

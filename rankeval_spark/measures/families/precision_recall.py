"""How many of the recommended items are relevant, and how many of the relevant items are recommended."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, sum_by_list, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.needs import VALUES
from rankeval_spark.measures.options import Above, Level
from rankeval_spark.measures.registry import Cutoff, Definition, Rule

_NO_RELEVANT = "no relevant judgement (R = 0)"
_TWO_OF_FOUR = Ranking([1, None, 1, None])
_TWO_OF_EIGHT = Ranking([1, None, 1, None], missed=[1] * 6)
_BOUGHT = Ranking([2, 1, None, 1], values=[20, 5, 0, 9], missed=[2], missed_values=[50])
_VALUES_OF_ALL = Rule(
    "gains='value' only with denom='R'", lambda options: options["gains"] == "value" and options["denom"] != "R"
)
_TWO_IN_TOP_FIVE = Ranking([None, 1, None, 1, None], missed=[1, 1])


def precision_parts(
    cut: CutLists, *, denom: Literal["k", "len", "min"] = "k", rel: Level = 1
) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits among the first k recommendations, and what they are divided by."""
    possible = {"k": cut.k, "len": cut.n_items, "min": np.minimum(cut.k, cut.n_relevant(rel))}[denom]
    return cut.hits(rel), possible


def recall_parts(
    cut: CutLists, *, denom: Literal["R", "min"] = "R", gains: Literal["binary", "value"] = "binary", rel: Level = 1
) -> tuple[FloatMatrix, FloatMatrix]:
    """Hits among the first k recommendations, and the relevant items there are; or the values of both."""
    if gains == "value":
        return _value_parts(cut, rel)
    n_relevant = cut.n_relevant(rel)
    return cut.hits(rel), n_relevant if denom == "R" else np.minimum(n_relevant, cut.k)


def _value_parts(cut: CutLists, rel: float) -> tuple[FloatMatrix, FloatMatrix]:
    lists = cut.lists
    of_hits, of_judged = (np.maximum(values, 0.0) for values in lists.values)
    counted = of_judged * (lists.judged_gain >= rel)
    total = sum_by_list(lists.judged_list, counted, n_lists=lists.n_lists)[:, None]
    return cut.sum_hits(of_hits * (lists.hit_gain >= rel)), total


def f_parts(cut: CutLists, *, beta: Annotated[float, Above(0)] = 1, rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """(1 + b^2) times the hits among the first k recommendations, and b^2 R + k."""
    weight = beta**2
    return (1 + weight) * cut.hits(rel), weight * cut.n_relevant(rel) + cut.k


@Definition(
    name="P",
    formula="h_k / k",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="trec_eval P and relative_P; denom='len' as LensKit and Evidently",
    aliases={"Precision": {}, "Prec": {}, "relative_P": {"denom": "min"}},
    takes_expected_ties=True,
    cutoff=Cutoff("required").but("optional", denom="len"),
    parts=precision_parts,
    goldens=(
        Golden("P@5", (_TWO_IN_TOP_FIVE,), ("2/5",), note="2 hits in the top 5"),
        Golden("P@10", (Ranking([1, None, 1]),), ("2/10",), note="ranks the list does not reach are not relevant"),
        Golden("P@5", (Ranking([None, 0], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
        Golden("P@5", (Ranking([], missed=[1]),), ("0",), note="the model gave no list"),
        Golden("P(denom='len')@5", (_TWO_OF_FOUR, _TWO_OF_EIGHT), ("2/4", "2/4"), note="rewards the shorter list"),
        Golden("P(denom='min')@5", (_TWO_OF_FOUR, _TWO_OF_EIGHT), ("2/2", "2/5"), note="at most min(k, R) can be hit"),
        Golden("P(agg='micro',denom='len')@5", (_TWO_OF_FOUR, Ranking([1])), ("2/4", "1/1"), mean="(2 + 1) / (4 + 1)"),
        Golden(
            "P(judged_only=True)@2",
            (Ranking([None, 1, None, 1]), Ranking([None, 1, -1]), Ranking([None, None], missed=[1])),
            ("2/2", "1/2", "0"),
            note="items without a judgement, or with a negative one, leave the list before it is cut",
        ),
        Golden("P(rel=2)@2", (Ranking([1, 2, 3], missed=[3]),), ("1/2",), note="relevant from gain 2 on"),
    ),
)
def precision(cut: CutLists, *, denom: Literal["k", "len", "min"] = "k", rel: Level = 1) -> FloatMatrix:
    """Share of the first k recommendations that are relevant.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    denom : {"k", "len", "min"}
        What the hits are divided by: k; the items at ranks 1..k; the hits there can be, min(k, R).
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a list; NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_k / k`` with h_k the relevant items at ranks 1..k. Missing ranks count as not relevant; ``denom='len'``
    (LensKit, Evidently) leaves them out, so that a shorter list looks better. ``denom='min'`` is trec_eval's
    relative_P.

    Examples
    --------
    Hits at ranks 1 and 3 of a list of 4, and no other relevant item:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> batch = Lists.of([Ranking([1, None, 1, None])])
    >>> precision(batch.cut([1, 5]))
    array([[1. , 0.4]])
    >>> precision(batch.cut([1, 5]), denom="min")
    array([[1., 1.]])
    """
    return where_defined(ratio(*precision_parts(cut, denom=denom, rel=rel)), cut.n_relevant(rel) > 0)


@Definition(
    name="R",
    formula="h_k / R",
    bounds=(0, 1),
    undefined=f"{_NO_RELEVANT}; with gains='value': none with a positive value",
    source="trec_eval recall; denom='min' as LensKit and BEIR's recall_cap",
    aliases={"Recall": {}},
    takes_expected_ties=True,
    parts=recall_parts,
    rules=(_VALUES_OF_ALL,),
    needs_with=lambda *, gains, **_: (VALUES,) if gains == "value" else (),
    bounded_by_gains=lambda gains, group, **_: gains != "value" and group is None,
    goldens=(
        Golden("R@5", (_TWO_IN_TOP_FIVE,), ("1/2",), note="2 of 4 relevant items in the top 5"),
        Golden("R@5", (_TWO_OF_FOUR, _TWO_OF_EIGHT), ("2/2", "2/8")),
        Golden(
            "R(agg='micro')@5", (_TWO_OF_FOUR, _TWO_OF_EIGHT), ("2/2", "2/8"), mean="4/10", note="of all relevant items"
        ),
        Golden("R(denom='min')@5", (_TWO_OF_FOUR, _TWO_OF_EIGHT), ("2/2", "2/5"), note="at most k can be hit"),
        Golden("R", (Ranking([None] * 9 + [1], missed=[1]),), ("1/2",), note="the whole list"),
        Golden(
            "R(gains='value')@2",
            (_BOUGHT, Ranking([1], values=[0])),
            ("(20 + 5) / (20 + 5 + 9 + 50)", UNDEFINED),
            note="the share of the revenue, not of the items; nothing of worth",
        ),
        Golden("R(rel=2,gains='value')@2", (_BOUGHT,), ("20 / (20 + 50)",), note="relevant by the gain, not the value"),
        Golden("R(agg='micro',gains='value')@2", (_BOUGHT, Ranking([1])), ("25/84", "1"), mean="26/85"),
        Golden(
            "R(group='tail')@2",
            (Ranking([1, 1], groups=["head", "tail"], missed=[1], missed_groups=["tail"]), Ranking([1])),
            ("1/2", UNDEFINED),
            note="one of two tail items; no judgement of the tail",
        ),
        Golden(
            "R(agg='micro',group='tail')@2",
            (Ranking([1, 1], groups=["head", "tail"], missed=[1], missed_groups=["tail"]), Ranking([1])),
            ("1/2", UNDEFINED),
            mean="1/2",
        ),
    ),
)
def recall(
    cut: CutLists, *, denom: Literal["R", "min"] = "R", gains: Literal["binary", "value"] = "binary", rel: Level = 1
) -> FloatMatrix:
    """Share of the relevant items that are among the first k recommendations.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    denom : {"R", "min"}
        What the hits are divided by: the relevant items R; those that k places can hold, min(R, k).
    gains : {"binary", "value"}
        Whether a relevant item counts 1, or the value that the held-out table has next to its gain (0 where negative).
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_k / R``. With ``denom='R'`` it never falls with k, and a perfect list scores k / R < 1 where R > k. With
    ``gains='value'`` it is the share of what the relevant items are worth: ``sum_{i<=k} r_i v_i`` divided by the same
    sum over all relevant judgements. The gain says what is relevant, the value what it is worth.

    Examples
    --------
    Hits at ranks 1 and 3; six relevant items are missing from the list:

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> batch = Lists.of([Ranking([1, None, 1, None], missed=[1] * 6)])
    >>> recall(batch.cut([1, 5])), recall(batch.cut([1, 5]), denom="min")
    (array([[0.125, 0.25 ]]), array([[1. , 0.4]]))
    """
    found, possible = recall_parts(cut, denom=denom, gains=gains, rel=rel)
    return where_defined(ratio(found, possible), possible > 0)


@Definition(
    name="F",
    formula="(1 + b^2) P R / (b^2 P + R), b = beta; 0 where P = R = 0",
    bounds=(0, 1),
    undefined=_NO_RELEVANT,
    source="van Rijsbergen (1979), Information Retrieval, chapter 7",
    aliases={"F1": {"beta": 1.0}, "F1Score": {"beta": 1.0}, "FMeasure": {}, "FBeta": {}},
    printed_as={"F1": {"beta": 1.0}},
    takes_expected_ties=True,
    parts=f_parts,
    cutoff=Cutoff("required"),
    goldens=(
        Golden("F1@5", (_TWO_IN_TOP_FIVE,), ("4/9",), note="P@5 = 2/5 and R@5 = 1/2"),
        Golden("F(beta=2)@5", (_TWO_IN_TOP_FIVE,), ("5 * 2/5 * 1/2 / (4 * 2/5 + 1/2)",), note="recall counts more"),
        Golden("F1@5", (Ranking([None, 0, None], missed=[1]),), ("0",), note="no hit"),
        Golden(
            "F1(agg='micro')@5",
            (_TWO_IN_TOP_FIVE, Ranking([1])),
            ("4/9", "2/6"),
            mean="2 * (2 + 1) / ((4 + 5) + (1 + 5))",
            note="F of the precision and the recall of all users together",
        ),
    ),
)
def f_measure(cut: CutLists, *, beta: Annotated[float, Above(0)] = 1, rel: Level = 1) -> FloatMatrix:
    """Weighted harmonic mean of precision and recall at k.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
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
    ``(1 + b^2) P R / (b^2 P + R)`` with P = h_k / k and R = h_k / R comes to ``(1 + b^2) h_k / (b^2 R + k)``. That form
    needs no case for P = R = 0. The aggregate is the mean of the users' values, not F of mean P and mean R; with
    ``agg='micro'`` it is F of the precision and the recall of all users together.

    Examples
    --------
    Two hits in the top 5, four relevant items: P = 2/5, R = 1/2, F1 = 4/9.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> f_measure(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([5]))
    array([[0.44444444]])
    """
    return where_defined(ratio(*f_parts(cut, beta=beta, rel=rel)), cut.n_relevant(rel) > 0)


@Definition(
    name="NumHits",
    formula="h_k",
    bounds=(0, math.inf),
    undefined=_NO_RELEVANT,
    source="ranx hits; trec_eval num_rel_ret",
    aliases={"num_rel_ret": {}, "NumRelRet": {}},
    takes_expected_ties=True,
    goldens=(
        Golden("NumHits@5", (_TWO_IN_TOP_FIVE,), ("2",)),
        Golden("NumHits", (Ranking([1, None, None, 1, 1, None], missed=[1]),), ("3",), note="the whole list"),
    ),
)
def num_hits(cut: CutLists, *, rel: Level = 1) -> FloatMatrix:
    """Count of relevant items among the first k recommendations.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        Whole numbers from 0 to min(k, R); NaN where the user has no relevant judgement.

    Notes
    -----
    ``h_k``; equals k P@k and R times R@k.

    Examples
    --------
    >>> from rankeval_spark.measures import Lists, Ranking
    >>> num_hits(Lists.of([Ranking([None, 1, None, 1, None], missed=[1, 1])]).cut([1, 2, 5]))
    array([[0., 1., 2.]])
    """
    return where_defined(cut.hits(rel), cut.n_relevant(rel) > 0)

"""Precision at the ranks of the hits, averaged over one of five denominators."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, ratio, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Level  # noqa: TC001 - the registry reads the annotation at run time
from rankeval_spark.measures.registry import Cutoff, Definition

_LIST_A = Ranking([None, 1, 1])
_LIST_B = Ranking([1, 1, None])
_TWO_OF_TWO = Ranking([1, None, 1, None])
_TWO_OF_EIGHT = Ranking([1, None, 1, None], missed=[1] * 6)
_BOTH = (_TWO_OF_TWO, _TWO_OF_EIGHT)
_GAINED = "(1 + 2/3)"

Denom: TypeAlias = Literal["R", "min", "k", "len", "hits"]
"""What the precisions are divided by."""


def average_precision_parts(cut: CutLists, *, denom: Denom = "R", rel: Level = 1) -> tuple[FloatMatrix, FloatMatrix]:
    """Precision at the rank of each hit, summed, and what the sum is divided by."""
    relevance = cut.lists.relevance(rel)
    gained = cut.once(
        ("sum of precisions", rel),
        lambda: cut.sum_hits(relevance.is_relevant * relevance.n_above / cut.lists.hit_rank),
    )
    possible = {
        "R": relevance.n_relevant,
        "min": np.minimum(relevance.n_relevant, cut.k),
        "k": cut.k,
        "len": np.minimum(relevance.n_relevant, cut.n_items),
        "hits": cut.hits(rel),
    }[denom]
    return gained, possible


@Definition(
    name="AP",
    formula="(1 / R) sum_{i<=k} r_i h_i / i",
    bounds=(0, 1),
    undefined="no relevant judgement (R = 0)",
    source="trec_eval map and map_cut; the five denominators after Tamm et al. (2021), Quality metrics in "
    "recommender systems: do we calculate metrics consistently?",
    aliases={"MAP": {}, "map_cut": {}, "AveragePrecision": {}},
    cutoff=Cutoff("optional").but("required", denom="k"),
    takes_expected_ties=lambda denom, **_: denom != "hits",
    bounded_by_gains=lambda denom, group, **_: denom != "hits" and group is None,
    parts=average_precision_parts,
    goldens=(
        Golden("AP", (_LIST_A, _LIST_B), ("(1/2 + 2/3) / 2", "1"), mean="((1/2 + 2/3) / 2 + 1) / 2"),
        Golden("AP@6", (Ranking([1, None, None, 1, 1, None]),), ("(1 + 2/4 + 3/5) / 3",), note="hits at 1, 4, 5"),
        Golden("AP@5", _BOTH, (f"{_GAINED} / 2", f"{_GAINED} / 8"), note="divided by R = 2 and 8"),
        Golden("AP(denom='min')@5", _BOTH, (f"{_GAINED} / 2", f"{_GAINED} / 5"), note="by min(R, k)"),
        Golden("AP(denom='len')@5", _BOTH, (f"{_GAINED} / 2", f"{_GAINED} / 4"), note="by min(R, k, n)"),
        Golden("AP(denom='k')@5", _BOTH, (f"{_GAINED} / 5", f"{_GAINED} / 5"), note="by k: blind to R"),
        Golden("AP(denom='hits')@5", _BOTH, (f"{_GAINED} / 2", f"{_GAINED} / 2"), note="by h_k: blind to R"),
        Golden(
            "AP(agg='micro')@5",
            _BOTH,
            (f"{_GAINED} / 2", f"{_GAINED} / 8"),
            mean=f"2 * {_GAINED} / (2 + 8)",
            note="the mean precision at all relevant items there are, 0 at those that were missed",
        ),
        Golden(
            "AP(agg='micro',denom='hits')@5",
            (_TWO_OF_TWO, Ranking([None, 1])),
            (f"{_GAINED} / 2", "1/2"),
            mean=f"({_GAINED} + 1/2) / 3",
            note="the mean precision at all hits",
        ),
        Golden(
            "AP(judged_only=True)@2",
            (Ranking([None, 1, 0, None, 1]), Ranking([-1, None, 1])),
            ("1 / 2", "1"),
            note="the judged items alone are 1 0 1, of which two count; what was pooled and not judged leaves too",
        ),
        Golden("AP", (Ranking([0, None], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def average_precision(cut: CutLists, *, denom: Denom = "R", rel: Level = 1) -> FloatMatrix:
    """Precision at the rank of each hit, summed and divided by the hits that could have been; its mean is MAP.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    denom : {"R", "min", "k", "len", "hits"}
        What the sum is divided by: the relevant items R; min(R, k); k; min(R, k, n); the hits h_k.
    rel : float
        Gain from which on an item is relevant.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1]; 0 without a hit; NaN where the user has no relevant judgement.

    Notes
    -----
    ``(1 / D) sum_{i<=k} r_i h_i / i``, h_i the relevant items at ranks 1..i. ``R`` is trec_eval's map_cut: a perfect
    list scores below 1 where R > k. ``min`` (Kaggle, Spark, RecBole) is 1 for it, but values at different k do not
    compare. ``len`` is LensKit's, ``k`` is RecTools' divide_by_k; ``hits`` ignores recall.

    With ``agg='micro'`` the sums of all users are divided by their denominators: with ``R``, precision averaged over
    relevant items, not users.

    Examples
    --------
    Hits at ranks 2 and 3, R = 2: (1/2 + 2/3) / 2.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> average_precision(Lists.of([Ranking([None, 1, 1])]).cut([2, 0]))
    array([[0.25      , 0.58333333]])
    """
    gained, possible = average_precision_parts(cut, denom=denom, rel=rel)
    return where_defined(ratio(gained, possible), cut.n_relevant(rel) > 0)

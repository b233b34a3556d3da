"""What a user gains who looks at the next item with a fixed probability."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import numpy as np

from rankeval_spark.measures.arrays import FloatMatrix, FloatVector, where_defined
from rankeval_spark.measures.golden import UNDEFINED, Golden
from rankeval_spark.measures.grades import require_no_gain_above
from rankeval_spark.measures.lists import CutLists, Ranking
from rankeval_spark.measures.options import Above, Below, Level
from rankeval_spark.measures.registry import Definition, Rule
from rankeval_spark.measures.weighting import Weighting

Persistence: TypeAlias = Annotated[float, Above(0), Below(1)]
"""Probability of looking at the next item."""

_MOFFAT = "Moffat & Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness"
_NO_GAIN = "no judgement with a positive gain; with rel: no relevant one (R = 0)"

_MAX_REL_IS_GRADED: Final = Rule(
    "max_rel only without rel", lambda options: options["rel"] is not None and options["max_rel"] != 1
)

_TWO_HITS = Ranking([1, None, 1, None])
_GRADED = Ranking([3, None, 1])
_TWO_JUDGED = Ranking([1, None, 0, None])


@Definition(
    name="RBP",
    formula="(1 - p) sum_{i<=k} (g_i / max_rel) p^(i-1); with rel: r_i instead of g_i / max_rel",
    bounds=(0, 1),
    undefined=_NO_GAIN,
    source=_MOFFAT,
    aliases={"RankBiasedPrecision": {}},
    takes_expected_ties=True,
    rules=(_MAX_REL_IS_GRADED,),
    always_printed=("p",),
    goldens=(
        Golden("RBP(p=0.8)@2", (_TWO_HITS,), ("0.2",), note="the hit at rank 3 is beyond the cutoff"),
        Golden("RBP(p=0.8)", (_TWO_HITS,), ("0.2 * (1 + 0.8**2)",), note="hits at ranks 1 and 3"),
        Golden("RBP(p=0.5)", (_TWO_HITS,), ("1/2 * (1 + 1/4)",), note="a less patient user"),
        Golden("RBP(max_rel=3,p=0.8)", (_GRADED,), ("0.2 * (1 + 1/3 * 0.8**2)",), note="gains as shares of 3"),
        Golden("RBP(rel=2,p=0.8)", (_GRADED,), ("0.2",), note="relevant from gain 2 on: a hit at rank 1"),
        Golden("RBP(p=0.8)", (Ranking([-1, 1]),), ("0.2 * 0.8",), note="a negative gain counts as 0"),
        Golden("RBP(p=0.8)@5", (Ranking([None, 0], missed=[0]),), (UNDEFINED,), note="no relevant held-out item"),
    ),
)
def rank_biased_precision(
    cut: CutLists, *, max_rel: Level = 1, p: Persistence = 0.8, rel: Level | None = None
) -> FloatMatrix:
    """Mean gain per item looked at, of a user who goes on to the next item with probability p.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    max_rel : float
        Greatest gain there can be; a judgement above it is an error. Only without ``rel``.
    p : float
        Probability of going on to the next item.
    rel : float or None
        Gain from which on an item is relevant and worth 1; left out, an item is worth its gain over ``max_rel``.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1], at most 1 - p**k; NaN where the user has no judgement with a positive gain (with ``rel``: none that
        is relevant).

    Raises
    ------
    JudgementError
        A judgement with a gain above ``max_rel``.

    Notes
    -----
    ``(1 - p) sum_{i<=k} (g_i / max_rel) p^(i-1)``, a negative gain counting as 0. Tools disagree about the default of
    p (0.8 here and in ir_measures, 0.85 in LensKit, 0.9 in trec_eval), so every name shows it. ``max_rel`` never comes
    from the data: a list's value must not depend on its own best grade.

    Examples
    --------
    Hits at ranks 1 and 3: 0.2 and 0.2 (1 + 0.8**2).

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> rank_biased_precision(Lists.of([Ranking([1, None, 1])]).cut([1, 3]))
    array([[0.2  , 0.328]])
    """
    weighting = _weighting(rel)
    highest = 1.0
    if rel is None:
        highest = max_rel
        require_no_gain_above(max_rel, cut.lists, measure="RBP")
    worth = weighting.gain(cut.lists.hit_gain) / highest
    gained = (1 - p) * cut.sum_hits(worth * _chance_of_looking(p, cut))
    return where_defined(gained, weighting.has_gain(cut))


@Definition(
    name="RBPResidual",
    formula="p^m + (1 - p) sum of p^(i-1) over the ranks i <= m without a judgement",
    bounds=(0, 1),
    undefined=_NO_GAIN,
    source=_MOFFAT,
    always_printed=("p",),
    without_relevant=lambda **_: 1.0,
    takes_judged_only=False,
    bounded_by_gains=False,
    goldens=(
        Golden(
            "RBPResidual(p=0.8)@2", (_TWO_JUDGED,), ("0.8**2 + 0.2 * 0.8",), note="rank 2 is unknown, and all below"
        ),
        Golden(
            "RBPResidual(p=0.8)",
            (_TWO_JUDGED,),
            ("0.8**4 + 0.2 * (0.8 + 0.8**3)",),
            note="an item judged not relevant is known",
        ),
        Golden("RBPResidual(p=0.5)@3", (Ranking([1, 0, 1]),), ("1/8",), note="all judged: the unseen tail remains"),
        Golden("RBPResidual(p=0.8)@5", (Ranking([], missed=[1]),), ("1",), note="without a list nothing is known"),
        Golden("RBPResidual(rel=2,p=0.8)", (Ranking([1]),), (UNDEFINED,), note="as RBP(rel=2,p=0.8)"),
    ),
)
def rank_biased_precision_residual(cut: CutLists, *, p: Persistence = 0.8, rel: Level | None = None) -> FloatMatrix:
    """How much RBP could still grow if all that is unknown were relevant.

    Parameters
    ----------
    cut : CutLists
        The lists and the cutoffs.
    p : float
        Probability of going on to the next item.
    rel : float or None
        The ``rel`` of the RBP that it accompanies: it decides only for which users both are defined.

    Returns
    -------
    float64, shape (n_lists, n_cutoffs)
        In [0, 1], at least p**m; 1 without a list; NaN where the user has no judgement with a positive gain (with
        ``rel``: none that is relevant).

    Notes
    -----
    ``p^m + (1 - p) sum p^(i-1)`` over the ranks i <= m = min(k, n) without a judged item. An item judged not
    relevant is known, and the tail below rank m never is. RBP and residual together are at most 1.

    Examples
    --------
    Rank 2 of 3 has no judgement: 0.8 + 0; 0.8**2 + 0.2 * 0.8; 0.8**3 + 0.2 * 0.8.

    >>> from rankeval_spark.measures import Lists, Ranking
    >>> rank_biased_precision_residual(Lists.of([Ranking([1, None, 0])]).cut([1, 2, 3]))
    array([[0.8  , 0.8  , 0.672]])
    """
    known = (1 - p) * cut.sum_hits(_chance_of_looking(p, cut))
    # All weights together are 1, so what is not known is the rest; rounding must not take it below the tail.
    residual = np.maximum(1 - known, p**cut.depth)
    return where_defined(residual, _weighting(rel).has_gain(cut))


def _weighting(rel: float | None) -> Weighting:
    return Weighting("none", "grade", 1) if rel is None else Weighting("none", "binary", rel)


def _chance_of_looking(p: float, cut: CutLists) -> FloatVector:
    """Probability with which the user comes to each hit."""
    return np.power(p, cut.lists.hit_rank - 1, dtype=np.float64)

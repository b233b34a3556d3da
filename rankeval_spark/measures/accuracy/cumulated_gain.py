"""Gains added up over the ranks, with a discount and relative to the best order there could be."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from rankeval_spark.measures.accuracy.gains_and_discounts import Dcg, Gains, Ideal, Unjudged, Weighting
from rankeval_spark.measures.arrays import FloatMatrix, Ratio, where_defined
from rankeval_spark.measures.definition import Cutoff, Definition, OptionRule, TieHandling, only_with
from rankeval_spark.measures.lists import CutLists
from rankeval_spark.measures.options import GainMap, Level
from rankeval_spark.measures.required_facts import VALUES

_NO_GAIN = (
    "no judgement with a positive gain; with gains='binary': no relevant one (R = 0); with 'value': no such value"
)
_JARVELIN = "Järvelin & Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques"
_BURGES = "Burges et al. (2005), Learning to rank using gradient descent"

_REL_IS_BINARY: Final = only_with("rel", 1, "gains", "binary")
_ONES_ARE_BINARY: Final = OptionRule(
    "ideal='k_ones' only with gains='binary'",
    lambda options: options["ideal"] == "k_ones" and options["gains"] != "binary",
)
_VALUES_ARE_NOT_RAISED: Final = OptionRule(
    "dcg='exp-log2' not with gains='value': 2 to the power of an amount says nothing",
    lambda options: options["dcg"] == "exp-log2" and options["gains"] == "value",
)
_UNJUDGED_IN_IDEAL: Final = OptionRule(
    "unjudged='mean' and 'median' only with ideal='judged' and 'len'",
    lambda options: options["unjudged"] != "zero" and options["ideal"] not in {"judged", "len"},
)
_NONE_IS_LEFT: Final = OptionRule(
    "judged_only=True not with unjudged='mean' or 'median': the lists then hold no item without a judgement",
    lambda options: options["judged_only"] is True and options["unjudged"] != "zero",
)
_RULES: Final = (_REL_IS_BINARY, _NONE_IS_LEFT, only_with("weighted", None, "unjudged", "zero"))
_OF_IDEAL: Final = (_ONES_ARE_BINARY, _UNJUDGED_IN_IDEAL, only_with("weighted", None, "ideal", "judged", "len"))
_IDEAL_CUTOFF: Final = Cutoff("optional").but("required", ideal="k_ones").but("required", unjudged="mean")
_NORMALISED_CUTOFF: Final = _IDEAL_CUTOFF.but("required", unjudged="median")
"""An ideal list of ones, or of items without a judgement that are worth something, has no end of its own."""


def _is_bounded_by_gains(  # every other option leaves the better item the one with the greater gain
    *, gains: Gains, unjudged: Unjudged, group: str | None, ideal: Ideal = "judged", **_: object
) -> bool:
    """Return True if descending gains are the best order of tied items, and ascending gains the worst.

    Where a map gives grade 0 a gain it is not: an item without a judgement has gain 0 too.
    """
    if isinstance(gains, GainMap) and gains.grades[0] == 0:
        return False
    return gains != "value" and unjudged == "zero" and ideal != "retrieved" and group is None


_TIES: Final = TieHandling(has_mean=True, bounded_by_gains=_is_bounded_by_gains)
_NORMALISED_TIES: Final = TieHandling(
    has_mean=lambda ideal, **_: ideal != "retrieved", bounded_by_gains=_is_bounded_by_gains
)

gain_measure = partial(
    Definition,
    undefined=_NO_GAIN,
    needs=lambda gains, **_: (VALUES,) if gains == "value" else (),
    weighted=True,
    ties=_TIES,
)


@gain_measure(name="CG", formula="sum_{i<=k} g_i", bounds=(0, math.inf), source=_JARVELIN, rules=_RULES)
def cumulated_gain(
    cut: CutLists, *, gains: Gains = "grade", rel: Level = 1, unjudged: Unjudged = "zero"
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations.

    ``sum_{i<=k} g_i``: in units of gain, at least 0; NaN where the user has no judgement with a positive gain.

    >>> cumulated_gain(Lists.of([Ranking([3, 1, 0, 2, 0])]).cut([1, 2, 0]))
    array([[3., 4., 6.]])
    """
    return _total(cut, Weighting("none", gains, rel, unjudged))


@gain_measure(
    name="nCG",
    formula="CG@k / (CG@k of the ideal order)",
    source=_JARVELIN,
    cutoff=_NORMALISED_CUTOFF,
    rules=(*_RULES, *_OF_IDEAL),
    ties=_NORMALISED_TIES,
)
def normalised_cumulated_gain(
    cut: CutLists, *, gains: Gains = "grade", ideal: Ideal = "judged", rel: Level = 1, unjudged: Unjudged = "zero"
) -> Ratio:
    """Sum of the gains of the first k recommendations, relative to the best k there could be.

    ``CG@k / ICG@k``: in [0, 1]; NaN where the user has no judgement with a positive gain.

    >>> normalised_cumulated_gain(Lists.of([Ranking([1, 5, 3])]).cut([1, 2])).values
    array([[0.2 , 0.75]])
    """
    return _normalised(cut, Weighting("none", gains, rel, unjudged), ideal)


@gain_measure(
    name="DCG",
    formula="sum_{i<=k} g_i / log2(i + 1)",
    bounds=(0, math.inf),
    source=f"{_BURGES}; dcg='jk2': {_JARVELIN}; dcg='ln': scikit-learn dcg_score with log_base=e",
    rules=(*_RULES, _VALUES_ARE_NOT_RAISED),
)
def discounted_cumulated_gain(
    cut: CutLists, *, dcg: Dcg = "log2", gains: Gains = "grade", rel: Level = 1, unjudged: Unjudged = "zero"
) -> FloatMatrix:
    """Sum of the gains of the first k recommendations, each discounted by its rank.

    ``sum_{i<=k} G(g_i) D(i)``: in units of gain, at least 0; NaN where the user has no judgement with a positive gain.
    Gains 3 and 1 at ranks 1 and 3: 3 / log2(2) + 1 / log2(4).

    >>> discounted_cumulated_gain(Lists.of([Ranking([3, None, 1])]).cut([1, 3]))
    array([[3. , 3.5]])
    """
    return _total(cut, Weighting(dcg, gains, rel, unjudged))


@gain_measure(
    name="nDCG",
    formula="DCG@k / IDCG@k",
    source=f"trec_eval ndcg and ndcg_cut; {_JARVELIN}; {_BURGES}",
    aliases={"ndcg_cut": {}},
    cutoff=_NORMALISED_CUTOFF,
    rules=(*_RULES, *_OF_IDEAL, _VALUES_ARE_NOT_RAISED),
    ties=_NORMALISED_TIES,
)
def normalised_discounted_cumulated_gain(
    cut: CutLists,
    *,
    dcg: Dcg = "log2",
    gains: Gains = "grade",
    ideal: Ideal = "judged",
    rel: Level = 1,
    unjudged: Unjudged = "zero",
) -> Ratio:
    """Discounted cumulated gain relative to that of the best order there could be.

    ``DCG@k / IDCG@k``: in [0, 1]; NaN where the user has no judgement with a positive gain. Hits at ranks 2 and 3 are
    (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3)).

    >>> normalised_discounted_cumulated_gain(Lists.of([Ranking([None, 1, 1])]).cut([1, 3])).values.round(4)
    array([[0.    , 0.6934]])
    """
    return _normalised(cut, Weighting(dcg, gains, rel, unjudged), ideal)


def _total(cut: CutLists, weighting: Weighting) -> FloatMatrix:
    return where_defined(weighting.total(cut), weighting.has_gain(cut))


def _normalised(cut: CutLists, weighting: Weighting, ideal: Ideal) -> Ratio:
    """Divide by the ideal; 0 where a list without any gain is compared with itself."""
    return Ratio(weighting.total(cut), weighting.ideal_total(cut, ideal), where=weighting.has_gain(cut))
